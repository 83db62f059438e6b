r"""Watch a stream and give an alarm when it changed, with the estimated start of the new regime. Nothing looks ahead.

The first `warmup` readings are waited for: they give the unit of the stream. After that a segment born at t expects
the mean and the variance of $y_{<t}$. At growing intervals the past is searched for a cycle, which must be the clearer
the fewer times it came round; when one shows, or its length becomes clearer, the past is read once more in blocks of
it, silently, and the watch goes on from there. An alarm that was given stays given.

Axes: T data, O outputs. Cost: T K updates, and the past once more for each cycle found.
Thesis: experiment:segmentation.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from filtax.segmentation.period import block_means, block_of, find_period
from filtax.segmentation.plan import ONLINE, Settings, build, readings, start
from filtax.segmentation.segment import series_of
from filtax.segmentation.watch import Watched, watch

__all__ = ["Alarms", "causal_scale", "detect"]

FIRST_LOOK, GROWTH = 48, 1.25  # readings after which a cycle is first looked for, and by which factor the looks part
ENOUGH = ((6, 0.25), (4, 0.6), (3, 0.75), (2, 0.9))  # times that a cycle came round, and the share it must explain
YOUNG = 1000  # readings up to which fewer than the first number of them are looked for
OUT_OF_STEP = 0.01  # cycles by which an old period may be off after all that has come


@dataclass(frozen=True, eq=False)
class Alarms:
    """The alarms of a stream.

    Attributes:
        times: Index of the reading at which each alarm was given.
        starts: Index of the estimated first reading of the new regime.
        period: Length of the cycle as known at the end, None if none showed.

    >>> Alarms([57], [50], None).delays
    [7]
    """

    times: list[int]
    starts: list[int]
    period: float | None

    @property
    def delays(self) -> list[int]:
        """Steps from each estimated start to its alarm."""
        return [time - first for time, first in zip(self.times, self.starts, strict=True)]


def detect(
    y: Any,
    *,
    settings: Settings = ONLINE,
    threshold: float = 0.99,
    least: int = 5,
    warmup: int = 30,
    period: Any = "auto",
) -> Alarms:
    """Tell of the changes of a stream as they could have been told of at the time.

    Args:
        y: Readings (T,), or (T, O) of several series that change together; NaN where missing. What is
            not finite, or absurdly far from the first readings, counts as missing.
        settings: What a segment looks like before any of it was seen.
        threshold: Probability of a new regime at which to give an alarm; `calibrate` finds one for a rate of false
            alarms.
        least: Readings (blocks of them, in a cycle) that a new regime must hold before it is told of.
        warmup: Readings to wait for; no alarm is given before they are there. A cycle that shows
            within them gives none.
        period: Length of the cycle in steps; None if there is none; "auto" to look for one in what has come.

    Returns:
        When the alarms were given, and the starts they named. Those of a part of the stream are the first of those of
        the whole.

    >>> rng = np.random.default_rng(0)
    >>> y = np.r_[rng.normal(size=80), rng.normal(9.0, 1.0, size=60)]
    >>> detect(y).starts
    [80]
    """
    y = series_of("detect", y, warmup)
    if len(y) < warmup:
        return Alarms([], [], None)
    z, centre, variance = causal_scale(y, warmup)
    since, times, starts = 0, [], []
    looks = [(0, None if isinstance(period, str) else period), *_looks(y, period)]
    early = [cycle for begin, cycle in looks if begin <= warmup]  # nothing was told yet: the last of them counts
    looks = [(0, early[-1]), *(look for look in looks if look[0] > warmup)]
    ends = [begin for begin, _ in looks[1:]] + [len(y)]
    for (begin, cycle), end in zip(looks, ends, strict=True):
        block = block_of(cycle)
        seen = _watch_blocks((z, centre, variance), settings, cycle, (begin, end), since, threshold, least)
        for at in np.flatnonzero(seen.alarm):
            since = int(seen.start[at]) * block
            if block > 1 and starts and since - starts[-1] <= block:
                continue  # a change within a block begins with it or with the next one
            times.append(max((int(at) + 1) * block - 1, warmup - 1))
            starts.append(since)
    return Alarms(times, starts, looks[-1][1])


def _watch_blocks(
    scaled: tuple[np.ndarray, np.ndarray, np.ndarray],
    settings: Settings,
    period: float | None,
    between: tuple[int, int],
    since: int,
    threshold: float,
    least: int,
) -> Watched:
    """Read the stream up to an end, and tell of what shows after a beginning."""
    z, centre, variance = scaled
    begin, end = between
    block = block_of(period)
    rows = block_means(z[:end], block)
    X, Y = readings(rows, block, period)
    born = np.minimum(np.arange(len(Y)) * block, end - 1)  # a block's segment knows what came before its first reading
    method, state = build(settings, z.shape[1], block)
    state, initial = start(state, settings, centre[born], variance[born])
    silent = np.arange(len(Y)) < -(-begin // block) if begin else None
    _, seen = watch(
        method,
        state,
        X,
        Y if z.shape[1] > 1 else Y[:, 0],
        threshold=threshold,
        least=least,
        since=-(-since // block),
        initial=initial,
        silent=silent,
    )
    return jax.tree.map(lambda leaf: np.asarray(leaf)[: len(rows)], seen)


def causal_scale(y: np.ndarray, warmup: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The readings in units of their first ones, and what mean and variance were known before each.

    Args:
        y: (T, O).
        warmup: Readings that give the unit; before they are all there, they count as known.

    Returns:
        Readings (T, O), means (T, O) and variances (T,), these averaged over outputs.

    >>> z, centre, variance = causal_scale(np.array([[1.0], [3.0], [5.0]]), warmup=2)
    >>> z[:, 0].tolist(), centre[:, 0].tolist(), variance.tolist()
    ([-1.0, 1.0, 3.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    """
    T = len(y)
    warmup = min(warmup, T)
    came = np.isfinite(y)
    first = np.where(came, y, 0.0)[:warmup]
    number = np.maximum(came[:warmup].sum(axis=0), 1)
    middle = first.sum(axis=0) / number
    spread = np.sqrt(np.where(came[:warmup], (first - middle) ** 2, 0.0).sum(axis=0) / number)
    z = (y - middle) / np.where(spread > 0.0, spread, 1.0)
    filled = np.where(came, z, 0.0)
    count = np.maximum(np.cumsum(came, axis=0), 1)
    mean = np.cumsum(filled, axis=0) / count
    variance = np.cumsum(filled**2, axis=0) / count - mean**2
    last = np.maximum(np.arange(T), warmup) - 1
    return z, mean[last], np.maximum(variance[last].mean(axis=1), 1e-6)


def _cycle(y: np.ndarray) -> float | None:
    """The cycle of a series; in a young one it may have come round twice only, and explains nearly all of it then."""
    ways = ENOUGH if len(y) <= YOUNG else ENOUGH[:1]
    found = (find_period(y, cycles=cycles, level=level) for cycles, level in ways)
    return next((period for period in found if period is not None), None)


def _looks(y: np.ndarray, period: Any) -> list[tuple[int, float]]:
    """When a cycle showed in y up to there, or another one, or one that has fallen out of step with the last."""
    found, length = [], float(FIRST_LOOK)
    while isinstance(period, str) and length < len(y):
        seen = _cycle(y[: int(length)])
        if seen is not None and (not found or abs(length / seen - length / found[-1][1]) > OUT_OF_STEP):
            found.append((int(length), seen))
        length *= GROWTH
    return found
