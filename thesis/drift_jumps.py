"""Labels whose boundary drifts and sometimes jumps: four filters with one hypothesis, and RL[K]-PR with up to fifteen.

Thesis: exp:classification-jumps, fig:clf-results-abrupt, fig:clf-rlpr-comparison-abrupt.
"""

from itertools import combinations

import numpy as np

from filtax.synthetic import jumping_labels
from thesis.experiment import Advance, Experiment, Result, claims
from thesis.labelling import FULL, SPACES, Setting, compare, draw_errors, draw_sweep, least_by_keep, same_streams
from thesis.statistics import Verdict, about, all_of, below, holds_if

PUBLISHED = {
    "RL[1]-OUPR": (0.1208, 0.2347),
    "C-ACI": (0.8364, 0.2350),
    "CPP-OU": (None, 0.2364),
    "RL[1]-PR": (0.265, 0.3915),
}
ALIKE = ("C-ACI", "CPP-OU", "RL[1]-OUPR")
MARGIN = 0.015


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    return compare(setting, seed, advance, jumping_labels, PUBLISHED)


def _three_alike(result: Result) -> Verdict:
    """The three are within the margin of each other, and RL[1]-PR is above all of them."""
    of = result.arrays
    alike = [about(of[a], of[b], MARGIN, (a, b), relative=False) for a, b in combinations(ALIKE, 2)]
    return all_of(*alike, *(below(of[name], of["RL[1]-PR"], (name, "RL[1]-PR")) for name in ALIKE))


def _crossing(result: Result) -> Verdict:
    """Up to three hypotheses the best hazard stays above OUPR; for some number of them it is below."""
    ours, keeps = same_streams(result), result.arrays["keeps"]
    least, errors = least_by_keep(result)
    few = [below(ours, errors[i], ("OUPR", f"RL[{k}]")) for i, k in enumerate(keeps) if k <= 3]
    many = [below(errors[i], ours, (f"RL[{k}]", "OUPR")) for i, k in enumerate(keeps) if k > 3]
    passed = next((v for v in many if v.text == "holds"), many[int(least[keeps > 3].argmin())])
    lower = ", ".join(str(k) for k in keeps[np.flatnonzero(least < ours.mean())])
    crossing = f"RL[K] is below OUPR in the mean at K = {lower}" if lower else "RL[K] never is below OUPR in the mean"
    return all_of(*few, passed, holds_if(True, crossing))


EXPERIMENT = Experiment(
    name="drift-jumps",
    title="Online classification with drift and jumps",
    sizes={"quick": Setting(), "full": FULL},
    run=_run,
    figures={"fig:clf-results-abrupt": draw_errors, "fig:clf-rlpr-comparison-abrupt": draw_sweep},
    claims=claims({17: _three_alike, 18: _crossing}),
    fixed={"spaces": SPACES, "published": PUBLISHED},
)
