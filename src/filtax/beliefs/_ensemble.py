r"""Belief held as S equally weighted members: nothing of size D x D is formed, and any h or f will do.

Moments are those of the sample, with 1/(S-1). Noise that is added has its own mean taken out, so that the mean moves
exactly as it should and only the covariance is a sample's. Cost: O(SD) memory and time for each operation.

Thesis: algo:ensemble-kalman-filter (errata E7).
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from filtax import _validation as checks
from filtax.beliefs._particles import Points, noise_like, partners, seal, take_key
from filtax.beliefs._square_root import root_of
from filtax.protocols import with_fields

MEMORY = 50.0  # data that the test for collapse looks back on
FAR = 9.0  # a squared residual counts at most this, so that single outliers are no collapse
WRONG = 4.0  # mean of those, in units of the noise, from which a forecast is wrong


class Ensemble(Points):
    """Members (S, D), and the random key that moves them.

    `innovation_stats` holds two running means, in units of the noise: of the squared residual of each forecast, and of
    the variance that the members gave to it.

    >>> ensemble = Ensemble.of(jnp.array([[0.0], [2.0]]), jax.random.key(0))
    >>> ensemble.mean.tolist(), ensemble.cov.tolist()
    ([1.0], [[2.0]])
    """

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
    def deviations(self) -> Float[Array, "S D"]:
        """Members minus their mean."""
        return _centred(self.members)

    @property
    def collapsed(self) -> Bool[Array, "*C"]:
        """Whether the members agree on forecasts that are wrong: their spread is a tenth of the error or less.

        It takes about 50 data to be seen. More members, `inflation` or a prior that moves (ACI) help.
        """
        miss, width = self.innovation_stats[..., 0], self.innovation_stats[..., 1]
        return (miss > WRONG) & (width < 0.01 * (miss - 1.0))

    def observe(self, miss: Float[Array, ""], width: Float[Array, ""], taken: Bool[Array, ""]) -> "Ensemble":
        """Record one forecast: its squared residual and the variance of the members, averaged over outputs."""
        new, old = jnp.minimum(jnp.stack([miss, width]), FAR), self.innovation_stats
        return with_fields(self, innovation_stats=jnp.where(taken, old + (new - old) / MEMORY, old))

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
        stats = jnp.tensordot(jax.nn.softmax(log_weight), self.innovation_stats, axes=1)
        return Ensemble(self.members.reshape(C * S, D)[chosen], rest, stats)

    @property
    def _cov_rows(self) -> Float[Array, "S D"]:
        return self.deviations / math.sqrt(len(self.members) - 1)

    def _partners(self, key: Key[Array, ""], count: int) -> Float[Array, "S D"]:
        return _centred(self.deviations[partners(key, jnp.zeros_like(self.members[:, 0]), count)])

    def _noise(self, key: Key[Array, ""], root: Array) -> Float[Array, "S D"]:
        return _centred(noise_like(key, self.members, root))


def _centred(values: Array) -> Array:
    return values - jnp.mean(values, axis=0, keepdims=True)
