r"""Scores of found change points against several annotators: F1 with a margin, covering, and the delay of alarms.

A change at index t (counted from 0) says that datum t is the first of a new segment; index 0 is a change for everybody,
so that saying nothing is not a division by zero. The scores are those of the Turing Change Point Dataset (van den Burg
and Williams 2020), whose published tables they reproduce.

Thesis: experiment:segmentation.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np


def f1(truth: Any, found: Iterable[int], margin: int = 5) -> float:
    r"""Harmonic mean of precision and recall, where a change is found if one was told at most `margin` steps from it.

    Precision counts what agrees with any annotator, recall is the mean over annotators:
    $P = |TP(\cup_k T_k, X)| / |X|$ and $R = \frac1K \sum_k |TP(T_k, X)| / |T_k|$. A found change serves one true one.

    Args:
        truth: Changes told by each annotator: a mapping from annotator to indices, or a sequence of sequences.
        found: Indices of the changes found.
        margin: How far off a change may be, in steps.

    Returns:
        A number in (0, 1].

    Example:
        >>> from filtax.evaluate import f1
        >>> f1({"a": [50], "b": [52, 80]}, [51])
        0.9090909090909091
    """
    told = [{0, *marks} for marks in _annotators("f1", truth)]
    said = {0, *_indices("f1(found=...)", found)}
    precision = _matched(set().union(*told), said, margin) / len(said)
    recall = float(np.mean([_matched(marks, said, margin) / len(marks) for marks in told]))
    return 2.0 * precision * recall / (precision + recall)


def covering(truth: Any, found: Iterable[int], length: int) -> float:
    r"""How well the best fitting found segment covers each true one, by the Jaccard index, weighted by length.

    $C = \frac1T \sum_{A} |A| \max_{B} |A \cap B| / |A \cup B|$, A over the segments of an annotator and B over those
    found; the mean over annotators.

    Args:
        truth: As for `f1`.
        found: Indices of the changes found.
        length: Number of data T.

    Returns:
        A number in (0, 1].

    Example:
        >>> from filtax.evaluate import covering
        >>> covering([[5]], [], length=10)
        0.5
    """
    mine = _edges(_indices("covering(found=...)", found, length), length)
    scores = []
    for marks in _annotators("covering", truth, length):
        theirs = _edges(marks, length)
        low = np.maximum(theirs[:-1, None], mine[None, :-1])
        high = np.minimum(theirs[1:, None], mine[None, 1:])
        shared = np.maximum(high - low, 0)
        sizes, others = np.diff(theirs), np.diff(mine)
        jaccard = shared / (sizes[:, None] + others[None, :] - shared)
        scores.append(np.sum(sizes * jaccard.max(axis=1)) / length)
    return float(np.mean(scores))


def detection_delays(truth: Any, alarms: Sequence[int], starts: Sequence[int], margin: int = 5) -> dict[int, int]:
    """How long after a true change the alarm came whose estimated start lies within `margin` steps of it.

    Args:
        truth: As for `f1`; the changes of all annotators count.
        alarms: When each alarm was given, (A,).
        starts: The start of the new regime that each alarm named, (A,).
        margin: How far off a start may be, in steps.

    Returns:
        For each true change that was found, by its index, the steps that passed until the first such alarm, never
        below 0. What was never found is not in it.

    Example:
        >>> from filtax.evaluate import detection_delays
        >>> detection_delays([[50], [90]], alarms=[57], starts=[49])
        {50: 7}
    """
    if len(alarms) != len(starts):
        raise ValueError(
            f"detection_delays: {len(alarms)} alarms but {len(starts)} starts; each alarm names the start it saw."
        )
    changes = sorted(set().union(*({*marks} - {0} for marks in _annotators("detection_delays", truth))))
    delays = {}
    for change in changes:
        seen = [at for at, start in zip(alarms, starts, strict=True) if abs(int(start) - change) <= margin]
        if seen:
            delays[change] = max(int(min(seen)) - change, 0)
    return delays


def _annotators(call: str, truth: Any, length: int | None = None) -> list[list[int]]:
    marks = list(truth.values()) if isinstance(truth, Mapping) else list(truth)
    if not marks or any(np.ndim(each) != 1 for each in marks):
        raise ValueError(
            f"{call}(truth=...) must hold the changes of at least one annotator, each a list of indices; for one "
            "annotator write [[50, 90]]."
        )
    return [_indices(f"{call}(truth=...)", each, length) for each in marks]


def _indices(call: str, changes: Iterable[Any], length: int | None = None) -> list[int]:
    """The changes as whole numbers; refused where no datum can have that index; the end of the series passes."""
    given = list(changes)
    for t in given:
        if not (t >= 0 and int(t) == t and (length is None or t <= length)):
            wanted = "of at least 0" if length is None else f"from 0 to {length}"
            raise ValueError(
                f"{call} holds {t}, but an index is a whole number {wanted}; give that of the first datum of each new "
                "segment."
            )
    return [int(t) for t in given]


def _matched(truth: set[int], said: set[int], margin: int) -> int:
    """True changes with one said nearby, each of which serves once: the nearest first, in the order of time."""
    left, count = set(said), 0
    for change in sorted(truth):
        near = sorted((abs(change - t), t) for t in left if abs(change - t) <= margin)
        if near:
            left.remove(near[0][1])
            count += 1
    return count


def _edges(changes: Iterable[int], length: int) -> np.ndarray:
    """Where segments begin, and the end."""
    inside = {t for t in changes if 0 < t < length}
    return np.array([0, *sorted(inside), length])
