"""How a claim is decided, from numbers by a rule, and how far a number of a table can be trusted.

"A is below B" is paired over trials: the 95 % bootstrap interval of the median difference lies below 0. "A is about B"
is a test of equivalence with a margin. What is neither shown nor refuted is not decided at this size.

Intervals are of 95 %: a pair of numbers, or None where there are too few to say. Trials are drawn apart from each
other, so that their order tells nothing; hours are not, and are drawn again in blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from scipy.special import stdtrit

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "not decided at this size"
DRAWS, LEVEL = 2000, 0.95
Interval = tuple[float, float] | None


def of_median(values: Any) -> Interval:
    r"""Interval of the median of N independent trials, between two of them: no law is assumed, and none is drawn.

    With k the largest number for which $P(B < k) \le 2.5\,\%$, B binomial with N and a half, the k-th from below and
    the k-th from above hold the median between them. Fewer than six trials cannot say it with 95 %. What is no number
    counts as the largest.

    >>> of_median([5.0, 1.0, 4.0, 2.0, 6.0, 3.0]), of_median([1.0, 2.0, 3.0])
    ((1.0, 6.0), None)
    """
    given = np.asarray(values, float)
    ordered, n = np.sort(np.where(np.isnan(given), np.inf, given)), given.size
    k, mass = 0, 1
    while k < n and mass / 2**n <= (1 - LEVEL) / 2:
        k += 1
        mass += comb(n, k)
    return (float(ordered[k - 1]), float(ordered[n - k])) if k else None


def of_mean(values: Any) -> Interval:
    r"""Interval of the mean of N independent trials, Student's: $\bar x \pm t_{N-1} s / \sqrt N$.

    To draw three trials of three again, as a bootstrap does, never leaves their range.

    >>> [round(end, 3) for end in of_mean([1.0, 2.0, 3.0])]
    [-0.484, 4.484]
    """
    given = np.asarray(values, float)
    if given.size < 2 or not np.isfinite(given).all():
        return None
    half = float(stdtrit(given.size - 1, (1 + LEVEL) / 2) * given.std(ddof=1) / np.sqrt(given.size))
    return float(given.mean()) - half, float(given.mean()) + half


def block_draws(count: int, block: int, draws: int = DRAWS) -> np.ndarray:
    """Places of a series drawn again in blocks round a circle, (draws, count) (Politis and Romano 1992).

    They are those of a fixed seed, so that methods are drawn alike and can be compared in pairs.

    >>> block_draws(7, 3, draws=1)
    array([[5, 6, 0, 4, 5, 6, 3]])
    """
    starts = np.random.default_rng(0).integers(count, size=(draws, -(-count // block)))
    return ((starts[..., None] + np.arange(block)) % count).reshape(draws, -1)[:, :count]


def of_series(values: np.ndarray, block: int, statistic: Callable[..., np.ndarray] = np.median) -> Interval:
    """Interval of a statistic of a series (T,) of which `block` neighbours are drawn together.

    >>> of_series(np.arange(10.0) % 2, 2, np.mean)
    (0.5, 0.5)
    """
    if values.size < 2 * block:
        return None
    return middle(statistic(values[block_draws(values.size, block)], axis=1))


def middle(drawn: np.ndarray) -> tuple[float, float]:
    """What holds the middle 95 % of what was drawn."""
    low, high = np.quantile(drawn, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return float(low), float(high)


@dataclass(frozen=True)
class Verdict:
    """A verdict and what it rests on.

    >>> Verdict("holds", "2 against 1").text
    'holds'
    """

    text: str
    evidence: str = ""


def holds_if(condition: Any, evidence: str) -> Verdict:
    """A verdict that needs no test: the condition is or is not met.

    >>> holds_if(True, "seen").text
    'holds'
    """
    return Verdict(HOLDS if bool(condition) else FAILS, evidence)


def holds_only_if(condition: Any, proviso: str, evidence: str) -> Verdict:
    """What holds under a proviso that the run has met; without it the claim does not hold.

    >>> holds_only_if(True, "the noise is small", "0.99").text
    'holds only if the noise is small'
    """
    return Verdict(f"holds only if {proviso}" if bool(condition) else FAILS, evidence)


def below(
    a: Any, b: Any, names: tuple[str, str] = ("a", "b"), *, ratio: float = 1.0, tie: float | None = None
) -> Verdict:
    """Whether a is below `ratio` times b, paired over trials, (N,) each.

    Without `tie` two that are alike are never decided, however many trials there are: the interval shrinks around 0.
    With it, a is as good as b, which is not below it, if the whole interval is within that share of b's median.

    >>> below([1.0, 2.0, 1.5] * 5, [2.0, 2.5, 2.0] * 5).text
    'holds'
    >>> below([1.0, 2.01, 1.5] * 5, [1.01, 2.0, 1.5] * 5, tie=0.1).text
    'does not hold'
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    low, high = _of_difference(a - ratio * b)
    alike = tie is not None and max(-low, high) <= tie * abs(ratio * float(np.median(b)))
    text = HOLDS if high < 0 else FAILS if low > 0 or alike else UNDECIDED
    times = "" if ratio == 1.0 else f"{ratio:g} x "
    medians = f"{names[0]} {np.median(a):.4g}, {times}{names[1]} {ratio * np.median(b):.4g}"
    same = f", alike within {100 * tie:.0f} %" if tie is not None and alike and text == FAILS and low <= 0 else ""
    return Verdict(text, f"{medians}; median difference in [{low:.3g}, {high:.3g}]{same}")


def about(a: Any, b: Any, margin: float, names: tuple[str, str] = ("a", "b"), *, relative: bool = True) -> Verdict:
    """Whether a and b, (N,) each, are equivalent: the median difference lies within the margin.

    The margin is a share of the median of b if `relative`.

    >>> about([1.0, 1.01, 0.99] * 9, [1.0, 1.0, 1.0] * 9, 0.1).text
    'holds'
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    low, high = _of_difference(a - b)
    room = margin * abs(float(np.median(b))) if relative else margin
    text = HOLDS if -room <= low and high <= room else FAILS if low > room or high < -room else UNDECIDED
    medians = f"{names[0]} {np.median(a):.4g}, {names[1]} {np.median(b):.4g}"
    return Verdict(text, f"{medians}; median difference in [{low:.3g}, {high:.3g}], margin {room:.3g}")


def all_of(*verdicts: Verdict) -> Verdict:
    """Holds if all parts do, fails if one does; the evidence is that of all, what holds first.

    >>> all_of(holds_if(False, "first"), holds_if(True, "second"))
    Verdict(text='does not hold', evidence='second; but first')
    """
    texts = [verdict.text for verdict in verdicts]
    text = FAILS if FAILS in texts else next((other for other in texts if other != HOLDS), HOLDS)
    ranked = sorted(({HOLDS: 0, FAILS: 2}.get(verdict.text, 1), i) for i, verdict in enumerate(verdicts))
    said = [f"{'but ' if rank > ranked[0][0] else ''}{verdicts[i].evidence}" for rank, i in ranked]
    return Verdict(text, "; ".join(said))


def _of_difference(difference: np.ndarray) -> tuple[float, float]:
    """Bootstrap interval of the median; draws are those of a fixed seed, so that a verdict can be repeated."""
    difference = np.where(np.isfinite(difference), difference, 1e300)  # a diverged trial counts against
    draws = np.random.default_rng(0).integers(difference.size, size=(DRAWS, difference.size))
    return middle(np.median(difference[draws], axis=1))
