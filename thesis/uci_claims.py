"""The rules by which the claims about the corrupted tables are decided."""

from collections.abc import Mapping
from typing import Any

from thesis.experiment import Result
from thesis.uci_figures import mean_error, relative
from thesis.uci_settings import LAST, METHODS, SETS, WOLF
from thesis.verdicts import UNDECIDED, Verdict, all_of, below, holds_if

__all__ = ["better", "quadrant", "slower"]


def better(result: Result) -> Verdict:
    """IMQ and TMD below OGD on all sets, and below the median of what was seen."""
    error = result.numbers["rmedse"]["text"]
    worst, parts = [], []
    for method in WOLF:
        for name in SETS:
            parts.append(below(error[name][method], error[name]["OGD"], (f"{name}: {method}", "OGD")))
            worst.append(
                mean_error(result.numbers, "text", name, method) / mean_error(result.numbers, "text", name, "OGD") - 1
            )
    poor = [
        f"{method} on {name}"
        for method in WOLF
        for name in SETS
        if mean_error(result.numbers, "text", name, method) >= mean_error(result.numbers, "text", name, LAST)
    ]
    said = f"relative to OGD {100 * min(worst):.0f} to {100 * max(worst):.0f} %"
    beside = (
        f"no better than the median of the targets so far: {', '.join(poor)}" if poor else "all beat the median so far"
    )
    failed = [part.evidence for part in parts if part.text != "holds"]
    return Verdict(all_of(parts).text, "; ".join([said, *failed, beside]))


def quadrant(result: Result) -> Verdict:
    """The points with less error and less time than OGD are WoLF's, all of them, and nobody else's."""
    timed = result.numbers["times"]
    there = [(m, s) for s in timed for m in METHODS if m != "OGD" and max(relative(result, s, m)) < 0]
    wanted = {(m, s) for s in timed for m in WOLF}
    said = ", ".join(f"{m} on {s}" for m, s in there) or "none"
    slow = [1 + relative(result, s, m)[1] for s in timed for m in WOLF]
    verdict = holds_if(set(there) == wanted, f"in the third quadrant: {said}; WoLF takes up to {max(slow):.2f} x OGD")
    return _all_sets(verdict, timed)


def slower(result: Result) -> Verdict:
    """EKF-B and EKF-IW at least twice as slow as the slower WoLF; the EKF at least 1.3 times OGD's error.

    Times are those of the table: over OGD's of the same round, the median of rounds.
    """
    n, parts = result.numbers, []
    for name in n["times"]:
        slow = {m: 1 + relative(result, name, m)[1] for m in METHODS}
        wolf = max(WOLF, key=slow.__getitem__)
        for m in ("EKF-B", "EKF-IW"):
            ratio = slow[m] / slow[wolf]
            said = f"{name}: {m} {ratio:.1f} x {wolf} ({slow[m]:.2f} and {slow[wolf]:.2f} x OGD)"
            parts.append(holds_if(ratio >= 2, said))
    for name in SETS:
        ratio = mean_error(n, "text", name, "EKF") / mean_error(n, "text", name, "OGD")
        parts.append(holds_if(ratio >= 1.3, f"{name}: EKF {ratio:.2f} x OGD's error"))
    return _all_sets(all_of(parts), n["times"])


def _all_sets(verdict: Verdict, timed: Mapping[str, Any]) -> Verdict:
    """What holds on some sets only is not decided."""
    few = verdict.text == "holds" and len(timed) < len(SETS)
    return Verdict(UNDECIDED if few else verdict.text, verdict.evidence)
