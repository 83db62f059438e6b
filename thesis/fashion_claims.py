"""What the thesis says of its Fashion-MNIST experiment, as predicates on the rows of a result.

Thesis: sec:experiments-scalability.
"""

import numpy as np

from thesis.experiment import Result
from thesis.verdicts import UNDECIDED, Verdict, all_of, holds_if, holds_only_if

__all__ = ["CLAIMS"]

PULSE_AT, WIDE = 70, 100  # dimensions that the last claim names


def _errors(result: Result, kind: str) -> dict[int, float]:
    return {d: error for name, d, error, _ in result.numbers["rows"] if name == kind}


def _seconds(result: Result, kind: str) -> dict[int, float]:
    return {d: seconds for name, d, _, seconds in result.numbers["rows"] if name == kind}


def _dense_memory(result: Result) -> Verdict:
    from filtax.models import mlp

    D = mlp((784, 100, 100, 100, 10)).size
    return holds_if(D == 99_710 and round(4 * D**2 / 1e9, 1) == 39.8, f"{D:,} parameters, {4 * D**2 / 1e9:.1f} GB")


def _subspace(result: Result) -> Verdict:
    trained, untrained = _errors(result, "subspace"), _errors(result, "subspace, untrained")
    few = [d for d in trained if d <= 10]
    chance = all(trained[d] >= 0.85 for d in few)
    d, error = np.array(list(trained)), np.array(list(trained.values()))
    rank = np.corrcoef(d.argsort().argsort(), (-error).argsort().argsort())[0, 1]
    grows = holds_if(rank > 0.8, f"rank correlation of d and accuracy {rank:.2f}")
    seen = ", ".join(f"d={k}: {trained[k]:.3f}" for k in few)
    if chance:
        return all_of([holds_if(True, f"with d <= 10 {seen}"), grows])
    other = {d: error for d, error in untrained.items() if d <= 10}
    told = f"offset trained {seen}; untrained " + ", ".join(f"d={d}: {error:.3f}" for d, error in other.items())
    return all_of([holds_only_if(all(e >= 0.85 for e in other.values()), "the offset is untrained", told), grows])


def _pulse(result: Result) -> Verdict:
    pulse, subspace = _errors(result, "PULSE"), _errors(result, "subspace")
    spread = lambda errors: max(errors.values()) - min(errors.values())  # noqa: E731
    return all_of([
        holds_if(subspace[1] - pulse[1] >= 0.10, f"d = 1: subspace {subspace[1]:.3f}, PULSE {pulse[1]:.3f}"),
        holds_if(spread(pulse) < spread(subspace) / 2, f"ranges {spread(pulse):.3f} and {spread(subspace):.3f}"),
    ])  # fmt: skip


def _lofi(result: Result) -> Verdict:
    seconds = _seconds(result, "LoFi")
    all_draws = [*_errors(result, "LoFi").items(), *result.numbers["draws"]]
    errors = {d: float(np.mean([error for rank, error in all_draws if rank == d])) for d in seconds}
    low, high = min(seconds), max(seconds)
    spread = max(errors.values()) - min(errors.values())
    ratio = seconds[high] / seconds[low]
    return all_of([
        holds_if(spread <= 0.03, f"errors from {min(errors.values()):.3f} to {max(errors.values()):.3f}, means of "
                 f"{len(all_draws) // len(errors)} draws"),
        holds_if(ratio >= 1.5, f"rank {high} takes {ratio:.2f} times as long as rank {low}"),
    ])  # fmt: skip


def _showdown(result: Result) -> Verdict:
    lofi, pulse, subspace = (_errors(result, kind) for kind in ("LoFi", "PULSE", "subspace"))
    if max(pulse) < PULSE_AT or max(subspace) < WIDE:
        said = f"the claim is about PULSE at {PULSE_AT} and a subspace of {WIDE} or more"
        return Verdict(UNDECIDED, f"{said}; the largest that were run are {max(pulse)} and {max(subspace)}")
    times = {kind: _seconds(result, kind) for kind in ("LoFi", "PULSE", "subspace")}
    middle, d = float(np.median(list(lofi.values()))), min(pulse, key=lambda k: abs(k - PULSE_AT))
    ratio = times["PULSE"][d] / times["LoFi"][d]
    wide = max(subspace)
    near = min(times["LoFi"], key=lambda k: abs(k - wide))
    return all_of([
        holds_if(abs(pulse[d] - middle) <= 0.02, f"PULSE at {d}: {pulse[d]:.3f}, median LoFi {middle:.3f}"),
        holds_if(0.35 <= ratio <= 0.65, f"time ratio {ratio:.2f}"),
        holds_if(abs(subspace[wide] - middle) <= 0.02, f"subspace at {wide}: {subspace[wide]:.3f}"),
        holds_if(times["subspace"][wide] < times["LoFi"][near], f"its time {times['subspace'][wide]:.3g} s"),
    ])  # fmt: skip


CLAIMS = (
    (
        37,
        "A 784-100-100-100-10 network has 99,710 parameters, and one dense step needs 40 GB.",
        "sec:experiments-scalability",
        _dense_memory,
        "none: 99,710 and 39.8 GB",
    ),
    (
        38,
        "A subspace of at most 10 dimensions is no better than chance; more are better.",
        "fig:fashion-mnist-subspace-rank",
        _subspace,
        "0.85 is chance; a rank correlation of 0.8",
    ),
    (
        39,
        "PULSE in one dimension is much better than the subspace, and gains less from more.",
        "fig:fashion-mnist-pulse-rank",
        _pulse,
        "0.10 at d = 1; half of the subspace's range",
    ),
    (
        40,
        "LoFi hardly depends on its rank, and its time grows with it.",
        "fig:fashion-mnist-lofi-rank",
        _lofi,
        "a range of 0.03 over the ranks; 1.5 times the time",
    ),
    (
        41,
        "PULSE in 70 dimensions matches LoFi in half the time; so does a wide subspace.",
        "fig:showdown-mnist-lofi-rank",
        _showdown,
        "0.02 from LoFi's median over d; 0.35 to 0.65 of its time",
    ),
)
