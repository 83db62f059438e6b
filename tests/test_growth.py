"""Looking ahead from a bank that is full: nothing is dropped, and the law of evidence holds."""

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx

pytestmark = pytest.mark.x64
FULL = ["RL[inf](capacity=2)-PR(hazard=0.2)"]
NIGHT = ["CPL[inf]-MCI(hazard=0.2, beta=0.5)", "RLCC[inf](a=1.5, b=3, capacity=2)-PR", "CPT[inf]-PR(hazard=0.2)"]


@pytest.mark.parametrize("name", [*FULL, *(pytest.param(name, marks=pytest.mark.nightly) for name in NIGHT)])
def test_forecasts_of_a_full_bank_hold_every_hypothesis(name):
    method = fx.method(name, model=fx.models.linear(noise=0.5))
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(6, 2)), 3.0 * rng.normal(size=6)
    state = method.init(mean=jnp.zeros(2), cov=1.0)
    for t in range(6):
        before = state
        state, info = method.step(state, X[t], y[t])
        np.testing.assert_allclose(method.predict(before, X[t]).log_prob(y[t]), info.log_evidence, rtol=1e-10)
    ahead = method.forecast(before, X[:3])
    later = before
    for h in range(3):
        seen = method.predict(later, X[h])
        np.testing.assert_allclose(ahead.mean[h], seen.mean, rtol=1e-10)
        np.testing.assert_allclose(ahead.var[h], seen.var, rtol=1e-10)
        later, _ = method.step(later, X[h], np.nan)
