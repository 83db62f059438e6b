"""The robust moving average: the recursion in plain numpy, and the method of the framework that it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx

rng = np.random.default_rng(4)
T = 300
y = np.cumsum(0.1 * rng.normal(size=T)) + rng.normal(size=T)
y[[50, 200]] = 40.0, -1e6
y[100:110] = np.nan


def by_hand(y, q, r, c, m=0.0, s=1.0):
    out = []
    for each in y:
        s = s + q
        w2 = 0.0 if np.isnan(each) else 1 / (1 + (each - m) ** 2 / c**2)
        k = s / (s + r / w2) if w2 > 0 else 0.0
        m, s = (k * each + (1 - k) * m if k > 0 else m), (1 - k) * s
        out.append((m, s, k))
    return np.array(out).T


@pytest.mark.x64
@pytest.mark.parametrize("c", [3.0, np.inf])
def test_three_ways_to_one_answer(c):
    """The formulas of E28, the function, and the method of the framework, to 1e-12."""
    got = fx.ewma(y, q=0.01, r=1.0, c=c, mean=0.3, var=2.0)
    mean, var, gain = by_hand(y, 0.01, 1.0, c, 0.3, 2.0)
    np.testing.assert_allclose(got.mean, mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got.var, var, rtol=1e-12)
    np.testing.assert_allclose(got.gain, gain, rtol=1e-11, atol=1e-16)
    trust = fx.models.imq(c) if np.isfinite(c) else fx.models.tempered(1.0)
    wolf = fx.method("C-ACI(q=0.01)", model=fx.models.robust(fx.models.gaussian(1.0), trust))
    _, infos = wolf.scan(wolf.init(mean=np.array([0.3]), cov=2.0), None, y, keep=("belief_mean", "belief_var"))
    np.testing.assert_allclose(got.mean, infos.belief_mean[:, 0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got.var, infos.belief_var[:, 0], rtol=1e-12)


@pytest.mark.x64
def test_the_smoothing_factor_settles():
    """q = 0.01, r = 1 gives 0.0951, the factor of the thesis' plain average; an outlier leaves s + q (E28)."""
    calm = fx.ewma(np.zeros(2000), q=0.01, r=1.0)
    np.testing.assert_allclose(calm.gain[-1], 0.5 * (np.sqrt(0.01**2 + 0.04) - 0.01), rtol=1e-12)
    assert round(float(calm.gain[-1]), 4) == 0.0951
    shot = fx.ewma(np.array([0.0, np.inf, 1e200]), q=0.01, r=1.0, c=0.05)
    np.testing.assert_allclose(shot.var[1:], shot.var[0] + np.array([0.01, 0.02]), rtol=1e-12)
    np.testing.assert_allclose(shot.mean, 0.0, atol=1e-12)


def test_finite_in_float32_and_under_vmap():
    series = jnp.array([[0.0, 1e30, -jnp.inf, 3e38], [1.0, 2.0, jnp.nan, 1.0]], "float32")
    got = jax.vmap(lambda row: fx.ewma(row, q=0.01, r=1.0, c=0.5))(series)
    assert got.mean.dtype == "float32"
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(got))
    np.testing.assert_allclose(got.mean[0], 0.0, atol=1e-6)
    assert fx.ewma([1, 2, 3], q=0.1, r=1).mean.shape == (3,)


def test_refusals():
    for wrong, message in (
        ({"q": -1.0, "r": 1.0}, r"ewma\(q=...\) must be finite and at least 0, got -1.0"),
        ({"q": 0.1, "r": 0.0}, r"ewma\(r=...\) must be finite and above 0, got 0.0"),
        ({"q": 0.1, "r": 1.0, "c": -2.0}, r"ewma\(c=...\) must be above 0, got -2.0"),
        ({"q": 0.1, "r": 1.0, "c": 0.0}, r"ewma\(c=...\) must be above 0, got 0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            fx.ewma([1.0], **wrong)
    with pytest.raises(ValueError, match=r"ewma: y has shape \(2, 2\); give one series"):
        fx.ewma(np.ones((2, 2)), q=0.1, r=1.0)
