"""Forecasts of labels, averaged over the uncertain natural parameter."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from filtax import _validation as checks
from filtax.distributions._numerics import at_each, at_one, central, diagonal, outward
from filtax.protocols import Module, static


class Bernoulli(Module):
    """Probabilities of 1 and of 0 for O outputs; both logs are kept, so that neither tail is lost to rounding.

    >>> coin = Bernoulli(jnp.log(jnp.array([0.25])), jnp.log(jnp.array([0.75])), scalar=True)
    >>> round(coin.var.item(), 4)
    0.1875
    """

    log_yes: Float[Array, "*H O"]
    log_no: Float[Array, "*H O"]
    scalar: bool = static(default=False)

    @property
    def mean(self) -> Array:
        """Probability of a one."""
        return outward(jnp.exp(self.log_yes), self.scalar)

    @property
    def var(self) -> Array:
        """Variance p (1 - p) of each output."""
        return outward(jnp.exp(self.log_yes + self.log_no), self.scalar)

    @property
    def cov(self) -> Array:
        """Covariance, (O, O): outputs are forecast one by one, so it is diagonal."""
        return self.var if self.scalar else diagonal(self.var)

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each output: its ends are 0 or 1."""
        low, high = (jnp.log(jnp.asarray(tail, self.log_no.dtype)) for tail in central(level))
        ends = (self.log_no < low, self.log_no < high)
        lower, upper = (outward(end.astype(self.log_no.dtype), self.scalar) for end in ends)
        return lower, upper

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each output is at most y."""
        y = at_each(y, outward(self.log_no, self.scalar))
        no = outward(jnp.exp(self.log_no), self.scalar)
        return jnp.where(y < 0.0, 0.0, jnp.where(y < 1.0, no, 1.0))

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y of zeros and ones."""
        checks.key("sample(key=...)", key)
        draw = jax.random.uniform(key, self.log_yes.shape, self.log_yes.dtype)
        return outward((jnp.log(draw) < self.log_yes).astype(self.log_yes.dtype), self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log probability of y; masked outputs add nothing, and a y that is neither 0 nor 1 has probability 0."""
        y, mask = at_one(y, mask, self.log_yes)
        each = jnp.where(y == 1.0, self.log_yes, jnp.where(y == 0.0, self.log_no, -jnp.inf))
        return jnp.sum(each if mask is None else jnp.where(mask, each, 0.0), axis=-1)


class Categorical(Module):
    """Probabilities of O classes; y is the index of a class.

    >>> Categorical(jnp.log(jnp.array([0.2, 0.8]))).log_prob(1).round(4).item()
    -0.2231...
    """

    log_probability: Float[Array, "*H O"]

    @property
    def mean(self) -> Array:
        """Probability of each class, (O,); sums to one."""
        return jnp.exp(self.log_probability)

    @property
    def var(self) -> Array:
        """Variance of each class indicator."""
        return self.mean * (1.0 - self.mean)

    @property
    def cov(self) -> Array:
        """Covariance of the class indicators, diag(p) - p pᵀ."""
        return diagonal(self.mean) - self.mean[..., :, None] * self.mean[..., None, :]

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Refuse: labels have no order."""
        raise ValueError(
            f"interval({level}) of a class label: labels have no order; use .mean, the class probabilities."
        )

    def cdf(self, y: ArrayLike) -> Array:
        """Refuse: labels have no order."""
        raise ValueError("cdf of a class label: labels have no order; use .mean, the class probabilities.")

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one class index."""
        checks.key("sample(key=...)", key)
        return jax.random.categorical(key, self.log_probability)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log probability of the class y; exactly 0 where it is masked, and -inf if there is no such class."""
        y, mask = at_one(y, mask, self.log_probability[..., 0])
        index = jnp.clip(jnp.nan_to_num(y), 0.0, self.log_probability.shape[-1] - 1.0).astype(int)
        value = jnp.take_along_axis(self.log_probability, index[..., None], axis=-1)[..., 0]
        value = jnp.where(y == index.astype(y.dtype), value, -jnp.inf)
        return value if mask is None else jnp.where(mask, value, 0.0)
