r"""(A.2) Weights that are learned from the datum: by a gate, as responsibilities, or by a search over memberships.

`gated` experts (Chaer 1997): $\nu_k = \exp(w_k^\top u) / \sum_j \exp(w_j^\top u)$ with $u = (1, y)$, where w climbs the
gain $\log \sum_k \nu_k\,p(y \mid k)$ by its gradient, $(h_k - \nu_k)\,u$ with h the posterior of the experts, in steps
measured in units of $|u|^2$. The forecast of the next datum uses the gate of the last one. The constant in u, which the
thesis does not print, lets the gate prefer an expert whatever y is. Cost: E numbers for each of the 1 + O inputs, and
`steps` passes over them.

`responsibilities` (Ghahramani and Hinton 2000): each expert learns from the share of the datum that it answers for,
$h_k \propto \pi_k \exp(\mathrm{E}_{q_k}[\log p(y \mid \theta_k)])$ and $q_k \propto p_k(\theta_k)\,p(y \mid
\theta_k)^{h_k}$, each given the other, for a number of rounds; $\pi$ is the forecast of the switching, and h are the
weights. This is filtering: later data revise nothing. Cost: `rounds` + 2 updates for each expert.

`retrospective` membership (Nassar 2022): the subset of the past under which the datum is most probable. For CPL,
greedily: from the empty set, the datum that raises $\log p(s) + \log p(y \mid s)$ most is added, until none raises it.
For CPV the gradient of the same function is climbed, in the logits of the shares, from their prior means. The result
has weight 1 (DA[1]). Cost: M rounds of M replays for CPL; `steps` gradients of a replay for CPV.

Thesis: sec:choice-weighting-function, mixture of experts with algorithmic weighting, and CPL with retrospective
membership; tab:related-bone-methods, the CA of switching state-space models.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from filtax import _validation as checks
from filtax.numerics import safe_scale
from filtax.protocols import Weighting, static, with_fields
from filtax.weighting._bayes import Exact

MOST = 1e3  # largest logit of a gate: beyond it a weight is 0 or 1
EDGE = 1e-3  # least distance of the initial shares from 0 and 1, where a logit has no gradient


class Gated(Exact):
    """Weights by a gate whose input is the datum."""

    rate: Any
    steps: int = static(default=1)
    revives = True
    gates = True
    stores_data = True

    def allocate_memory(self, aux: Any, initial: PyTree, x: Any, width: int) -> Any:
        """Auxiliary values with a gate of zeros: one input for each number of y, and a constant."""
        if aux.gate is not None:
            return aux
        gate = jnp.zeros((aux.expert.size, 1 + width), initial.mean.dtype)
        return with_fields(aux, gate=gate)

    def memory_shape(self, aux: Any) -> tuple[None, int]:
        """The width of y that the gate takes."""
        return None, 1 if aux.gate is None else aux.gate.shape[-1] - 1

    def update_gate(
        self, aux: Any, log_weight: Float[Array, " C"], log_score: Float[Array, " C"], y: Array, mask: Bool[Array, " W"]
    ) -> tuple[Any, Float[Array, " C"]]:
        """Climb the gain of this datum, then weigh by the gate; a missing or failed datum changes nothing."""
        u = jnp.concatenate([jnp.ones_like(y[:1]), jnp.where(mask, y, 0.0)])
        scale = safe_scale(u, 1.0)
        inverse = 1.0 / scale  # multiplied by, so that XLA squares neither a large datum nor its scale
        unit = u * inverse
        direction = unit * inverse / jnp.sum(unit * unit)

        def weigh(gate: Array) -> Array:
            return jax.nn.log_softmax(jnp.clip(gate @ unit * scale, -MOST, MOST))

        def climb(_: Array, gate: Array) -> Array:
            now = weigh(gate)
            pull = jax.nn.softmax(now + log_score) - jnp.exp(now)
            return gate + jnp.asarray(self.rate, y.dtype) * pull[:, None] * direction[None]

        sound = jnp.any(mask) & jnp.any(log_score > -jnp.inf)
        gate = jnp.where(sound, jax.lax.fori_loop(0, self.steps, climb, aux.gate), aux.gate)
        return with_fields(aux, gate=gate), jnp.where(sound, weigh(gate), log_weight)


def gated(rate: Any = 0.5, steps: Any = 1) -> Gated:
    """Weigh experts by a gate that is learned online and takes the datum as its input (Chaer 1997); for ME.

    Args:
        rate: Length of a step, above 0; about 1 lets the newest datum decide.
        steps: Steps at each datum.

    >>> gated(0.1, steps=3).steps
    3
    """
    checks.positive("gated(rate=...)", rate, hint="It is the length of a step of the gate.")
    checks.whole("gated(steps=...)", steps, least=1, most=checks.REPEATS)
    return Gated(rate, steps)


class Responsibilities(Exact):
    """Share each datum among the experts."""

    rounds: int = static(default=5)
    revives = True
    shares = True

    def responsibilities(
        self, log_weight: Float[Array, " C"], log_score: Float[Array, " C"], expected: Callable[[Array], Array]
    ) -> Float[Array, " C"]:
        """Shares (C,) of the datum; `expected(shares)` is the expected log-likelihood after learning from them."""
        scored = log_weight + log_score
        start = jax.nn.softmax(jnp.where(jnp.any(scored > -jnp.inf), scored, log_weight))

        def again(_: Array, share: Array) -> Array:
            new = log_weight + expected(share)
            return jnp.where(jnp.any(new > -jnp.inf), jax.nn.softmax(new), share)

        return jax.lax.fori_loop(0, self.rounds, again, start)


def responsibilities(rounds: Any = 5) -> Responsibilities:
    """Let every expert answer for a share of each datum (Ghahramani and Hinton 2000); for ME.

    Args:
        rounds: Number of times that the shares and the beliefs are updated, each given the other.

    >>> responsibilities(rounds=2).rounds
    2
    """
    checks.whole("responsibilities(rounds=...)", rounds, least=1, most=checks.REPEATS)
    return Responsibilities(rounds)


class Retrospective(Weighting):
    """Search for the best membership once the datum is known."""

    step: Any
    steps: int = static()
    searches = True

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        return jnp.zeros_like(log_weight)

    def search(self, auxiliary: Any, aux: Any, score: Callable[[Any], Array]) -> Any:
        """Auxiliary value, of one slot, with the best membership; `score(aux)` is the log score of the datum."""
        known = aux.memory.weight[0]

        def with_member(member: Array) -> Any:
            return with_fields(aux, member=member[None])

        def value(member: Array) -> Array:
            return jnp.sum(score(with_member(member))) + auxiliary.log_prior(member, known)

        binary = auxiliary.name == "CPL"
        return with_member(self._grow(value, known) if binary else self._climb(value, known, auxiliary.belong))

    @staticmethod
    def _grow(value: Callable[[Array], Array], known: Float[Array, " M"]) -> Float[Array, " M"]:
        """Greedy search from the empty set; all data belong if no other set has a finite value."""
        whole, empty = (known > 0.0).astype(known.dtype), jnp.zeros_like(known)

        def safe(member: Array) -> Array:
            return jnp.nan_to_num(value(member), nan=-jnp.inf, neginf=-jnp.inf)

        def grow(_: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
            member, best = now
            tries = jnp.maximum(member[None], jnp.eye(known.size, dtype=known.dtype) * whole[None])
            values = jax.vmap(safe)(tries)
            first = jnp.argmax(values)
            better = values[first] > best
            return jnp.where(better, tries[first], member), jnp.where(better, values[first], best)

        member, best = jax.lax.fori_loop(0, known.size, grow, (empty, safe(empty)))
        return jnp.where(best > -jnp.inf, member, whole)

    def _climb(self, value: Callable[[Array], Array], known: Array, belong: Any) -> Float[Array, " M"]:
        """Ascent in the logits of the shares, by steps whose length falls linearly and does not depend on the slope."""

        def share(logit: Array) -> Array:
            return jnp.where(known > 0.0, jax.nn.sigmoid(logit), 0.0)

        start = jnp.clip(jnp.asarray(belong, known.dtype), EDGE, 1.0 - EDGE)

        def uphill(i: Array, logit: Array) -> Array:
            slope = jax.grad(lambda logit: value(share(logit)))(logit)
            square = jnp.sum(slope * slope)
            sound = jnp.isfinite(square) & (square > 0.0)
            size = jnp.sqrt(jnp.where(sound, square, 1.0))  # a root has no gradient at 0
            length = jnp.asarray(self.step, slope.dtype) * (1.0 - i / self.steps).astype(slope.dtype)
            return logit + jnp.where(sound, length * jnp.where(sound, slope, 0.0) / size, 0.0)

        logit = jnp.full_like(known, 1.0) * (jnp.log(start) - jnp.log1p(-start))
        return share(jax.lax.fori_loop(0, self.steps, uphill, logit))


def retrospective(steps: Any = 20, step: Any = 1.0) -> Retrospective:
    """Search, at each datum, for the past data that belong with it; for CPL[1] and CPV.

    Args:
        steps: Gradient steps, for CPV.
        step: Length of the first of them, in logits.

    >>> retrospective(steps=5).steps
    5
    """
    checks.whole("retrospective(steps=...)", steps, least=1, most=checks.REPEATS)
    checks.positive("retrospective(step=...)", step)
    return Retrospective(step, steps)
