"""A run in a few hundred numbers, for its report: averages over stretches of rows, and the last rows as they are."""

from typing import Any

import numpy as np

from filtax.runs.results import Run

__all__ = ["Digest", "digest"]

STRETCHES, LAST = 240, 336


class Digest:
    """What the figures of a report are drawn from.

    Attributes:
        x: Where each stretch ends: time, or number of rows, (P,).
        means: Average over each stretch, by name, (P,).
        low, high: Smallest and largest y of each stretch.
        changes: Largest change probability of each stretch.
        last: The last records of one series.
    """

    def __init__(self, stretches: int, names: tuple[str, ...]) -> None:
        self.x = np.full(stretches, np.nan)
        self.sums = {name: np.zeros(stretches) for name in names}
        self.counts = {name: np.zeros(stretches) for name in names}
        self.low, self.high = np.full(stretches, np.inf), np.full(stretches, -np.inf)
        self.changes = np.zeros(stretches)
        self.share = 1.0  # of each number that is summed up
        self.last: np.ndarray = np.empty(0)
        self.timed = False

    @property
    def means(self) -> dict[str, np.ndarray]:
        """Average of each name over each stretch; NaN where nothing was seen."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return {name: self.sums[name] / self.counts[name] / self.share for name in self.sums}


def digest(run: Run) -> Digest:
    """Go through the records of a run once."""
    label = run.config.task == "classify"
    errors = tuple(f"error of {name}" for name in ("forecast", *run.rivals))
    more = () if label else ("y", "forecast", "lower", "upper", "inside")
    stretches = max(1, min(STRETCHES, run.rows))
    made = Digest(stretches, (*errors, *more))
    made.share = 2.0 ** -(run.rows // stretches + 1).bit_length()  # sums of the largest numbers stay finite
    made.timed = run.config.time is not None and run.kind["time"].kind == "i"
    row, tail = 0, np.zeros(0, run.kind)
    for part in run.records():
        at = (np.arange(row, row + len(part)) * stretches) // run.rows
        row += len(part)
        made.x[at] = part["time"] if run.config.time else np.arange(row - len(part), row) + 1
        for name, values in _columns(run, part, label).items():
            seen = np.isfinite(values)
            np.add.at(made.sums[name], at[seen], made.share * values[seen])
            np.add.at(made.counts[name], at[seen], 1.0)
        change = np.nan_to_num(part["change_probability"])
        np.maximum.at(made.changes, at, change)
        y = part["y"]
        np.fmin.at(made.low, at, np.where(np.isfinite(y), y, np.inf))
        np.fmax.at(made.high, at, np.where(np.isfinite(y), y, -np.inf))
        tail = np.concatenate([tail, part[part["series"] == 0]])[-LAST:]
    made.last = tail
    return made


def _columns(run: Run, part: np.ndarray, label: bool) -> dict[str, Any]:
    y = part["y"]
    found: dict[str, Any] = {}
    for name in ("forecast", *run.rivals):
        with np.errstate(over="ignore"):
            off = np.abs(part[name] - y)
        found[f"error of {name}"] = np.where(np.isfinite(off), off != 0, np.nan) if label else off
    if not label:
        found |= {name: part[name] for name in ("y", "forecast", "lower", "upper")}
        known = np.isfinite(y) & np.isfinite(part["lower"])
        found["inside"] = np.where(known, (part["lower"] <= y) & (y <= part["upper"]), np.nan)
    return found
