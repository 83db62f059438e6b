r"""Belief held as S equally weighted members: nothing of size D x D is formed, and any h or f will do.

Moments are those of the sample, with 1/(S-1). Noise that is added has its own mean taken out, so that the mean moves
exactly as it should and only the covariance is a sample's. Cost: O(SD) memory and time for each operation.

Thesis: algo:ensemble-kalman-filter (errata E7).
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, UInt8

from filtax import _validation as checks
from filtax.beliefs._particles import each_member, moved, noise_like, partners, seal, take_key
from filtax.beliefs._square_root import root_of
from filtax.linalg import matmul
from filtax.protocols import Belief

MEMORY = 50.0  # data that the test for collapse looks back on
FAR = 9.0  # a squared residual counts at most this, so that single outliers are no collapse
WRONG = 4.0  # mean of those, in units of the noise, from which a forecast is wrong


class Ensemble(Belief):
    """Members (S, D), and the random key that moves them.

    `innovation_stats` holds two running means, in units of the noise: of the squared residual of each forecast, and of
    the variance that the members gave to it.

    >>> ensemble = Ensemble.of(jnp.array([[0.0], [2.0]]), jax.random.key(0))
    >>> ensemble.mean.tolist(), ensemble.cov.tolist()
    ([1.0], [[2.0]])
    """

    members: Float[Array, "S D"]
    key: UInt8[Array, "8"]
    innovation_stats: Float[Array, "2"]

    @classmethod
    def of(cls, members: Float[Array, "S D"], key: Key[Array, ""]) -> "Ensemble":
        """Make an ensemble of given members."""
        return cls(members, seal(key), jnp.ones(2, members.dtype))

    @classmethod
    def start(cls, mean: Array, cov: Array, size: int, key: Key[Array, ""]) -> "Ensemble":
        """Draw members from N(mean, cov), around exactly that mean; cov as variances (D,) or in full (D, D)."""
        of_members, rest = jax.random.split(key)
        root = jnp.sqrt(cov) if cov.ndim < 2 else root_of(cov)
        at_mean = jnp.broadcast_to(mean, (size, mean.size))
        return cls.of(at_mean + _centred(noise_like(of_members, at_mean, root)), rest)

    @property
    def mean(self) -> Float[Array, " D"]:
        """Mean of the members."""
        return jnp.mean(self.members, axis=0)

    @property
    def deviations(self) -> Float[Array, "S D"]:
        """Members minus their mean."""
        return _centred(self.members)

    @property
    def cov(self) -> Float[Array, "D D"]:
        """Covariance of the members, of rank below S."""
        return matmul(self.deviations.T, self.deviations) / (len(self.members) - 1)

    @property
    def var(self) -> Float[Array, " D"]:
        """Variances of the members."""
        return jnp.sum(self.deviations**2, axis=0) / (len(self.members) - 1)

    def project_cov(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ of J theta over the members."""
        V = matmul(self.deviations, J.T)
        return matmul(V.T, V) / (len(self.members) - 1)

    @property
    def collapsed(self) -> Bool[Array, "*C"]:
        """Whether the members agree on forecasts that are wrong: their spread is a tenth of the error or less.

        It takes about 50 data to be seen. More members, `inflation` or a prior that moves (ACI) help.
        """
        miss, width = self.innovation_stats[..., 0], self.innovation_stats[..., 1]
        return (miss > WRONG) & (width < 0.01 * (miss - 1.0))

    def observe(self, miss: Float[Array, ""], width: Float[Array, ""], taken: Bool[Array, ""]) -> "Ensemble":
        """Record one forecast: its squared residual and the variance of the members, averaged over outputs."""
        new = jnp.stack([jnp.minimum(miss, FAR), jnp.minimum(width, FAR)])
        innovation_stats = jnp.where(
            taken, self.innovation_stats + (new - self.innovation_stats) / MEMORY, self.innovation_stats
        )
        return Ensemble(self.members, self.key, innovation_stats)

    def replace(self, members: Float[Array, "S D"]) -> "Ensemble":
        """Put members in the place of the old ones; one that is not finite stays where it was."""
        sound = jnp.all(jnp.isfinite(members), axis=1, keepdims=True)
        return Ensemble(jnp.where(sound, members, self.members), self.key, self.innovation_stats)

    def take_key(self) -> tuple["Ensemble", Key[Array, ""]]:
        """Split off a random key."""
        rest, key = take_key(self.key)
        return Ensemble(self.members, rest, self.innovation_stats), key

    def inflate(self, factor: Array | float) -> "Ensemble":
        """Multiply the covariance by a factor; the mean stays."""
        return self.stretch(jnp.sqrt(factor))

    def stretch(self, factor: Array | float) -> "Ensemble":
        """Multiply the deviations from the mean."""
        return self.replace(self.mean[None, :] + factor * self.deviations)

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "Ensemble":
        """Add independent noise of variance q to every parameter."""
        return self._noisy(self.members, jnp.sqrt(q))

    def affine(self, F: Array | None, b: Array | None, noise: Array | None) -> "Ensemble":
        """Push through theta -> F theta + b + e, e ~ N(0, noise noiseᵀ); F (D, D) or (D,), noise (D, D) or (D,)."""
        return self._noisy(moved(self.members, F, b), noise)

    def push(self, f: Callable[[Array], Array], noise: Array | None) -> "Ensemble":
        """Push each member through any f, and add noise as `affine` does."""
        return self._noisy(each_member(f, self.members), noise)

    def mix(self, initial: "Ensemble", keep: Float[Array, ""] | Float[Array, " D"]) -> "Ensemble":
        r"""Move towards `initial`, keeping the share k of each parameter.

        $k\theta + (1-k)\mu_0 + (1-k^2)^{1/2}(\theta_0 - \mu_0)$ with a partner $\theta_0$ of the initial ensemble that
        is chosen at random, so that mean and covariance are those of the Gaussian forms, the latter on average.
        """
        rest, key = self.take_key()
        k = (keep * jnp.ones_like(self.members[0]))[None, :]
        chosen = partners(key, jnp.zeros_like(initial.members[:, 0]), len(self.members))
        noise = _centred(initial.deviations[chosen])
        return rest.replace(
            k * self.members + (1.0 - k) * initial.mean[None, :] + jnp.sqrt((1.0 - k) * (1.0 + k)) * noise
        )

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        """Draw parameters: members, each as probable as the others."""
        checks.key("sample(key=...)", key)
        chosen = jax.random.randint(key, (math.prod(shape),), 0, len(self.members))
        return self.members[chosen].reshape(*shape, -1)

    def moment_match(self, log_weight: Float[Array, " C"]) -> "Ensemble":
        """Draw one ensemble from a mixture of C of them (leading axis C): members in proportion to the weights."""
        C, S, D = self.members.shape
        rest, key = take_key(self.key[0])
        chosen = partners(key, jnp.repeat(log_weight, S, total_repeat_length=C * S), S)
        innovation_stats = jnp.tensordot(
            jnp.exp(log_weight - jax.nn.logsumexp(log_weight)), self.innovation_stats, axes=1
        )
        return Ensemble(self.members.reshape(C * S, D)[chosen], rest, innovation_stats)

    def _noisy(self, members: Array, root: Array | None) -> "Ensemble":
        if root is None:
            return self.replace(members)
        rest, key = self.take_key()
        return rest.replace(members + _centred(noise_like(key, members, root)))


def _centred(values: Array) -> Array:
    return values - jnp.mean(values, axis=0, keepdims=True)
