"""Published methods as choices of five parts, and exact run lengths against the sum over all histories.

Every row of the thesis's table that is in the catalogue is built, learns from a small stream, and reports the parts it
is made of. Run lengths and change times that keep every hypothesis are compared with the 2^T histories of changes,
each scored by one dense Gaussian for each segment: no recursion, no filter.

Thesis: tab:related-bone-methods, eq:bocd-joint.
"""

import inspect
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import jax.numpy as jnp
import numpy as np

from filtax import auxiliary, method, priors
from filtax.methods import PUBLISHED, Published
from filtax.models import bernoulli, linear
from thesis.experiment import Advance, Experiment, Result, Table, claims
from thesis.statistics import Verdict, all_of, holds_if, holds_only_if

THESIS = {  # the table of the thesis: M.2, M.3, A.1, A.2
    "kalman_1960": ("C", "LSSM", "LG", "DA[1]"),
    "magill_1965": ("ME", "LSSM", "LG", "DA[K]"),
    "chang_athans_1978": ("ME", "LSSM", "LG", "CA"),
    "chaer_1997": ("ME", "LSSM", "LG", "DA[K]"),
    "ghahramani_hinton_2000": ("ME", "Static", "VB", "CA"),
    "adams_mackay_2007": ("RL", "PR", "Cj", "DA[inf]"),
    "fearnhead_liu_2007": ("CPT/ME", "PR", "any", "DA[inf]"),
    "wilson_2010": ("RLCC", "PR", "Cj", "DA[inf]"),
    "fearnhead_liu_2011": ("CPT/ME", "MMPR", "any", "DA[inf]"),
    "mellor_shapiro_2013": ("RL", "PR", "Cj", "DA[inf]"),
    "nguyen_2017": ("CPL", "Sub", "VB", "DA[1]"),
    "knoblauch_damoulas_2018": ("RL/ME", "PR", "Cj", "DA[inf]"),
    "kurle_2019": ("CPV", "Sub", "VB", "DA[1]"),
    "li_2021": ("CPL", "MCI", "VB", "DA[inf]"),
    "nassar_2022": ("CPV", "Sub", "LG", "DA[1]"),
    "liu_2023": ("ME", "C/LSSM", "any", "DA[K]"),
    "chang_2023": ("C", "ACI", "LG", "DA[1]"),
    "titsias_2023": ("CPP", "OU", "LG", "CA"),
    "galashov_2024": ("CPP", "OU", "VB", "CA"),
    "abeles_2024": ("ME", "LSSM", "LG", "DA[K]"),
    "duran_martin_2025": ("RL", "OUPR", "any", "DA[1]"),
}
COINS = ("adams_mackay_2007", "wilson_2010", "mellor_shapiro_2013", "knoblauch_damoulas_2018")  # conjugate: arms, coins
GAUSSIAN = ("LG", "LoFi", "RVGA")  # what VB and LG stand for here
NOISE, HAZARD = 0.3, 0.2
NOTES = (
    "A bounded DA[K] stands for the DA[inf] of the table where all paths would be 2^t. 'VB' is run as RVGA where the "
    "method takes a posterior; LoFi is an LG whose precision has low rank.",
    "The CA of Chang and Athans is a merger of the experts' beliefs (GPB) and that of Ghahramani and Hinton shares "
    "each datum among them, neither is empirical Bayes; that of Titsias and Galashov is. Of Kurle the table gives "
    "CPV-Sub, which is built; the text of the thesis gives C-OU, which is built too (kurle_2019_relaxing).",
    "The printed algorithm of RL-PR uses joints that hold the datum already, and does not equal the enumeration; a "
    "new hypothesis here absorbs its datum, and does.",
)


@dataclass(frozen=True)
class Setting:
    """Data of the enumeration, which has 2^T terms."""

    data: int = 7


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    rng = np.random.default_rng(seed)
    rows, numbers = [], {}
    for i, (name, wanted) in enumerate(THESIS.items()):
        told = _reported(name, PUBLISHED[name], rng) if name in PUBLISHED else None
        numbers[name] = None if told is None else {"parts": told[:4], "runs": told[4], "same": _same(wanted, told)}
        rows.append((name, ", ".join(wanted), "not built" if told is None else ", ".join(told[:4]), told and told[4]))
        advance(0.8 * (i + 1) / len(THESIS))
    gaps = {name: _gap(name, setting.data, rng) for name in ("RL[inf]-PR", "CPT[inf]-PR")}
    advance(1.0)
    table = Table("M.2, M.3, A.1, A.2 of each method", ("", "table", "built", "runs"), rows, published=("table",))
    worst = [(name, *gap.values()) for name, gap in gaps.items()]
    exact = Table(f"Largest differences from all 2^{setting.data} histories", ("", *next(iter(gaps.values()))), worst)
    return Result({"rows": numbers, "gaps": gaps}, {}, (table, exact), NOTES)


def _reported(name: str, row: Published, rng: np.random.Generator) -> tuple[str, str, str, str, bool]:
    """Build a method, let it learn twelve data, and ask it for its parts."""
    coin = name in COINS
    built = row.build(bernoulli() if coin else linear(noise=NOISE), **_settings(name, row))
    X, y = (None, rng.integers(2, size=12).astype(float)) if coin else (rng.normal(size=(12, 2)), rng.normal(size=12))
    state = built.init(mean=jnp.full(1, 0.5), cov=0.05) if coin else built.init(mean=jnp.zeros(2), cov=1.0)
    _, infos = built.scan(state, X, y, keep=("log_evidence", "ok"))
    runs = bool(np.all(np.asarray(infos.ok))) and bool(np.isfinite(np.asarray(infos.log_evidence)).all())
    inner = "/ME" if getattr(built.auxiliary, "inner", None) is not None else ""
    prior = built.prior if hasattr(built.prior, "name") else built.prior.dynamics
    return built.auxiliary.name + inner, prior.name, built.posterior.name, _weighing(built), runs


def _settings(name: str, row: Published) -> dict[str, Any]:
    """Small values for what a builder asks for."""
    systems = [priors.linear_dynamics(F=f, Q=0.05) for f in (0.9, 1.0)]
    values = {
        "dynamics": {"C": systems[0], "ME": None if THESIS[name][1] == "Static" else systems}.get(
            THESIS[name][0], [priors.ornstein_uhlenbeck(rate) for rate in (0.9, 1.0)]
        ),
        "transition": [[0.9, 0.1], [0.1, 0.9]],
        "memory": 4,
        "keep": 4,
        "rank": 1,
    }
    if THESIS[name][2] in ("VB", "Cj"):
        values["posterior"] = "RVGA" if THESIS[name][2] == "VB" else "Cj"
    return {key: value for key, value in values.items() if key in inspect.signature(row.build).parameters}


def _weighing(built: Any) -> str:
    """A.2 as the method has it: merged or empirical (CA), or weights over one, K or all hypotheses."""
    merged = getattr(built.auxiliary, "merge", None) == "gpb" or hasattr(built.weighting, "respond")
    if built.auxiliary.name == "CPP" or merged:
        return "CA"
    if built.auxiliary.name == "ME":
        return "DA[K]"
    if not hasattr(built.auxiliary, "keep") or built.auxiliary.keep == 1:
        return "DA[1]"
    return "DA[inf]" if built.auxiliary.keep is None else "DA[K]"


def _same(wanted: tuple[str, ...], told: tuple) -> bool:
    """Whether the parts are those of the table; a bounded DA[K] may stand for DA[inf]."""
    posterior = told[2] == "Cj" if wanted[2] == "Cj" else wanted[2] == "any" or told[2] in GAUSSIAN
    weighing = told[3] == wanted[3] or (told[3], wanted[3]) == ("DA[K]", "DA[inf]")
    return told[0] == wanted[0] and told[1] in wanted[1].split("/") and posterior and weighing


def enumerate_runs(X: np.ndarray, y: np.ndarray, hazard: float, noise: float) -> tuple[float, np.ndarray]:
    """Log evidence and posterior of the run length (T + 1,), by all 2^T histories; prior N(0, I).

    A history says of each datum whether a segment begins with it. The data of a segment are jointly Gaussian with
    covariance X Xᵀ + noise I; what is before the first change is a segment too, whose run length counts one more.
    """
    T = len(y)
    scores = {(a, b): _dense(X[a:b], y[a:b], noise) for a in range(T) for b in range(a + 1, T + 1)}
    log_joint, runs = [], []
    for changes in product((False, True), repeat=T):
        starts = np.flatnonzero(changes)
        cuts = [0, *starts[starts > 0], T]
        log_prior = np.sum(np.log(np.where(changes, hazard, 1.0 - hazard)))
        log_joint.append(log_prior + sum(scores[a, b] for a, b in pairwise(cuts)))
        runs.append(T - 1 - starts[-1] if len(starts) else T)
    top = np.max(log_joint)
    weight = np.exp(np.array(log_joint) - top)
    return float(top + np.log(weight.sum())), np.bincount(runs, weight / weight.sum(), minlength=T + 1)


def _dense(X: np.ndarray, y: np.ndarray, noise: float) -> float:
    cov = X @ X.T + noise * np.eye(len(y))
    return float(-0.5 * (y @ np.linalg.solve(cov, y) + np.linalg.slogdet(2 * np.pi * cov)[1]))


def _gap(name: str, T: int, rng: np.random.Generator) -> dict[str, float]:
    """Largest differences in evidence, posterior of the run length, and density of the next datum."""
    X = rng.normal(size=(T + 1, 2))
    y = X @ np.array([1.0, -1.0]) + np.where(np.arange(T + 1) < T // 2, 0.0, 2.0) + 0.5 * rng.normal(size=T + 1)
    times = auxiliary.change_times(HAZARD, capacity=2 ** (T + 1)) if name.startswith("CPT") else None
    built = method(f"LG+{name}(hazard={HAZARD})", model=linear(noise=NOISE), auxiliary=times)
    end, infos = built.scan(built.init(mean=jnp.zeros(2), cov=1.0), X[:T], y[:T], keep=("log_evidence",))
    evidence, posterior = enumerate_runs(X[:T], y[:T], HAZARD, NOISE)
    further, _ = enumerate_runs(X, y, HAZARD, NOISE)
    ages, weight = np.asarray(end.hypotheses.aux.runlength), np.exp(np.asarray(end.hypotheses.log_weight))
    ours = np.bincount(ages, weight, minlength=T + 1)[: T + 1]
    ahead = float(built.predict(end, X[T]).log_prob(y[T]))
    return {
        "log evidence": abs(float(np.sum(np.asarray(infos.log_evidence))) - evidence),
        "run length": float(np.abs(ours - posterior).max()),
        "log density of the next": abs(ahead - (further - evidence)),
    }


def _five_parts(result: Result) -> Verdict:
    """Every row of the table is there, runs, and has the parts of the table."""
    rows = result.numbers["rows"]
    built = [name for name, row in rows.items() if row is not None]
    absent, odd = [n for n in rows if n not in built], [n for n in built if not rows[n]["same"]]
    running = [name for name in built if rows[name]["runs"]]
    runs = holds_if(len(running) == len(built), f"{len(running)} of {len(built)} methods that are built run")
    parts = [("not built", absent), ("built with other parts than the table's", odd)]
    omitted = [f"the {len(names)} rows {why}" for why, names in parts if names]
    said = "; ".join([runs.evidence, *(f"{why}: {', '.join(names)}" for why, names in parts if names)])
    if runs.text != "holds" or not omitted:
        return Verdict(runs.text, said)
    return holds_only_if(built, f"{' and '.join(omitted)} are omitted", said)


def _exact(result: Result) -> Verdict:
    gaps = result.numbers["gaps"]
    return all_of(
        *[
            holds_if(max(gap.values()) <= 1e-10, f"{name} differs by {max(gap.values()):.1e}")
            for name, gap in gaps.items()
        ]
    )


EXPERIMENT = Experiment(
    name="catalogue",
    title="Published methods as five choices, and exact run lengths",
    sizes={"quick": Setting(), "full": Setting(data=12)},
    run=_run,
    figures={},
    claims=claims({9: _five_parts, 10: _exact}),
)
