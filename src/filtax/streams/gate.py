"""The simplest forecast of a step of a series, how far off such forecasts are, and which readings are absurd by that.

Readings are lists of numbers on a grid of steps: the loops over them are over single numbers.
"""

from collections.abc import Sequence
from statistics import median

__all__ = ["follow", "is_absurd", "reach", "simplest", "sober"]

FORGET = 0.995  # of the scale, at each reading
GATE = 20.0  # scales: a reading further off is absurd
CAP = 5.0  # scales: what a single reading adds to the scale at most
ENOUGH = 12  # readings before any so far off is called absurd
EARLY, WIDE = 5, 50.0  # before that: readings, and scales, as the scale is hardly known


def simplest(values: Sequence[float], at: int, horizon: int, seasons: Sequence[int]) -> float:
    """The last reading that is known, plus the change of one season ago where that is known; NaN if nothing is.

    >>> simplest([1.0, 5.0, 2.0, 6.5], 4, 1, [2])
    3.5
    """
    last = values[at - horizon]
    for season in seasons:
        change = values[at - season] - values[at - season - horizon]
        if change == change:
            return last + change
    return last


def reach(near: Sequence[float]) -> float:
    """How far off a reading may be that is not absurd, by the mean size of errors and their number.

    >>> reach([0.5, 12.0]), reach([0.5, 11.0])
    (10.0, 25.0)
    """
    return (GATE if near[1] >= ENOUGH else WIDE) * near[0]


def is_absurd(values: Sequence[float], to: int, reading: float, near: Sequence[float], seasons: Sequence[int]) -> bool:
    """Whether a reading is too far from what is expected at its step, `values[to]`.

    >>> is_absurd([1.0, 1.2, 1.1], 2, 9.0, [0.1, 20.0], [])
    True
    """
    far = reach(near)
    if not abs(reading - values[to]) > far:
        return False
    back = abs(reading - values[to - 2]) <= far  # from an error that was believed
    known = near[1] >= ENOUGH or (near[1] >= EARLY and far > 0.0 and not back)
    return known and _is_far(values, to, reading, far, seasons)


def follow(off: float, scale: float, count: float, usual: bool = False) -> list[float]:
    """Mean size of the errors, of all at first and then of the latest; one counts for a few scales at most.

    That of a reading which is as usual as others counts in full: where most errors are nothing, a scale that is cut at
    a few of itself would shrink to nothing.

    >>> follow(4.0, 2.0, 1.0)
    [3.0, 2.0]
    """
    count += 1.0
    rate = max(1.0 - FORGET, 1.0 / count)
    capped = min(off, CAP * scale) if count > ENOUGH and scale > 0.0 and not usual else off
    return [scale + rate * (capped - scale), count]


def sober(values: Sequence[float], at: int, horizon: int, seasons: Sequence[int], scale: float, count: float) -> float:
    """The scale; of the first readings at most so many of the latest errors: none of them could be called absurd yet.

    The median of three, as one error alone may be small by chance.

    >>> sober([0.0, 1.0, 0.0, 1.0, 900.0], 4, 1, [], 200.0, 5.0)
    20.0
    """
    if not 3 <= count <= ENOUGH:
        return scale
    usual = median(abs(values[k] - simplest(values, k, horizon, seasons)) for k in (at - 2, at - 1, at))
    return min(scale, GATE * usual) if usual > 0.0 else scale


def _is_far(values: Sequence[float], at: int, reading: float, far: float, seasons: Sequence[int]) -> bool:
    """Whether a reading is far from the last one too, and from what each season suggests: an old fault has echoes."""
    told = [0.0, *(values[at - season] - values[at - season - 1] for season in seasons)]
    return not any(abs(reading - values[at - 1] - change) <= far for change in told)
