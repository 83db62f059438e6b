"""What the Gaussian forms share: the result of conditioning, moves of the parameters, and draws."""

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from filtax import _validation as checks
from filtax.linalg import matmul
from filtax.protocols import Belief, Module

RESOLVED = 0.01  # up to this over ε in units of the noise, a forecast of several outputs is factored at once


class Conditioned(Module):
    r"""A belief conditioned on r = B J (theta - mean) + e, e ~ N(0, I).

    With $S = I + BJ\Sigma J^\top B^\top = LL^\top$: `innovation` is $L^{-1}r$ and `log_det` is $\log|S|$, from the
    factor that the update itself used. They give the evidence where the covariance of the forecast, formed as a sum,
    would be singular to rounding.

    >>> import jax.numpy as jnp
    >>> from filtax.beliefs import SquareRoot
    >>> prior = SquareRoot.start(jnp.zeros(1), jnp.full(1, 3.0))
    >>> round(prior.condition(jnp.eye(1), jnp.eye(1), jnp.ones(1)).innovation.item(), 3)
    0.5
    """

    belief: PyTree
    innovation: Float[Array, " O"]
    log_det: Float[Array, ""]
    ok: Bool[Array, ""]


class Gaussian(Belief):
    """A Gaussian with a mean (D,); a form says how its covariance moves, and gives noise its covariance."""

    mean: Float[Array, " D"]

    @abstractmethod
    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        """Condition on r = B J (theta - mean) + e with e ~ N(0, I)."""

    @abstractmethod
    def _moved(self, mean: Array, F: Array | None, noise: Array | None) -> Any:
        """The belief with another mean and the covariance F Σ Fᵀ + noise noiseᵀ, as in `affine`; F may be ()."""

    @abstractmethod
    def _mixed(self, mean: Array, initial: Any, keep: Array) -> Any:
        """The belief with another mean and the covariance of `mix`."""

    @abstractmethod
    def _coloured(self, noise: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """Noise with the covariance of the belief, from N(0, I)."""

    def affine(self, F: Array | None, b: Array | None, noise: Array | None) -> Any:
        """Push through theta -> F theta + b + e, e ~ N(0, noise noiseᵀ); F (D, D) or (D,), noise (D, D) or (D,)."""
        mean = self.mean
        if F is not None:
            mean = F * mean if F.ndim < 2 else matmul(F, mean[:, None])[:, 0]
        return self._moved(mean if b is None else mean + b, F, noise)

    def mix(self, initial: Any, keep: Float[Array, ""] | Float[Array, " D"]) -> Any:
        r"""Move towards `initial`, keeping the share k of each parameter.

        Mean $k\mu + (1-k)\mu_0$, covariance $k\Sigma k + (1-k^2)^{1/2}\Sigma_0(1-k^2)^{1/2}$.
        """
        return self._mixed(keep * self.mean + (1.0 - keep) * initial.mean, initial, keep)

    def inflate(self, factor: Float[Array, ""]) -> Any:
        """Multiply the covariance by a factor; the mean stays."""
        return self._moved(self.mean, jnp.sqrt(factor), None)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        """Draw parameters."""
        checks.key("sample(key=...)", key)
        noise = jax.random.normal(key, (*shape, self.mean.size), self.mean.dtype)
        drawn = self.mean[None, :] + self._coloured(noise.reshape(-1, self.mean.size))
        return drawn.reshape(noise.shape)


def one_by_one(belief: Gaussian, G: Float[Array, "O D"], r: Float[Array, " O"]) -> Conditioned:
    """Condition on r = G (theta - mean) + e with e ~ N(0, I), one output after the other.

    The innovations are those of the Cholesky factor of all at once. That factor is lost to rounding where the forecast
    is 1/ε times as uncertain as the noise; a single number has nothing to lose.
    """
    one = jnp.eye(1, dtype=r.dtype)

    def take(now: Gaussian, datum: tuple[Array, Array]) -> tuple[Gaussian, tuple]:
        g, left = datum
        gap = left - jnp.sum(g * (now.mean - belief.mean))
        new = now.condition(g[None, :], one, gap[None])
        return new.belief, (new.innovation[0], new.log_det, new.ok)

    last, (z, log_det, taken) = jax.lax.scan(take, belief, (G, r))
    ok = jnp.all(taken)
    # a datum is taken whole or not at all
    kept = jax.tree.map(lambda new, old: jnp.where(ok, new, old), last, belief)
    return Conditioned(kept, z, jnp.sum(log_det), ok)


def shares(keep: Array, like: Float[Array, " D"]) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
    """The share k of each parameter that `mix` keeps, and the root of 1 - k², by which the initial belief is scaled."""
    k = keep * jnp.ones_like(like)
    return k, jnp.sqrt((1.0 - k) * (1.0 + k))


def if_finite(new: Array, old: Array) -> Array:
    """The new numbers where they are finite, the old ones elsewhere."""
    return jnp.where(jnp.isfinite(new), new, old)


def refuse_matrices(F: Array | None, noise: Array | None, reason: str, remedy: str) -> None:
    """Refuse dynamics that mix parameters, for a belief that holds no correlations."""
    for name, matrix in (("F", F), ("Q", noise)):
        if matrix is not None and matrix.ndim == 2:
            raise ValueError(f"{reason}, but {name} is a matrix over all parameters; give (D,) numbers, or {remedy}.")
