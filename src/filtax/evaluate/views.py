"""A metric as it changes: over a moving window, since the start, or fading.

A view takes the losses of each step and the metric they belong to (its name will do; a plain mean if none is given) and
applies the metric's own summary to parts of the stream: a rolling RMSE is the root of a mean, a rolling RMedSE that of
a median. NaN is not scored. Cost: O(T) for means, whatever the window; others look at every window anew.
"""

import bisect
import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from filtax.checks import numeric
from filtax.evaluate.arrays import QUIET, Numbers
from filtax.evaluate.metrics import Metric
from filtax.evaluate.metrics import metric as find
from filtax.evaluate.statistics import mean, median

__all__ = ["PLAIN", "ewma", "expanding", "one_per_step", "rolling"]

PLAIN = Metric("mean", lambda forecast, y: forecast.mean)
_FAINT = 1e-12  # a loss this much lighter than the newest one is left out of a fading median


@QUIET
def rolling(losses: Numbers, window: int, metric: str | Metric = PLAIN, *, minimum: int = 1) -> Float[np.ndarray, " T"]:
    """Summarise the last `window` steps, at each step.

    Args:
        losses: Loss of each step, (T,), NaN where nothing was scored.
        window: Number of steps, scored or not; at the start there are fewer.
        metric: What the losses belong to.
        minimum: Scored steps that a window must hold; with fewer the view is NaN.

    Example:
        >>> from filtax.evaluate import rolling
        >>> rolling([1.0, 3.0, 5.0], window=2)
        array([1., 2., 4.])
        >>> rolling([9.0, 16.0], window=1, metric="rmse")
        array([3., 4.])
    """
    losses, metric = one_per_step(losses), find(metric)
    if not all(isinstance(number, int | np.integer) and number >= 1 for number in (window, minimum)):
        raise ValueError(f"rolling(window={window!r}, minimum={minimum!r}) must both be 1 or more steps.")
    count = _window_sum((~np.isnan(losses)).astype(np.float64), window)
    if metric.statistic is mean:
        values = _over(
            _window_sum(np.nan_to_num(losses, nan=0.0, posinf=np.inf, neginf=-np.inf), window), count, metric
        )
    else:
        values = _each(metric, ((losses[max(0, t + 1 - window) : t + 1], None) for t in range(losses.size)))
    return np.where(count >= minimum, values, math.nan)


@QUIET
def expanding(losses: Numbers, metric: str | Metric = PLAIN) -> Float[np.ndarray, " T"]:
    """Summarise all steps so far, at each step; the last value is the metric of the whole stream.

    Example:
        >>> from filtax.evaluate import expanding
        >>> expanding([1.0, 3.0, float("nan"), 5.0])
        array([1., 2., 2., 3.])
    """
    losses, metric = one_per_step(losses), find(metric)
    if metric.statistic is mean:
        return _over(np.nancumsum(losses), np.cumsum(~np.isnan(losses)), metric)
    if metric.statistic is median:
        return np.asarray(metric.finish(_running_median(losses)))
    return _each(metric, ((losses[: t + 1], None) for t in range(losses.size)))


@QUIET
def ewma(losses: Numbers, span: float | int, metric: str | Metric = PLAIN) -> Float[np.ndarray, " T"]:
    r"""Summarise with weights that fade by $1 - \alpha$ each step, $\alpha = 2 / (\text{span} + 1)$.

    The weights are those of a true weighted mean, $(1 - \alpha)^{\text{age}}$ over their sum, so the first steps are
    not biased towards zero. Time passes on unscored steps too.

    Args:
        losses: Loss of each step, (T,), NaN where nothing was scored.
        span: At least 1; a window of `span` steps has the same mean age.
        metric: What the losses belong to.

    Example:
        >>> from filtax.evaluate import ewma
        >>> ewma([0.0, 4.0], span=3)  # weights 1/2 and 1
        array([0.        , 2.66666667])
    """
    losses, metric = one_per_step(losses), find(metric)
    if not (isinstance(span, int | float | np.number) and span >= 1.0):
        raise ValueError(f"ewma(span={span!r}) must be 1 or more steps; a span of 1 keeps only the newest.")
    keep = 1.0 - 2.0 / (span + 1.0)
    if keep == 0.0:
        return _each(metric, ((losses[t : t + 1], None) for t in range(losses.size)))
    if metric.statistic is mean:
        return np.asarray(metric.finish(_fading_mean(losses, keep)))
    depth = math.ceil(math.log(_FAINT) / math.log(keep)) + 1
    weights = keep ** np.arange(min(depth, losses.size))[::-1]
    # up to the last step that was scored: what all weights have lost since then changes nothing
    ends = np.maximum.accumulate(np.where(np.isnan(losses), 0, np.arange(1, losses.size + 1)))
    return _each(metric, ((losses[max(0, end - depth) : end], weights[-min(end, depth) :][:end]) for end in ends))


def one_per_step(losses: Numbers) -> Float[np.ndarray, " T"]:
    """Take the losses of one metric as an array, or say what is wrong with them.

    >>> one_per_step([1, 2])
    array([1., 2.])
    """
    losses = np.asarray(numeric("losses", losses), np.float64)
    if losses.ndim != 1:
        raise ValueError(
            f"a view takes one loss per step, shape (T,), but got {losses.shape}; take one metric at a time."
        )
    return losses


def _window_sum(values: np.ndarray, window: int) -> np.ndarray:
    """Sum of each `window` values, in O(T), with additions only.

    Cut into blocks as long as the window, every window is the end of one block and the start of the next. A difference
    of running sums would be shorter, but one huge loss would blur every later window, and an infinite one undo them.
    """
    window = min(window, max(values.size, 1))
    blocks = -(-(values.size + window - 1) // window)
    padded = np.zeros(blocks * window)
    padded[window - 1 : window - 1 + values.size] = values
    table = padded.reshape(blocks, window)
    upto = np.cumsum(table, axis=1).ravel()
    onward = np.cumsum(table[:, ::-1], axis=1)[:, ::-1].ravel()
    start = np.arange(values.size)
    return np.where(start % window == 0, 0.0, onward[start]) + upto[start + window - 1]


def _fading_mean(values: np.ndarray, keep: float) -> np.ndarray:
    """Mean in which every value loses 1 - keep of its weight at each later step; NaN adds nothing.

    Kept as a mean, not as two sums: in a long gap those would sink below what a float holds.
    """
    held, weight, means = math.nan, 0.0, []
    for value in values.tolist():
        weight *= keep
        if value == value:
            held = (weight * held + value) / (weight + 1.0) if weight else value
            weight += 1.0
        means.append(held)
    return np.array(means)


def _running_median(values: np.ndarray) -> np.ndarray:
    """Median of all so far, from a list that is kept in order."""
    ordered: list[float] = []
    medians = []
    for value in values.tolist():
        if value == value:
            bisect.insort(ordered, value)
        n = len(ordered)
        medians.append(0.5 * (ordered[(n - 1) // 2] + ordered[n // 2]) if n else math.nan)
    return np.array(medians)


def _over(sums: np.ndarray, counts: np.ndarray, metric: Metric) -> np.ndarray:
    values = np.divide(sums, counts, out=np.full(sums.shape, math.nan), where=counts > 0)
    return np.asarray(metric.finish(values))


def _each(metric: Metric, parts: Iterator[tuple[np.ndarray, np.ndarray | None]]) -> np.ndarray:
    return np.array([float(metric.aggregate(losses, weights)) for losses, weights in parts])
