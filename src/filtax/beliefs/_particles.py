r"""Beliefs held as points: a random key, motion and resampling, and the two kinds of weighted particles.

Time passes without a key being handed over, so a cloud carries its own. It is stored as eight bytes: every float dtype
holds a byte exactly, so that the key survives selection, batching and the compression of `filtax.online`. A forecast
and the step after it start from the same key and meet the same noise; hypotheses that start alike share theirs.

`Particles` are points of all parameters. `Marginalised` draws the first d parameters alone, and integrates out what is
linear and Gaussian (Rao-Blackwell): no particles are spent on it. With $\theta = (u, v)$,
$$q(\theta) = \sum_s w_s\,\delta(u - u_s)\,N(v; m_s, P).$$
The covariance P is one for all: linear dynamics change it in the same way along every path. As time passes,
$(u', v')$ given a point is Gaussian with the mean $F(u_s, m_s) + b$ and the covariance
$F_{\cdot v}PF_{\cdot v}^\top + Q = LL^\top$, L lower triangular. With $e \sim N(0, I_d)$ the first d columns of L
times e move both $u_s$, which is drawn, and $m_s$, which is conditioned on it; what is left of L is the new root of P.
Nothing is inverted. Data are assumed to look at u alone.

Axes: S points, D parameters, d of them drawn. Cost: O(SD) for each operation, O(SD²) for a covariance; `Marginalised`
O(SDd), and one reduction of O(D³).
After Doucet, de Freitas, Murphy and Russell (2000); the shared covariance after Schön, Gustafsson and Nordlund (2005).
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Bool, Float, Int, Key, UInt8

from filtax import _validation as checks
from filtax.beliefs._square_root import root_of
from filtax.linalg import matmul, psd_root, triangular_root
from filtax.protocols import Belief, with_fields

IMPL = "threefry2x32"
COLLAPSED = 1.5  # particles of any weight, up to which all the weight lies on one


def seal(key: Key[Array, ""]) -> UInt8[Array, "8"]:
    """Turn a random key of any kind into eight bytes."""
    return _bytes(jax.random.bits(key, (2,), jnp.uint32))


def take_key(sealed: UInt8[Array, "8"]) -> tuple[UInt8[Array, "8"], Key[Array, ""]]:
    """Split a key to use off the bytes; return the bytes that remain, and the key."""
    words = jax.lax.bitcast_convert_type(sealed.reshape(2, 4), jnp.uint32)
    rest, key = jax.random.split(jax.random.wrap_key_data(words, impl=IMPL))
    return _bytes(jax.random.key_data(rest)), key


def _bytes(words: Array) -> Array:
    return jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(8)


def noise_like(key: Key[Array, ""], members: Float[Array, "S D"], root: Array) -> Float[Array, "S D"]:
    """Draw N(0, root rootᵀ) for each member; root (D, D), or (D,) or () standard deviations."""
    e = jax.random.normal(key, members.shape, members.dtype)
    if root.ndim == 2:
        return jnp.matmul(e, root.T, precision="highest")
    return e * jnp.broadcast_to(root, members.shape[1:])[None, :]


def resample_indices(key: Key[Array, ""], log_weight: Float[Array, " N"], count: int) -> Int[Array, " S"]:
    """Choose `count` points by systematic resampling: point n comes floor(count w) or ceil(count w) times.

    One uniform number shifts a comb of evenly spaced teeth along the cumulative weights.
    """
    total = jnp.cumsum(jnp.exp(log_weight - jnp.max(log_weight)))
    dtype = log_weight.dtype
    teeth = (jnp.arange(count, dtype=dtype) + jax.random.uniform(key, (), dtype)) / count
    teeth = jnp.minimum(teeth, 1.0 - jnp.finfo(dtype).eps)  # rounding must not reach beyond the last point
    chosen = jnp.searchsorted(jax.lax.stop_gradient(total / total[-1]), teeth, side="right")
    return jnp.minimum(chosen, log_weight.size - 1)


def partners(key: Key[Array, ""], log_weight: Float[Array, " N"], count: int) -> Int[Array, " S"]:
    """Choose as `resample_indices` does, in random order: a partner for each of `count` points."""
    of_choice, of_order = jax.random.split(key)
    return jax.random.permutation(of_order, resample_indices(of_choice, log_weight, count))


class Points(Belief):
    """Points (S, D), and the random key that moves them; a subclass has `mean`, and says how points spread."""

    members: Float[Array, "S D"]
    key: UInt8[Array, "8"]

    @property
    @abstractmethod
    def _cov_rows(self) -> Float[Array, "N D"]:
        """Rows whose outer products sum to the covariance."""

    @abstractmethod
    def _partners(self, key: Key[Array, ""], count: int) -> Float[Array, "S D"]:
        """Deviations from the mean of so many points, drawn with their weights."""

    @property
    def mean(self) -> Float[Array, " D"]:
        """Mean of the points."""
        return jnp.mean(self.members, axis=0)

    @property
    def cov(self) -> Float[Array, "D D"]:
        """Covariance of the points, with what was integrated out."""
        return matmul(self._cov_rows.T, self._cov_rows)

    @property
    def var(self) -> Float[Array, " D"]:
        """Variances, of the same parts."""
        return jnp.sum(self._cov_rows**2, axis=0)

    def project_cov(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ of J theta."""
        V = matmul(self._cov_rows, J.T)
        return matmul(V.T, V)

    def take_key(self) -> tuple[Any, Key[Array, ""]]:
        """Split off a random key."""
        rest, key = take_key(self.key)
        return with_fields(self, key=rest), key

    def replace(self, members: Float[Array, "S D"]) -> Any:
        """Put members in the place of the old ones; one that is not finite stays where it was."""
        sound = jnp.all(jnp.isfinite(members), axis=1, keepdims=True)
        return with_fields(self, members=jnp.where(sound, members, self.members))

    def inflate(self, factor: Float[Array, ""]) -> Any:
        """Multiply the covariance by a factor; the mean stays."""
        return self.stretch(jnp.sqrt(factor))

    def stretch(self, factor: Array | float) -> Any:
        """Multiply the deviations from the mean."""
        centre = self.mean[None, :]
        return self.replace(centre + factor * (self.members - centre))

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> Any:
        """Add independent noise of variance q to every parameter."""
        return self.affine(None, None, jnp.sqrt(q))

    def affine(self, F: Array | None, b: Array | None, noise: Array | None) -> Any:
        """Push through theta -> F theta + b + e, e ~ N(0, noise noiseᵀ); F (D, D) or (D,), noise (D, D) or (D,)."""
        return self._noisy(_moved(self.members, F, b), noise)

    def push(self, f: Callable[[Array], Array], noise: Array | None) -> Any:
        """Push each member through any f, and add noise as `affine` does."""
        out = jax.vmap(f)(self.members)
        if out.shape != self.members.shape:
            given, wanted = out.shape[1:], self.members.shape[1:]
            raise ValueError(f"nonlinear_dynamics: f returned shape {given} for parameters of shape {wanted}.")
        return self._noisy(out, noise)

    def mix(self, initial: Any, keep: Float[Array, ""] | Float[Array, " D"]) -> Any:
        r"""Move towards `initial`, keeping the share k of each parameter.

        $k\theta + (1-k)\mu_0 + (1-k^2)^{1/2}(\theta_0 - \mu_0)$ with a partner $\theta_0$ that is drawn from `initial`,
        so that mean and covariance are those of the Gaussian forms, on average.
        """
        rest, key = self.take_key()
        k = (keep * jnp.ones_like(self.members[0]))[None, :]
        noise = jnp.sqrt((1.0 - k) * (1.0 + k)) * initial._partners(key, len(self.members))
        return rest.replace(k * self.members + (1.0 - k) * initial.mean[None, :] + noise)

    def _noise(self, key: Key[Array, ""], root: Array) -> Float[Array, "S D"]:
        return noise_like(key, self.members, root)

    def _noisy(self, members: Array, root: Array | None) -> Any:
        if root is None:
            return self.replace(members)
        rest, key = self.take_key()
        return rest.replace(members + self._noise(key, root))


class Weighted(Points):
    """Points with log weights (S,) that sum to one; a subclass says what else is known of each."""

    log_weight: Float[Array, " S"]

    @property
    def mean(self) -> Float[Array, " D"]:
        """Weighted mean."""
        return matmul(jnp.exp(self.log_weight)[None, :], self.members)[0]

    @property
    def effective(self) -> Float[Array, "*C"]:
        """Effective sample size 1 / Σ w²: how many equally weighted particles these are worth."""
        return jnp.exp(-logsumexp(2.0 * self.log_weight, axis=-1))

    def weighted(self, log_weight: Float[Array, " S"]) -> Any:
        """Put log weights, normalised, in the place of the old ones."""
        return with_fields(self, log_weight=log_weight - logsumexp(log_weight))

    def resample(self, key: Key[Array, ""]) -> Any:
        """Draw equally weighted particles from these, systematically."""
        chosen = resample_indices(key, self.log_weight, len(self.members))
        return with_fields(self, members=self.members[chosen], log_weight=_equal(self.members))

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        """Draw parameters: members, each as often as its weight says."""
        checks.key("sample(key=...)", key)
        chosen = jax.random.categorical(key, self.log_weight, shape=(math.prod(shape),))
        return self.members[chosen].reshape(*shape, -1)

    @property
    def _cov_rows(self) -> Float[Array, "S D"]:
        return jnp.exp(0.5 * self.log_weight)[:, None] * (self.members - self.mean[None, :])

    def _partners(self, key: Key[Array, ""], count: int) -> Float[Array, "S D"]:
        return self.members[partners(key, self.log_weight, count)] - self.mean[None, :]


class Particles(Weighted):
    """Any shape, several modes, any h; as good as S is large for D.

    Members (S, D) with log weights that sum to one, and the random key that moves them.

    >>> two = Particles.of(jnp.array([[0.0], [4.0]]), jax.random.key(0), jnp.log(jnp.array([0.75, 0.25])))
    >>> two.mean.tolist(), two.var.tolist(), round(two.effective.item(), 2)
    ([1.0], [3.0], 1.6)
    """

    @classmethod
    def of(cls, members: Float[Array, "S D"], key: Key[Array, ""], log_weight: Array | None = None) -> "Particles":
        """Make a belief of given members, equally weighted if nothing is said."""
        return cls(members, seal(key), _equal(members) if log_weight is None else log_weight)

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
        return self.distinct < COLLAPSED

    def shrunk(self, keep: Array) -> tuple[Float[Array, "S D"], Float[Array, "D D"]]:
        r"""Kernel of Liu and West (2001): centres $a\theta + (1-a)\mu$, and a root of $(1-a^2)\Sigma$.

        Noise around the centres restores the covariance, so that a resampled copy moves and the moments do not.
        """
        centres = keep * self.members + (1.0 - keep) * self.mean[None, :]
        return centres, jnp.sqrt((1.0 - keep) * (1.0 + keep)) * psd_root(self.cov)

    def moment_match(self, log_weight: Float[Array, " C"]) -> "Particles":
        """Draw equally weighted particles from a mixture of C beliefs (leading axis C)."""
        C, S, D = self.members.shape
        rest, key = take_key(self.key[0])
        chosen = partners(key, (log_weight[:, None] + self.log_weight).reshape(C * S), S)
        members = self.members.reshape(C * S, D)[chosen]
        return Particles(members, rest, _equal(members))


class Marginalised(Weighted):
    """Members (S, D): d drawn parameters, then the means of the others given them; `root` is of their covariance.

    >>> start = Marginalised.start(jnp.zeros(2), jnp.ones(2), 1, 100, jax.random.key(0))
    >>> start.drawn, start.members.shape, start.members[:, 1].tolist() == [0.0] * 100
    (1, (100, 2), True)
    """

    root: Float[Array, "V V"]

    @classmethod
    def start(cls, mean: Array, cov: Array, drawn: int, size: int, key: Key[Array, ""]) -> "Marginalised":
        """Draw the first parameters from N(mean, cov), condition the others; cov as variances (D,) or (D, D)."""
        of_members, rest = jax.random.split(key)
        at_mean = jnp.broadcast_to(mean, (size, mean.size))
        empty = cls(at_mean, seal(rest), _equal(at_mean), jnp.zeros((mean.size - drawn,) * 2, mean.dtype))
        return empty._drawn(of_members, at_mean, triangular_root(root_of(cov)))

    @property
    def drawn(self) -> int:
        """How many parameters are held as points."""
        return self.members.shape[-1] - self.root.shape[-1]

    @property
    def collapsed(self) -> Bool[Array, "*C"]:
        """Whether nearly all the weight lies on one particle."""
        return self.effective < COLLAPSED

    def affine(self, F: Array | None, b: Array | None, noise: Array | None) -> "Marginalised":
        """Push through theta -> F theta + b + e, e ~ N(0, noise noiseᵀ); F (D, D) or (D,), noise (D, D) or (D,)."""
        D, d = self.members.shape[1], self.drawn
        lifted = _moved(self._inside, F, None).T
        if noise is not None and noise.ndim < 2:
            noise = jnp.diag(jnp.broadcast_to(noise, (D,)))
        whole = [lifted, jnp.zeros((D, d), lifted.dtype) if noise is None else noise]
        rest, key = self.take_key()
        return rest._drawn(key, _moved(self.members, F, b), triangular_root(jnp.concatenate(whole, axis=1)))

    def push(self, f: Callable[[Array], Array], noise: Array | None) -> NoReturn:
        """Refuse: only a linear motion can be integrated out."""
        raise ValueError(
            "nonlinear_dynamics under RBPF: what it integrates out must be linear; use linear_dynamics, or PF."
        )

    def mix(self, initial: "Marginalised", keep: Float[Array, ""] | Float[Array, " D"]) -> "Marginalised":
        """Move towards `initial`, keeping the share k of each parameter, each particle with a partner from it."""
        k = (keep * jnp.ones_like(self.members[0]))[self.drawn :, None]
        parts = [k * self.root, jnp.sqrt((1.0 - k) * (1.0 + k)) * initial.root]
        return with_fields(super().mix(initial, keep), root=triangular_root(jnp.concatenate(parts, axis=1)))

    def inflate(self, factor: Float[Array, ""]) -> "Marginalised":
        """Multiply the covariance by a factor; the mean stays."""
        wider = jnp.sqrt(factor)
        return self.affine(wider, (1.0 - wider) * self.mean, None)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        """Draw parameters: a member as often as its weight says, and what was integrated out around its mean."""
        checks.key("sample(key=...)", key)
        of_member, of_rest = jax.random.split(key)
        points = super().sample(of_member, (math.prod(shape),))
        e = jax.random.normal(of_rest, (len(points), len(self.root)), points.dtype)
        return points.at[:, self.drawn :].add(matmul(e, self.root.T)).reshape(*shape, -1)

    @property
    def _inside(self) -> Float[Array, "V D"]:
        """Rows whose outer products sum to the covariance of what was integrated out."""
        return jnp.concatenate([jnp.zeros((len(self.root), self.drawn), self.root.dtype), self.root.T], axis=1)

    @property
    def _cov_rows(self) -> Float[Array, "N D"]:
        return jnp.concatenate([super()._cov_rows, self._inside])

    def _drawn(self, key: Key[Array, ""], centres: Float[Array, "S D"], L: Float[Array, "D D"]) -> "Marginalised":
        """Draw the first parameters from N(centres, L Lᵀ), and condition the others on what was drawn."""
        d = self.drawn
        e = jax.random.normal(key, (len(centres), d), centres.dtype)
        return with_fields(self, members=centres + matmul(e, L[:, :d].T), root=L[d:, d:])


def _moved(members: Float[Array, "S D"], F: Array | None, b: Array | None) -> Float[Array, "S D"]:
    """Push each member through theta -> F theta + b; F (D, D), (D,) or ()."""
    if F is not None and F.ndim == 2:
        members = jnp.matmul(members, F.T, precision="highest")
    elif F is not None:
        members = members * jnp.broadcast_to(F, members.shape[1:])[None, :]
    return members if b is None else members + jnp.broadcast_to(b, members.shape[1:])[None, :]


def _equal(members: Array) -> Array:
    return jnp.full(members.shape[0], -math.log(members.shape[0]), members.dtype)
