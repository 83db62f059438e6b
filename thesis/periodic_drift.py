"""Labels whose boundary turns steadily: four filters with one hypothesis, and RL[K]-PR with up to fifteen.

Thesis: exp:logistic-reg, fig:clf-results, fig:clf-rlpr-comparison.
"""

import numpy as np

from filtax.synthetic import rotating_labels
from thesis.experiment import Advance, Experiment, Result, claims
from thesis.labelling import FULL, SPACES, Setting, compare, draw_errors, draw_sweep, least_by_keep, same_streams
from thesis.statistics import Verdict, all_of, below, holds_if

PUBLISHED = {
    "RL[1]-OUPR": (0.4154, 0.1456),
    "C-ACI": (8.604, 0.2846),
    "CPP-OU": (None, 0.2582),
    "RL[1]-PR": (0.265, 0.5011),
}
MARGIN = 0.005


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    return compare(setting, seed, advance, rotating_labels, PUBLISHED)


def _best_of_all(result: Result) -> Verdict:
    """OUPR is below each of the others, and below the last label; its lead over RL[1]-PR is told."""
    ours = result.arrays["RL[1]-OUPR"]
    others = ("C-ACI", "CPP-OU", "RL[1]-PR", "last label")
    verdict = all_of(*[below(ours, result.arrays[name], ("OUPR", name)) for name in others])
    lead = 100 * (result.arrays["RL[1]-PR"].mean() - ours.mean())
    return Verdict(verdict.text, f"{verdict.evidence}; RL[1]-PR is {lead:.1f} points above OUPR (published: 35.6)")


def _never_as_good(result: Result) -> Verdict:
    """More hypotheses help, but the best cell of the sweep, chosen on the test streams, stays above OUPR."""
    least, errors = least_by_keep(result)
    worse = float(np.max(np.diff(least), initial=-np.inf))
    best = int(least.argmin())
    name = f"best RL[{result.arrays['keeps'][best]}]"
    return all_of(
        holds_if(worse <= MARGIN, f"by one more hypothesis the error rises by {worse:.4f} at most"),
        below(same_streams(result), errors[best], ("OUPR", name)),
    )


EXPERIMENT = Experiment(
    name="periodic-drift",
    title="Online classification with periodic drift",
    sizes={"quick": Setting(), "full": FULL},
    run=_run,
    figures={"fig:clf-results": draw_errors, "fig:clf-rlpr-comparison": draw_sweep},
    claims=claims({15: _best_of_all, 16: _never_as_good}),
    fixed={"spaces": SPACES, "published": PUBLISHED},
)
