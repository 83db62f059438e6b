"""The rules by which the claims about tracking are decided."""

import numpy as np

from thesis.experiment import Claim, Result
from thesis.tracking_figures import KINDS, METHODS, RBPF
from thesis.tracking_settings import SHARED, particles
from thesis.tracking_tables import ratios
from thesis.verdicts import PAIRED, Verdict, about, all_of, below, holds_if, holds_only_if

__all__ = ["CLAIMS"]


def _slowdown(result: Result, kind: str, name: str, over: str = "KF") -> float:
    return float(np.median(ratios(result.numbers, kind, name, over)))


def _rmse(result: Result, kind: str, name: str) -> np.ndarray:
    """RMSE of component 0 in each trial, (N,)."""
    return np.sqrt(np.array(result.numbers["squares"][kind][name])[:, 0] / result.numbers["steps"])


def _cost(result: Result) -> Verdict:
    """WoLF at most 1.3 times the KF; B and IW as often as they condition, which is once more than they revise."""
    times = [(kind, name) for kind in KINDS for name in METHODS[3:]]
    ratios = [_slowdown(result, kind, name) for kind, name in times]
    shared = [_slowdown(result, kind, name, SHARED) for kind, name in times]
    said = f"WoLF {min(ratios):.2f} to {max(ratios):.2f} x KF, {max(shared):.1f} x a KF that shares one covariance"
    parts = [holds_only_if(max(ratios) <= 1.3, "the KF does not share one covariance over all trials", said)]
    count = result.numbers["iterations"] + 1
    for kind in KINDS:
        for name in METHODS[1:3]:
            ratio = _slowdown(result, kind, name)
            said = f"{kind}: {name} {ratio:.1f} x KF for {count} conditionings"
            parts.append(holds_if(0.7 * count <= ratio <= 1.4 * count, said))
    return all_of(parts)


def _student(result: Result) -> Verdict:
    """WoLF below the three others; KF-IW and KF-B like the KF."""
    error = {name: _rmse(result, "student", name) for name in METHODS}
    parts = [below(error[a], error[b], (a, b)) for a in METHODS[3:] for b in METHODS[:3]]
    parts += [about(error[name], error["KF"], 0.1, (name, "KF")) for name in METHODS[1:3]]
    return all_of(parts)


def _mixture(result: Result) -> Verdict:
    """IMQ, TMD and B below a fifth of the KF's sum of squares; IW above half of it."""
    squares = {name: np.array(result.numbers["squares"]["mixture"][name])[:, 0] for name in METHODS}
    parts = [below(squares[name], squares["KF"], (name, "KF"), ratio=0.2) for name in ("WoLF-IMQ", "WoLF-TMD", "KF-B")]
    return all_of([*parts, below(0.5 * squares["KF"], squares["KF-IW"], ("0.5 x KF", "KF-IW"))])


def _particles(result: Result) -> Verdict:
    """As good as the better WoLF, and dearer."""
    error = {kind: {name: _rmse(result, kind, name) for name in (*METHODS, RBPF)} for kind in KINDS}
    dearer = {kind: min(_slowdown(result, kind, RBPF, over=name) for name in METHODS[3:]) for kind in KINDS}
    return particles(error, dearer)


CLAIMS = (
    Claim(
        24,
        "WoLF costs as much as the KF; KF-B and KF-IW cost their iterations.",
        "tab:2d-ssm-running-time",
        _cost,
        "1.3 times the KF for WoLF; 0.7 to 1.4 times as often as they condition for KF-B and KF-IW",
    ),
    Claim(
        25,
        "Student noise: IMQ and TMD are closest to the truth; KF-IW and KF-B look like the KF.",
        "fig:linear-ssm-sample-runs",
        _student,
        f"{PAIRED} for WoLF; 10 % of the KF's median for what looks like the KF",
    ),
    Claim(
        26,
        "Mixture noise: IMQ, TMD and KF-B are right, KF-IW and the KF are not robust.",
        "fig:linear-ssm-sample-runs",
        _mixture,
        "0.2 of the KF's sum of squares for what is right, 0.5 of it for what is not robust, paired, with 95 %",
    ),
    Claim(
        27,
        "The RBPF performs like WoLF at a much higher cost.",
        "fig:2d-ssm-sample",
        _particles,
        "20 % of the better WoLF's median RMSE; 10 times its time",
    ),
)
