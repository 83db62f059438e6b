r"""What a belief says of the mean rewards of the arms at one context, and what policies ask of it.

Four kinds, with the same verbs: arms that are independent and Gaussian in their natural parameter, Beta arms, arms
whose Gaussian parameters are shared, and any other belief, which can only be drawn from. `scores` are on the scale of
the natural parameter where there is one: the mean reward rises with it, so the best arm is the same.

Axes: A arms, C hypotheses.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc, ndtr, ndtri
from jaxtyping import Array, Float, Key, PyTree

from filtax.bandits.winner import larger_of_two, largest_of_betas, largest_of_normals
from filtax.linalg import psd_root
from filtax.module import Module

__all__ = ["Counted", "Drawn", "Joint", "Separate", "argmax_at_random"]

HALVINGS = 50  # of a bisection for a quantile


class Separate(Module):
    """Independent arms, each a mixture of C Gaussians over its natural parameter.

    >>> two = Separate(jnp.zeros((2, 1)), jnp.ones((2, 1)), jnp.zeros((2, 1)), jnp.zeros(2))
    >>> two.upper(2.0, jax.random.key(0), 1).tolist()
    [2.0, 2.0]
    """

    mean: Float[Array, "A C"]
    var: Float[Array, "A C"]
    log_weight: Float[Array, "A C"]
    expected: Float[Array, " A"]
    exact = True

    def noise(self, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """What `draw` needs, drawn for many rounds at once: normals, and Gumbels if hypotheses must be chosen."""
        of_value, of_part = jax.random.split(key)
        normal = jax.random.normal(of_value, (*lead, self.mean.shape[-2]), self.mean.dtype)
        if self.mean.shape[-1] == 1:
            return (normal,)
        return normal, jax.random.gumbel(of_part, (*lead, *self.mean.shape[-2:]), self.mean.dtype)

    def draw(self, noise: PyTree) -> Float[Array, " A"]:
        """One score for each arm."""
        mean, var = self.mean, self.var
        if len(noise) == 2:
            chosen = jnp.argmax(self.log_weight + noise[1], axis=1)[:, None]
            mean, var = (jnp.take_along_axis(values, chosen, axis=1) for values in (mean, var))
        return mean[:, 0] + jnp.sqrt(var[:, 0]) * noise[0]

    def upper(self, c: Array | float, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Mean plus c standard deviations."""
        weight = jnp.exp(self.log_weight)
        mean = jnp.sum(weight * self.mean, axis=1)
        var = jnp.sum(weight * (self.var + (self.mean - mean[:, None]) ** 2), axis=1)
        return mean + c * jnp.sqrt(var)

    def exceeded(self, tail: Array, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """What each arm exceeds with the probability `tail`; exact."""
        sd = jnp.sqrt(self.var)
        each = self.mean - sd * ndtri(tail)
        if self.mean.shape[1] == 1:
            return each[:, 0]
        weight = jnp.exp(self.log_weight)
        used = weight > 0.0
        low, high = jnp.min(jnp.where(used, each, jnp.inf), axis=1), jnp.max(jnp.where(used, each, -jnp.inf), axis=1)
        beyond = lambda at: jnp.sum(weight * ndtr((self.mean - at[:, None]) / sd), axis=1)  # noqa: E731
        return _bisect(beyond, tail, low, high)

    def chances(self, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Probability of each arm to have the largest draw; exact."""
        return largest_of_normals(self.mean, self.var, self.log_weight)


class Counted(Module):
    """Independent arms, each a mixture of C Betas over its probability of a reward.

    >>> two = Counted(jnp.ones((2, 1)), jnp.ones((2, 1)), jnp.zeros((2, 1)), jnp.zeros(2))
    >>> two.upper(0.0, jax.random.key(0), 1).tolist()
    [0.5, 0.5]
    """

    ones: Float[Array, "A C"]
    zeros: Float[Array, "A C"]
    log_weight: Float[Array, "A C"]
    expected: Float[Array, " A"]
    exact = True

    def noise(self, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """Keys: a Beta is drawn by rejection."""
        return jax.random.split(key, lead) if lead else key

    def draw(self, noise: PyTree) -> Float[Array, " A"]:
        """Log odds of one probability for each arm: those of small counts would round to 0 and 1."""
        of_part, of_ones, of_zeros = jax.random.split(noise, 3)
        chosen = jax.random.categorical(of_part, self.log_weight)[:, None]
        ones, zeros = (jnp.take_along_axis(values, chosen, axis=1)[:, 0] for values in (self.ones, self.zeros))
        log_gamma = lambda key, count: jax.random.loggamma(key, count, dtype=count.dtype)  # noqa: E731
        return log_gamma(of_ones, ones) - log_gamma(of_zeros, zeros)

    def upper(self, c: Array | float, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Mean plus c standard deviations."""
        weight, total = jnp.exp(self.log_weight), self.ones + self.zeros
        each = self.ones / total
        mean = jnp.sum(weight * each, axis=1)
        spread = each * (1.0 - each) / (total + 1.0) + (each - mean[:, None]) ** 2
        return mean + c * jnp.sqrt(jnp.sum(weight * spread, axis=1))

    def exceeded(self, tail: Array, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Log odds of what each arm exceeds with the probability `tail`, by bisection."""
        weight, most = jnp.exp(self.log_weight), -float(np.log(jnp.finfo(self.ones.dtype).tiny))

        def beyond(at: Array) -> Array:
            low, p = at[:, None] < 0.0, jax.nn.sigmoid(-jnp.abs(at))[:, None]  # the smaller of p and 1 - p
            ones, zeros = jnp.where(low, self.ones, self.zeros), jnp.where(low, self.zeros, self.ones)
            part = betainc(ones, zeros, jnp.broadcast_to(p, ones.shape))
            return jnp.sum(weight * jnp.where(low, 1.0 - part, part), axis=1)

        return _bisect(beyond, tail, jnp.full_like(self.ones[:, 0], -most), jnp.full_like(self.ones[:, 0], most))

    def chances(self, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Probability of each arm to have the largest draw; exact."""
        return largest_of_betas(self.ones, self.zeros, self.log_weight)


class Joint(Module):
    """Arms that share parameters: under each of C hypotheses, natural parameters that are Gaussian together.

    >>> Joint(jnp.zeros((1, 2)), jnp.eye(2)[None], jnp.zeros(1), jnp.zeros(2)).upper(2.0, jax.random.key(0), 1).tolist()
    [2.0, 2.0]
    """

    mean: Float[Array, "C A"]
    cov: Float[Array, "C A A"]
    log_weight: Float[Array, " C"]
    expected: Float[Array, " A"]

    @property
    def exact(self) -> bool:
        """Whether `chances` is exact: for two arms and one hypothesis it is."""
        return self.mean.shape == (1, 2)

    def noise(self, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """Normals, and Gumbels to choose a hypothesis."""
        of_value, of_part = jax.random.split(key)
        normal = jax.random.normal(of_value, (*lead, self.mean.shape[-1]), self.mean.dtype)
        return normal, jax.random.gumbel(of_part, (*lead, self.log_weight.shape[-1]), self.mean.dtype)

    def draw(self, noise: PyTree) -> Float[Array, " A"]:
        """One score for each arm, together."""
        chosen = jnp.argmax(self.log_weight + noise[1])
        return self.mean[chosen] + psd_root(self.cov[chosen]) @ noise[0]

    def upper(self, c: Array | float, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Mean plus c standard deviations."""
        return self._alone.upper(c, key, count)

    def exceeded(self, tail: Array, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """What each arm exceeds with the probability `tail`; exact."""
        return self._alone.exceeded(tail, key, count)

    def chances(self, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Probability of each arm to have the largest draw: exact for two arms, else the share in `count` draws."""
        if self.exact:
            return larger_of_two(self.mean[0], self.cov[0])
        of_value, of_part = jax.random.split(key)
        parts = jax.random.categorical(of_part, self.log_weight, shape=(count,))
        roots = jax.vmap(psd_root)(self.cov)
        normal = jax.random.normal(of_value, (count, self.mean.shape[1]), self.mean.dtype)
        return _wins(self.mean[parts] + jnp.einsum("sij,sj->si", roots[parts], normal))

    @property
    def _alone(self) -> Separate:
        var = jnp.diagonal(self.cov, axis1=1, axis2=2).T
        return Separate(self.mean.T, var, jnp.broadcast_to(self.log_weight[None], var.shape), self.expected)


class Drawn(Module):
    """Any other belief: `sampler(one, key)` draws the mean rewards of all arms together.

    >>> coin = Drawn(jnp.array([0.0, 1.0]), lambda held, key: held, jnp.zeros(2))
    >>> coin.chances(jax.random.key(0), 10).tolist()
    [0.0, 1.0]
    """

    held: PyTree
    sampler: Any = eqx.field(static=True)
    expected: Float[Array, " A"]
    exact = False

    def noise(self, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """Keys."""
        return jax.random.split(key, lead) if lead else key

    def draw(self, noise: PyTree) -> Float[Array, " A"]:
        """One mean reward for each arm."""
        return self.sampler(self.held, noise)

    def upper(self, c: Array | float, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Mean plus c standard deviations of `count` draws."""
        values = self._many(key, count)
        return jnp.mean(values, axis=0) + c * jnp.std(values, axis=0)

    def exceeded(self, tail: Array, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """What the share `tail` of `count` draws exceeds: the largest of them once the tail is below 1 / count."""
        return jnp.quantile(self._many(key, count), 1.0 - tail, axis=0)

    def chances(self, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Share of `count` draws in which each arm has the largest one."""
        return _wins(self._many(key, count))

    def _many(self, key: Key[Array, ""], count: int) -> Float[Array, "S A"]:
        return jax.vmap(self.draw)(jax.random.split(key, count))


def argmax_at_random(scores: Float[Array, " A"], u: Float[Array, ""]) -> Array:
    """The place of the largest score; of several equal ones, the one that u in [0, 1) points at.

    >>> [argmax_at_random(jnp.array([1.0, 0.0, 1.0]), jnp.asarray(u)).item() for u in (0.2, 0.7)]
    [0, 2]
    """
    best = scores == jnp.max(scores)
    rank = jnp.cumsum(best)
    wanted = 1 + jnp.floor(u * rank[-1].astype(u.dtype)).astype(rank.dtype)
    return jnp.argmax(best & (rank == jnp.minimum(wanted, rank[-1]))).astype(jnp.int32)


def _wins(values: Float[Array, "S A"]) -> Float[Array, " A"]:
    """How often each arm is the best of a row; ties count for all in equal parts.

    A compiler may compute the values twice, rounded differently: a row may then have no best, and counts for nothing.
    """
    best = (values == jnp.max(values, axis=1, keepdims=True)).astype(values.dtype)
    share = jnp.sum(best / jnp.maximum(jnp.sum(best, axis=1, keepdims=True), 1.0), axis=0)
    return share / jnp.maximum(jnp.sum(share), jnp.finfo(values.dtype).tiny)


def _bisect(beyond: Any, tail: Array, low: Array, high: Array) -> Array:
    def halve(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = 0.5 * (low + high)
        short = beyond(middle) > tail
        return jnp.where(short, middle, low), jnp.where(short, high, middle)

    return jax.lax.fori_loop(0, HALVINGS, halve, (low, high))[1]
