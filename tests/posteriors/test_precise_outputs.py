"""Several precise readings of the same uncertain number: in float32 the covariance of their forecast loses the noise.

The oracle is the same Gaussian in float64, whose digits hold both.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx

NOISE, PRIOR, FAR = 1e-4, 1e6, 700.0
READINGS = np.array([FAR, FAR + 0.012, FAR - 0.007], "float32")


def learner(name):
    method = fx.method(name, model=fx.models.linear(noise=np.full(3, NOISE, "float32")))
    return method, method.init(mean=jnp.zeros(1, "float32"), cov=np.float32(PRIOR))


def exact(seen):
    y, O = READINGS[seen].astype("float64"), len(seen)
    C = PRIOR * np.ones((O, O)) + NOISE * np.eye(O)
    return -0.5 * (y @ np.linalg.solve(C, y) + np.linalg.slogdet(C)[1] + O * np.log(2.0 * np.pi))


@pytest.mark.parametrize("seen", [[0, 1, 2], [0, 2], [1]], ids=str)
def test_a_forecast_has_the_density_of_the_exact_one(seen):
    method, state = learner("LG+C-Static")
    y = np.where(np.isin(np.arange(3), seen), READINGS, np.nan).astype("float32")
    H = jnp.ones((3, 1), "float32")
    forecast = method.predict(state, H)
    assert forecast.covariance.dtype == "float32"
    # a difference of readings, rounded to 6e-5 of 700, is some 0.006 of their noise off
    np.testing.assert_allclose(
        forecast.log_prob(READINGS, jnp.isin(jnp.arange(3), jnp.asarray(seen))), exact(seen), atol=0.01
    )
    np.testing.assert_allclose(method.step(state, H, y)[1].log_evidence, exact(seen), atol=0.01)


@pytest.mark.parametrize("name", ["WoLF-MD(c=4)+C-Static", "RVGA+RL[2]-PR(hazard=0.01)", "NIG+C-Static"])
def test_the_evidence_is_the_density_of_the_forecast(name):
    method, state = learner(name)
    H = jnp.ones((3, 1), "float32")
    for move in (0.0, 0.01, -0.02):
        density = method.predict(state, H).log_prob(READINGS + np.float32(move))
        state, info = method.step(state, H, READINGS + np.float32(move))
        assert bool(info.ok)
        assert np.isfinite(density)
        np.testing.assert_allclose(density, info.log_evidence, atol=0.01)


@pytest.mark.parametrize("name", ["LG+C-Static", "NIG(shape=500, rate=500)+C-Static"])
def test_drawn_readings_differ_by_the_noise(name):
    method, state = learner(name)
    forecast = method.predict(state, jnp.ones((3, 1), "float32"))
    drawn = np.asarray(jax.vmap(forecast.sample)(jax.random.split(jax.random.key(0), 2000)), "float64")
    # each is rounded to 6e-5 where it lies within 1000 of 0: far less than the noise of 0.01
    np.testing.assert_allclose(np.var(drawn[:, 1] - drawn[:, 0]), 2.0 * NOISE, rtol=0.15)
    np.testing.assert_allclose(np.std(drawn[:, 2]), np.sqrt(PRIOR), rtol=0.15)


def test_a_noise_that_is_none_in_a_direction_has_a_forecast():
    """A function of x that returns a singular matrix: the density is that of the sum, and a draw is finite."""
    model = fx.models.nonlinear(
        lambda theta, x: jnp.stack([theta[0] + x[0], theta[1] * theta[0]]),
        noise=lambda x: jnp.diag(jnp.array([0.0, 1.0])),
    )
    method = fx.method("LG+C-Static", model=model)
    forecast = method.predict(method.init(mean=jnp.ones(2), cov=1.0), jnp.ones(2))
    S, y = np.array([[1.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])
    want = -0.5 * (y - [2.0, 1.0]) @ np.linalg.solve(S, y - [2.0, 1.0]) - 0.5 * np.log(np.linalg.det(2 * np.pi * S))
    np.testing.assert_allclose(forecast.log_prob(jnp.asarray(y)), want, rtol=1e-6)
    assert np.all(np.isfinite(forecast.sample(jax.random.key(0))))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "noise", "bar"),
    [
        ("LG+C-ACI(q=0.0001)", 1e-2, 0.005),
        ("LG+C-ACI(q=0.0001)", 1e-3, 0.1),
        ("LG(form=root)+C-ACI(q=0.0001)", 1e-3, 1e-3),
    ],
)
def test_what_a_covariance_holds_of_nearly_equal_outputs(name, noise, bar):
    """The numbers of docs/conventions.md: 70 drifting parameters, which are held as a covariance unless told."""
    rng = np.random.default_rng(1)
    method = fx.method(name, model=fx.models.linear(noise=noise))
    state, theta = method.init(mean=jnp.zeros(70, "float32"), cov=1.0), rng.normal(size=70)
    off = []
    for _ in range(150):
        H = (rng.normal(size=70) + 1e-3 * rng.normal(size=(3, 70))).astype("float32")
        y = (H @ theta + np.sqrt(noise) * rng.normal(size=3)).astype("float32")
        mean, cov = (np.asarray(part, "float64") for part in (method.belief(state).mean, method.belief(state).cov))
        gap, S = y - H @ mean, H.astype("float64") @ (cov + 1e-4 * np.eye(70)) @ H.T + noise * np.eye(3)
        exact = -0.5 * (gap @ np.linalg.solve(S, gap) + np.linalg.slogdet(2.0 * np.pi * S)[1])
        density = method.predict(state, H).log_prob(y)
        state, info = method.step(state, H, y)
        density, evidence = float(density), float(info.log_evidence)
        off.append([density - exact, evidence - exact, density - evidence])
    assert np.abs(off).max() < bar
