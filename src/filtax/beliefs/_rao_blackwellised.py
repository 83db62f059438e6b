r"""Belief held as S weighted points for the first d parameters, and a Gaussian for the others given each point.

What is linear and Gaussian is integrated out (Rao-Blackwell), and no particles are spent on it. With $\theta = (u, v)$,
$$q(\theta) = \sum_s w_s\,\delta(u - u_s)\,N(v; m_s, P).$$
The covariance P is one for all: linear dynamics change it in the same way along every path. As time passes,
$(u', v')$ given a point is Gaussian with the mean $F(u_s, m_s) + b$ and the covariance
$F_{\cdot v}PF_{\cdot v}^\top + Q = LL^\top$, L lower triangular. With $e \sim N(0, I_d)$ the first d columns of L
times e move both $u_s$, which is drawn, and $m_s$, which is conditioned on it; what is left of L is the new root of P.
Nothing is inverted. Data are assumed to look at u alone.

Axes: S particles, D parameters, d of them drawn. Cost: O(SDd) for each step, and one reduction of O(D³).
After Doucet, de Freitas, Murphy and Russell (2000); the shared covariance after Schön, Gustafsson and Nordlund (2005).
"""

import math
from collections.abc import Callable
from typing import NoReturn

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Bool, Float, Key, UInt8

from filtax import _validation as checks
from filtax.beliefs._particles import Weighted, moved, partners, resample_indices, seal, take_key
from filtax.beliefs._square_root import root_of
from filtax.linalg import matmul, triangular_root


class Marginalised(Weighted):
    """Members (S, D): d drawn parameters, then the means of the others given them; `root` is of their covariance.

    >>> start = Marginalised.start(jnp.zeros(2), jnp.ones(2), 1, 100, jax.random.key(0))
    >>> start.drawn, start.members.shape, start.members[:, 1].tolist() == [0.0] * 100
    (1, (100, 2), True)
    """

    root: Float[Array, "V V"]
    key: UInt8[Array, "8"]

    @classmethod
    def start(cls, mean: Array, cov: Array, drawn: int, size: int, key: Key[Array, ""]) -> "Marginalised":
        """Draw the first parameters from N(mean, cov), condition the others; cov as variances (D,) or (D, D)."""
        of_members, rest = jax.random.split(key)
        at_mean = jnp.broadcast_to(mean, (size, mean.size))
        equal = jnp.full(size, -math.log(size), mean.dtype)
        return cls(at_mean, equal, jnp.zeros((mean.size - drawn,) * 2, mean.dtype), seal(rest))._drawn(
            of_members, at_mean, triangular_root(root_of(cov))
        )

    @property
    def drawn(self) -> int:
        """How many parameters are held as points."""
        return self.members.shape[-1] - self.root.shape[-1]

    @property
    def collapsed(self) -> Bool[Array, "*C"]:
        """Whether nearly all the weight lies on one particle."""
        return jnp.exp(-logsumexp(2.0 * self.log_weight, axis=-1)) < 1.5

    def take_key(self) -> tuple["Marginalised", Key[Array, ""]]:
        """Split off a random key."""
        rest, key = take_key(self.key)
        return Marginalised(self.members, self.log_weight, self.root, rest), key

    def weighted(self, log_weight: Float[Array, " S"]) -> "Marginalised":
        """Put log weights, normalised, in the place of the old ones."""
        return Marginalised(self.members, log_weight - logsumexp(log_weight), self.root, self.key)

    def resample(self, key: Key[Array, ""]) -> "Marginalised":
        """Draw equally weighted particles from these, systematically."""
        S = len(self.members)
        chosen = resample_indices(key, self.log_weight, S)
        return Marginalised(self.members[chosen], jnp.full_like(self.log_weight, -math.log(S)), self.root, self.key)

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "Marginalised":
        """Add independent noise of variance q to every parameter."""
        return self.affine(None, None, jnp.sqrt(q))

    def affine(self, F: Array | None, b: Array | None, noise: Array | None) -> "Marginalised":
        """Push through theta -> F theta + b + e, e ~ N(0, noise noiseᵀ); F (D, D) or (D,), noise (D, D) or (D,)."""
        D, d = self.members.shape[1], self.drawn
        lifted = jnp.concatenate([jnp.zeros((d, D - d), self.root.dtype), self.root])
        if F is not None:
            lifted = moved(lifted.T, F, None).T
        if noise is not None and noise.ndim < 2:
            noise = jnp.diag(jnp.broadcast_to(noise, (D,)))
        whole = [lifted, jnp.zeros((D, d), lifted.dtype)] if noise is None else [lifted, noise]
        rest, key = self.take_key()
        return rest._drawn(key, moved(self.members, F, b), triangular_root(jnp.concatenate(whole, axis=1)))

    def push(self, f: Callable[[Array], Array], noise: Array | None) -> NoReturn:
        """Refuse: only a linear motion can be integrated out."""
        raise ValueError(
            "nonlinear_dynamics under RBPF: what it integrates out must be linear; use linear_dynamics, or PF."
        )

    def mix(self, initial: "Marginalised", keep: Float[Array, ""] | Float[Array, " D"]) -> "Marginalised":
        """Move towards `initial`, keeping the share k of each parameter, each particle with a partner from it."""
        rest, key = self.take_key()
        k = (keep * jnp.ones_like(self.members[0]))[None, :]
        other = jnp.sqrt((1.0 - k) * (1.0 + k))
        chosen, centre = partners(key, initial.log_weight, len(self.members)), initial.mean[None, :]
        members = k * self.members + (1.0 - k) * centre + other * (initial.members[chosen] - centre)
        d = self.drawn
        parts = [k[:, d:].T * self.root, other[:, d:].T * initial.root]
        return Marginalised(members, self.log_weight, triangular_root(jnp.concatenate(parts, axis=1)), rest.key)

    def inflate(self, factor: Float[Array, ""]) -> "Marginalised":
        """Multiply the covariance by a factor; the mean stays."""
        wider = jnp.sqrt(factor)
        return self.affine(wider, (1.0 - wider) * self.mean, None)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        """Draw parameters: a member as often as its weight says, and what was integrated out around its mean."""
        checks.key("sample(key=...)", key)
        of_member, of_rest = jax.random.split(key)
        count = math.prod(shape)
        points = self.members[jax.random.categorical(of_member, self.log_weight, shape=(count,))]
        e = jax.random.normal(of_rest, (count, self.root.shape[0]), points.dtype)
        return points.at[:, self.drawn :].add(matmul(e, self.root.T)).reshape(*shape, -1)

    @property
    def _cov_rows(self) -> Float[Array, "N D"]:
        """Rows whose outer products sum to the covariance."""
        between = jnp.exp(0.5 * self.log_weight)[:, None] * (self.members - self.mean[None, :])
        inside = jnp.concatenate([jnp.zeros((len(self.root), self.drawn), self.root.dtype), self.root.T], axis=1)
        return jnp.concatenate([between, inside])

    def _drawn(self, key: Key[Array, ""], centres: Float[Array, "S D"], L: Float[Array, "D D"]) -> "Marginalised":
        """Draw the first parameters from N(centres, L Lᵀ), and condition the others on what was drawn."""
        d = self.drawn
        e = jax.random.normal(key, (len(centres), d), centres.dtype)
        return Marginalised(centres + matmul(e, L[:, :d].T), self.log_weight, L[d:, d:], self.key)
