"""Beliefs that are conjugate to counts: Beta for a probability, Gamma for a rate; each of O independent parameters.

They are built from a mean and a variance like every belief, know their own forecast, and absorb y in closed form.
A drift that adds Gaussian noise has no meaning on a bounded parameter, so they offer `mix` (forgetting) alone.

Thesis: the conjugate updates (`Cj`) of chapter 3.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, digamma, gammaln
from jaxtyping import Array, Float, Key

from filtax import _validation as checks
from filtax.distributions import Bernoulli, NegativeBinomial
from filtax.protocols import Belief


class Beta(Belief):
    """Beta(ones, zeros) over the probability of a one.

    >>> Beta.start(jnp.array([0.5]), jnp.array([1 / 12])).ones.round(3).item()
    1.0
    """

    ones: Float[Array, " O"]
    zeros: Float[Array, " O"]

    @staticmethod
    def check_start(mean: Array, cov: Array) -> None:
        """Refuse a mean outside (0, 1) or a variance that no Beta has."""
        m, v = checks.concrete(mean), checks.concrete(cov)
        if m is not None and not (np.all(m > 0.0) and np.all(m < 1.0)):
            raise ValueError(f"init(mean=...) of a probability must lie strictly between 0 and 1, got {m.tolist()}.")
        if (
            m is not None
            and v is not None
            and not (np.all(_diagonal(v) > 0.0) and np.all(_diagonal(v) < m * (1.0 - m)))
        ):
            raise ValueError(
                "init(cov=...) of a probability must be above 0 and below mean (1 - mean); 1/12 is uniform."
            )

    @classmethod
    def start(cls, mean: Array, cov: Array) -> "Beta":
        """Match a mean in (0, 1) and a variance below mean (1 - mean)."""
        total = mean * (1.0 - mean) / cov - 1.0
        return cls(mean * total, (1.0 - mean) * total)

    @property
    def mean(self) -> Float[Array, " O"]:
        """Mean probability."""
        return self.ones / (self.ones + self.zeros)

    @property
    def var(self) -> Float[Array, " O"]:
        """Variance of the probability."""
        return self.mean * (1.0 - self.mean) / (self.ones + self.zeros + 1.0)

    @property
    def cov(self) -> Float[Array, "O O"]:
        """Covariance, diagonal."""
        return jnp.diag(self.var)

    def forecast(self, scalar: bool) -> Bernoulli:
        """Predictive of the next outcome."""
        total = jnp.log(self.ones + self.zeros)
        return Bernoulli(jnp.log(self.ones) - total, jnp.log(self.zeros) - total, scalar)

    def condition(self, y: Float[Array, " O"], observed: Float[Array, " O"]) -> "Beta":
        """Count y, each output as often as `observed` says (0 for missing, the squared trust when robust)."""
        return Beta(self.ones + observed * y, self.zeros + observed * (1.0 - y))

    def mix(self, initial: "Beta", keep: Array) -> "Beta":
        """Forget: move the counts towards the initial ones."""
        return Beta(_blend(self.ones, initial.ones, keep), _blend(self.zeros, initial.zeros, keep))

    @staticmethod
    def moment_match(batch: "Beta", log_weight: Float[Array, " C"]) -> "Beta":
        """Mean and variance of a mixture of C beliefs, output by output."""
        return Beta.start(*_two_moments(batch, jnp.exp(log_weight)))

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape O"]:
        """Draw probabilities."""
        checks.key("sample(key=...)", key)
        return jax.random.beta(key, self.ones, self.zeros, (*shape, self.ones.size), self.ones.dtype)

    def kl(self, other: "Beta") -> Float[Array, ""]:
        """Divergence from `other`."""
        a, b, c, d = self.ones, self.zeros, other.ones, other.zeros
        each = betaln(c, d) - betaln(a, b) + (a - c) * digamma(a) + (b - d) * digamma(b)
        return jnp.sum(each + (c - a + d - b) * digamma(a + b))


class Gamma(Belief):
    """Gamma(count, exposure) over the rate of a Poisson.

    >>> Gamma.start(jnp.array([2.0]), jnp.array([1.0])).exposure.item()
    2.0
    """

    count: Float[Array, " O"]
    exposure: Float[Array, " O"]

    @staticmethod
    def check_start(mean: Array, cov: Array) -> None:
        """Refuse a mean or a variance of a rate that is not positive."""
        checks.positive("init(mean=...) of a rate", mean)
        checks.positive("init(cov=...) of a rate", cov if jnp.ndim(cov) < 2 else jnp.diagonal(cov))

    @classmethod
    def start(cls, mean: Array, cov: Array) -> "Gamma":
        """Match a positive mean and a variance."""
        return cls(mean * mean / cov, mean / cov)

    @property
    def mean(self) -> Float[Array, " O"]:
        """Mean rate."""
        return self.count / self.exposure

    @property
    def var(self) -> Float[Array, " O"]:
        """Variance of the rate."""
        return self.mean / self.exposure

    @property
    def cov(self) -> Float[Array, "O O"]:
        """Covariance, diagonal."""
        return jnp.diag(self.var)

    def forecast(self, scalar: bool) -> NegativeBinomial:
        """Predictive of the next count."""
        return NegativeBinomial(self.count, self.exposure, scalar)

    def condition(self, y: Float[Array, " O"], observed: Float[Array, " O"]) -> "Gamma":
        """Count y, each output as often as `observed` says."""
        return Gamma(self.count + observed * y, self.exposure + observed)

    def mix(self, initial: "Gamma", keep: Array) -> "Gamma":
        """Forget: move count and exposure towards the initial ones."""
        return Gamma(_blend(self.count, initial.count, keep), _blend(self.exposure, initial.exposure, keep))

    @staticmethod
    def moment_match(batch: "Gamma", log_weight: Float[Array, " C"]) -> "Gamma":
        """Mean and variance of a mixture of C beliefs, output by output."""
        return Gamma.start(*_two_moments(batch, jnp.exp(log_weight)))

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape O"]:
        """Draw rates."""
        checks.key("sample(key=...)", key)
        drawn = jax.random.gamma(key, self.count, (*shape, self.count.size), self.count.dtype)
        return drawn / self.exposure.reshape((1,) * len(shape) + (-1,))

    def kl(self, other: "Gamma") -> Float[Array, ""]:
        """Divergence from `other`."""
        a, b, c, d = self.count, self.exposure, other.count, other.exposure
        each = (a - c) * digamma(a) - gammaln(a) + gammaln(c) + c * (jnp.log(b) - jnp.log(d)) + a * (d - b) / b
        return jnp.sum(each)


def _two_moments(batch: "Beta | Gamma", weight: Array) -> tuple[Array, Array]:
    mean = jnp.sum(weight[:, None] * batch.mean, axis=0)
    return mean, jnp.sum(weight[:, None] * (batch.var + (batch.mean - mean[None]) ** 2), axis=0)


def _diagonal(values: np.ndarray) -> np.ndarray:
    return values if values.ndim < 2 else np.diagonal(values)


def _blend(now: Array, then: Array, keep: Array) -> Array:
    return keep * now + (1.0 - keep) * then
