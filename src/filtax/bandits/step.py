"""One round of a bandit as pure functions: form the posterior of the rewards, learn from one reward, let time pass.

Arms come in two layouts. *Separate*: each arm has a state of its own, of one method; the states are stacked along a
leading axis A, and all arms see the same context. *Shared*: one state of a model with an output for each arm (or a
context that is a matrix, one row of features for each arm); a round shows one output. In both, every round is one step
of time for all arms: an arm that was not pulled ages under its prior, exactly as if its reward were missing.

Thesis: experiment:bandits.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, Int, PyTree

from filtax._step import cast_and_bind, filter_step, look_ahead, propose
from filtax.bandits._reward_posterior import (
    IndependentBetas,
    IndependentGaussians,
    JointGaussian,
    Sampled,
    sample,
)
from filtax.beliefs import Beta, Blocks, Covariance, Diagonal, LowRank, Pending, Precision, SquareRoot
from filtax.models import Direct, Linearised, Model, Predicted, Predictor
from filtax.models._exponential_family import BernoulliLikelihood, PoissonLikelihood
from filtax.models._gaussian import GaussianLikelihood
from filtax.models._generalised_bayes import LossLikelihood
from filtax.models._linear import Linear
from filtax.protocols import Hypotheses, over_hypotheses
from filtax.state import State, stores_data, with_memory, with_slots

__all__ = [
    "age",
    "allocate_memory",
    "allocate_slots",
    "decide",
    "learn",
    "reward_posterior",
    "stack",
]

GAUSSIAN = (Blocks, Covariance, Diagonal, LowRank, Pending, Precision, SquareRoot)
# likelihoods of one number an output, whose mean rises with the natural parameter
MONOTONE = (GaussianLikelihood, BernoulliLikelihood, LossLikelihood, PoissonLikelihood)


def stack(states: list[State]) -> State:
    """Stack the states of several arms along a new leading axis.

    >>> import filtax as fx
    >>> coin = fx.method("Cj+C-Static", model=fx.models.bernoulli())
    >>> stack([coin.init(mean=0.5, cov=1 / 12)] * 3).t.shape
    (3,)
    """
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def reward_posterior(method: Any, state: State, x: Array | None, *, draw: str = "parameter") -> Any:
    """Form the posterior of the mean rewards at the next step, by which policies choose.

    Args:
        method: From `filtax.method`.
        state: One of each arm (from `stack`), or one of a shared model.
        x: The context, None if the model takes none.
        draw: "parameter", "linearised" or "predictive", as for `thompson`.

    >>> import filtax as fx
    >>> coin = fx.method("Cj+C-Static", model=fx.models.bernoulli())
    >>> arms = stack([coin.init(mean=0.5, cov=1 / 12)] * 3)
    >>> reward_posterior(coin, arms, None).expected.tolist()
    [0.5, 0.5, 0.5]
    """
    method, shared = _bound(method, state), state.t.ndim == 0
    x = x if x is None or not jnp.issubdtype(x.dtype, jnp.floating) else x.astype(state.conditioning_ratio.dtype)
    expected = _expected(method, state, x)
    proposed = partial(_proposed, method)
    hypotheses = (proposed if shared else jax.vmap(proposed))(state.hypotheses, state.initial)
    belief, plain = hypotheses.belief, method.model.likelihood.plain
    noisy = draw == "predictive"
    if isinstance(belief, Beta) and not noisy and not shared:
        return IndependentBetas(expected, belief.ones[..., 0], belief.zeros[..., 0], hypotheses.log_weight)
    if isinstance(belief, Beta) and not noisy and hypotheses.log_weight.size == 1:
        return IndependentBetas(expected, belief.ones.T, belief.zeros.T, jnp.zeros_like(belief.ones.T))
    linear = draw != "parameter" or isinstance(method.model.predictor, Linear | Direct)
    smooth = isinstance(plain, GaussianLikelihood) if noisy else isinstance(plain, MONOTONE)
    if isinstance(belief, GAUSSIAN) and linear and smooth:
        return _gaussian(method, hypotheses, x, shared, plain if noisy else None, expected)
    drawn_from = state.hypotheses if noisy else hypotheses  # the forecast of a reward lets the step pass by itself
    return Sampled(expected, Partial(partial(sample, shared, noisy), method, drawn_from, state.initial, x))


def learn(
    method: Any, state: State, x: Array | None, arm: Int[Array, ""], reward: Array, *, complete: bool = False
) -> tuple[State, Array]:
    """Let one step pass: condition the pulled arm on its reward, and age the others.

    It also returns whether the reward was taken. `complete` promises a finite and possible reward and context, as in
    `Bone.scan`.

    >>> import filtax as fx
    >>> coin = fx.method("Cj+C-Static", model=fx.models.bernoulli())
    >>> arms = stack([coin.init(mean=0.5, cov=1 / 12)] * 2)
    >>> arms, ok = learn(coin, arms, None, jnp.asarray(1), jnp.asarray(1.0))
    >>> reward_posterior(coin, arms, None).expected.round(3).tolist()
    [0.5, 0.667]
    """
    method = _bound(method, state)
    if state.t.ndim == 0:
        method, y = _of_one_output(method, state, x, arm, reward)
        return _advance(method, state, x, y, complete and y.ndim == 0)  # a row is not complete: one arm was pulled
    pulled = jax.tree.map(lambda leaf: leaf[arm], state)
    done, ok = _advance(method, pulled, x, reward, complete)
    others = age(method, state, x)
    here = jnp.arange(state.t.shape[0], dtype=arm.dtype) == arm

    def merge(new: Array, old: Array) -> Array:
        return jnp.where(here.reshape((-1,) + (1,) * new.ndim), new[None], old)

    return state.after(*jax.tree.map(merge, done.carry, others.carry)), ok


def age(method: Any, state: State, x: Array | None = None) -> State:
    """Let one step pass without a reward: a step with a missing datum, at less cost where the method allows it.

    Methods that store data, and those that draw which hypotheses survive, need an x: any of the shape of the contexts.

    >>> import filtax as fx
    >>> coin = fx.method("Cj+C-OU(rate=0.5)", model=fx.models.bernoulli())
    >>> arms = stack([coin.init(mean=0.5, cov=1 / 12)] * 2)
    >>> age(coin, arms).t.tolist()
    [1, 1]
    """
    missing = partial(_missing, _bound(method, state), x=x)
    hypotheses: Any = missing(state) if state.t.ndim == 0 else jax.vmap(missing)(state)
    return state.after(hypotheses, state.t + 1, state.began, state.refused, state.conditioning_ratio)


def allocate_memory(method: Any, state: State, x: Array | None) -> State:
    """Allocate memory for contexts like x and their rewards, where the method stores data.

    >>> import filtax as fx
    >>> ogd = fx.method("OGD(rate=0.1, memory=4)+C-Static", model=fx.models.linear(noise=1.0))
    >>> allocate_memory(ogd, stack([ogd.init(mean=jnp.zeros(3))] * 2), jnp.ones(3)).initial.memory.X.shape
    (2, 4, 3)
    """
    if not stores_data(method):
        return state

    def allocate(one: State) -> State:
        outputs = method.model.bind(one.layout).outputs(one.initial.mean, x)
        return with_memory(method, one, x, jnp.zeros(outputs, one.conditioning_ratio.dtype))

    return _over_axes(allocate, state)


def _bound(method: Any, state: State) -> Any:
    return cast_and_bind(method, state if state.t.ndim == 0 else jax.tree.map(lambda leaf: leaf[0], state))


def _advance(method: Any, state: State, x: Array | None, y: Array, complete: bool) -> tuple[State, Array]:
    after, info, _ = filter_step(method, state, x, y, complete=complete)
    if complete:  # nothing is refused then, and nothing is computed for the two counts alone
        after = state.after(*after.carry[:3], state.refused, state.conditioning_ratio)
    return after, jnp.asarray(info.ok)


def _missing(method: Any, state: State, x: Array | None) -> Hypotheses:
    """The hypotheses a step later: a missing datum scores 0 under every one."""
    hypotheses, initial = state.hypotheses, state.initial.decompress()
    weighting = method.weighting
    of_data = weighting.searches or weighting.shares or weighting.gates or method.prior.of_members
    if of_data or weighting.needs_key:
        width = method.model.likelihood.width(method.model.outputs(initial.mean, x))
        return filter_step(method, state, x, jnp.full(width, jnp.nan, initial.mean.dtype))[0].hypotheses
    proposed, beliefs = propose(method, hypotheses, initial, None)
    silence = jnp.zeros_like(proposed.hypotheses.log_weight)
    proposed, beliefs = method.prior.revise(proposed, beliefs, silence, initial, lambda beliefs: silence)
    return Hypotheses(beliefs, proposed.hypotheses.aux, weighting(proposed.hypotheses.log_weight))


def _proposed(method: Any, hypotheses: Hypotheses, initial: PyTree) -> Hypotheses:
    """The hypotheses before the next datum."""
    proposed, beliefs = propose(method, hypotheses, initial, None)
    return Hypotheses(beliefs, proposed.hypotheses.aux, proposed.hypotheses.log_weight)


def _expected(method: Any, state: State, x: Array | None) -> Array:
    def ahead(hypotheses: Hypotheses, initial: PyTree) -> Array:
        return look_ahead(method, hypotheses, initial, x, None, False).mean

    ahead = ahead if state.t.ndim == 0 else jax.vmap(ahead)
    return ahead(state.hypotheses, state.initial)


def _gaussian(method: Any, hypotheses: Hypotheses, x: Array | None, shared: bool, noise: Any, expected: Array) -> Any:
    """Means and spreads of the natural parameters, with the noise of the rewards if they are to be drawn."""

    def one(belief: PyTree, aux: PyTree) -> tuple[Array, Array]:
        at = method.model.linearise(belief.mean, x, aux)
        spread = belief.project_cov(at.jacobian)
        return at.eta, spread if noise is None else spread + noise.covariance(x, at.eta)

    if shared:
        mean, cov = over_hypotheses(one, hypotheses.belief, hypotheses.aux)
        return JointGaussian(expected, mean, cov, hypotheses.log_weight)
    mean, cov = jax.vmap(lambda belief, aux: over_hypotheses(one, belief, aux))(hypotheses.belief, hypotheses.aux)
    return IndependentGaussians(expected, mean[..., 0], cov[..., 0, 0], hypotheses.log_weight)


class _SingleOutput(Predictor):
    """(M.1) One output of a predictor, that of the arm that was pulled; one backward pass."""

    predictor: Any
    arm: Int[Array, ""]

    def bind(self, layout: Any) -> "_SingleOutput":
        """Bind the predictor to the layout of theta."""
        return _SingleOutput(self.predictor.bind(layout), self.arm)

    def value(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree) -> Predicted:
        """The one natural parameter."""
        return Predicted(self._eta(theta, x, aux)[None], scalar=True)

    def linearise(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree) -> Linearised:
        """The one natural parameter and its gradient."""
        eta, slope = jax.value_and_grad(lambda theta: self._eta(theta, x, aux))(theta)
        return Linearised(eta[None], slope[None, :], scalar=True)

    def _eta(self, theta: Array, x: Array | None, aux: PyTree) -> Array:
        return Model(self.predictor, None).value(theta, x, aux).eta[self.arm]


def _of_one_output(method: Any, state: State, x: Array | None, arm: Array, reward: Array) -> tuple[Any, Array]:
    """The method and y for one reward of a shared model: one output where outputs are alike, else a masked row.

    A method that stores data would replay them without knowing which arm they belong to: it takes the row.
    """
    outputs = method.model.outputs(state.initial.mean, x)
    plain = method.model.likelihood.plain
    alike = not isinstance(plain, GaussianLikelihood) or (plain.noise is not None and plain.noise.size == 1)
    if isinstance(plain, MONOTONE) and isinstance(state.initial, GAUSSIAN) and alike and not stores_data(method):
        model = Model(_SingleOutput(method.model.predictor, arm), method.model.likelihood)
        return type(method)(model, method.auxiliary, method.prior, method.posterior, method.weighting), reward
    if isinstance(plain, LossLikelihood):
        raise ValueError(
            f"shared arms of {method.name}: a loss needs all rewards of a row, of which a round shows one; use a "
            "likelihood, or arms that are not shared."
        )
    return method, jnp.where(
        jnp.arange(outputs, dtype=arm.dtype) == arm, reward.astype(state.initial.mean.dtype), jnp.nan
    )


def allocate_slots(method: Any, state: State, steps: int) -> State:
    """Allocate slots for all hypotheses of so many rounds, in a state with any leading axes.

    >>> import filtax as fx
    >>> rl = fx.method("Cj+RL[inf](capacity=2)-PR(hazard=0.1)", model=fx.models.bernoulli())
    >>> allocate_slots(rl, rl.init(mean=0.5, cov=1 / 12), 5).hypotheses.log_weight.size
    8
    """
    if not method.auxiliary.grows:
        return state
    return with_all_slots(method, state, method.auxiliary.slots_needed(int(jnp.max(state.t - state.began)) + steps - 1))


def with_all_slots(method: Any, state: State, slots: int) -> State:
    """Widen a state with any leading axes to this many slots, where it has fewer."""
    if slots <= state.hypotheses.log_weight.shape[-1]:
        return state
    return _over_axes(lambda one: with_slots(method, one, slots), state)


def _over_axes(function: Callable, state: State) -> State:
    for _ in range(state.t.ndim):
        function = jax.vmap(function)
    return function(state)


@jax.jit
def decide(method: Any, policy: Any, state: State, x: Any, key: Array, t: Array) -> tuple[Array, Array]:
    """Choose an arm: its index, and the probability it was chosen with."""
    posterior = reward_posterior(method, state, x, draw=policy.draw)
    of_noise, of_tie, of_chance = jax.random.split(key, 3)
    noise = policy.noise(posterior, of_noise)
    u = jax.random.uniform(of_tie, (), posterior.expected.dtype)
    arm = policy.choose(posterior, noise, u, t)
    return arm, policy.propensity(posterior, arm, policy.probabilities(posterior, noise, of_chance, t))
