r"""Belief about the parameters and the noise variance together: normal-inverse-gamma.

$\theta \mid \sigma^2 \sim N(\mu, \sigma^2 P)$ and $\sigma^2 \sim \mathrm{IG}(\text{shape}, \text{rate})$. P is any
Gaussian form, in units of the noise variance; so are the process noises that priors add to it.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import digamma
from jaxtyping import Array, Float, Key, PyTree

from filtax import _validation as checks
from filtax.beliefs._conditioned import Conditioned
from filtax.protocols import Belief


class NormalInverseGamma(Belief):
    """Gaussian in units of an unknown variance, and an inverse-gamma for that variance.

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
        return NormalInverseGamma(self.unit.add(q), self.shape, self.rate)

    def affine(self, F: Array | None, b: Array | None, noise: Array | None) -> "NormalInverseGamma":
        """Push the parameters through a linear map; the variance stays."""
        return NormalInverseGamma(self.unit.affine(F, b, noise), self.shape, self.rate)

    def mix(self, initial: "NormalInverseGamma", keep: Array) -> "NormalInverseGamma":
        """Move towards `initial`; shape and rate are averaged with the same share (the mean rate for a vector)."""
        share = jnp.mean(jnp.asarray(keep))
        shape = share * self.shape + (1.0 - share) * initial.shape
        return NormalInverseGamma(
            self.unit.mix(initial.unit, keep), shape, share * self.rate + (1.0 - share) * initial.rate
        )

    def inflate(self, factor: Float[Array, ""]) -> "NormalInverseGamma":
        """Multiply the covariance of the parameters by a factor; the noise variance stays."""
        return NormalInverseGamma(self.unit.inflate(factor), self.shape, self.rate)

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
