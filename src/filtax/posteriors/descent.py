r"""(A.1) Plain gradient steps towards the nearest Gaussian, without the Fisher matrix: Bayes by backprop.

The objective is that of its relatives, $\mathrm{KL}(q \,\|\, \pi) - E_q[\ell]$ with $\pi = N(\mu, AA^\top)$ what is
believed before the datum. In units of that belief, $q = N(\mu + Am,\, AM(AM)^\top)$ with M lower triangular, it is
$$\tfrac12\bigl(|m|^2 + |M|^2\bigr) - \textstyle\sum_i\log M_{ii} - E_q[\ell],$$
so that nothing is inverted and a step length has no unit. With G the rows and r the residual of the site averaged over
q, about the prior's mean, and $V = A^\top G^\top$,
$$\nabla_m = m - V(r - V^\top m), \qquad \nabla_M = M + VV^\top M - \mathrm{diag}(1/M_{ii}),$$
by the identities of Bonnet and Price. The steps are in m, in M below its diagonal, and in $\log M_{ii}$; a diagonal
belief has the last alone. Steps longer than $2/(1 + |V|^2)$ diverge: that is what natural gradients are for.

Axes: D parameters, N rows. Cost: O(D² N) for a step in full, O(D N) for a diagonal.
Thesis: sec:variational-bayes.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from filtax.beliefs import Diagonal, SquareRoot
from filtax.linalg import matmul
from filtax.module import Module
from filtax.posteriors.averages import Site

__all__ = ["STEPPED", "Place"]

STEPPED = ("root", "diagonal")  # forms that hold a factor of their covariance


class Place(Module):
    """Where a gradient descent stands, seen from the prior: m, and M as a matrix or as its diagonal.

    >>> from filtax.beliefs import SquareRoot
    >>> prior = SquareRoot.start(jnp.ones(1), jnp.full(1, 4.0))
    >>> site = Site(jnp.eye(1), jnp.eye(1), jnp.ones(1))
    >>> moved = Place.start(prior).descend(prior, site, jnp.asarray(0.1)).belief(prior)
    >>> round(moved.mean.item(), 4), round(moved.root.item(), 4)  # 1 + 4/10, and 2 exp(-4/10)
    (1.4, 1.3406)
    """

    shift: Float[Array, " D"]
    factor: Float[Array, "D *D"]

    @classmethod
    def start(cls, prior: PyTree) -> "Place":
        """At the prior itself."""
        here = jnp.zeros_like(prior.mean)
        return cls(here, jnp.eye(here.size, dtype=here.dtype) if isinstance(prior, SquareRoot) else here + 1.0)

    @property
    def finite(self) -> Bool[Array, ""]:
        """Whether it is a place at all."""
        return jnp.all(jnp.isfinite(self.shift)) & jnp.all(jnp.isfinite(self.factor))

    def belief(self, prior: PyTree) -> Any:
        """The belief in the prior's own form."""
        if isinstance(prior, SquareRoot):
            mean = prior.mean + matmul(prior.root, self.shift[:, None])[:, 0]
            return SquareRoot(mean, matmul(prior.root, self.factor))
        mean = prior.mean + jnp.sqrt(prior.var) * self.shift
        return Diagonal(mean, prior.var * jnp.square(self.factor), prior.decoupled)

    def descend(self, prior: PyTree, site: Site, step: Float[Array, ""]) -> "Place":
        """One step down the gradient, on a site averaged here and written about the prior's mean."""
        full = isinstance(prior, SquareRoot)
        G = site.rows
        V = matmul(G, prior.root).T if full else (G * jnp.sqrt(prior.var)[None, :]).T
        left = site.residual - matmul(V.T, self.shift[:, None])[:, 0]
        shift = self.shift - step * (self.shift - matmul(V, left[:, None])[:, 0])
        if not full:
            square = jnp.square(self.factor)
            return Place(shift, self.factor * jnp.exp(step * (1.0 - square - square * jnp.sum(V * V, axis=1))))
        M = self.factor
        slope = M + matmul(V, matmul(V.T, M))
        scale = jnp.diagonal(M)
        on = scale * jnp.exp(step * (1.0 - scale * jnp.diagonal(slope)))
        eye = np.eye(len(M), dtype=bool)
        return Place(shift, jnp.where(eye, on[None, :], jnp.tril(M - step * slope, -1)))
