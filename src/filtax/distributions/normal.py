"""The Gaussian forecast."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr, ndtri
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from filtax import checks
from filtax.distributions.rooted import drawn, root_of_seen
from filtax.distributions.shape import at_each, at_one, central, outward, per_datum, variances
from filtax.linalg import log_det, log_normal, solve_lower
from filtax.module import Module

__all__ = ["Normal"]


class Normal(Module):
    """N(location, covariance) over O outputs; `scalar` says that the one output has no axis of its own.

    `root` is a lower triangular root of the covariance that was made without it: of precise outputs that depend on the
    same uncertain parameters, the covariance has lost the noise to rounding.

    >>> Normal(jnp.zeros(1), jnp.eye(1), scalar=True).mean.shape
    ()
    """

    location: Float[Array, "*H O"]
    covariance: Float[Array, "*H O O"]
    scalar: bool = eqx.field(static=True, default=False)
    root: Float[Array, "*H O O"] | None = None

    @property
    def mean(self) -> Array:
        """Forecast mean, of the shape of the model's output."""
        return outward(self.location, self.scalar)

    @property
    def var(self) -> Array:
        """Forecast variance of each output."""
        return outward(variances(self.covariance), self.scalar)

    @property
    def cov(self) -> Array:
        """Forecast covariance, (O, O); a variance for a scalar output."""
        return self.covariance[..., 0, 0] if self.scalar else self.covariance

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each output that holds `level` of the probability."""
        half = -jnp.sqrt(self.var) * ndtri(jnp.asarray(central(level)[0], self.location.dtype))
        return self.mean - half, self.mean + half

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each output is at most y."""
        return ndtr((at_each(y, self.mean) - self.mean) / jnp.sqrt(self.var))

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y (one path, with a leading axis)."""
        checks.key("sample(key=...)", key)
        noise = jax.random.normal(key, self.location.shape, self.location.dtype)
        move = per_datum(drawn, (1, 2, 2))(noise, self.covariance, self.root)
        return outward(self.location + move, self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log density at y; masked outputs are left out, and a wholly masked y gives exactly 0."""
        y, mask = at_one(y, mask, self.location)
        return per_datum(_log_density, (1, 1, 2, 2, 1))(y, self.location, self.covariance, self.root, mask)


def _log_density(y: Array, m: Array, C: Array, root: Array | None, mask: Array | None) -> Array:
    L = root_of_seen(C, root, mask)
    if mask is None:
        return log_normal(solve_lower(L, y - m), log_det(L), y.size)
    z = solve_lower(L, jnp.where(mask, y - m, 0.0))
    count = jnp.sum(mask).astype(y.dtype)
    return jnp.where(count > 0, log_normal(z, log_det(L), count), 0.0)
