import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from filtax.synthetic import moons
from thesis import find
from thesis.expfam_moons import Setting, mixed, moons_model, rolling

pytestmark = [pytest.mark.x64, pytest.mark.nightly]
experiment = find("expfam-moons")
SMALL = Setting(starts=2, steps=60, noises=(0.1,), variances=(0.1, 1.0), batch=64, epochs=2)


@pytest.fixture(scope="module")
def small():
    return experiment.run(SMALL, 0, lambda share: None)


def natural(net, key, variance, q, stream):
    """Forecasts by the textbook: precision plus Jᵀ p(1-p) J, in numpy but for the network itself."""
    theta, restore = ravel_pytree(net.init(key))
    function = jax.jit(jax.value_and_grad(lambda m, x: net.apply(restore(m), x)))
    m, P, forecasts = np.asarray(theta), variance * np.eye(theta.size), []
    for x, y in zip(stream.X, stream.y, strict=True):
        P = P + q * np.eye(m.size)
        eta, J = (np.asarray(part) for part in function(m, x))
        p = 1 / (1 + np.exp(-eta))
        forecasts.append(p)
        P = np.linalg.inv(np.linalg.inv(P) + p * (1 - p) * np.outer(J, J))
        m = m + P @ J * (y - p)
    return np.array(forecasts)


def test_accuracy_is_that_of_the_textbook(small):
    net, _ = moons_model()
    stream = moons(SMALL.steps, key=0, noise=0.1)
    keys = jax.random.split(jax.random.key(0), SMALL.starts)
    for name, q in (("static", 0.0), ("walk", 1e-5)):
        forecasts = np.stack([natural(net, key, small.numbers["variance"], q, stream) for key in keys])
        right = (forecasts > 0.5) == (stream.y > 0.5)
        np.testing.assert_allclose(small.arrays[f"{name}_0.1"][1], np.median(rolling(right), axis=0), atol=1e-12)


def test_the_mixed_form_learns_16_times_too_much_from_one_label():
    net, _ = moons_model()
    key, stream = jax.random.key(0), moons(1, key=0)
    theta, restore = ravel_pytree(net.init(key, np.float32))
    eta, J = jax.value_and_grad(lambda m: net.apply(restore(m), stream.X[0].astype(np.float32)))(theta)
    p, J = float(jax.nn.sigmoid(eta)), np.asarray(J, float)
    found = mixed()(key[None], 1.0, stream)
    gained = np.linalg.inv(found["cov"][0].astype(float)) - np.eye(theta.size)
    right = p * (1 - p) * np.outer(J, J)
    assert np.trace(gained) / np.trace(right) == pytest.approx(1 / (p * (1 - p)) ** 2, rel=0.01)
