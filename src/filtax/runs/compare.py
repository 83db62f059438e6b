"""Runs side by side: their scores, the best baseline of each, and whether they may be compared at all."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from filtax.evaluate._comparison import join_words
from filtax.runs.chart import short
from filtax.runs.results import Run, open_run, scores

__all__ = ["compared"]


def compared(
    folders: Sequence[Path], warn: Callable[[str], object] | None = None
) -> tuple[list[tuple[str, ...]], list[str]]:
    """A table of runs, and what it says in words.

    Args:
        folders: Of runs of one task.
        warn: As for `open_run`.

    Returns:
        Rows of text, the head first; and sentences.
    """
    runs = [open_run(folder, warn) for folder in folders]
    tasks = {run.config.task for run in runs}
    if len(tasks) > 1:
        raise ValueError("compare: some runs forecast numbers, others labels; compare runs of one task.")
    found = [scores(run) for run in runs]
    measure = "accuracy" if tasks == {"classify"} else "mae"
    names = list(next(iter(found[0]["table"].values())))
    head = ("run", "method", "rows", *names, "covered", f"best baseline ({measure})")
    table = [head] + [_line(run, one, names, measure) for run, one in zip(runs, found, strict=True)]
    return table, _words(runs, found, measure)


def _line(run: Run, one: dict[str, Any], names: list[str], measure: str) -> tuple[str, ...]:
    own = one["table"][run.config.method]
    rivals = {name: line[measure] for name, line in one["table"].items() if name != run.config.method}
    best = _best(rivals, measure)
    covered = one.get("coverage")
    marks = [short(own[name]) for name in names]
    share = "-" if covered is None else f"{covered:.1%}"
    return (str(run.root), run.config.method or "", str(one["rows"]), *marks, share, f"{best} {short(rivals[best])}")


def _words(runs: list[Run], found: list[dict[str, Any]], measure: str) -> list[str]:
    sentences = []
    lines = [one["table"][run.config.method] for run, one in zip(runs, found, strict=True)]
    own = {str(run.root): one["table"][run.config.method][measure] for run, one in zip(runs, found, strict=True)}
    alike = {(run.config.target, run.config.late, one["rows"]) for run, one in zip(runs, found, strict=True)}
    if len(runs) > 1 and len(alike) > 1:
        sentences.append("These runs differ in target, horizon or rows: their scores are not of the same thing.")
    elif len(runs) > 1:
        best = _best(own, measure)
        first = [str(run.root) for run, line in zip(runs, lines, strict=True) if line[measure] == own[best]]
        if len(first) < len(runs):
            sentences.append(f"Best on {measure}: {join_words(first)} ({short(own[best])}).")
        else:
            same = [name for name in lines[0] if all(line[name] == lines[0][name] for line in lines)]
            sentences.append(f"{join_words(first)} are equal on {join_words(same)} ({measure} {short(own[best])}).")
    for run, one in zip(runs, found, strict=True):
        rivals = {name: line[measure] for name, line in one["table"].items() if name != run.config.method}
        best = _best(rivals, measure)
        if _best({"own": own[str(run.root)], "rival": rivals[best]}, measure) == "rival":
            sentences.append(f"{run.root} loses to {best} on {measure}.")
    return sentences


def _best(values: dict[str, float], measure: str) -> str:
    sign = -1.0 if measure == "accuracy" else 1.0
    known = {name: value for name, value in values.items() if value == value} or values
    return min(known, key=lambda name: sign * known[name])
