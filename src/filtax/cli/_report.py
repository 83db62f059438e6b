"""`filtax report` and `filtax compare`: read runs that were made."""

from pathlib import Path
from typing import Annotated

import typer

from filtax.cli._outcome import guarded
from filtax.cli._talk import print_table, start_jax, talk

__all__ = ["compare", "report"]


def report(folder: Annotated[Path, typer.Argument(help="Folder of a run.")]) -> None:
    """Write the predictions, the scores and the report of a run again, up to its latest checkpoint."""
    with guarded():
        start_jax()
        from filtax.cli._segment import show
        from filtax.runs.config import Config
        from filtax.runs.outputs import write_outputs
        from filtax.runs.segmenting import open_segments

        if Config.read(folder).task == "segment":
            return show(open_segments(folder, warn=talk))
        written = write_outputs(folder, warn=talk)
        print(f"{written.table}\n{written.words}")
        talk(written.about)
        talk(f"Report: {written.report}")


def compare(folders: Annotated[list[Path], typer.Argument(help="Folders of runs.")]) -> None:
    """Print the scores of runs side by side, with the best baseline of each, and say which run is best.

    Runs on other rows, another target or another horizon are no match for each other, and it says so.
    """
    with guarded():
        start_jax()
        from filtax.runs.compare import compared

        rows, words = compared(folders, warn=talk)
        print_table(rows)
        for sentence in words:
            print(sentence)
