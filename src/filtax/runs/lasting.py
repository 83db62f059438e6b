r"""Whether a series still takes its course: what a belief that hardly forgets was wrong by, block after block.

The value $m_k$ of a block (a day of hours, say) is expected by a regression that learns the blocks since the last
change, $m_k = x_k^\top\theta + e_k$ with $x_k$ a constant, a line, the pattern of the longer cycle and the last values,
$\theta, \sigma^2$ under a normal-inverse-gamma belief that takes months to forget a level and a line. Its errors are
brought to standard normal ones, $z_k$, by their Student law, and cut at $c = \sqrt{L/2}$ with $L = 2\log(1/\alpha)$: no
block counts for more than a quarter of the limit. If nothing changes they are independent. If something did with block
s they are
$z_k = d_k^\top\delta + \epsilon_k$ with $d_k$ a level and a line that begins at s, with the pattern or without,
$\delta \sim N(0, \tau^2)$, and the odds are
$$B_s = |I + \tau^2 D^\top D|^{-1/2} \exp\bigl(\tfrac12 z^\top D (\tau^{-2} I + D^\top D)^{-1} D^\top z\bigr).$$
Each $B_s$ is a martingale with mean 1, so their sum over s exceeds $\alpha^{-2}$ after $\alpha^{-2}$ blocks in the mean
at the earliest (Shiryaev and Roberts; Shin, Ramdas and Rinaldo 2022). Single rows need not surprise: sums do.

Axes: K blocks, P numbers of the pattern, D = 2 + P + LAGS columns. Cost: K P^3 a block.
"""

import math
from typing import NamedTuple

import numpy as np

__all__ = ["LAGS", "Elder", "begun", "evidence", "faded", "learned", "newborn", "pattern", "width", "within"]

LAGS = 2  # last values among the columns: weather lasts for more than a block
PRECISION = 0.03  # of the weights before any block, in units of the noise
NOISE = 0.2  # expected variance of it, as a share of that of the first blocks
LEAST = float(np.finfo(float).eps) ** 2  # variance of it, in units: that of rounding, where a series stands still
ROUNDING = 1e-9  # of the largest column: noise that is smaller is none
MEMORY, NOISE_MEMORY = 60.0, 120.0  # blocks after which level and line, and the noise, are forgotten: a year is slow
SIZE = 2.0  # tau: standard errors by which a change may move a block
LINE = 7.0  # blocks over which a change of slope is counted
FEWEST = 4  # blocks of which one can be odd
BETWEEN = 2  # columns that a block of its own counts for besides: by noise alone each is a little off
HARMONICS = 3  # of the longer cycle at most; a week of days has no more


class Elder(NamedTuple):
    """The belief: weights (D,), their precision in units of the noise (D, D), and shape and rate of its variance.

    It is a precision and no covariance, so that nothing is lost where columns are all but copies of each other, as lags
    are.
    """

    mean: np.ndarray
    precision: np.ndarray
    shape: float
    rate: float


def width(cycle: int) -> int:
    """How many numbers the pattern of a cycle of so many blocks has.

    >>> width(7), width(12), width(0)
    (6, 6, 0)
    """
    return 2 * min(HARMONICS, cycle // 2)


def pattern(number: np.ndarray, cycle: int) -> np.ndarray:
    """Harmonics of the longer cycle at blocks of these numbers, (K, P), with a mean square of 1 each.

    >>> pattern(np.arange(3), 0).shape
    (3, 0)
    """
    turn = np.mod(number, max(cycle, 1)) / max(cycle, 1)
    angle = 2.0 * np.pi * np.multiply.outer(turn, np.arange(1, width(cycle) // 2 + 1))
    return math.sqrt(2.0) * np.concatenate([np.cos(angle), np.sin(angle)], axis=-1)


def newborn(columns: int, shape: float = 1.0, variance: float = NOISE) -> Elder:
    """The belief before any block; how large the weights may be does not depend on the expected noise.

    >>> newborn(3).mean.tolist()
    [0.0, 0.0, 0.0]
    >>> math.isclose(0.002 / newborn(1, 2.0, 0.002).precision[0, 0], NOISE / newborn(1).precision[0, 0])
    True
    """
    variance = max(variance, LEAST)
    return Elder(np.zeros(columns), PRECISION * variance / NOISE * np.eye(columns), shape, shape * variance)


def faded(elder: Elder) -> Elder:
    r"""The belief before the next block: level and line may have moved a little, and so may the size of the noise.

    Without it all that is no line for ever, as a year or a growth by percents is, becomes a change at last. The pattern
    and the lags are not forgotten: given level and line they are as certain as before, and the marginal precision of
    these two is what shrinks,
    $\Lambda_{11} \to \kappa\Lambda_{11} + (1-\kappa)\Lambda_{12}\Lambda_{22}^{-1}\Lambda_{21}$.

    >>> elder = Elder(np.ones(3), np.diag([50.0, 40.0, 30.0]), 20.0, 10.0)
    >>> later = faded(elder)
    >>> (np.diag(later.precision) < [50.0, 40.0, 30.0]).tolist(), later.shape < 20.0, later.rate / later.shape
    ([True, True, False], True, 0.5)
    """
    kept, own = 1.0 - 1.0 / MEMORY, elder.precision[:2, 2:]
    known = own @ _solved(elder.precision[2:, 2:], own.T)
    precision = elder.precision.copy()
    least = PRECISION / NOISE * elder.rate / elder.shape * np.eye(2)  # what a newborn knows of them
    precision[:2, :2] = kept * precision[:2, :2] + (1.0 - kept) * (0.5 * (known + known.T) + least)
    shape = max((1.0 - 1.0 / NOISE_MEMORY) * elder.shape, 1.0)
    return Elder(elder.mean, precision, shape, max(elder.rate * (shape / elder.shape), LEAST * shape))


def learned(elder: Elder, x: np.ndarray, value: float, cut: float) -> tuple[Elder, float, float]:
    """The belief after a block, the value it learned of it, and by how many standard errors that was off.

    Args:
        elder: Before it.
        x: Its columns, (D,).
        value: What came.
        cut: Standard errors by which a block is off at most; what is farther is learned as if it were there.

    >>> elder, z = newborn(1), []
    >>> for value in (0.1, -0.1, 0.0, 9.0):
    ...     elder, value, off = learned(elder, np.ones(1), value, 3.0)
    ...     z.append(off)
    >>> z[-1], value < 9.0
    (3.0, True)
    """
    gain = _solved(elder.precision, x)
    spread = 1.0 + max(0.0, float(x @ gain))
    middle = float(x @ elder.mean)
    rounded = ROUNDING * max(abs(middle), float(np.abs(x).max()))
    scale = math.sqrt(max(elder.rate / elder.shape, rounded * rounded) * spread)
    freedom = 2.0 * elder.shape
    straight = (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)  # Wallace (1959), Student's law to a normal one
    off = (value - middle) / scale
    z = math.copysign(straight * math.sqrt(freedom * math.log1p(off * off / freedom)), off)
    if abs(z) > cut:
        z = math.copysign(cut, z)
        value = middle + math.copysign(scale, z) * math.sqrt(freedom * math.expm1((cut / straight) ** 2 / freedom))
    error = value - middle
    mean, precision = elder.mean + gain * (error / spread), elder.precision + np.outer(x, x)
    return Elder(mean, precision, elder.shape + 0.5, elder.rate + 0.5 * error * error / spread), value, z


def evidence(number: np.ndarray, z: np.ndarray, starts: np.ndarray, waves: np.ndarray) -> np.ndarray:
    """Log odds that a change began with each of these blocks, against none at all, (S,).

    Args:
        number: Numbers of the blocks, (K,), growing.
        z: By how many standard errors each was off, (K,).
        starts: Places among the K at which a change may have begun, (S,).
        waves: Pattern of the longer cycle at each of them, (K, P).

    >>> number = np.arange(20)
    >>> odds = evidence(number, np.repeat([0.0, 2.0], [12, 8]), np.arange(16), pattern(number, 7))
    >>> int(odds.argmax()), bool(odds.max() > 6.0)
    (12, True)
    """
    ago = (number - number[-1])[:, None] / LINE
    columns = np.concatenate([np.ones_like(ago), ago, waves], axis=1)
    square = _from_each(columns[:, :, None] * columns[:, None, :], starts)
    product = _from_each(columns * z[:, None], starts)
    by = -ago[starts]  # from a line that is 0 now to one that is 0 at the start
    product[:, 1] += by[:, 0] * product[:, 0]
    square[:, 1, :] += by * square[:, 0, :]
    square[:, :, 1] += by * square[:, :, 0]
    ways = [_odds(SIZE**2 * square[:, :d, :d], SIZE * product[:, :d]) for d in sorted({2, columns.shape[1]})]
    return np.logaddexp.reduce(ways) - math.log(len(ways))


def begun(number: np.ndarray, value: np.ndarray, starts: np.ndarray, waves: np.ndarray) -> int:
    """The most likely one of these starts of a change that is known to be.

    The errors z do not say: a belief that learns the blocks of a change, and is wrong by a cut at most, blurs it. So
    the values themselves are fitted by a line and the pattern, to which a level, a line, both, or these and a pattern
    are added from the start on, and the fit with the least Schwarz criterion, K log(squares) + (added) log K, is taken.
    A change begins within its first block: that may lie by itself, neither here nor there.

    Args:
        number: Numbers of the blocks, (K,), growing.
        value: Their values, (K,).
        starts: Places among the K at which the change may have begun, (S,).
        waves: Pattern of the longer cycle at each of them, (K, P).

    >>> number = np.arange(40)
    >>> value = np.cos(number**2) + 3.0 * np.maximum(number - 31, 0)
    >>> begun(number, value, np.arange(28, 38), pattern(number, 7))
    31
    """
    value = value - np.median(value)
    value = value / max(np.abs(value).max(), np.finfo(float).tiny)
    line = (number - number[-1]) / max(number[-1] - number[0], 1.0)
    base = np.concatenate([np.ones((len(number), 1)), line[:, None], waves], axis=1)
    worth = []
    for start in starts.tolist():
        since = base.copy()
        since[:, 1] -= line[start]
        since[:start] = 0.0
        ways = [since[:, :1], since[:, 1:2], since[:, :2]]
        if len(number) - start > since.shape[1] + FEWEST:  # else a pattern fits anything
            ways.append(since)
        alone = (np.arange(len(number)) == start)[:, None]
        for added, between in [(way, 0) for way in ways] + [
            (np.concatenate([way, alone], axis=1), BETWEEN) for way in ways
        ]:
            columns = np.concatenate([base, added], axis=1)
            rest = value - columns @ np.linalg.lstsq(columns, value, rcond=None)[0]
            squares = max(float(rest @ rest), np.finfo(float).tiny)
            worth.append((len(value) * math.log(squares) + (added.shape[1] + between) * math.log(len(value)), start))
    return min(worth)[1]


def within(values: np.ndarray) -> tuple[float, float]:
    """How far a block may lie away from others: as far beyond all of them but the farthest as these are apart.

    An average over a gross error is no value of the series; one on which a line runs on, or a Sunday, is. Lags that
    stay within what came cannot feed themselves either: a belief whose lags grow expects ever more, and what it learns
    of a block that is far off is what it expected.

    Args:
        values: All that are known, (K,).

    >>> within(np.array([1.0, 3.0, 900.0, 2.0]))
    (1.0, 4.0)
    """
    if len(values) < FEWEST:
        return -math.inf, math.inf
    _, low, *_, high, _ = np.sort(values).tolist()
    return low - (high - low), high + (high - low)


def _solved(precision: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What a precision times x is y, of columns in any unit; a direction that rounding has lost counts as unknown.

    A series that grows by percents has lags that are copies of each other and many times as large as all else: what
    tells them apart is less than the last digit of the sums. In units of their own the columns have eigenvalues of the
    order of one, and one below rounding says that nothing is known of its direction, not that it is certain.
    """
    size = np.sqrt(np.maximum(np.diag(precision), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(precision / np.multiply.outer(size, size))
    values = np.maximum(values, len(size) * np.finfo(float).eps)
    turned = vectors.T @ (y.T / size).T
    return ((vectors @ (turned.T / values).T).T / size).T


def _from_each(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums from each start to the end."""
    return np.cumsum(values[::-1], axis=0)[::-1][starts]


def _odds(square: np.ndarray, product: np.ndarray) -> np.ndarray:
    root = np.linalg.cholesky(square + np.eye(square.shape[1]))
    half = np.linalg.solve(root, product[:, :, None])[:, :, 0]
    return 0.5 * np.sum(half * half, axis=1) - np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
