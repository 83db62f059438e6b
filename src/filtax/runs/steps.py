"""How good the forecasts of each step were: errors, baselines and coverage by how far ahead they looked."""

from typing import Any

import numpy as np

from filtax.runs.bands import ENDS
from filtax.runs.fan import Fan
from filtax.runs.large import Errors
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
        self.power, self.errors = stream.plan.power, Errors(1 + len(self.rivals.names))
        self.inside, self.held = 0, 0

    def add(self, part: np.ndarray) -> None:
        y, forecast, lower, upper = (part[name] for name in ("y", *self.names))
        rivals = self.rivals.forecast(part["series"], np.ldexp(y, -self.power))
        every = np.concatenate([forecast[None], np.ldexp(rivals.T, self.power)])
        ready = np.isfinite(y) & np.isfinite(every).all(axis=0)
        self.errors.add(every[:, ready], y[ready])
        band = np.isfinite(y) & np.isfinite(lower) & np.isfinite(upper)
        self.held += int(band.sum())
        self.inside += int((band & (lower <= y) & (y <= upper)).sum())

    def scores(self) -> dict[str, Any]:
        known = self.errors.count > 0
        mean, root = ([each if known else None for each in of.tolist()] for of in (self.errors.mean, self.errors.root))
        return {
            "step": self.step,
            "mae": mean[0],
            "rmse": root[0],
            "coverage": self.inside / self.held if self.held else None,
            "rows": self.errors.count,
            "baselines": dict(zip(self.rivals.names, mean[1:], strict=True)),
        }


def in_words(steps: list[dict[str, Any]]) -> str:
    """What the steps show, in a sentence; empty where there are none.

    >>> near = {"step": 1, "mae": 1.0, "coverage": 0.9, "baselines": {"last-value": 2.0}}
    >>> in_words([near, {**near, "step": 2, "mae": 3.0, "coverage": 0.91}])
    'Step 1 to 2: mae 1 to 3, coverage 90.0% to 91.0%; mae not below that of last-value at step 2.'
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
        return f"{text}; mae below that of every baseline at every step."
    names = ", ".join(dict.fromkeys(best[each["step"]] for each in lost))
    return f"{text}; mae not below that of {names} at step {', '.join(str(each['step']) for each in lost)}."
