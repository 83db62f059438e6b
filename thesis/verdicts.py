"""How a claim is decided: from numbers by a rule, never typed in.

"A is below B" is paired over trials: the 95 % bootstrap interval of the median difference lies below 0. "A is about B"
is a test of equivalence with a margin. What is neither shown nor refuted is not decided at this size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PAIRED", "Verdict", "about", "all_of", "below", "holds_if", "holds_only_if"]

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "not decided at this size"
DRAWS, LEVEL = 2000, 0.95
PAIRED = "the 95 % interval of the median paired difference lies below 0"  # the tolerance of `below`, in words


@dataclass(frozen=True)
class Verdict:
    """A verdict and what it rests on.

    Example:
        >>> from thesis import holds_if
        >>> holds_if(2 < 1, "2 against 1")
        Verdict(text='does not hold', evidence='2 against 1')
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
    """Whether a is below `ratio` times b, paired over trials.

    Without `tie` two that are alike are never decided, however many trials there are: the interval shrinks around 0.

    Args:
        a: One number for each trial, (N,).
        b: Of the same trials, (N,).
        names: What to call them.
        ratio: Factor on b.
        tie: Share of the median of b; if the whole interval is nearer to 0, a is as good as b, which is not below it.

    Returns:
        The verdict; its evidence gives both medians and the interval of the median difference.

    >>> below([1.0, 2.0, 1.5] * 5, [2.0, 2.5, 2.0] * 5).text
    'holds'
    >>> below([1.0, 2.01, 1.5] * 5, [1.01, 2.0, 1.5] * 5, tie=0.1).text
    'does not hold'
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    low, high = _interval(a - ratio * b)
    alike = tie is not None and max(-low, high) <= tie * abs(ratio * float(np.median(b)))
    text = HOLDS if high < 0 else FAILS if low > 0 or alike else UNDECIDED
    times = "" if ratio == 1.0 else f"{ratio:g} x "
    medians = f"{names[0]} {np.median(a):.4g}, {times}{names[1]} {ratio * np.median(b):.4g}"
    same = f", alike within {100 * tie:.0f} %" if tie is not None and alike and text == FAILS and low <= 0 else ""
    return Verdict(text, f"{medians}; median difference in [{low:.3g}, {high:.3g}]{same}")


def about(a: Any, b: Any, margin: float, names: tuple[str, str] = ("a", "b"), *, relative: bool = True) -> Verdict:
    """Whether a and b are equivalent: the median difference lies within the margin.

    Args:
        a: One number for each trial, (N,).
        b: Of the same trials, (N,).
        margin: Largest difference that counts as none, as a share of the median of b if `relative`.
        names: What to call them.
        relative: Whether the margin is a share.

    Returns:
        The verdict.

    >>> about([1.0, 1.01, 0.99] * 9, [1.0, 1.0, 1.0] * 9, 0.1).text
    'holds'
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    low, high = _interval(a - b)
    room = margin * abs(float(np.median(b))) if relative else margin
    text = HOLDS if -room <= low and high <= room else FAILS if low > room or high < -room else UNDECIDED
    medians = f"{names[0]} {np.median(a):.4g}, {names[1]} {np.median(b):.4g}"
    return Verdict(text, f"{medians}; median difference in [{low:.3g}, {high:.3g}], margin {room:.3g}")


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Holds if all parts do, fails if one does; the evidence is that of all, what holds first.

    >>> all_of([holds_if(False, "first"), holds_if(True, "second")])
    Verdict(text='does not hold', evidence='second; but first')
    """
    texts = [verdict.text for verdict in verdicts]
    text = FAILS if FAILS in texts else next((other for other in texts if other != HOLDS), HOLDS)
    rank = lambda verdict: {HOLDS: 0, FAILS: 2}.get(verdict.text, 1)  # noqa: E731
    best = min(map(rank, verdicts), default=0)
    said = [f"{'but ' if rank(verdict) > best else ''}{verdict.evidence}" for verdict in sorted(verdicts, key=rank)]
    return Verdict(text, "; ".join(said))


def _interval(difference: np.ndarray) -> tuple[float, float]:
    """Bootstrap interval of the median; draws are those of a fixed seed, so that a verdict can be repeated."""
    difference = np.where(np.isfinite(difference), difference, 1e300)  # a diverged trial counts against
    draws = np.random.default_rng(0).integers(difference.size, size=(DRAWS, difference.size))
    medians = np.median(difference[draws], axis=1)
    tail = (1 - LEVEL) / 2
    return float(np.quantile(medians, tail)), float(np.quantile(medians, 1 - tail))
