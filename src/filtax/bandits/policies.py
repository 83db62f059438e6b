"""How to choose an arm, given what is believed of the mean rewards: five policies for any belief.

thompson()          draw the rewards from the belief and take the best; `draw` says what is drawn
ucb(c)              mean plus c standard deviations
bayes_ucb()         the quantile 1 - 1/(t + 1) of the belief (Kaufmann, Cappé and Garivier 2012)
greedy()            the largest expected reward
epsilon_greedy(e)   greedy, but with probability e any arm

A policy is a value with three verbs: `noise` draws what it needs for many rounds at once, `choose` picks an arm, and
`chances` gives the probability with which each arm would have been picked. Ties are broken at random.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from filtax import checks
from filtax.bandits.outlook import argmax_at_random
from filtax.module import Module

__all__ = [
    "DRAWS",
    "POLICIES",
    "BayesUCB",
    "EpsilonGreedy",
    "Greedy",
    "Thompson",
    "UpperConfidence",
    "bayes_ucb",
    "epsilon_greedy",
    "greedy",
    "policy_named",
    "thompson",
    "ucb",
]

DRAWS = ("parameter", "linearised", "predictive")


class Thompson(Module):
    """Draw the rewards from the belief; take the arm whose draw is the largest.

    >>> thompson().draw
    'parameter'
    """

    draw: str = eqx.field(static=True, default="parameter")
    count: int = eqx.field(static=True, default=1024)

    def noise(self, outlook: Any, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """What the draws need."""
        return outlook.noise(key, lead)

    def choose(self, outlook: Any, noise: PyTree, u: Float[Array, ""], t: Int[Array, ""]) -> Array:
        """Index of the arm with the largest draw."""
        return argmax_at_random(outlook.draw(noise), u)

    def chances(self, outlook: Any, noise: PyTree, key: Key[Array, ""], t: Int[Array, ""]) -> Float[Array, " A"]:
        """Probabilities (A,): exact for independent arms and for two, else the share in `count` draws."""
        return outlook.chances(key, self.count)

    def propensity(self, outlook: Any, arm: Array, chances: Float[Array, " A"]) -> Float[Array, ""]:
        """Probability of the arm that was taken; where it is estimated, its own draw counts too, so it is never 0."""
        return chances[arm] if outlook.exact else (self.count * chances[arm] + 1.0) / (self.count + 1.0)


class _ByScore(Module):
    """A policy that takes the largest of some scores: with the same belief and time the same ones, ties apart."""

    def noise(self, outlook: Any, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """Nothing is left to chance."""
        return ()

    def choose(self, outlook: Any, noise: PyTree, u: Float[Array, ""], t: Int[Array, ""]) -> Array:
        """Index of the arm with the largest score."""
        return argmax_at_random(self.scores(outlook, noise, t), u)

    def chances(self, outlook: Any, noise: PyTree, key: Key[Array, ""], t: Int[Array, ""]) -> Float[Array, " A"]:
        """1 for the best arm, in equal parts where several are."""
        scores = self.scores(outlook, noise, t)
        best = (scores == jnp.max(scores)).astype(scores.dtype)
        return best / jnp.sum(best)

    def propensity(self, outlook: Any, arm: Array, chances: Float[Array, " A"]) -> Float[Array, ""]:
        """Probability of the arm that was taken."""
        return chances[arm]

    def scores(self, outlook: Any, noise: PyTree, t: Int[Array, ""]) -> Float[Array, " A"]:
        """What is maximised."""
        return outlook.expected


class UpperConfidence(_ByScore):
    """Mean plus c standard deviations, of the natural parameter where there is one.

    >>> ucb(2.0).c
    2.0
    """

    c: Any = 2.0
    draw: str = eqx.field(static=True, default="parameter")
    count: int = eqx.field(static=True, default=1024)

    def scores(self, outlook: Any, noise: PyTree, t: Int[Array, ""]) -> Float[Array, " A"]:
        """The upper bounds."""
        return outlook.upper(jnp.asarray(self.c, outlook.expected.dtype), _draws_of(t), self.count)


class BayesUCB(_ByScore):
    """The quantile 1 - 1/(t + 1) of each arm after t decisions were made, this one included.

    >>> bayes_ucb().count
    1024
    """

    draw: str = eqx.field(static=True, default="parameter")
    count: int = eqx.field(static=True, default=1024)

    def scores(self, outlook: Any, noise: PyTree, t: Int[Array, ""]) -> Float[Array, " A"]:
        """The quantiles, asked by their upper tail: 1 less a small number is 1 once many decisions were made."""
        tail = 1.0 / (t.astype(outlook.expected.dtype) + 2.0)
        return outlook.exceeded(tail, _draws_of(t), self.count)


class Greedy(_ByScore):
    """The largest expected reward.

    >>> greedy().draw
    'parameter'
    """

    draw: str = eqx.field(static=True, default="parameter")


class EpsilonGreedy(_ByScore):
    """Greedy, and with probability epsilon any arm.

    >>> epsilon_greedy(0.1).epsilon
    0.1
    """

    epsilon: Any = 0.05
    draw: str = eqx.field(static=True, default="parameter")

    def noise(self, outlook: Any, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """Two uniforms: whether to explore, and where."""
        return jax.random.uniform(key, (*lead, 2), outlook.expected.dtype)

    def choose(self, outlook: Any, noise: PyTree, u: Float[Array, ""], t: Int[Array, ""]) -> Array:
        """The best arm, or any."""
        best = argmax_at_random(outlook.expected, u)
        count = outlook.expected.shape[0]
        anywhere = jnp.minimum(jnp.floor(noise[1] * count).astype(best.dtype), count - 1)
        return jnp.where(noise[0] < jnp.asarray(self.epsilon, noise.dtype), anywhere, best)

    def chances(self, outlook: Any, noise: PyTree, key: Key[Array, ""], t: Int[Array, ""]) -> Float[Array, " A"]:
        """Exact."""
        best = _ByScore.chances(self, outlook, noise, key, t)
        e = jnp.asarray(self.epsilon, best.dtype)
        return (1.0 - e) * best + e / best.shape[0]


def _draws_of(t: Int[Array, ""]) -> Key[Array, ""]:
    """The key of the draws that scores are estimated by: of the time alone, so that an arm is chosen for certain."""
    return jax.random.fold_in(jax.random.key(0), t)


def _check_draws(call: str, draw: Any, count: Any) -> None:
    if draw not in DRAWS:
        raise ValueError(f"{call}(draw={draw!r}): draw one of {', '.join(DRAWS)}. {checks.nearest(str(draw), DRAWS)}")
    checks.whole(f"{call}(count=...)", count, least=1)


def thompson(draw: str = "parameter", *, count: int = 1024) -> Thompson:
    """Thompson sampling.

    Args:
        draw: "parameter" draws theta and asks the model for the mean rewards; "linearised" draws them from the model
            linearised at the mean (the same for linear models, and cheap for networks); "predictive" draws the
            rewards themselves, noise included.
        count: Draws for the probability of an arm where it has no closed form.

    >>> thompson("predictive").draw
    'predictive'
    """
    _check_draws("thompson", draw, count)
    return Thompson(draw, count)


def ucb(c: Any = 2.0, *, draw: str = "parameter", count: int = 1024) -> UpperConfidence:
    """Optimism: mean plus c standard deviations of what the belief says of the mean reward, its noise left out.

    >>> ucb(1.0).c
    1.0
    """
    checks.positive("ucb(c=...)", c, zero=True)
    _check_draws("ucb", draw, count)
    return UpperConfidence(c, draw, count)


def bayes_ucb(*, draw: str = "parameter", count: int = 1024) -> BayesUCB:
    """Optimism by a quantile that rises with time; `count` draws where it has no closed form.

    >>> type(bayes_ucb()).__name__
    'BayesUCB'
    """
    _check_draws("bayes_ucb", draw, count)
    return BayesUCB(draw, count)


def greedy() -> Greedy:
    """Never explore: the largest expected reward.

    >>> type(greedy()).__name__
    'Greedy'
    """
    return Greedy()


def epsilon_greedy(epsilon: Any = 0.05) -> EpsilonGreedy:
    """Explore blindly, with probability epsilon in [0, 1].

    >>> epsilon_greedy(0.2).epsilon
    0.2
    """
    checks.share("epsilon_greedy(epsilon=...)", epsilon)
    return EpsilonGreedy(epsilon)


POLICIES = {
    "ts": thompson,
    "ts-predictive": lambda: thompson("predictive"),
    "ts-linearised": lambda: thompson("linearised"),
    "ucb": ucb,
    "bayes-ucb": bayes_ucb,
    "greedy": greedy,
    "epsilon-greedy": epsilon_greedy,
}


def policy_named(name: str) -> Any:
    """Build a policy from its short name, with its defaults.

    >>> type(policy_named("ts")).__name__
    'Thompson'
    """
    if name not in POLICIES:
        raise ValueError(f"no policy {name!r}. {checks.nearest(name, POLICIES)}")
    return POLICIES[name]()
