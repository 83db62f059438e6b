"""What a run leaves for people and programs: predictions, scores, the report."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from filtax.runs.missing import missing_in_words
from filtax.runs.page import write_page
from filtax.runs.predictions import write_predictions
from filtax.runs.results import open_run, scores, verdict, write_metrics
from filtax.runs.steps import by_step, in_words

__all__ = ["Written", "write_outputs"]


class Written(NamedTuple):
    """What was written, and what there is to say.

    >>> Written("", "", "", Path("report.html")).report.name
    'report.html'
    """

    table: str
    words: str
    about: str
    report: Path


def write_outputs(root: Path, warn: Callable[[str], object] | None = None) -> Written:
    """Write predictions.parquet, metrics.json and report.html of a run, each in one step; `warn` as for `open_run`."""
    run = open_run(root, warn)
    steps = by_step(run)
    found = scores(run) | ({"steps": steps} if steps else {})
    write_predictions(run)
    write_metrics(run, found)
    table, words = verdict(run, found)
    about = "accuracy: share of labels that were forecast right."
    if run.config.task == "regress":
        about = f"mae, median, rmse: of the errors, in the unit of {run.config.target}."
        if found.get("coverage") is not None:
            about += f" {found['coverage']:.1%} of the readings lie inside of the {run.config.level:.0%} interval."
        about += f" {in_words(steps)}" if steps else ""
    missing = missing_in_words(run)
    about += f" {missing}" if missing else ""
    return Written(table, words, about, write_page(run, found))
