"""`filtax segment`: where a series changed, and the alarms that could have been given."""

import signal
from pathlib import Path
from typing import Annotated, Any

import typer

from filtax.cli._options import OnBad, Source, Time, asked_for
from filtax.cli._outcome import INTERRUPTED, guarded
from filtax.cli._stopping import Asked, asked_to_stop, leave_now
from filtax.cli._talk import start_jax, talk

__all__ = ["cut", "segment", "show"]


def segment(
    source: Annotated[str, Source],
    target: Annotated[str, typer.Option(help="Column that is to be segmented.")],
    time: Time = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; out/segment-NAME by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the latest checkpoint in the folder.")] = False,
    on_bad: OnBad = None,
) -> None:
    """Cut a series into segments, looking back, and tell of the alarms that could have been given as it came.

    Prints one object of JSON: the segments with their lines, means and probabilities, the alarms with the starts they
    named, the cycle if there is one. The folder of the run holds the same, each row with its segment, and a report. The
    whole series is held in memory, 20,000 readings at most. After a crash, --resume goes on.
    """
    from filtax.cli._run import folder_of

    with guarded():
        given = asked_for(None, source=source, target=target, time=time, on_bad=on_bad, task="segment")
        config, root = folder_of(given, out, resume)
        cut(config, root)


def cut(config: Any, root: Path, home: Path | None = None) -> None:
    """Read and cut the series of a run, show it, write what a run leaves, and say where."""
    start_jax()
    from filtax.io._files import PARTIAL, drop
    from filtax.runs.segmenting import cut_on

    found = None
    with asked_to_stop(patient=False) as asked:
        try:
            found = cut_on(config, root, home=home, tell=talk, warn=talk)
            show(found, asked)
        except KeyboardInterrupt:
            for unfinished in root.glob(f"*{PARTIAL}"):
                drop(unfinished)
            talk(_stopped(config, root, found is not None))
            code = 0 if asked and asked[0] != signal.SIGINT else INTERRUPTED
            if asked:
                leave_now(code)
            raise typer.Exit(code) from None


def show(found: Any, asked: Asked | None = None) -> None:
    """Write the outputs of a series that was cut, print them, and say where they are."""
    from filtax.runs.segment_page import write_segments
    from filtax.runs.told_segments import as_json

    shown = write_segments(found)
    if asked is not None:
        asked.patient = True  # there is nothing left to stop
    print(as_json(shown.told))
    talk(shown.words)
    talk(f"Report: {shown.report}")


def _stopped(config: Any, root: Path, cut: bool) -> str:
    """What is kept of a series that was left before its end, and how to go on."""
    if cut:
        return f"Stopped: the series is cut and kept, the report is not written. To write it: filtax report {root}"
    if config.source == "-":
        return "Stopped before the series was cut: standard input cannot be resumed; give it once more."
    if any((root / "checkpoint").glob("*.json")):
        return f"Stopped. To go on: filtax resume {root}"
    if (root / "config.toml").exists():
        return f"Stopped before the series was kept. To read it again: filtax resume {root}"
    return "Stopped before the series was read: there is nothing to go on from."
