"""How to choose an arm from the posterior of the mean rewards: five policies for any belief.

thompson()          draw the rewards from the belief and take the best; `draw` says what is drawn
ucb(c)              mean plus c standard deviations
bayes_ucb()         the quantile 1 - 1/(t + 1) of the belief (Kaufmann, Cappé and Garivier 2012)
greedy()            the largest expected reward
epsilon_greedy(e)   greedy, but with probability e any arm

A policy has three methods: `noise` draws what it needs for many rounds at once, `choose` picks an arm, and
`probabilities` gives the probability with which each arm would have been picked. Ties are broken at random.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from filtax import _validation as checks
from filtax.bandits._reward_posterior import argmax_at_random
from filtax.protocols import Module, static

DRAWS = ("parameter", "linearised", "predictive")


class Policy(Module):
    """A rule to choose an arm from the posterior of the mean rewards; `draw` says which posterior."""


class Thompson(Policy):
    """Draw the rewards from the belief; take the arm whose draw is the largest.

    >>> thompson().draw
    'parameter'
    """

    draw: str = static(default="parameter")
    count: int = static(default=1024)

    def noise(self, posterior: Any, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """Draw what `choose` needs, for many rounds at once."""
        return posterior.noise(key, lead)

    def choose(self, posterior: Any, noise: PyTree, u: Float[Array, ""], t: Int[Array, ""]) -> Array:
        """Return the index of the arm with the largest draw."""
        return argmax_at_random(posterior.draw(noise), u)

    def probabilities(
        self, posterior: Any, noise: PyTree, key: Key[Array, ""], t: Int[Array, ""]
    ) -> Float[Array, " A"]:
        """Compute the probability of each arm: exact for independent arms and for two, else from `count` draws."""
        return posterior.probabilities(key, self.count)

    def propensity(self, posterior: Any, arm: Array, chances: Float[Array, " A"]) -> Float[Array, ""]:
        """Probability of the chosen arm; an estimated one counts the draw that chose it too, so it is never 0."""
        return chances[arm] if posterior.exact else (self.count * chances[arm] + 1.0) / (self.count + 1.0)


class _ByScore(Policy):
    """A policy that takes the arm with the largest score; the scores depend on the belief and the time alone."""

    def noise(self, posterior: Any, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """Draw nothing: the scores are not random."""
        return ()

    def choose(self, posterior: Any, noise: PyTree, u: Float[Array, ""], t: Int[Array, ""]) -> Array:
        """Return the index of the arm with the largest score."""
        return argmax_at_random(self.scores(posterior, noise, t), u)

    def probabilities(
        self, posterior: Any, noise: PyTree, key: Key[Array, ""], t: Int[Array, ""]
    ) -> Float[Array, " A"]:
        """Return 1 for the best arm, in equal parts if there are several."""
        scores = self.scores(posterior, noise, t)
        best = (scores == jnp.max(scores)).astype(scores.dtype)
        return best / jnp.sum(best)

    def propensity(self, posterior: Any, arm: Array, chances: Float[Array, " A"]) -> Float[Array, ""]:
        """Probability of the chosen arm."""
        return chances[arm]

    def scores(self, posterior: Any, noise: PyTree, t: Int[Array, ""]) -> Float[Array, " A"]:
        """Compute the score of each arm."""
        return posterior.expected


class UpperConfidence(_ByScore):
    """Mean plus c standard deviations, of the natural parameter where there is one.

    >>> ucb(2.0).c
    2.0
    """

    c: Any = 2.0
    draw: str = static(default="parameter")
    count: int = static(default=1024)

    def scores(self, posterior: Any, noise: PyTree, t: Int[Array, ""]) -> Float[Array, " A"]:
        """Compute the upper bounds."""
        return posterior.upper_bound(jnp.asarray(self.c, posterior.expected.dtype), _draws_of(t), self.count)


class BayesUCB(_ByScore):
    """The quantile 1 - 1/(t + 1) of each arm after t decisions were made, this one included.

    >>> bayes_ucb().count
    1024
    """

    draw: str = static(default="parameter")
    count: int = static(default=1024)

    def scores(self, posterior: Any, noise: PyTree, t: Int[Array, ""]) -> Float[Array, " A"]:
        """Compute the quantiles from their upper tail, because 1 - 1/t rounds to 1 after many decisions."""
        tail = 1.0 / (t.astype(posterior.expected.dtype) + 2.0)
        return posterior.upper_quantile(tail, _draws_of(t), self.count)


class Greedy(_ByScore):
    """The largest expected reward.

    >>> greedy().draw
    'parameter'
    """

    draw: str = static(default="parameter")


class EpsilonGreedy(_ByScore):
    """Greedy, and with probability epsilon any arm.

    >>> epsilon_greedy(0.1).epsilon
    0.1
    """

    epsilon: Any = 0.05
    draw: str = static(default="parameter")

    def noise(self, posterior: Any, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """Draw two uniforms: whether to explore, and where."""
        return jax.random.uniform(key, (*lead, 2), posterior.expected.dtype)

    def choose(self, posterior: Any, noise: PyTree, u: Float[Array, ""], t: Int[Array, ""]) -> Array:
        """Return the best arm, or any."""
        best = argmax_at_random(posterior.expected, u)
        count = posterior.expected.shape[0]
        anywhere = jnp.minimum(jnp.floor(noise[1] * count).astype(best.dtype), count - 1)
        return jnp.where(noise[0] < jnp.asarray(self.epsilon, noise.dtype), anywhere, best)

    def probabilities(
        self, posterior: Any, noise: PyTree, key: Key[Array, ""], t: Int[Array, ""]
    ) -> Float[Array, " A"]:
        """Compute the probability of each arm; exact."""
        best = _ByScore.probabilities(self, posterior, noise, key, t)
        e = jnp.asarray(self.epsilon, best.dtype)
        return (1.0 - e) * best + e / best.shape[0]


def _draws_of(t: Int[Array, ""]) -> Key[Array, ""]:
    """The key of the draws that estimate scores: it depends on the time alone, so that the choice is not random."""
    return jax.random.fold_in(jax.random.key(0), t)


def _check_draws(call: str, draw: Any, count: Any) -> None:
    if draw not in DRAWS:
        raise ValueError(f"{call}(draw={draw!r}): draw one of {', '.join(DRAWS)}. {checks.nearest(str(draw), DRAWS)}")
    checks.whole(f"{call}(count=...)", count, least=1)


def thompson(draw: str = "parameter", *, count: int = 1024) -> Thompson:
    """Choose by Thompson sampling: draw the rewards from the belief, and take the best.

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
    """Choose by optimism: mean plus c standard deviations of the mean reward, without the noise of the rewards.

    >>> ucb(1.0).c
    1.0
    """
    checks.positive("ucb(c=...)", c, zero=True)
    _check_draws("ucb", draw, count)
    return UpperConfidence(c, draw, count)


def bayes_ucb(*, draw: str = "parameter", count: int = 1024) -> BayesUCB:
    """Choose by a quantile that rises with time; from `count` draws where it has no closed form.

    >>> type(bayes_ucb()).__name__
    'BayesUCB'
    """
    _check_draws("bayes_ucb", draw, count)
    return BayesUCB(draw, count)


def greedy() -> Greedy:
    """Choose the largest expected reward, without exploration.

    >>> type(greedy()).__name__
    'Greedy'
    """
    return Greedy()


def epsilon_greedy(epsilon: Any = 0.05) -> EpsilonGreedy:
    """Choose any arm with probability epsilon in [0, 1], and else the largest expected reward.

    >>> epsilon_greedy(0.2).epsilon
    0.2
    """
    checks.share("epsilon_greedy(epsilon=...)", epsilon)
    return EpsilonGreedy(epsilon)


POLICIES: dict[str, Callable[[], Policy]] = {
    "ts": thompson,
    "ts-predictive": partial(thompson, "predictive"),
    "ts-linearised": partial(thompson, "linearised"),
    "ucb": ucb,
    "bayes-ucb": bayes_ucb,
    "greedy": greedy,
    "epsilon-greedy": epsilon_greedy,
}


def policy_named(name: str) -> Policy:
    """Build a policy from its short name, with its defaults.

    >>> type(policy_named("ts")).__name__
    'Thompson'
    """
    if name not in POLICIES:
        raise ValueError(f"no policy {name!r}. {checks.nearest(name, POLICIES)}")
    return POLICIES[name]()
