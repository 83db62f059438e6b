"""When each row of the conformance table is asked for each property: by day, by night, or with x64 off."""

import pytest

from catalogue import ROWS

# Rows whose parts all stand in others wait for the night.
NIGHTLY = (
    *("tracker-covariance", "two-outputs", "unknown-noise-OU", "noise-of-x"),
    *("run-lengths-labels", "run-lengths-coin", "change-times"),
    *("wolf-huber-precision", "wolf-counts", "wolf-network"),
    *("enkf-labels", "etkf-network", "particles-labels", "particles-counts", "particles-marginalised"),
    *("logistic-explicit", "softmax-natural", "network-sampled", "logistic-diagonal"),
    *("labels-backprop", "network-low-rank"),
    *("change-widens", "unknown-hazard", "switching", "most-probable-share"),
    *("wolf-tmd", "wolf-labels", "wolf-unknown-noise", "loss"),
    *("etkf-tracker", "particles-auxiliary", "network-iterated", "network-labels", "precision-OU", "count"),
    *("softmax", "poisson", "unknown-noise", "covariance-ACI"),
    *("lofi-network", "lofi-spherical-labels", "lofi-wolf-relax-or-reset"),
    *("outlier-bernoulli-network", "outlier-bernoulli-runs", "inverse-wishart-tracker", "inverse-wishart", "student"),
    *("subsets", "chaer_1997", "ghahramani_hinton_2000", "fearnhead_liu_2007", "nguyen_2017", "kurle_2019"),
    *("nassar_2022", "nassar_2022-binary", "survivors-drawn", "survivors-diverse"),
    *("kalman_1960", "magill_1965", "chang_athans_1978", "adams_mackay_2007", "wilson_2010", "fearnhead_liu_2011"),
    *("mellor_shapiro_2013", "knoblauch_damoulas_2018", "kurle_2019_relaxing", "li_2021", "liu_2023", "chang_2023"),
    *("titsias_2023", "galashov_2024", "abeles_2024", "duran_martin_2025"),
    *("particles", "line-per-run", "relax-or-reset", "outlier-bernoulli", "gradient"),
    *("pulse", "pulse-low-rank", "subspace-labels", "subspace-runs", "pulse-relax-or-reset", "pulse-uncoupled-poisson"),
)
# The dear properties wait too, in rows whose parts other rows or `test_identities_execution` show to them by day.
SLOPES = ("regression", "run-lengths", "coin")  # by day; others by night
SHOWN = {
    "complete": ("tracker", "logistic", "network", "relax-or-reset"),
    "missing": ("logistic", "relax-or-reset"),
    "float32": ("logistic",),  # and `test_degenerate_inputs`
}
# With x64 off only types could differ from the first pass, and a type goes wrong in a part, not in a pair of parts.
NARROW_BAD = ("wolf-imq", "run-lengths", "particles", "coin")
NARROW = (*NARROW_BAD, "tracker", "line-per-run", "outlier-bernoulli", "enkf", "gradient", "logistic-variational")


def rows(night=NIGHTLY, narrow=tuple(ROWS)):
    """The names of the table; those in `night` wait for it, those not in `narrow` are omitted with x64 off."""

    def marks(name):
        if name in night:
            yield pytest.mark.nightly
        if name not in narrow:
            yield pytest.mark.x64

    return pytest.mark.parametrize("name", [pytest.param(name, marks=list(marks(name))) for name in ROWS])
