"""How good the forecasts of each step were: errors, baselines and coverage by how far ahead they looked."""

import math
from typing import Any

import numpy as np

from filtax.runs.fan import ENDS, Fan
from filtax.runs.results import Run
from filtax.runs.rivals import Rivals

__all__ = ["by_step", "in_words"]


def by_step(run: Run) -> list[dict[str, Any]]:
    """Scores of every step that a run forecast, the nearest first; none where it looked one step ahead.

    Each step is judged on the rows that it and its baselines forecast, the baselines with what was known then.

    Returns:
        For each step `step`, `mae`, `rmse`, `coverage`, `rows` and `baselines`, the mae of each by name.
    """
    stream = run.stream
    if not isinstance(stream, Fan):
        return []
    tallies = [_Tally(run, h, f"_{h}") for h in stream.nearer] + [_Tally(run, run.config.horizon, "")]
    for part in run.records():
        for tally in tallies:
            tally.add(part)
    return [tally.scores() for tally in tallies]


class _Tally:
    """Sums over the rows of a run, for one step."""

    def __init__(self, run: Run, step: int, mark: str) -> None:
        stream: Any = run.stream
        self.step, self.names = step, tuple(name + mark for name in ENDS)
        self.rivals = Rivals(stream.maker.season.cycles, step - 1 + run.config.delay)
        self.rivals.make_room(stream.slots)
        self.total = np.zeros(1 + len(self.rivals.names))
        self.squares, self.count, self.inside, self.held = 0.0, 0, 0, 0

    def add(self, part: np.ndarray) -> None:
        y, forecast, lower, upper = (part[name] for name in ("y", *self.names))
        off = np.abs(np.concatenate([forecast[:, None], self.rivals.forecast(part["series"], y)], axis=1) - y[:, None])
        off = off[np.isfinite(off).all(axis=1)]
        self.total, self.count = self.total + off.sum(axis=0), self.count + len(off)
        self.squares += float(np.square(off[:, 0]).sum())
        band = np.isfinite(y) & np.isfinite(lower) & np.isfinite(upper)
        self.held += int(band.sum())
        self.inside += int((band & (lower <= y) & (y <= upper)).sum())

    def scores(self) -> dict[str, Any]:
        mean = (self.total / self.count).tolist() if self.count else [None] * len(self.total)
        return {
            "step": self.step,
            "mae": mean[0],
            "rmse": math.sqrt(self.squares / self.count) if self.count else None,
            "coverage": self.inside / self.held if self.held else None,
            "rows": self.count,
            "baselines": dict(zip(self.rivals.names, mean[1:], strict=True)),
        }


def in_words(steps: list[dict[str, Any]]) -> str:
    """What the steps show, in a sentence; empty where there are none.

    >>> near = {"step": 1, "mae": 1.0, "coverage": 0.9, "baselines": {"last-value": 2.0}}
    >>> in_words([near, {**near, "step": 2, "mae": 3.0, "coverage": 0.91}])
    'Step 1 to 2: mae 1 to 3, coverage 90.0% to 91.0%; not better than last-value at step 2.'
    """
    known = [each for each in steps if each["mae"] is not None]
    if not known:
        return ""
    holds = [each["coverage"] for each in known if each["coverage"] is not None]
    text = f"Step {known[0]['step']} to {known[-1]['step']}: mae {known[0]['mae']:.4g} to {known[-1]['mae']:.4g}"
    text += f", coverage {min(holds):.1%} to {max(holds):.1%}" if holds else ""
    best = {each["step"]: min(each["baselines"], key=each["baselines"].__getitem__) for each in known}
    lost = [each for each in known if each["mae"] >= each["baselines"][best[each["step"]]]]
    if not lost:
        return f"{text}; better than every baseline at every step."
    names = ", ".join(dict.fromkeys(best[each["step"]] for each in lost))
    return f"{text}; not better than {names} at step {', '.join(str(each['step']) for each in lost)}."
