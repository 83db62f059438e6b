r"""(A.2) The mixture of the experts: weights with a regret guarantee on the absolute loss.

ML-Poly (Gaillard, Stoltz and van Erven, 2014) on the linearised loss. When y arrives, expert k has the regret
$r_k = \mathrm{sign}(\hat y - y)(\hat y - f_k)$, and
$$R_k \leftarrow d R_k + r_k, \qquad S_k \leftarrow d S_k + r_k^2, \qquad w_k \propto \max(R_k, 0) / S_k.$$
Each horizon has weights of its own. Two mixtures, one with a short and one with an infinite memory, are mixed by a
third. Nothing is added to S, so that the weights do not depend on the unit.

Axes: K experts, H horizons, M = 2 memories, L origins that wait for a target.
"""

from dataclasses import replace

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from filtax.protocols import pytree

MEMORY = 300.0  # rows that the short memory holds, and at least
ORIGINS = 30.0  # so many origins


@pytree
class Regret:
    """Sums of regrets and of their squares; `pending` is what has arrived since the last origin."""

    total: Float[Array, "*M H K"]
    square: Float[Array, "*M H K"]
    pending: Float[Array, "*M H K"]

    @classmethod
    def start(cls, *shape: int) -> "Regret":
        """No regrets."""
        return cls(jnp.zeros(shape), jnp.zeros(shape), jnp.zeros(shape))

    def weights(self, awake: Bool[Array, "H K"]) -> Float[Array, "*M H K"]:
        """Weights of the experts that are awake; equal ones where none has been better than the mixture."""
        awake, safe = awake[None], jnp.where(self.square > 0.0, self.square, 1.0)
        weight = jnp.where(awake & (self.square > 0.0), jnp.maximum(self.total, 0.0) / safe, 0.0)
        total = jnp.sum(weight, axis=-1, keepdims=True)
        listening = awake.astype(weight.dtype)
        equal = listening / jnp.maximum(jnp.sum(listening, axis=-1, keepdims=True), 1.0)
        return jnp.where(total > 0.0, weight / jnp.where(total > 0.0, total, 1.0), equal)

    def settle(self, arrived: Bool[Array, " H"], keep: float | Float[Array, "*M 1 1"]) -> "Regret":
        """Take in what has arrived since the last origin, and forget the share 1 - `keep` of what was before."""
        total = jnp.where(arrived[:, None], keep * self.total + self.pending, self.total)
        square = jnp.where(arrived[:, None], keep * self.square + self.pending * self.pending, self.square)
        return Regret(total, square, jnp.zeros_like(self.pending))

    def add(self, regret: Float[Array, "*M H K"]) -> "Regret":
        """Regrets that arrive between two origins."""
        return replace(self, pending=self.pending + regret)


@pytree
class Aggregate:
    """Two mixtures of the experts, the mixture of the two, and what was issued.

    Attributes:
        experts: Regrets of the experts against each of the two mixtures.
        memories: Regrets of the two mixtures against the last one.
        arrived: (H,) whether a target has arrived since the last origin.
        forecasts: (L, K, H) what the experts said at the last origins; NaN where one was asleep.
        mixtures: (L, 2, H) what the two mixtures said.
        issued: (L, H) what was issued.
    """

    experts: Regret
    memories: Regret
    arrived: Bool[Array, " H"]
    forecasts: Float[Array, "L K H"]
    mixtures: Float[Array, "L 2 H"]
    issued: Float[Array, "L H"]

    @classmethod
    def start(cls, K: int, H: int, waiting: int) -> "Aggregate":
        """Equal weights."""
        parts = (
            jnp.full((waiting, K, H), jnp.nan),
            jnp.full((waiting, 2, H), jnp.nan),
            jnp.full((waiting, H), jnp.nan),
        )
        return cls(Regret.start(2, H, K), Regret.start(1, H, 2), jnp.zeros(H, bool), *parts)

    def settle(self, stride: int) -> "Aggregate":
        """Bring the weights up to date before a forecast is issued."""
        keep = jnp.array([1.0 - 1.0 / max(ORIGINS, MEMORY / stride), 1.0])[:, None, None]
        experts, memories = self.experts.settle(self.arrived, keep), self.memories.settle(self.arrived, 1.0)
        return replace(self, experts=experts, memories=memories, arrived=jnp.zeros_like(self.arrived))

    def mix(self, forecasts: Float[Array, "K H"]) -> tuple[Array, Array, Array]:
        """The two mixtures (2, H), their mixture (H,), and the weights of the experts in it (H, K)."""
        awake = ~jnp.isnan(forecasts).T
        weights = self.experts.weights(awake)
        mixtures = jnp.sum(weights * jnp.where(awake, forecasts.T, 0.0)[None], axis=-1)
        both = self.memories.weights(jnp.broadcast_to(jnp.any(awake, axis=-1, keepdims=True), (awake.shape[0], 2)))[0]
        issued = jnp.where(jnp.any(awake, axis=-1), jnp.sum(both * mixtures.T, axis=-1), jnp.nan)
        return mixtures, issued, jnp.sum(both.T[:, :, None] * weights, axis=0)

    def issue(self, place: Int[Array, ""], forecasts: Array, mixtures: Array, issued: Array, on: Array) -> "Aggregate":
        """Store what was issued, or NaN if nothing was."""
        forecasts, issued = jnp.where(on, forecasts, jnp.nan), jnp.where(on, issued, jnp.nan)
        return replace(
            self,
            forecasts=self.forecasts.at[place].set(forecasts),
            mixtures=self.mixtures.at[place].set(mixtures),
            issued=self.issued.at[place].set(issued),
        )

    def learn(self, places: Int[Array, " H"], z: Float[Array, ""]) -> "Aggregate":
        """Regrets of the forecasts that were issued for a row."""
        head = jnp.arange(places.size)
        forecasts, mixtures = self.forecasts[places, :, head], self.mixtures[places, :, head]
        issued = self.issued[places, head]
        known = ~jnp.isnan(z) & ~jnp.isnan(issued)
        gap = mixtures.T[:, :, None] - forecasts[None]
        regret = jnp.where(mixtures.T[:, :, None] > z, gap, -gap)
        regret = jnp.where(known[None, :, None] & ~jnp.isnan(gap), regret, 0.0)
        gap = issued[:, None] - mixtures
        second = jnp.where(known[:, None], jnp.where(issued[:, None] > z, gap, -gap), 0.0)
        experts, memories = self.experts.add(regret), self.memories.add(second[None])
        return replace(self, experts=experts, memories=memories, arrived=self.arrived | known)
