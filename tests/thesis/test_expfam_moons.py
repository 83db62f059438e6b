import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from filtax.synthetic import moons
from thesis import Result, find
from thesis.expfam_moons import Setting, mixed, moons_model, rolling

pytestmark = [pytest.mark.x64, pytest.mark.nightly]
experiment = find("expfam-moons")
settles, degrades = (claim.decide for claim in experiment.claims)
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


def test_figures_and_verdicts(small):
    assert all(claim.decide(small).evidence for claim in experiment.claims)
    for draw in experiment.figures.values():
        assert draw(small).axes


def one(static=(0.98, 1.0, 1.0), walk=(0.98, 1.0, 1.0), peak=1.0, broken=0, best=1.0):
    sound = {"not_finite": 0, "not_psd": 0, "peak": 1.0, "end": [0.9, 0.95, 1.0]}
    first = {"end": list(static), "peak": peak, "not_finite": broken, "not_psd": 0}
    return {"static": first, "walk": {**sound, "end": list(walk)}, "mixed": sound, "best_possible_at_end": best}


@pytest.mark.parametrize(
    ("noises", "text"),
    [
        ({"0.1": one()}, "holds"),
        (
            {"0.1": one(), "0.3": one(walk=(0.9, 0.92, 0.94), best=0.93)},
            "holds only if the moons' noise is at most 0.1",
        ),
        ({"0.1": one(), "0.3": one(walk=(0.9, 0.91, 0.94), best=0.93)}, "does not hold"),
        ({"0.3": one(walk=(0.9, 0.92, 0.94), best=0.92)}, "does not hold"),
    ],
)
def test_settling(noises, text):
    assert settles(Result({"noises": noises})).text == text


@pytest.mark.parametrize(
    ("noises", "text"),
    [
        ({"0.1": one(static=(0.7, 0.9, 1.0), broken=3)}, "holds"),
        ({"0.1": one(static=(0.7, 0.9, 1.0))}, "does not hold"),
        ({"0.1": one(static=(0.9, 0.97, 1.0), broken=3)}, "does not hold"),
        ({"0.1": one(static=(0.88, 0.9, 0.9), broken=3)}, "does not hold"),
        ({"0.1": one(), "0.2": one(static=(0.7, 0.9, 1.0), broken=3)}, "holds only if the moons' noise is 0.2"),
    ],
)
def test_degrading_needs_a_fall_a_spread_and_a_failure(noises, text):
    assert degrades(Result({"noises": noises})).text == text
