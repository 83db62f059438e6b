r"""The intervals of S series, each stretched by what its own rows have shown: `filtax.estimators.stretch`, row by row.

Where labels come late a row is judged when its label comes, by the interval that was given to it. Forecasts H steps
ahead are off in groups of H, and a method has learned its noise from errors that were smaller, as more was known when
labels came. So a series whose rows are young is doubted: with n rows judged its intervals are those of a Student-t
with $2 + n / (12 H)$ degrees of freedom, as if a dozen independent errors were worth one; less so among the first 2 H
rows, where forecasts say themselves how little is known.
"""

import math

import numpy as np

from filtax.estimators.stretch import FARTHEST, RATE, deviation

__all__ = ["ENDS", "Bands", "beyond", "eased", "gross", "restored", "tails"]

ENDS = ("forecast", "lower", "upper")  # what is told of an interval
TAILS = 10.0  # degrees of freedom
FIRST, WORTH = 2.0, 12.0  # degrees of freedom before any row is judged; independent errors for one more
SOON = 2.0  # groups of errors from which on a series is doubted in full


class Bands:
    """How far the intervals are stretched, and which rows wait to be judged.

    >>> bands = Bands(0.9, late=0)
    >>> stretch = bands.follow(np.zeros(3, int), np.array([0.5, 0.001, np.nan]))
    >>> stretch.round(3).tolist(), bands.levels(stretch).round(4).tolist()
    ([0.0, -0.002, 0.016], [0.9, 0.8993, 0.9054])
    """

    def __init__(self, level: float, late: int, wary: bool = False) -> None:
        self.level, self.late, self.wary = level, late, wary and late > 0
        self.stretch, self.waiting = np.zeros(1), np.full((1, late), np.nan)
        self.judged = np.zeros(1)  # rows

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of it, for a checkpoint."""
        return [self.stretch, self.waiting, *([self.judged] if self.wary else [])]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Go on from what `arrays` told."""
        self.stretch, self.waiting, *judged = arrays
        self.judged = judged[0] if judged else np.zeros(len(self.stretch))

    def now(self) -> np.ndarray:
        """How far the next interval of each series is stretched, (S,)."""
        return self.stretch + [self._doubt(judged) for judged in self.judged.tolist()]

    def make_room(self, series: int) -> None:
        """Let more series come."""
        more = max(0, series - len(self.stretch))
        self.stretch, self.judged = np.pad(self.stretch, (0, more)), np.pad(self.judged, (0, more))
        self.waiting = np.pad(self.waiting, ((0, more), (0, 0)), constant_values=np.nan)

    def levels(self, stretch: np.ndarray) -> np.ndarray:
        """The level to ask a forecast for, where its interval is stretched by so much, (B,)."""
        from scipy.special import erf

        asked = erf(deviation(self.level) * np.exp(stretch) / np.sqrt(2.0))
        return np.where(stretch == 0.0, self.level, asked)

    def follow(self, slot: np.ndarray, pit: np.ndarray) -> np.ndarray:
        """How far the interval of each row is stretched, (B,); what its y showed counts for the rows behind.

        Args:
            slot: Series of each row, (B,).
            pit: Where y fell in its forecast, in [0, 1], (B,); NaN where there was none, and nothing is learned.
        """
        from scipy.special import ndtri

        with np.errstate(divide="ignore"):
            reach = np.log(np.abs(ndtri(pit)) / deviation(self.level))  # y lies on the edge at this stretch
        more, less = RATE * self.level, RATE * (self.level - 1.0)
        now, queues, judged, used = self.stretch.tolist(), self.waiting.tolist(), self.judged.tolist(), []
        for series, edge in zip(slot.tolist(), reach.tolist(), strict=True):
            stretch = now[series]
            given = stretch + self._doubt(judged[series])
            used.append(given)
            move = more if edge > given else less if edge == edge else np.nan
            if self.late:
                queues[series].append(move)
                move = queues[series].pop(0)
            if move == move:
                now[series] = min(max(stretch + move, -FARTHEST), FARTHEST)
                judged[series] += 1.0
        self.stretch, self.waiting = np.array(now), np.array(queues).reshape(self.waiting.shape)
        self.judged = np.array(judged)
        return np.array(used)

    def _doubt(self, judged: float) -> float:
        """Logarithm of the factor by which an interval is wider, as so few rows were judged."""
        if not self.wary:
            return 0.0
        from scipy.special import stdtrit

        errors = judged / (self.late + 1)
        heavy = stdtrit(FIRST + errors / WORTH, 0.5 + 0.5 * self.level) / deviation(self.level)
        return min(errors / SOON, 1.0) * math.log(heavy)


def beyond(said: dict[str, np.ndarray], y: np.ndarray, level: float) -> np.ndarray:
    """Probability of y, and of anything as extreme, by a Student-t with the interval that was given, (B,).

    A forecast that reckons with a change has far tails which give no reading a small probability. Where the mass lies
    says its interval; beyond it the tails are those of `TAILS` degrees of freedom, heavier than of calm errors.

    >>> said = {"forecast": np.zeros(2), "lower": -np.ones(2), "upper": np.ones(2)}
    >>> beyond(said, np.array([1.0, 6.0]), 0.9).round(8).tolist()
    [0.1, 7.3e-07]
    """
    from scipy.special import stdtr, stdtrit

    off = y - said["forecast"]
    half = np.where(off > 0.0, said["upper"] - said["forecast"], said["forecast"] - said["lower"])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return 2.0 * stdtr(TAILS, -stdtrit(TAILS, 0.5 + 0.5 * level) * np.abs(off) / half)


def eased(pit: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    """Where y fell in forecasts that are stretched so, (B,): outside of the interval where it was outside of that.

    The noise that a method has learned may be too small for forecasts far ahead: it is a mean over all rows, the first
    of them in a unit that had not settled, and of errors at the time when labels come, when more is known than was
    known to the forecast. The stretch follows the forecasts themselves.

    >>> eased(np.array([0.05, 0.5, 0.999]), np.full(3, np.log(2.0))).round(3).tolist()
    [0.205, 0.5, 0.939]
    """
    from scipy.special import ndtr, ndtri

    return ndtr(ndtri(pit) * np.exp(-stretch))


def gross(said: dict[str, np.ndarray], y: np.ndarray, level: float, rate: float, known: np.ndarray) -> np.ndarray:
    r"""Probability of rows that are gross errors even where a series has only begun, (B,); NaN of all others.

    Little is known of the scale then: so y must lie beyond its interval by a probability below $\alpha^4$; and there
    must be a scale, and nothing else may vouch for y (`known`).

    >>> said = {"forecast": np.zeros(2), "lower": -np.ones(2), "upper": np.ones(2)}
    >>> gross(said, np.array([6.0, 60.0]), 0.9, 0.001, np.ones(2, bool)).round(15).tolist()
    [nan, 0.0]
    """
    chance = beyond(said, y, level)
    return np.where(known & (chance < rate**4), chance, np.nan)


def restored(name: str, base: np.ndarray, scale: np.ndarray, values: np.ndarray) -> np.ndarray:
    """What a model says, in the unit of the target. Before there is a scale, only where a forecast starts is known.

    >>> restored("forecast", np.array([5.0, 5.0]), np.array([np.nan, 2.0]), np.array([1.0, 1.0])).tolist()
    [5.0, 7.0]
    """
    said = base + scale * values
    return np.where(np.isfinite(scale), said, base) if name == "forecast" else said


def tails(pit: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    """Probability of y, and of anything as extreme, by forecasts that are stretched so, (B,).

    >>> tails(np.array([0.5, 0.95]), np.array([0.0, 0.0])).round(3).tolist()
    [1.0, 0.1]
    """
    from scipy.special import ndtr, ndtri

    return 2.0 * ndtr(-np.abs(ndtri(pit)) * np.exp(-stretch))
