"""Outliers and changes of one series, from its forecasts as they were issued."""

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import jax
import numpy as np
from scipy.special import betaln, softmax, stdtr, stdtrit, xlogy

from filtax import _validation as checks
from filtax.monitoring._posterior import BLOCK, block, packed_start

USUAL_RATE, BOUND = 0.05, 10.0  # rate of an hour's mean; its errors are clipped at so many scales
WINDOW = 12.0  # errors within which a level that moved shows in the slow mean; later ones may be a drift
LEAST_PROBABLE = 1e-12  # of a label
ARRAYS = ("packed", "usual", "evidence")  # what is learned
NARROWEST = 1e-3  # scales of the interval that errors have at least
FREEDOM = np.array([3.0, 5.0, 10.0])  # that the errors may have; the width of their interval follows some 20 of them
FAR, MEMORY = 1.5, 1000.0  # half intervals beyond which errors count alike; errors that say which freedom is right


@dataclass(frozen=True, eq=False)
class Seen:
    """What each row showed.

    Attributes:
        tail: (T,) probability, by its forecast, of a row at least as unusual; NaN where there was no forecast.
        outlier: (T,) whether that is below `false_alarms`, and the row no part of a change.
        change_probability: (T,) that the forecasts are disturbed at this row.
        runlength: (T,) most probable number of rows before this one since the last change.
        change: (T,) True on the row that shows a change, once.
        start: (T,) rows since the last change began; before any, since the first row.

    >>> rows = np.zeros(3)
    >>> Monitor().learn(rows, rows, rows - 1.0, rows + 1.0).tail.tolist()
    [1.0, 1.0, 1.0]
    """

    tail: np.ndarray
    outlier: np.ndarray
    change_probability: np.ndarray
    runlength: np.ndarray
    change: np.ndarray
    start: np.ndarray


class Monitor:
    """Outliers by their predictive tail, changes by a run-length posterior over forecast errors.

    The interval of a row gives each side a Student t, of which it holds `level`. Its degrees of freedom are 3, 5 or 10,
    with the posterior probability of each given the latest 1,000 errors; that an error lay beyond 1.5 half intervals is
    all that is learned from it. After n errors v of them count as 1 / (1/v + 1/n), as the scale of the first ones is as
    uncertain as a variance of n data. A row whose two-sided tail is below `false_alarms` is an outlier. A change is
    declared when the probability of a disturbance of several rows exceeds 1 - `false_alarms`.

    Args:
        level: Probability of the intervals.
        false_alarms: Probability that a good row is an outlier.

    >>> rng = np.random.default_rng(0)
    >>> y = np.r_[rng.normal(size=200), rng.normal(5.0, 1.0, size=20)]
    >>> y[100] = 9.0
    >>> forecast = np.zeros(220)
    >>> seen = Monitor().learn(y, forecast, forecast - 1.645, forecast + 1.645)
    >>> seen.outlier[:200].nonzero()[0].tolist(), (seen.change.nonzero()[0] - seen.start[seen.change]).tolist()
    ([100], [200])
    """

    def __init__(self, level: float = 0.9, false_alarms: float = 0.001):
        checks.share("Monitor(level=...)", level, hint="It is the probability of the intervals.")
        checks.share("Monitor(false_alarms=...)", false_alarms, hint="It is the probability that a good row is one.")
        self.level, self.false_alarms = float(level), float(false_alarms)
        self.count = 0  # errors so far
        self._packed: Any = None  # the posteriors, once a row has come
        self._evidence = np.zeros(len(FREEDOM))  # log likelihood of each number of degrees of freedom
        self._usual = np.zeros((2, 48))  # means of hours, of weekdays and weekends, and rows in them

    def learn(self, y: Any, forecast: Any, lower: Any, upper: Any, times: Any = None) -> Seen:
        """Judge rows by their forecasts.

        Forecasts that follow a new level within a few rows have one large error there, like an outlier. With times such
        a change is found too: a slow mean is kept for each hour, of weekdays and of weekends. A second posterior
        follows deviations from it.

        Args:
            y: (T,) NaN where missing: such a row is neither outlier nor change.
            forecast: (T,) as issued before the row, NaN where there was none; an interval of no width counts as none.
            lower: (T,) lower ends of the intervals, as issued.
            upper: (T,) upper ends.
            times: (T,) datetime64, in all calls or in none.
        """
        parts = [np.asarray(part, np.float64) for part in (y, forecast, lower, upper)]
        parts += [] if times is None else [np.asarray(times, "datetime64[h]").astype(np.int64)]
        if parts[0].ndim != 1 or len({part.shape for part in parts}) > 1:
            shapes = ", ".join(str(part.shape) for part in parts)
            raise ValueError(
                f"Monitor.learn: shapes are {shapes}; give y, its forecasts, intervals and times as (T,) each."
            )
        y, forecast, lower, upper = parts[:4]
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.where(lower < upper, y - forecast, np.nan)
            ratio = np.abs(off) / np.where(off < 0.0, forecast - lower, upper - forecast)
        quantile, tail = self._tails(ratio, np.isfinite(off))
        scale, centre = 0.5 * (upper - lower) / quantile, 0.5 * (lower + upper) - forecast
        slow = [] if times is None else [self._off_usual(np.where(np.isnan(off), np.nan, y), scale, parts[4])]
        errors = np.stack([off, *slow], axis=1)
        return self._follow(errors, scale, centre, NARROWEST * scale, tail)

    def learn_labels(self, y: Any, probability: Any) -> Seen:
        r"""Judge labels by their probabilities.

        The error of a row is its log loss, minus its expectation under the forecast, over its standard deviation; the
        tail is the probability of labels that were no more probable.

        Args:
            y: (T,) codes of the labels, -1 where missing.
            probability: (T, C) of the codes, NaN where there was no forecast; the rest to 1 is a label not met yet.

        >>> p = np.tile([0.9, 0.1], (120, 1))
        >>> y = (np.arange(120) % 10 == 0) ^ (np.arange(120) >= 100)
        >>> seen = Monitor().learn_labels(y, p)
        >>> (seen.change.nonzero()[0] - seen.start[seen.change]).tolist()
        [101]
        """
        y, given = np.asarray(y, int), np.asarray(probability, np.float64)
        if given.ndim != 2 or y.shape != given.shape[:1]:
            raise ValueError(
                f"Monitor.learn_labels: y has shape {y.shape} and probability {given.shape}; give (T,) and (T, C)."
            )
        rest = np.maximum(1.0 - _sum(given), 0.0)
        missing = (y < 0) | np.isnan(rest)
        p = np.column_stack([rest, given])
        own = p[np.arange(len(y)), np.where(missing | (y >= given.shape[1]), 0, y + 1)]
        own = np.where(own > 0.0, own, rest)  # a label that has just been met
        tail = np.where(missing, np.nan, np.minimum(_sum(np.where(p <= own[:, None], p, 0.0)), 1.0))
        mean = -_sum(xlogy(p, p))
        spread = np.sqrt(_sum(p * (np.log(np.maximum(p, LEAST_PROBABLE)) + mean[:, None]) ** 2))
        loss = -np.log(np.maximum(own, LEAST_PROBABLE))
        error = np.where(missing, np.nan, (loss - mean) / np.maximum(spread, LEAST_PROBABLE))
        self.count += int(np.sum(~missing))
        zero = np.zeros(len(y))
        return self._follow(error[:, None], zero + 1.0, zero, zero + 1.0, tail)

    def settings(self) -> dict:
        """What json can write; with `arrays`, all that `restore` needs."""
        return {"level": self.level, "false_alarms": self.false_alarms, "count": self.count}

    def arrays(self) -> dict[str, np.ndarray]:
        """What was learned."""
        return {} if self._packed is None else {name: np.array(vars(self)[f"_{name}"]) for name in ARRAYS}

    @classmethod
    def restore(cls, settings: dict, arrays: dict[str, np.ndarray]) -> "Monitor":
        """The monitor that these came from; it goes on with the same bits.

        >>> monitor = Monitor()
        >>> Monitor.restore(monitor.settings(), monitor.arrays()).count
        0
        """
        monitor = cls(settings["level"], settings["false_alarms"])
        monitor.count = int(settings["count"])
        if arrays:
            vars(monitor).update({f"_{name}": np.array(arrays[name], np.float64) for name in ARRAYS})
        return monitor

    def _tails(self, ratio: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Half an interval in scales, and the two-sided tail, by errors relative to half an interval before each."""
        number = self.count + np.cumsum(known) - known
        self.count += int(known.sum())
        freedom = 1.0 / (1.0 / FREEDOM + 1.0 / np.maximum(number, 1.0)[:, None])
        quantile = stdtrit(freedom, 0.5 + 0.5 * self.level)
        z = quantile * np.where(known, np.minimum(ratio, FAR), 0.0)[:, None]
        near = np.log(quantile / np.sqrt(freedom)) - betaln(0.5, 0.5 * freedom)
        near -= 0.5 * (freedom + 1.0) * np.log1p(z**2 / freedom)
        likelihood = np.where(ratio[:, None] > FAR, np.log(stdtr(freedom, -z)), near)
        parts = np.where(known[:, None], likelihood, 0.0)
        keep = np.where(known, 1.0 - 1.0 / MEMORY, 1.0)
        turns = zip(keep, parts, strict=True)
        evidence = np.array([*accumulate(turns, lambda old, turn: turn[0] * old + turn[1], initial=self._evidence)])
        self._evidence = evidence[-1]
        tail = np.sum(softmax(evidence[:-1], axis=1) * 2.0 * stdtr(freedom, -quantile * ratio[:, None]), axis=1)
        return quantile[:, -1], tail

    def _off_usual(self, y: np.ndarray, scale: np.ndarray, hours: np.ndarray) -> np.ndarray:
        """Differences of rows from the mean of their hour, which then learns them."""
        slots = hours % 24 + 24 * ((hours // 24 + 3) % 7 >= 5)  # weekends apart; hour 0 was on a Thursday
        off, means, counts = np.full(len(y), np.nan), *(part.tolist() for part in self._usual)
        known = np.flatnonzero(~np.isnan(y)).tolist()
        y, reach, slots = y.tolist(), (BOUND * scale).tolist(), slots.tolist()
        for t in known:
            slot, error = slots[t], y[t]
            if counts[slot]:
                off[t] = error = y[t] - means[slot]
                error = min(max(error, -reach[t]), reach[t])
            counts[slot] += 1.0
            means[slot] += max(USUAL_RATE, 1.0 / counts[slot]) * error
        self._usual = np.array([means, counts])
        return off

    def _follow(
        self, errors: np.ndarray, scale: np.ndarray, centre: np.ndarray, least: np.ndarray, tail: np.ndarray
    ) -> Seen:
        """The posteriors after each row, and what they make of the tails."""
        S = errors.shape[1]
        start = packed_start(S)
        self._packed = start if self._packed is None else self._packed
        if self._packed.size != start.size:
            raise ValueError("Monitor.learn: times were given in some calls; give them in all, or in none.")
        windows, parts = np.full(len(errors), np.inf), [np.zeros((0, 5))]
        streams = [np.stack([errors[:, 0], scale, centre, least, windows], axis=1)]
        if S == 2:  # after a change the next error becomes the centre of the slow mean's errors
            streams += [np.stack([errors[:, 1], scale, errors[:, 1], least, np.minimum(windows, WINDOW)], axis=1)]
        table = np.stack(streams, axis=2)
        with jax.enable_x64(True):
            for start in range(0, len(table), BLOCK):
                part = table[start : start + BLOCK]
                padded = np.concatenate([part, np.zeros((BLOCK - len(part), 5, S))])
                self._packed, seen = block(self._packed, padded, len(part), 1.0 - self.false_alarms)
                parts.append(np.asarray(seen)[: len(part)])
        self._packed = np.asarray(self._packed)  # a copy or a pickle keeps its float64
        probability, runlength, change, start, changed = np.concatenate(parts).T
        outlier = (tail < self.false_alarms) & (changed == 0.0)
        return Seen(tail, outlier, probability, runlength.astype(int), change > 0.0, start.astype(int))


def _sum(p: np.ndarray) -> np.ndarray:
    """Sums over labels, one after the other: columns of zeros behind them change no bit."""
    return np.cumsum(np.pad(p, ((0, 0), (1, 0))), axis=1)[:, -1]
