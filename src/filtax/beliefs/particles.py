"""Belief held as S weighted points: any shape, several modes, any h; as good as S is large for the D at hand.

Axes: S particles, D parameters. Cost: O(SD) for each operation, O(SD²) for a covariance.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Bool, Float, Key, UInt8

from filtax import checks
from filtax.beliefs.cloud import draw_again, each_member, moved, noise_like, partners, seal, take_key
from filtax.beliefs.square_root import root_of
from filtax.beliefs.weighted import Weighted
from filtax.linalg import psd_root

__all__ = ["Particles"]


class Particles(Weighted):
    """Members (S, D) with log weights that sum to one, and the random key that moves them.

    >>> two = Particles.of(jnp.array([[0.0], [4.0]]), jax.random.key(0), jnp.log(jnp.array([0.75, 0.25])))
    >>> two.mean.tolist(), two.var.tolist(), round(two.effective.item(), 2)
    ([1.0], [3.0], 1.6)
    """

    key: UInt8[Array, "8"]

    @classmethod
    def of(cls, members: Float[Array, "S D"], key: Key[Array, ""], log_weight: Array | None = None) -> "Particles":
        """Make a belief of given members, equally weighted if nothing is said."""
        return cls(members, _equal(members) if log_weight is None else log_weight, seal(key))

    @classmethod
    def start(cls, mean: Array, cov: Array, size: int, key: Key[Array, ""]) -> "Particles":
        """Draw members from N(mean, cov); cov as variances (D,) or in full (D, D)."""
        of_members, rest = jax.random.split(key)
        root = jnp.sqrt(cov) if cov.ndim < 2 else root_of(cov)
        at_mean = jnp.broadcast_to(mean, (size, mean.size))
        return cls.of(at_mean + noise_like(of_members, at_mean, root), rest)

    @property
    def distinct(self) -> Float[Array, ""]:
        """Effective sample size, copies of one point counted as one: what resampling alone cannot restore."""
        scale = jnp.sqrt(jnp.arange(2, 2 + self.members.shape[1], dtype=self.members.dtype))
        mark = jnp.sum(self.members * scale[None, :], axis=1)
        order = jnp.argsort(mark)
        new = jnp.concatenate([jnp.zeros(1, bool), mark[order][1:] != mark[order][:-1]])
        mass = jax.ops.segment_sum(jnp.exp(self.log_weight)[order], jnp.cumsum(new), len(mark))
        return 1.0 / jnp.sum(mass * mass)

    @property
    def collapsed(self) -> Bool[Array, "*C"]:
        """Whether nearly all the weight lies on one point; `shrink`, or a prior that moves, is what helps."""
        if self.members.ndim > 2:
            return jax.vmap(lambda one: one.collapsed)(self)
        return self.distinct < 1.5

    def take_key(self) -> tuple["Particles", Key[Array, ""]]:
        """Split off a random key."""
        rest, key = take_key(self.key)
        return Particles(self.members, self.log_weight, rest), key

    def replace(self, members: Float[Array, "S D"]) -> "Particles":
        """Put members in the place of the old ones; one that is not finite stays where it was."""
        sound = jnp.all(jnp.isfinite(members), axis=1, keepdims=True)
        return Particles(jnp.where(sound, members, self.members), self.log_weight, self.key)

    def weighted(self, log_weight: Float[Array, " S"]) -> "Particles":
        """Put log weights, normalised, in the place of the old ones."""
        return Particles(self.members, log_weight - logsumexp(log_weight), self.key)

    def resample(self, key: Key[Array, ""]) -> "Particles":
        """Draw equally weighted particles from these, systematically."""
        chosen = draw_again(key, self.log_weight, len(self.members))
        return Particles(self.members[chosen], _equal(self.members), self.key)

    def shrunk(self, keep: Array) -> tuple[Float[Array, "S D"], Float[Array, "D D"]]:
        r"""Kernel of Liu and West (2001): centres $a\theta + (1-a)\mu$, and a root of $(1-a^2)\Sigma$.

        Noise around the centres restores the covariance, so that a resampled copy moves and the moments do not.
        """
        centres = keep * self.members + (1.0 - keep) * self.mean[None, :]
        return centres, jnp.sqrt((1.0 - keep) * (1.0 + keep)) * psd_root(self.cov)

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "Particles":
        """Add independent noise of variance q to every parameter."""
        return self._noisy(self.members, jnp.sqrt(q))

    def affine(self, F: Array | None, b: Array | None, noise: Array | None) -> "Particles":
        """Push through theta -> F theta + b + e, e ~ N(0, noise noiseᵀ); F (D, D) or (D,), noise (D, D) or (D,)."""
        return self._noisy(moved(self.members, F, b), noise)

    def push(self, f: Callable[[Array], Array], noise: Array | None) -> "Particles":
        """Push each member through any f, and add noise as `drift` does."""
        return self._noisy(each_member(f, self.members), noise)

    def mix(self, initial: "Particles", keep: Float[Array, ""] | Float[Array, " D"]) -> "Particles":
        r"""Move towards `initial`, keeping the share k of each parameter.

        $k\theta + (1-k)\mu_0 + (1-k^2)^{1/2}(\theta_0 - \mu_0)$ with a partner $\theta_0$ that is drawn from `initial`.
        """
        rest, key = self.take_key()
        k = (keep * jnp.ones_like(self.members[0]))[None, :]
        chosen = partners(key, initial.log_weight, len(self.members))
        centre = initial.mean[None, :]
        noise = jnp.sqrt((1.0 - k) * (1.0 + k)) * (initial.members[chosen] - centre)
        return rest.replace(k * self.members + (1.0 - k) * centre + noise)

    def inflate(self, factor: Float[Array, ""]) -> "Particles":
        """Multiply the covariance by a factor; the mean stays."""
        centre = self.mean[None, :]
        return self.replace(centre + jnp.sqrt(factor) * (self.members - centre))

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        """Draw parameters: members, each as often as its weight says."""
        checks.key("sample(key=...)", key)
        chosen = jax.random.categorical(key, self.log_weight, shape=(math.prod(shape),))
        return self.members[chosen].reshape(*shape, -1)

    def moment_match(self, log_weight: Float[Array, " C"]) -> "Particles":
        """Draw equally weighted particles from a mixture of C beliefs (leading axis C)."""
        C, S, D = self.members.shape
        rest, key = take_key(self.key[0])
        chosen = partners(key, (log_weight[:, None] + self.log_weight).reshape(C * S), S)
        members = self.members.reshape(C * S, D)[chosen]
        return Particles(members, _equal(members), rest)

    @property
    def _rooted(self) -> Float[Array, "S D"]:
        return jnp.exp(0.5 * self.log_weight)[:, None] * (self.members - self.mean[None, :])

    def _noisy(self, members: Array, root: Array | None) -> "Particles":
        if root is None:
            return self.replace(members)
        rest, key = self.take_key()
        return rest.replace(members + noise_like(key, members, root))


def _equal(members: Array) -> Array:
    return jnp.full(members.shape[0], -math.log(members.shape[0]), members.dtype)
