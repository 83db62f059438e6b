"""Square roots of a forecast's covariance: as it was made, or of the covariance where there is none."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from filtax.linalg import cholesky, psd_root, triangular_root

__all__ = ["drawn", "root_of_seen"]


def root_of_seen(
    C: Float[Array, "O O"], root: Float[Array, "O O"] | None, mask: Bool[Array, " O"] | None
) -> Float[Array, "O O"]:
    """Lower triangular root of what was seen of C; rows and columns of what is missing become those of I.

    >>> root_of_seen(jnp.array([[4.0, 1.0], [1.0, 9.0]]), None, jnp.array([False, True])).tolist()
    [[1.0, 0.0], [0.0, 3.0]]
    """
    eye = jnp.eye(C.shape[0], dtype=C.dtype)
    if root is None:
        return cholesky(C if mask is None else jnp.where(mask[:, None] & mask[None, :], C, eye))
    if mask is None:
        return root
    return triangular_root(
        jnp.where(mask[:, None], jnp.concatenate([root, 0.0 * eye], 1), jnp.concatenate([0.0 * eye, eye], 1))
    )


def drawn(noise: Float[Array, " O"], C: Float[Array, "O O"], root: Float[Array, "O O"] | None) -> Float[Array, " O"]:
    """Give independent noise of variance one the covariance C.

    >>> drawn(jnp.ones(1), jnp.full((1, 1), 9.0), None).tolist()
    [3.0]
    """
    return (psd_root(C) if root is None else root) @ noise
