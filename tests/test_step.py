"""One step, part by part: types, masks and flags against a table, banks and noise keys against plain numpy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax._step import filter_step, look_ahead
from filtax.beliefs import Covariance
from filtax.protocols import Auxiliary, Hypotheses, Posterior, Proposal, static
from moments import normal, spd
from oracles import log_normal

pytestmark = pytest.mark.x64


class Fixed(Auxiliary):
    """A bank of hypotheses that stay what they are; the weights alone move."""

    log_weight: jax.Array
    slots: int = static(default=3)
    name = "Fixed"
    shown = {}  # noqa: RUF012

    def start(self, dtype):
        return jnp.arange(3), self.log_weight.astype(dtype)

    def expand(self, hypotheses, initial, dt):
        return Proposal(hypotheses, jnp.zeros(3, bool), jnp.full(3, -jnp.inf))

    def report(self, hypotheses, t):
        return jnp.zeros(()), t


class Noisy(Posterior):
    """Shows a number drawn from each slot's key as its trust."""

    inner: object = eqx.field(default_factory=lambda: fx.method("LG+C-Static", model=fx.models.linear(1.0)).posterior)
    families = (Covariance,)
    name, shown = "N", {}

    def start(self, mean, cov, has_dynamics):
        return Covariance.start(mean, cov)

    def forecast(self, belief, model, x, aux, plugin=False):
        return self.inner.forecast(belief, model, x, aux, plugin)

    def update(self, belief, model, x, y, mask, aux, key):
        done = self.inner.update(belief, model, x, y, mask, aux, None)
        drawn = jax.random.uniform(key, dtype=y.dtype)
        return eqx.tree_at(lambda d: d.trust, done, drawn, is_leaf=lambda leaf: leaf is None)


WEIGHT = np.array([0.5, 0.3, 0.2])
MEANS, COVS = normal(0, 3, 2), np.array([spd(seed, 2) for seed in range(3)])
KF = fx.method("LG(form=covariance)+C-Static", model=fx.models.linear(noise=0.5), auxiliary=Fixed(jnp.log(WEIGHT)))


def hypotheses(weight=WEIGHT):
    beliefs = jax.vmap(Covariance)(jnp.asarray(MEANS), jnp.asarray(COVS))
    return Hypotheses(beliefs, jnp.arange(3), jnp.log(jnp.asarray(weight)))


def state_of(hypotheses, initial, t=0, key=None):
    zero = jnp.zeros((), jnp.int32)
    return fx.State(hypotheses, initial, jnp.asarray(t), zero, zero, jnp.zeros(()), key)


def test_a_bank_weighs_its_hypotheses():
    """Forecast, evidence and new weights are sums over three Gaussians."""
    x, y = normal(5, 2), 0.7
    first = Covariance(jnp.zeros(2), jnp.eye(2))
    each = np.array(
        [log_normal(np.array([y - x @ m]), np.array([[x @ P @ x + 0.5]])) for m, P in zip(MEANS, COVS, strict=True)]
    )
    total = WEIGHT @ np.exp(each)
    made = jax.jit(lambda x: look_ahead(KF, hypotheses(), first, x, None, False))(x)
    np.testing.assert_allclose(made.mean, WEIGHT @ (MEANS @ x), rtol=1e-10)
    np.testing.assert_allclose(made.log_prob(y), np.log(total), rtol=1e-10)
    got, info, _ = jax.jit(lambda y: filter_step(KF, state_of(hypotheses(), first), jnp.asarray(x), y))(jnp.asarray(y))
    np.testing.assert_allclose(info.log_evidence, np.log(total), rtol=1e-10)
    np.testing.assert_allclose(np.exp(got.hypotheses.log_weight), WEIGHT * np.exp(each) / total, rtol=1e-9)
    np.testing.assert_allclose(got.conditioning_ratio, max(x @ P @ x for P in COVS) / 0.5, rtol=1e-10)
    assert bool(info.ok)


def test_each_slot_and_each_step_draws_its_own_noise():
    """Trust is shown as the weighted mean: with all the weight on one slot it is that slot's own number."""
    method = eqx.tree_at(lambda m: m.posterior, KF, Noisy())
    first = Covariance(jnp.zeros(2), jnp.eye(2))

    @jax.jit
    def trust(weight, t):
        state = state_of(hypotheses(weight), first, t, jax.random.key(1))
        return filter_step(method, state, jnp.ones(2), jnp.asarray(jnp.nan))[1].trust

    drawn = {(slot, t): float(trust(np.eye(3)[slot], t)) for slot in range(3) for t in range(2)}
    assert len(set(drawn.values())) == 6
    np.testing.assert_allclose(trust(WEIGHT, 0), sum(w * drawn[slot, 0] for slot, w in enumerate(WEIGHT)), rtol=1e-12)
    assert float(trust(np.eye(3)[1], 1)) == drawn[1, 1]  # the same step gives the same numbers again
