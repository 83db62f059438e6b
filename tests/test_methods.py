"""Every published method is built, prints a name, learns from a stream, and obeys the law of evidence."""

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.methods import PUBLISHED, REFERENCES
from thesis.catalogue import THESIS

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
    "chaer_1997": dict(dynamics=PAIR),
    "ghahramani_hinton_2000": dict(transition=[[0.9, 0.1], [0.1, 0.9]], posterior="LG"),
    "nguyen_2017": dict(memory=4),
    "kurle_2019": dict(memory=4, posterior="LG"),
    "nassar_2022": dict(memory=4),
    "knoblauch_damoulas_2018": dict(dynamics=WALKS, keep=4),
    "chang_2023": dict(rank=1),
    "liu_2023": dict(dynamics=WALKS),
    "abeles_2024": dict(dynamics=PAIR),
    "fearnhead_liu_2007": dict(keep=4, dynamics=WALKS),
    "fearnhead_liu_2011": dict(keep=4),
    "wilson_2010": dict(keep=4),
}


DAY = ("kalman_1960", "adams_mackay_2007", "wilson_2010", "li_2021", "titsias_2023", "duran_martin_2025")


def test_the_catalogue_has_the_21_rows_of_the_thesis_and_where_they_come_from():
    """Kurle's stands there twice: as in the table, and as in the text."""
    assert len(PUBLISHED) == 22
    assert set(PUBLISHED) - {"kurle_2019_relaxing"} == set(THESIS)
    assert set(REFERENCES) == set(PUBLISHED)
    for name, row in PUBLISHED.items():
        assert row.changes in ("abrupt", "gradual", "both")
        if name in THESIS:  # DA[K] where all paths would be 2^t, and the LSSM of the experts of Liu
            table = tuple(part.replace("DA[inf]", "DA[K]") for part in THESIS[name])
            built = tuple(part.replace("DA[inf]", "DA[K]") for part in row[3:])
            assert all(ours in theirs.split("/") or ours == theirs for ours, theirs in zip(built, table, strict=True))


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
    prior = bone.prior if bone.prior.name else bone.prior.dynamics
    assert prior.name in (row.prior, "ACI")  # the experts of liu_2023 may have any dynamics
