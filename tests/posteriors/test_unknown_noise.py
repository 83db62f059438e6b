"""Regression with an unknown noise variance, against an integral over that variance: at each one it is a Gaussian."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from filtax.models import linear, nonlinear
from filtax.posteriors import UnknownNoise
from moments import noise_rule, normal, same, spd
from oracles import Moments, joint_conditioning

pytestmark = pytest.mark.x64
SHAPE, RATE = 3.0, 2.0
update = jax.jit(lambda post, belief, model, x, y, mask=None: post.update(belief, model, x, y, mask, None, None))
M, P, H, R, Y = normal(0, 2), spd(1, 2), normal(2, 3, 2), spd(3, 3), normal(4, 3)


def begin(form="root", shape=SHAPE, rate=RATE):
    posterior = UnknownNoise(shape, rate, form)
    return posterior, posterior.start(jnp.asarray(M), jnp.asarray(P), has_dynamics=False)


def averaged(y, nodes, weights):
    """Joint conditioning at each variance, weighed by the density of what was seen; and the mean of the variance."""
    still = (np.eye(2)[None], np.zeros((1, 2)), np.zeros((1, 2, 2)))
    each = [joint_conditioning(M, v * P, *still, H[None], v * R[None], y[None]) for v in nodes]
    density = weights * np.exp([one.log_evidence for one in each])
    total = density.sum()
    mean = density @ np.array([one.mean for one in each]) / total
    cov = np.tensordot(density, np.array([one.cov for one in each]), 1) / total
    return Moments(mean, cov, np.log(total)), density @ nodes / total


@pytest.mark.parametrize(("missing", "form"), [(None, "covariance"), (1, "root"), (1, "precision")])
def test_update(missing, form):
    """Parameters, noise variance and evidence, for complete data and with one output missing."""
    posterior, belief = begin(form)
    y, mask = Y.copy(), None if missing is None else np.arange(3) != missing
    got = update(posterior, belief, linear(noise=jnp.asarray(R)), H, y, mask)
    y[[] if missing is None else [missing]] = np.nan
    want, noise = averaged(y, *noise_rule(SHAPE, RATE, 1201))
    np.testing.assert_allclose(got.log_evidence, want.log_evidence, rtol=1e-8)
    np.testing.assert_allclose(got.belief.noise, noise, rtol=1e-8)
    same(got.belief, want, rtol=1e-7)
    assert bool(got.ok)


def test_forecast_is_a_t():
    """With the parameters averaged out, or at their mean (`plugin`); the density is scipy's."""
    posterior, belief = begin()
    for plugin, unit in ((False, H @ P @ H.T + R), (True, R)):
        made = posterior.forecast(belief, linear(noise=jnp.asarray(R)), jnp.asarray(H), None, plugin)
        t = scipy.stats.multivariate_t(H @ M, RATE / SHAPE * unit, df=2 * SHAPE)
        np.testing.assert_allclose(made.log_prob(Y), t.logpdf(Y), rtol=1e-9)
        np.testing.assert_allclose(made.mean, H @ M, rtol=1e-10)
        np.testing.assert_allclose(made.cov, RATE / (SHAPE - 1) * unit, rtol=1e-10)  # of a t: the mean variance


def test_one_parameter_and_a_curve():
    """The extended approximation: the slope of h at the mean takes the place of H."""
    posterior = UnknownNoise(SHAPE, RATE)
    belief = posterior.start(jnp.array([0.5]), jnp.array([2.0]), has_dynamics=False)
    got = update(posterior, belief, nonlinear(lambda theta, x: jnp.exp(theta[0] * x), noise=1.0), 1.0, np.array([2.0]))
    h = np.exp(0.5)
    scale = 1.0 + 2.0 * h**2
    t = scipy.stats.t(2 * SHAPE, h, np.sqrt(RATE / SHAPE * scale))
    np.testing.assert_allclose(got.log_evidence, t.logpdf(2.0), rtol=1e-9)
    np.testing.assert_allclose(got.belief.mean, [0.5 + 2.0 * h / scale * (2.0 - h)], rtol=1e-9)
    np.testing.assert_allclose([got.belief.shape, got.belief.rate], [SHAPE + 0.5, RATE + 0.5 * (2 - h) ** 2 / scale])


def test_start_and_refusals():
    belief = UnknownNoise(shape=2, rate=3).start(jnp.zeros(1, "float32"), jnp.ones(1, "float32"), has_dynamics=True)
    assert float(belief.noise) == 3.0
    assert {leaf.dtype for leaf in jax.tree.leaves(belief)} == {np.dtype("float32")}
    for settings, match in (
        (dict(shape=0.0), r"NIG\(shape=...\) must be finite and above 0.*half the number of data"),
        (dict(rate=-1.0), r"NIG\(rate=...\) must be finite and above 0.*about the noise variance"),
        (dict(form="dense"), r"NIG\(form='dense'\) must be one of auto"),
    ):
        with pytest.raises(ValueError, match=match):
            UnknownNoise(**settings)
    with pytest.raises(ValueError, match="A precision cannot hold"):
        UnknownNoise(form="precision").check_start(jnp.zeros(2), jnp.zeros(2))
