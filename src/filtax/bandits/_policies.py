"""How to choose an arm from the posterior of the mean rewards: five policies for any belief.

thompson()          draw the rewards from the belief and take the best; `draw` says what is drawn
ucb(c)              mean plus c standard deviations
bayes_ucb()         the quantile 1 - 1/(t + 1) of the belief (Kaufmann, Cappé and Garivier 2012)
greedy()            the largest expected reward
epsilon_greedy(e)   greedy, but with probability e any arm
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from filtax import _validation as checks
from filtax.bandits._reward_posterior import argmax_at_random
from filtax.protocols import Module, static

DRAWS = ("parameter", "linearised", "predictive")


class Policy(Module):
    """A rule to choose an arm from the posterior of the mean rewards: the one with the largest score.

    The score of an arm is its expected reward, unless a subclass says otherwise. Ties are broken at random.

    Attributes:
        draw: Which posterior the policy needs, as for `thompson`.
        count: Draws where something has no closed form.
        explores: Whether the policy uses the width of the belief.
    """

    draw: str = static(default="parameter")
    count: int = static(default=1024)
    explores: ClassVar[bool] = False

    def scores(self, posterior: Any, t: Int[Array, ""]) -> Float[Array, " A"]:
        """Compute the score of each arm, which depends on the belief and the time alone."""
        return posterior.expected

    def noise(self, posterior: Any, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """Draw what `choose` needs, for many rounds at once: nothing, where the scores are not random."""
        return ()

    def choose(self, posterior: Any, noise: PyTree, u: Float[Array, ""], t: Int[Array, ""]) -> Array:
        """Return the index of the arm with the largest score."""
        return argmax_at_random(self.scores(posterior, t), u)

    def probabilities(
        self, posterior: Any, noise: PyTree, key: Key[Array, ""], t: Int[Array, ""]
    ) -> Float[Array, " A"]:
        """Compute the probability of each arm to be chosen: 1 for the best, in equal parts if there are several."""
        scores = self.scores(posterior, t)
        best = (scores == jnp.max(scores)).astype(scores.dtype)
        return best / jnp.sum(best)

    def propensity(self, posterior: Any, arm: Array, chances: Float[Array, " A"]) -> Float[Array, ""]:
        """Probability of the chosen arm."""
        return chances[arm]


class Thompson(Policy):
    """Draw the rewards from the belief; take the arm whose draw is the largest."""

    explores: ClassVar[bool] = True

    def noise(self, posterior: Any, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """Draw what the posterior needs for one draw of the rewards."""
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


class UpperConfidence(Policy):
    """Mean plus c standard deviations, of the natural parameter where there is one."""

    c: Any = 2.0
    explores: ClassVar[bool] = True

    def scores(self, posterior: Any, t: Int[Array, ""]) -> Float[Array, " A"]:
        """Compute the upper bounds."""
        return posterior.upper_bound(jnp.asarray(self.c, posterior.expected.dtype), _draws_of(t), self.count)


class BayesUCB(Policy):
    """The quantile 1 - 1/(t + 1) of each arm after t decisions were made, this one included."""

    explores: ClassVar[bool] = True

    def scores(self, posterior: Any, t: Int[Array, ""]) -> Float[Array, " A"]:
        """Compute the quantiles from their upper tail, because 1 - 1/t rounds to 1 after many decisions."""
        tail = 1.0 / (t.astype(posterior.expected.dtype) + 2.0)
        return posterior.upper_quantile(tail, _draws_of(t), self.count)


class Greedy(Policy):
    """The largest expected reward."""


class EpsilonGreedy(Policy):
    """Greedy, and with probability epsilon any arm."""

    epsilon: Any = 0.05

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
        best = Policy.probabilities(self, posterior, noise, key, t)
        e = jnp.asarray(self.epsilon, best.dtype)
        return (1.0 - e) * best + e / best.shape[0]


def _draws_of(t: Int[Array, ""]) -> Key[Array, ""]:
    """The key of the draws that estimate scores: it depends on the time alone, so that the choice is not random."""
    return jax.random.fold_in(jax.random.key(0), t)


def _check_draws(call: str, draw: Any, count: Any) -> None:
    if draw not in DRAWS:
        raise ValueError(f"{call}(draw={draw!r}): draw one of {', '.join(DRAWS)}. {checks.nearest(str(draw), DRAWS)}")
    checks.whole(f"{call}(count=...)", count, least=1)


def thompson(draw: str = "parameter", *, count: int = 1024) -> Policy:
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


def ucb(c: Any = 2.0, *, draw: str = "parameter", count: int = 1024) -> Policy:
    """Choose by optimism: mean plus c standard deviations of the mean reward, without the noise of the rewards.

    >>> ucb(1.0).c
    1.0
    """
    checks.positive("ucb(c=...)", c, zero=True)
    _check_draws("ucb", draw, count)
    return UpperConfidence(draw, count, c)


def bayes_ucb(*, draw: str = "parameter", count: int = 1024) -> Policy:
    """Choose by a quantile that rises with time; from `count` draws where it has no closed form.

    >>> bayes_ucb().count
    1024
    """
    _check_draws("bayes_ucb", draw, count)
    return BayesUCB(draw, count)


def greedy() -> Policy:
    """Choose the largest expected reward, without exploration.

    >>> greedy().explores
    False
    """
    return Greedy()


def epsilon_greedy(epsilon: Any = 0.05) -> Policy:
    """Choose any arm with probability epsilon in [0, 1], and else the largest expected reward.

    >>> epsilon_greedy(0.2).epsilon
    0.2
    """
    checks.share("epsilon_greedy(epsilon=...)", epsilon)
    return EpsilonGreedy(epsilon=epsilon)


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
    """Build a policy from its short name, with its defaults."""
    if name not in POLICIES:
        raise ValueError(f"no policy {name!r}. {checks.nearest(name, POLICIES)}")
    return POLICIES[name]()
