"""Every published method is built, prints a name, learns from a stream, and obeys the law of evidence."""

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.methods import PUBLISHED

pytestmark = pytest.mark.x64
rng = np.random.default_rng(0)
X = rng.normal(size=(12, 2))
Y = X @ np.array([1.0, -1.0]) + np.where(np.arange(12) < 6, 0.0, 3.0) + 0.3 * rng.normal(size=12)
PAIR = [fx.priors.linear_dynamics(F=f, Q=0.05) for f in (0.9, 1.0)]
WALKS = [fx.priors.additive_inflation(q) for q in (0.0, 0.1)]
EXTRA = {
    "kalman_1960": dict(dynamics=PAIR[0]),
    "magill_1965": dict(dynamics=PAIR),
    "chang_athans_1978": dict(dynamics=PAIR, transition=[[0.9, 0.1], [0.1, 0.9]]),
    "knoblauch_damoulas_2018": dict(drifts=WALKS, keep=4),
    "chang_2023": dict(rank=1),
    "liu_2023": dict(dynamics=WALKS),
    "abeles_2024": dict(dynamics=PAIR),
    "fearnhead_liu_2007": dict(keep=4),
    "fearnhead_liu_2011": dict(keep=4),
    "wilson_2010": dict(keep=4),
}


DAY = ("kalman_1960", "adams_mackay_2007", "wilson_2010", "li_2021", "titsias_2023", "duran_martin_2025")


def test_the_catalogue_says_who_and_for_what():
    for name, row in PUBLISHED.items():
        assert all(row[1:])
        assert row.build.__doc__.split("(")[1][:4].isdigit() or name == "duran_martin_2025"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in DAY else [pytest.mark.nightly]) for name in PUBLISHED]
)
def test_published(name):
    coin = name == "mellor_shapiro_2013"
    model = fx.models.bernoulli() if coin else fx.models.linear(noise=0.2)
    bone = PUBLISHED[name].build(model, **EXTRA.get(name, {}))
    state = bone.init(mean=0.5, cov=0.05) if coin else bone.init(mean=jnp.zeros(2), cov=1.0)
    rows, data = (None, (Y > 0).astype(float)) if coin else (X, Y)
    end, infos = bone.scan(state, rows, data)
    assert bool(infos.ok.all())
    assert np.isfinite(infos.log_evidence).all()
    x = None if coin else X[0]
    np.testing.assert_allclose(
        bone.predict(end, x).log_prob(data[0]), bone.step(end, x, data[0])[1].log_evidence, rtol=1e-9
    )
    row = PUBLISHED[name]
    assert bone.auxiliary.name == row.auxiliary.split("/")[0]
    prior = bone.prior if hasattr(bone.prior, "name") else bone.prior.drift
    assert prior.name in (row.prior, "ACI")  # the experts of liu_2023 may drift in any way
