"""One round of a bandit as pure functions: look at the arms, learn from a reward, let time pass.

Arms come in two layouts. *Separate*: each arm has a state of its own, of one method; they are stacked along a leading
axis A, and see the same context. *Shared*: one state of a model with an output for each arm (or a context that is a
matrix, one row of features for each arm), of which a round shows one. In both, every round is one tick of time for
everything: what was not pulled ages under its prior, exactly as if its reward were missing.

Thesis: experiment:bandits.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from filtax.bandits.draws import SAMPLERS
from filtax.bandits.outlook import Counted, Drawn, Joint, Separate
from filtax.beliefs import Beta, Blocks, Covariance, Diagonal, LowRank, Pending, Precision, SquareRoot
from filtax.growth import furnished, remembers
from filtax.models import Direct, Linearised, Model, Predicted
from filtax.models.exponential_family import BernoulliLikelihood, PoissonLikelihood
from filtax.models.gaussian import GaussianLikelihood
from filtax.models.linear import Linear
from filtax.models.loss import LossLikelihood
from filtax.module import Module
from filtax.programs import advance
from filtax.protocols import Hypotheses, over_hypotheses
from filtax.state import State
from filtax.tick import admit, conform, look_ahead, propose, tick, whole

__all__ = ["Chosen", "age", "furnish", "learn", "look", "stack"]

GAUSSIAN = (Blocks, Covariance, Diagonal, LowRank, Pending, Precision, SquareRoot)
# one number an output, whose mean rises with eta
LINKED = (GaussianLikelihood, BernoulliLikelihood, LossLikelihood, PoissonLikelihood)


class Chosen(Module):
    """(M.1) One output of a predictor: what a shared model says of the arm that was pulled; one backward pass.

    >>> Chosen(Linear(), jnp.asarray(1)).value(jnp.arange(4.0), jnp.array([1.0, 0.0]), None).eta.tolist()
    [1.0]
    """

    predictor: Any
    arm: Int[Array, ""]

    def bind(self, layout: Any) -> "Chosen":
        """Take note of how theta lies."""
        return Chosen(self.predictor.bind(layout), self.arm)

    def value(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree) -> Predicted:
        """The one natural parameter."""
        return Predicted(self._eta(theta, x, aux)[None], scalar=True)

    def linearise(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree) -> Linearised:
        """Its gradient."""
        eta, slope = jax.value_and_grad(lambda theta: self._eta(theta, x, aux))(theta)
        return Linearised(eta[None], slope[None, :], scalar=True)

    def _eta(self, theta: Array, x: Array | None, aux: PyTree) -> Array:
        return Model(self.predictor, None).value(theta, x, aux).eta[self.arm]


def stack(states: list[State]) -> State:
    """Lay the states of several arms along a new leading axis.

    >>> import filtax as fx
    >>> coin = fx.method("Cj+C-Static", model=fx.models.bernoulli())
    >>> stack([coin.init(mean=0.5, cov=1 / 12)] * 3).t.shape
    (3,)
    """
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def look(method: Any, state: State, x: Array | None, *, shared: bool, draw: str = "parameter") -> Any:
    """What is believed of the mean rewards at the next tick: an outlook, for policies to choose by.

    >>> import filtax as fx
    >>> coin = fx.method("Cj+C-Static", model=fx.models.bernoulli())
    >>> arms = stack([coin.init(mean=0.5, cov=1 / 12)] * 3)
    >>> look(coin, arms, None, shared=False).expected.tolist()
    [0.5, 0.5, 0.5]
    """
    method = _conformed(method, state, shared)
    x = x if x is None or not jnp.issubdtype(x.dtype, jnp.floating) else x.astype(state.conditioning_ratio.dtype)
    expected = _expected(method, state, x, shared)
    hypotheses = _proposed(method, state.hypotheses, state.initial) if shared else _each_arm(method, state)
    belief, plain = hypotheses.belief, _plain(method.model.likelihood)
    noisy = draw == "predictive"
    if isinstance(belief, Beta) and not noisy and not shared:
        return Counted(belief.ones[..., 0], belief.zeros[..., 0], hypotheses.log_weight, expected)
    if isinstance(belief, Beta) and not noisy and hypotheses.log_weight.size == 1:
        return Counted(belief.ones.T, belief.zeros.T, jnp.zeros_like(belief.ones.T), expected)
    linear = draw != "parameter" or isinstance(method.model.predictor, Linear | Direct)
    smooth = isinstance(plain, GaussianLikelihood) if noisy else isinstance(plain, LINKED)
    if isinstance(belief, GAUSSIAN) and linear and smooth:
        return _gaussian(method, hypotheses, x, shared, plain if noisy else None, expected)
    return Drawn((method, hypotheses, state.initial, state.hypotheses, x), SAMPLERS[shared, noisy], expected)


def learn(
    method: Any,
    state: State,
    x: Array | None,
    arm: Int[Array, ""],
    reward: Array,
    *,
    shared: bool,
    complete: bool = False,
) -> tuple[State, Array]:
    """One tick: condition the pulled arm on its reward, age everything else. Also tells whether the reward was taken.

    `complete` promises a finite and possible reward and context, as in `Bone.scan`.

    >>> import filtax as fx
    >>> coin = fx.method("Cj+C-Static", model=fx.models.bernoulli())
    >>> arms = stack([coin.init(mean=0.5, cov=1 / 12)] * 2)
    >>> arms, ok = learn(coin, arms, None, jnp.asarray(1), jnp.asarray(1.0), shared=False)
    >>> look(coin, arms, None, shared=False).expected.round(3).tolist()
    [0.5, 0.667]
    """
    method = _conformed(method, state, shared)
    if shared:
        method, y = _seen_through(method, state, x, arm, reward)
        return _advance(method, state, x, y, complete and y.ndim == 0)  # a row is not complete: one arm was pulled
    pulled = jax.tree.map(lambda leaf: leaf[arm], state)
    done, ok = _advance(method, pulled, x, reward, complete)
    others = age(method, state, shared=False, x=x)
    here = jnp.arange(state.t.shape[0], dtype=arm.dtype) == arm

    def merge(new: Array, old: Array) -> Array:
        return jnp.where(here.reshape((-1,) + (1,) * new.ndim), new[None], old)

    parts = [jax.tree.map(merge, getattr(done, name), getattr(others, name)) for name in _CARRIED]
    return state.after(*parts), ok


def age(method: Any, state: State, *, shared: bool, x: Array | None = None) -> State:
    """One tick without a reward: as a step with a missing datum, and cheaper where the method has no memory of data.

    Methods that have one, and those that draw who survives, ask for an x: any of the shape of the contexts will do.

    >>> import filtax as fx
    >>> coin = fx.method("Cj+C-OU(rate=0.5)", model=fx.models.bernoulli())
    >>> arms = stack([coin.init(mean=0.5, cov=1 / 12)] * 2)
    >>> age(coin, arms, shared=False).t.tolist()
    [1, 1]
    """
    method = _conformed(method, state, shared)
    pass_by = lambda state: _missing(method, state, x)  # noqa: E731
    hypotheses = pass_by(state) if shared else jax.vmap(pass_by)(state)
    return state.after(hypotheses, state.t + 1, state.began, state.refused, state.conditioning_ratio)


def furnish(method: Any, state: State, x: Array | None, *, arms: int) -> State:
    """The state with memories that fit contexts like x, where the method remembers data; `arms` is 1 if not shared.

    >>> import filtax as fx
    >>> ogd = fx.method("OGD(rate=0.1, memory=4)+C-Static", model=fx.models.linear(noise=1.0))
    >>> furnish(ogd, stack([ogd.init(mean=jnp.zeros(3))] * 2), jnp.ones(3), arms=1).initial.memory.X.shape
    (2, 4, 3)
    """
    if not remembers(method):
        return state
    give = lambda one: furnished(method, one, x, jnp.zeros(arms, state.conditioning_ratio.dtype))  # noqa: E731
    for _ in range(state.t.ndim):
        give = jax.vmap(give)
    return give(state)


def _conformed(method: Any, state: State, shared: bool) -> Any:
    return conform(method, state if shared else jax.tree.map(lambda leaf: leaf[0], state))


_CARRIED = ("hypotheses", "t", "began", "refused", "conditioning_ratio")


def _advance(method: Any, state: State, x: Array | None, y: Array, complete: bool) -> tuple[State, Array]:
    carry = tuple(getattr(state, name) for name in _CARRIED)
    (hypotheses, t, began, refused, conditioning_ratio), info = advance(
        method, state, carry, x, y, None, None, None, complete=complete
    )
    if complete:  # what is promised is not counted, so that nothing is computed for the count alone
        refused, conditioning_ratio = state.refused, state.conditioning_ratio
    return state.after(hypotheses, t, began, refused, conditioning_ratio), jnp.asarray(info.ok)


def _missing(method: Any, state: State, x: Array | None) -> Hypotheses:
    """The bank a tick later: a datum that is missing scores 0 under every hypothesis."""
    hypotheses, initial = state.hypotheses, whole(state.initial)
    weighting = method.weighting
    of_data = weighting.searches or weighting.shares or weighting.gates or method.prior.of_members
    if of_data or weighting.needs_key:
        width = method.model.likelihood.width(method.model.outputs(initial.mean, x))
        datum = admit(method, initial, x, jnp.full(width, jnp.nan, initial.mean.dtype), None, False)
        age = state.t + 1 - state.began
        return tick(method, hypotheses, initial, state.t, datum, None, state.key, age).hypotheses
    proposed, beliefs = propose(method, hypotheses, initial, None)
    silence = jnp.zeros_like(proposed.hypotheses.log_weight)
    proposed, beliefs = method.prior.revise(proposed, beliefs, silence, initial, lambda beliefs: silence)
    return Hypotheses(beliefs, proposed.hypotheses.aux, weighting(proposed.hypotheses.log_weight))


def _proposed(method: Any, hypotheses: Hypotheses, initial: PyTree) -> Hypotheses:
    """The bank before the next datum."""
    proposed, beliefs = propose(method, hypotheses, initial, None)
    return Hypotheses(beliefs, proposed.hypotheses.aux, proposed.hypotheses.log_weight)


def _each_arm(method: Any, state: State) -> Hypotheses:
    return jax.vmap(lambda hypotheses, initial: _proposed(method, hypotheses, initial))(state.hypotheses, state.initial)


def _plain(likelihood: Any) -> Any:
    return getattr(likelihood, "inner", likelihood)


def _expected(method: Any, state: State, x: Array | None, shared: bool) -> Array:
    ahead = lambda hypotheses, initial: look_ahead(method, hypotheses, initial, x, None, False).mean  # noqa: E731
    return ahead(state.hypotheses, state.initial) if shared else jax.vmap(ahead)(state.hypotheses, state.initial)


def _gaussian(method: Any, hypotheses: Hypotheses, x: Array | None, shared: bool, noise: Any, expected: Array) -> Any:
    """Means and spreads of the natural parameters, with the noise of the rewards if they are to be drawn."""

    def one(belief: PyTree, aux: PyTree) -> tuple[Array, Array]:
        at = method.model.linearise(belief.mean, x, aux)
        spread = belief.spread(at.jacobian)
        return at.eta, spread if noise is None else spread + noise.covariance(x, at.eta)

    if shared:
        mean, cov = over_hypotheses(one, hypotheses.belief, hypotheses.aux)
        return Joint(mean, cov, hypotheses.log_weight, expected)
    mean, cov = jax.vmap(lambda belief, aux: over_hypotheses(one, belief, aux))(hypotheses.belief, hypotheses.aux)
    return Separate(mean[..., 0], cov[..., 0, 0], hypotheses.log_weight, expected)


def _seen_through(method: Any, state: State, x: Array | None, arm: Array, reward: Array) -> tuple[Any, Array]:
    """A shared model as seen by one reward: its one output where outputs are alike, else a masked row.

    A method that remembers data would meet them again without knowing of which arm they were: it takes the row.
    """
    outputs = method.model.outputs(state.initial.mean, x)
    plain = _plain(method.model.likelihood)
    alike = not isinstance(plain, GaussianLikelihood) or (plain.noise is not None and plain.noise.size == 1)
    if isinstance(plain, LINKED) and isinstance(state.initial, GAUSSIAN) and alike and not remembers(method):
        model = Model(Chosen(method.model.predictor, arm), method.model.likelihood)
        return type(method)(model, method.auxiliary, method.prior, method.posterior, method.weighting), reward
    if isinstance(plain, LossLikelihood):
        raise ValueError(
            f"shared arms of {method.name}: a loss needs all rewards of a row, of which a round shows one; use a "
            "likelihood, or arms that are not shared."
        )
    return method, jnp.where(
        jnp.arange(outputs, dtype=arm.dtype) == arm, reward.astype(state.initial.mean.dtype), jnp.nan
    )
