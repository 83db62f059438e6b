"""One belief from several: the moments of a mixture, or one belief of the same family with these moments (errata E13).

For Gaussians the latter is the nearest one in the sense of Kullback and Leibler; for Beta and Gamma it keeps two
moments.
"""

import math
from operator import attrgetter

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

from filtax import _validation as checks
from filtax.protocols import Module


class Collapsed(Module):
    """Moments of a mixture of beliefs; samples come from the mixture itself.

    >>> from filtax.beliefs import Covariance
    >>> two = jax.vmap(Covariance.start)(jnp.array([[0.0], [2.0]]), jnp.ones((2, 1)))
    >>> collapse(two, jnp.log(jnp.array([0.5, 0.5]))).cov.tolist()
    [[2.0]]
    """

    parts: PyTree
    log_weight: Float[Array, " C"]

    @property
    def mean(self) -> Float[Array, " D"]:
        """Weighted mean."""
        return jnp.exp(self.log_weight) @ self._each("mean")

    @property
    def var(self) -> Float[Array, " D"]:
        """Variances, the spread between hypotheses included."""
        each = self._each("var")
        return jnp.exp(self.log_weight) @ (each + (self._each("mean") - self.mean[None]) ** 2)

    @property
    def cov(self) -> Float[Array, "D D"]:
        """Covariance, the spread between hypotheses included."""
        each, gap = self._each("cov"), self._each("mean") - self.mean[None]
        return jnp.tensordot(jnp.exp(self.log_weight), each + gap[:, :, None] * gap[:, None, :], axes=1)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        """Draw parameters: for each draw a hypothesis, then from its belief."""
        checks.key("sample(key=...)", key)

        def draw(key: Array) -> Array:
            of_part, of_value = jax.random.split(key)
            chosen = jax.random.categorical(of_part, self.log_weight)
            return jax.tree.map(lambda leaf: leaf[chosen], self.parts).sample(of_value)

        drawn = jax.vmap(draw)(jax.random.split(key, math.prod(shape)))
        return drawn.reshape(*shape, -1) if shape else drawn[0]

    def _each(self, name: str) -> Array:
        if self.log_weight.ndim != 1:
            raise ValueError(
                f"{name}: this holds the beliefs of many states, as jax.vmap stacks them; ask inside: "
                f"jax.vmap(lambda state: method.belief(state).{name})(states)."
            )
        return jax.vmap(attrgetter(name))(self.parts)


def collapse(parts: PyTree, log_weight: Float[Array, " C"]) -> PyTree:
    """Return the belief of a single hypothesis, or the moments of its mixture.

    >>> from filtax.beliefs import Covariance
    >>> collapse(jax.vmap(Covariance.start)(jnp.zeros((1, 2)), jnp.ones((1, 2))), jnp.zeros(1)).mean.shape
    (2,)
    """
    if log_weight.shape[-1] == 1:
        return jax.tree.map(lambda leaf: leaf[0], parts)
    return Collapsed(parts, log_weight)


def moment_match(batch: PyTree, log_weight: Float[Array, " C"]) -> PyTree:
    """Match the moments of a mixture; the weights need not be normalised.

    Args:
        batch: Beliefs of one family, every leaf with a leading axis C.
        log_weight: (C,) log weights; if all are -inf, every belief counts the same.

    >>> from filtax.beliefs import Covariance
    >>> two = jax.vmap(Covariance.start)(jnp.array([[0.0], [2.0]]), jnp.ones((2, 1)))
    >>> moment_match(two, jnp.zeros(2)).cov.tolist()
    [[2.0]]
    """
    log_weight = jnp.where(jnp.any(log_weight > -jnp.inf), log_weight, 0.0)
    return type(batch).moment_match(batch, jax.nn.log_softmax(log_weight))
