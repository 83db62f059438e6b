r"""(A.2) Variational responsibilities: each expert learns from the share of the datum that it answers for.

$h_k \propto \pi_k \exp(\mathrm{E}_{q_k}[\log p(y \mid \theta_k)])$ and
$q_k \propto p_k(\theta_k)\,p(y \mid \theta_k)^{h_k}$, each given the other, for a number of rounds; $\pi$ is what the
switching predicts. The responsibilities are the weights.
This is the filtering half of Ghahramani and Hinton: nothing is revised when later data come.

Cost: `rounds` + 2 updates for each expert.
Thesis: tab:related-bone-methods, the CA of switching state-space models (Ghahramani and Hinton 2000).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax import checks
from filtax.log_space import normalised
from filtax.protocols import Weighting

__all__ = ["Responsibilities", "responsibilities"]


class Responsibilities(Weighting):
    """Share each datum among the experts.

    >>> responsibilities().rounds
    5
    """

    rounds: int = eqx.field(static=True, default=5)
    revives = True
    shares = True

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        """Normalise; the shares are found in `responsibilities`."""
        return normalised(log_weight)

    def responsibilities(
        self, log_weight: Float[Array, " C"], log_score: Float[Array, " C"], expected: Callable[[Array], Array]
    ) -> Float[Array, " C"]:
        """Shares (C,) of the datum; `expected(shares)` is the mean log-likelihood after learning from them."""
        scored = log_weight + log_score
        start = jax.nn.softmax(jnp.where(jnp.any(scored > -jnp.inf), scored, log_weight))

        def again(_: Array, share: Array) -> Array:
            new = log_weight + expected(share)
            return jnp.where(jnp.any(new > -jnp.inf), jax.nn.softmax(new), share)

        return jax.lax.fori_loop(0, self.rounds, again, start)


def responsibilities(rounds: Any = 5) -> Responsibilities:
    """Let every expert answer for a share of each datum (Ghahramani and Hinton 2000); for ME.

    Args:
        rounds: How often shares and beliefs are fitted to each other.

    >>> responsibilities(rounds=2).rounds
    2
    """
    checks.whole("responsibilities(rounds=...)", rounds, least=1, most=checks.REPEATS)
    return Responsibilities(rounds)
