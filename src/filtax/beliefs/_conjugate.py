r"""Beliefs that absorb data in closed form: Beta and Gamma for counts, normal-inverse-gamma for an unknown noise.

Beta is for a probability, Gamma for a rate; each of O independent parameters. They are built from a mean and a variance
like every belief, know their own forecast, and absorb y in closed form. A drift that adds Gaussian noise has no meaning
on a bounded parameter, so they offer `mix` (forgetting) alone.

Normal-inverse-gamma: $\theta \mid \sigma^2 \sim N(\mu, \sigma^2 P)$ and
$\sigma^2 \sim \mathrm{IG}(\text{shape}, \text{rate})$. P is any Gaussian form, in units of the noise variance; so are
the process noises that priors add to it.

Thesis: the conjugate updates (`Cj`) of chapter 3.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, digamma, gammaln
from jaxtyping import Array, Float, Key, PyTree

from filtax import _validation as checks
from filtax.beliefs._gaussian import Conditioned
from filtax.distributions import Bernoulli, NegativeBinomial
from filtax.protocols import Belief, with_fields


class Counts(Belief):
    """Two numbers for each of O parameters, that data add to; a family has `start`, `mean` and `var`."""

    @property
    def cov(self) -> Float[Array, "O O"]:
        """Covariance, diagonal."""
        return jnp.diag(self.var)  # pyright: ignore[reportAttributeAccessIssue]

    def mix(self, initial: Any, keep: Array) -> Any:
        """Forget: move the counts towards the initial ones."""
        return jax.tree.map(lambda now, then: keep * now + (1.0 - keep) * then, self, initial)

    @classmethod
    def moment_match(cls, batch: Any, log_weight: Float[Array, " C"]) -> Any:
        """Mean and variance of a mixture of C beliefs, output by output."""
        weight = jnp.exp(log_weight)[:, None]
        mean = jnp.sum(weight * batch.mean, axis=0)
        var = jnp.sum(weight * (batch.var + (batch.mean - mean[None]) ** 2), axis=0)
        return cls.start(mean, var)  # pyright: ignore[reportAttributeAccessIssue]


class Beta(Counts):
    """Beta(ones, zeros) over the probability of a one.

    >>> Beta.start(jnp.array([0.5]), jnp.array([1 / 12])).ones.round(3).item()
    1.0
    """

    ones: Float[Array, " O"]
    zeros: Float[Array, " O"]

    @staticmethod
    def check_start(mean: Array, cov: Array) -> None:
        """Refuse a mean outside (0, 1) or a variance that no Beta has."""
        m, v = checks.concrete(mean), checks.concrete(_variances(cov))
        if m is not None and not (np.all(m > 0.0) and np.all(m < 1.0)):
            raise ValueError(f"init(mean=...) of a probability must lie strictly between 0 and 1, got {m.tolist()}.")
        if m is not None and v is not None and not (np.all(v > 0.0) and np.all(v < m * (1.0 - m))):
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

    def forecast(self, scalar: bool) -> Bernoulli:
        """Predictive of the next outcome."""
        total = jnp.log(self.ones + self.zeros)
        return Bernoulli(jnp.log(self.ones) - total, jnp.log(self.zeros) - total, scalar)

    def condition(self, y: Float[Array, " O"], observed: Float[Array, " O"]) -> "Beta":
        """Count y, each output as often as `observed` says (0 for missing, the squared trust when robust)."""
        return Beta(self.ones + observed * y, self.zeros + observed * (1.0 - y))

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape O"]:
        """Draw probabilities."""
        checks.key("sample(key=...)", key)
        return jax.random.beta(key, self.ones, self.zeros, (*shape, self.ones.size), self.ones.dtype)

    def kl(self, other: "Beta") -> Float[Array, ""]:
        """Divergence from `other`."""
        a, b, c, d = self.ones, self.zeros, other.ones, other.zeros
        each = betaln(c, d) - betaln(a, b) + (a - c) * digamma(a) + (b - d) * digamma(b)
        return jnp.sum(each + (c - a + d - b) * digamma(a + b))


class Gamma(Counts):
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
        checks.positive("init(cov=...) of a rate", _variances(cov))

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

    def forecast(self, scalar: bool) -> NegativeBinomial:
        """Predictive of the next count."""
        return NegativeBinomial(self.count, self.exposure, scalar)

    def condition(self, y: Float[Array, " O"], observed: Float[Array, " O"]) -> "Gamma":
        """Count y, each output as often as `observed` says."""
        return Gamma(self.count + observed * y, self.exposure + observed)

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


class NormalInverseGamma(Belief):
    """Gaussian in units of an unknown noise variance, and an inverse-gamma for that variance.

    >>> from filtax.beliefs import SquareRoot
    >>> unit = SquareRoot.start(jnp.zeros(1), jnp.ones(1))
    >>> NormalInverseGamma(unit, jnp.asarray(3.0), jnp.asarray(4.0)).cov.tolist()
    [[2.0]]
    """

    unit: PyTree
    shape: Float[Array, ""]
    rate: Float[Array, ""]

    @property
    def mean(self) -> Float[Array, " D"]:
        """Mean of the parameters."""
        return self.unit.mean

    @property
    def noise(self) -> Float[Array, ""]:
        """Mean of the noise variance; infinite up to shape 1."""
        return jnp.where(self.shape > 1.0, self.rate / jnp.where(self.shape > 1.0, self.shape - 1.0, 1.0), jnp.inf)

    @property
    def cov(self) -> Float[Array, "D D"]:
        """Covariance of the parameters with the noise variance averaged out."""
        return _in_units(self.unit.cov, self.noise)

    @property
    def var(self) -> Float[Array, " D"]:
        """Variances of the parameters with the noise variance averaged out."""
        return _in_units(self.unit.var, self.noise)

    def project_cov(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J P Jᵀ, in units of the noise variance."""
        return self.unit.project_cov(J)

    def project_root(self, J: Float[Array, "O D"]) -> Float[Array, "O N"] | None:
        """A root of `project_cov`, where the form has one."""
        return self.unit.project_root(J)

    def condition(self, J: Array, B: Array, r: Array) -> Conditioned:
        """Condition on r = B J (theta - mean) + e, e ~ N(0, sigma² I): rows of B that are zero count as unseen."""
        done = self.unit.condition(J, B, r)
        misfit = jnp.sum(done.innovation * done.innovation)
        sound = done.ok & jnp.isfinite(misfit)
        seen = jnp.sum(jnp.any(B != 0.0, axis=1)).astype(r.dtype)
        shape = self.shape + jnp.where(sound, 0.5 * seen, 0.0)
        rate = self.rate + jnp.where(sound, 0.5 * misfit, 0.0)
        return Conditioned(NormalInverseGamma(done.belief, shape, rate), done.innovation, done.log_det, sound)

    def add(self, q: Array) -> "NormalInverseGamma":
        """Add noise of variance q, in units of the noise variance, to every parameter."""
        return with_fields(self, unit=self.unit.add(q))

    def affine(self, F: Array | None, b: Array | None, noise: Array | None) -> "NormalInverseGamma":
        """Push the parameters through a linear map; the variance stays."""
        return with_fields(self, unit=self.unit.affine(F, b, noise))

    def mix(self, initial: "NormalInverseGamma", keep: Array) -> "NormalInverseGamma":
        """Move towards `initial`; shape and rate are averaged with the same share (the mean rate for a vector)."""
        share = jnp.mean(jnp.asarray(keep))
        shape = share * self.shape + (1.0 - share) * initial.shape
        rate = share * self.rate + (1.0 - share) * initial.rate
        return NormalInverseGamma(self.unit.mix(initial.unit, keep), shape, rate)

    def inflate(self, factor: Float[Array, ""]) -> "NormalInverseGamma":
        """Multiply the covariance of the parameters by a factor; the noise variance stays."""
        return with_fields(self, unit=self.unit.inflate(factor))

    @classmethod
    def moment_match(cls, batch: "NormalInverseGamma", log_weight: Float[Array, " C"]) -> "NormalInverseGamma":
        r"""The nearest one to a mixture in the sense of Kullback and Leibler.

        With $\tau = 1/\sigma^2$ it has the mixture's $E[\tau]$, $E[\log\tau]$, $E[\tau\theta]$ and
        $E[\tau\theta\theta^\top]$: beliefs in which the noise is small say more of theta.
        """
        weight, tau = jnp.exp(log_weight), batch.shape / batch.rate
        total = jnp.sum(weight * tau)
        scaled = jax.vmap(lambda unit, t: unit.inflate(1.0 / t))(batch.unit, tau)
        matched = type(batch.unit).moment_match(scaled, log_weight + jnp.log(tau) - jnp.log(total))
        log_tau = jnp.sum(jnp.where(weight > 0.0, weight * (digamma(batch.shape) - jnp.log(batch.rate)), 0.0))
        shape = _shape_of(jnp.log(total) - log_tau)
        return cls(matched.inflate(total), shape, shape / total)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        """Draw parameters: each draw has a noise variance of its own."""
        checks.key("sample(key=...)", key)
        of_variance, of_unit = jax.random.split(key)
        gamma = jax.random.gamma(of_variance, self.shape, shape, self.mean.dtype)
        mean = self.mean.reshape((1,) * len(shape) + (-1,))
        return mean + jnp.sqrt(self.rate / gamma)[..., None] * (self.unit.sample(of_unit, shape) - mean)


def _variances(cov: Array) -> Array:
    return cov if jnp.ndim(cov) < 2 else jnp.diagonal(cov)


def _shape_of(gap: Float[Array, ""]) -> Float[Array, ""]:
    """Solve log(a) - digamma(a) = gap for a: a close start, then Newton's steps in log(a)."""
    gap = jnp.maximum(gap, 10.0 * jnp.finfo(gap.dtype).eps)
    start = (3.0 - gap + jnp.sqrt(jnp.square(gap - 3.0) + 24.0 * gap)) / (12.0 * gap)

    def newton(_: Array, a: Array) -> Array:
        slope = 1.0 - a * jax.scipy.special.polygamma(1, a)
        return a * jnp.exp(-(jnp.log(a) - digamma(a) - gap) / slope)

    return jax.lax.fori_loop(0, 5, newton, start)


def _in_units(values: Array, noise: Array) -> Array:
    """Values times the noise variance; what is zero stays so under a variance that has no finite mean."""
    return jnp.where(values == 0.0, 0.0, noise * values)
