"""`filtax segment`: where a series changed, and the alarms that could have been given."""

import json
from pathlib import Path
from typing import Annotated

import typer

from filtax.commands.options import Source, Time
from filtax.commands.outcome import guarded
from filtax.commands.talk import start_jax, talk

__all__ = ["segment"]


def segment(
    source: Annotated[str, Source],
    target: Annotated[str, typer.Option(help="Column that is to be segmented.")],
    time: Time = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the figure; out by default.")] = None,
) -> None:
    """Cut a series into segments, looking back, and tell of the alarms that could have been given as it came.

    Prints one object of JSON: the changes with their lines and probabilities, the alarms with the starts they named,
    the cycle if there is one. Draws segments.png. The whole series is held in memory.
    """
    with guarded():
        start_jax()
        from filtax.runs.segmenting import draw, segmented

        series = segmented(source, target, time)
        figure = draw(series, (out or Path("out")) / "segments.png")
        print(json.dumps(series.told, indent=1))
        counts = [(len(series.told[f"{word}s"]), word) for word in ("segment", "alarm")]
        found = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts)
        talk(f"{found}. Figure: {figure}")
