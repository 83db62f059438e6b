"""Weights of hypotheses over a long float32 stream against float64 (section 5.4 of the numeric bars).

Log weights that are not renormalised drift by tenths, and linear ones die on a single outlier.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx

pytestmark = pytest.mark.x64


def stream(T):
    rng = np.random.default_rng(13)
    changes = rng.random(T) < 0.002
    level = 3.0 * rng.normal(size=T)[np.cumsum(changes)]
    Y = level + 0.5 * rng.normal(size=T)
    Y[T // 2] = 1e30  # float32 cannot square it: refused, and nothing may be lost
    return np.ones((T, 1)), Y


@pytest.mark.parametrize(("T", "K"), [(20_000, 20), pytest.param(1_000_000, 200, marks=pytest.mark.nightly)])
def test_weights_survive_a_long_stream(T, K):
    """The bar of 1e-4 holds for all but one forecast in 1e5: a near tie over whom to drop may fall the other way.

    Seen at T = 1e6: one forecast off by 1.7e-4 with K = 200, two by 1.2e-4 with 100, 511 by up to 3e-3 with 20.
    """
    X, Y = stream(T)
    infos, ends = {}, {}
    for dtype in ("float32", "float64"):
        bocd = fx.method(f"RL[{K}]-PR(hazard=0.002)", model=fx.models.linear(noise=0.25))
        state = bocd.init(mean=jnp.zeros(1, dtype), cov=9.0)
        X_, Y_ = X.astype(dtype), np.where(Y > 1e29, np.nan, Y).astype("float32").astype(dtype)
        ends[dtype], infos[dtype] = bocd.scan(state, X_, Y_, keep=("mean", "runlength", "ok"))
    narrow, wide = infos["float32"], infos["float64"]
    assert bool(narrow.ok.all())
    np.testing.assert_allclose(np.exp(ends["float32"].bank.log_weight).sum(), 1.0, atol=1e-6)
    gap = np.abs(np.asarray(narrow.mean, "float64") - np.asarray(wide.mean))
    assert np.mean(gap > 1e-4) <= 1e-5
    assert gap.max() <= 1e-3
    assert np.mean(np.asarray(narrow.runlength) != np.asarray(wide.runlength)) <= 1e-5 + 1.0 / T


def test_a_datum_beyond_the_dtype_is_refused_and_nothing_is_lost():
    X, Y = stream(400)
    bocd = fx.method("RL[20]-PR(hazard=0.002)", model=fx.models.linear(noise=0.25))
    end, infos = bocd.scan(bocd.init(mean=jnp.zeros(1, "float32"), cov=9.0), X.astype("float32"), Y.astype("float32"))
    assert int((~np.asarray(infos.ok)).sum()) == 1 == int(end.refused)
    np.testing.assert_allclose(np.exp(end.bank.log_weight).sum(), 1.0, atol=1e-6)
    assert np.isfinite(infos.mean).all()
