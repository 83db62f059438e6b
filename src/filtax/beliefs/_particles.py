"""Beliefs held as weighted points, and what all clouds of points share: a random key, motion, and resampling.

Time passes without a key being handed over, so a cloud carries its own. It is stored as eight bytes: every float dtype
holds a byte exactly, so that the key survives selection, batching and the compression of `filtax.online`. A forecast
and the step after it start from the same key and meet the same noise; hypotheses that start alike share theirs.

Axes: S points, D parameters. Cost: O(SD) for each operation, O(SD²) for a covariance.
"""

import math
from abc import abstractmethod
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Bool, Float, Int, Key, UInt8

from filtax import _validation as checks
from filtax.beliefs._square_root import root_of
from filtax.linalg import matmul, psd_root
from filtax.protocols import Belief

IMPL = "threefry2x32"


def seal(key: Key[Array, ""]) -> UInt8[Array, "8"]:
    """Turn a random key of any kind into eight bytes.

    >>> seal(jax.random.key(0)).shape
    (8,)
    """
    return _bytes(jax.random.bits(key, (2,), jnp.uint32))


def take_key(sealed: UInt8[Array, "8"]) -> tuple[UInt8[Array, "8"], Key[Array, ""]]:
    """Split a key to use off the bytes; return the bytes that remain, and the key.

    >>> rest, key = take_key(seal(jax.random.key(0)))
    >>> bool(jnp.all(rest == take_key(seal(jax.random.key(0)))[0]))
    True
    """
    words = jax.lax.bitcast_convert_type(sealed.reshape(2, 4), jnp.uint32)
    rest, key = jax.random.split(jax.random.wrap_key_data(words, impl=IMPL))
    return _bytes(jax.random.key_data(rest)), key


def _bytes(words: Array) -> Array:
    return jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(8)


def noise_like(key: Key[Array, ""], members: Float[Array, "S D"], root: Array) -> Float[Array, "S D"]:
    """Draw N(0, root rootᵀ) for each member; root (D, D), or (D,) or () standard deviations.

    >>> noise_like(jax.random.key(0), jnp.ones((3, 2)), jnp.zeros(())).tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    """
    e = jax.random.normal(key, members.shape, members.dtype)
    if root.ndim == 2:
        return jnp.matmul(e, root.T, precision="highest")
    return e * jnp.broadcast_to(root, members.shape[1:])[None, :]


def moved(members: Float[Array, "S D"], F: Array | None, b: Array | None) -> Float[Array, "S D"]:
    """Push each member through theta -> F theta + b; F (D, D), (D,) or ().

    >>> moved(jnp.ones((1, 2)), 2.0 * jnp.eye(2), jnp.ones(2)).tolist()
    [[3.0, 3.0]]
    """
    if F is not None and F.ndim == 2:
        members = jnp.matmul(members, F.T, precision="highest")
    elif F is not None:
        members = members * jnp.broadcast_to(F, members.shape[1:])[None, :]
    return members if b is None else members + jnp.broadcast_to(b, members.shape[1:])[None, :]


def resample_indices(key: Key[Array, ""], log_weight: Float[Array, " N"], count: int) -> Int[Array, " S"]:
    """Choose `count` points by systematic resampling: point n comes floor(count w) or ceil(count w) times.

    One uniform number shifts a comb of evenly spaced teeth along the cumulative weights.

    >>> resample_indices(jax.random.key(0), jnp.log(jnp.array([0.25, 0.75])), 4).tolist()
    [0, 1, 1, 1]
    """
    total = jnp.cumsum(jnp.exp(log_weight - jnp.max(log_weight)))
    dtype = log_weight.dtype
    teeth = (jnp.arange(count, dtype=dtype) + jax.random.uniform(key, (), dtype)) / count
    teeth = jnp.minimum(teeth, 1.0 - jnp.finfo(dtype).eps)  # rounding must not reach beyond the last point
    chosen = jnp.searchsorted(jax.lax.stop_gradient(total / total[-1]), teeth, side="right")
    return jnp.minimum(chosen, log_weight.size - 1)


def partners(key: Key[Array, ""], log_weight: Float[Array, " N"], count: int) -> Int[Array, " S"]:
    """Choose as `resample_indices` does, in random order: a partner for each of `count` points.

    >>> sorted(partners(jax.random.key(0), jnp.zeros(3), 3).tolist())
    [0, 1, 2]
    """
    of_choice, of_order = jax.random.split(key)
    return jax.random.permutation(of_order, resample_indices(of_choice, log_weight, count))


def each_member(f: Callable[[Array], Array], members: Float[Array, "S D"]) -> Float[Array, "S D"]:
    """Apply a function from (D,) to (D,) to each member, and refuse one of another shape."""
    out = jax.vmap(f)(members)
    if out.shape != members.shape:
        raise ValueError(
            f"nonlinear_dynamics: f returned shape {out.shape[1:]} for parameters of shape {members.shape[1:]}."
        )
    return out


class Weighted(Belief):
    """Points (S, D) with log weights that sum to one; a subclass says what else is known of each.

    >>> cloud = Particles.of(jnp.array([[0.0], [4.0]]), jax.random.key(0))
    >>> isinstance(cloud, Weighted), cloud.mean.tolist(), cloud.effective.item()
    (True, [2.0], 2.0)
    """

    members: Float[Array, "S D"]
    log_weight: Float[Array, " S"]

    @property
    @abstractmethod
    def _cov_rows(self) -> Float[Array, "N D"]:
        """Rows whose outer products sum to the covariance."""

    @property
    def mean(self) -> Float[Array, " D"]:
        """Weighted mean."""
        return matmul(jnp.exp(self.log_weight)[None, :], self.members)[0]

    @property
    def cov(self) -> Float[Array, "D D"]:
        """Covariance between the points, and that of what was integrated out."""
        V = self._cov_rows
        return matmul(V.T, V)

    @property
    def var(self) -> Float[Array, " D"]:
        """Variances, of the same two parts."""
        return jnp.sum(self._cov_rows**2, axis=0)

    def project_cov(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ of J theta."""
        V = matmul(self._cov_rows, J.T)
        return matmul(V.T, V)

    @property
    def effective(self) -> Float[Array, ""]:
        """Effective sample size 1 / Σ w²: how many equally weighted particles these are worth."""
        return jnp.exp(-logsumexp(2.0 * self.log_weight))


class Particles(Weighted):
    """Any shape, several modes, any h; as good as S is large for D.

    Members (S, D) with log weights that sum to one, and the random key that moves them.

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
        chosen = resample_indices(key, self.log_weight, len(self.members))
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
        """Push each member through any f, and add noise as `affine` does."""
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
    def _cov_rows(self) -> Float[Array, "S D"]:
        return jnp.exp(0.5 * self.log_weight)[:, None] * (self.members - self.mean[None, :])

    def _noisy(self, members: Array, root: Array | None) -> "Particles":
        if root is None:
            return self.replace(members)
        rest, key = self.take_key()
        return rest.replace(members + noise_like(key, members, root))


def _equal(members: Array) -> Array:
    return jnp.full(members.shape[0], -math.log(members.shape[0]), members.dtype)
