r"""(A.2) Weights by Bayes' rule: of all hypotheses, DA[inf], or of at most K that survive a step, DA[K].

`Exact` keeps every hypothesis, and `bounded` the K most probable ones; DA[1] is the greedy choice.

`fixed_share` spreads a part of the weight over all hypotheses at each step, so that none is ever lost:
$\nu_k \leftarrow (1-s)\,\nu_k + s/K$ (Herbster and Warmuth). An expert that was bad for long comes back after about
$\log(K/s)$ nats of better evidence.

`diverse` is for hypotheses that split in two, whose two futures differ in a single datum: two thirds of the K places go
to the best, and the others to hypotheses that are better than their twin, so that as many histories as possible stay.
The thesis mentions that Li et al. prune in a way of their own, but does not print it; this is our version of it.

`sampled` draws K times in proportion to the weights, systematically (one uniform number for all draws). A hypothesis
drawn n times survives with weight n/K, which is the weight it had on average. Keeping the K best is biased, but varies
less.

Thesis: eq:bone-extra-iii, eq:weighting-marginal-posterior (errata E10); sec:choice-weighting-function, ad-hoc weights
of experts, and low-memory variants (Li 2021; Doucet 2000).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from filtax import _validation as checks
from filtax.linalg import argleast
from filtax.numerics import normalised
from filtax.protocols import Weighting, static


class Exact(Weighting):
    """Bayes' rule over hypotheses; none is dropped.

    >>> jnp.exp(Exact()(jnp.log(jnp.array([1.0, 3.0])))).round(2).tolist()
    [0.25, 0.75]
    """

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        if log_weight.size == 1:
            return jnp.zeros_like(log_weight)
        return normalised(log_weight)


class FixedShare(Weighting):
    """Bayes' rule, after which a share of the weight is spread over all hypotheses."""

    share: Any
    revives = True

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        share = jnp.asarray(self.share, log_weight.dtype)
        kept = normalised(log_weight) + jnp.log1p(-share)
        return jnp.logaddexp(kept, jnp.log(share / log_weight.size))


def fixed_share(share: Any = 0.01) -> FixedShare:
    """Spread a share of the weight over all experts at each step; for ME, whose hypotheses are never replaced.

    Args:
        share: In [0, 1]; 0 is exact weights, 1 equal ones.

    >>> jnp.exp(fixed_share(0.5)(jnp.log(jnp.array([1.0, 3.0])))).round(3).tolist()
    [0.375, 0.625]
    """
    checks.share("fixed_share(share=...)", share, hint="It is spread over all experts at each step.")
    return FixedShare(share)


class Bounded(Weighting):
    """Keep the best K, forget the rest, normalise."""

    keep: int = static()

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        """Normalised log weights of the best K; of two equals the earlier is kept."""
        C = log_weight.size
        if self.keep == 1:
            return jnp.where(jnp.arange(C, dtype=jnp.int32) == argleast(-log_weight), 0.0, -jnp.inf).astype(
                log_weight.dtype
            )
        if self.keep == C - 1:  # one new hypothesis a step: only the worst is dropped, which needs no sort
            log_weight = jnp.where(jnp.arange(C, dtype=jnp.int32) == argleast(log_weight), -jnp.inf, log_weight)
        elif self.keep < C:
            best = jax.lax.top_k(log_weight, self.keep)[1]
            log_weight = jnp.full_like(log_weight, -jnp.inf).at[best].set(log_weight[best])
        return normalised(log_weight)


def bounded(keep: Any) -> Bounded:
    """Keep the `keep` most probable hypotheses at each step.

    >>> jnp.exp(bounded(2)(jnp.log(jnp.array([0.2, 0.5, 0.3])))).round(3).tolist()
    [0.0, 0.625, 0.375]
    """
    checks.whole("DA[K]", keep, least=1, hint="It is the number of hypotheses kept.")
    return Bounded(keep)


class Diverse(Weighting):
    """The best two thirds, then the better of each pair of twins, slot i and slot i + C/2."""

    keep: int = static()
    pairs = True

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        C, K = log_weight.size, self.keep
        twin = jnp.roll(log_weight, C // 2)
        first = jnp.arange(C) < C // 2
        better = (log_weight > twin) | ((log_weight == twin) & first)
        rank = jnp.zeros(C, jnp.int32).at[jnp.argsort(-log_weight, stable=True)].set(jnp.arange(C, dtype=jnp.int32))
        best = rank < K - K // 3
        place = jnp.where(best, 0, jnp.where(better, C, 2 * C)) + rank
        chosen = jax.lax.top_k(-place, min(K, C))[1]
        kept = jnp.full_like(log_weight, -jnp.inf).at[chosen].set(log_weight[chosen])
        return normalised(kept)


def diverse(keep: Any) -> Diverse:
    """Keep `keep` hypotheses, a third of them chosen so that histories differ; for CPL and CPT.

    >>> jnp.exp(diverse(3)(jnp.log(jnp.array([0.4, 0.1, 0.05, 0.3, 0.08, 0.07])))).round(3).tolist()
    [0.5, 0.125, 0.0, 0.375, 0.0, 0.0]
    """
    checks.whole("diverse(keep=...)", keep, least=1, hint="It is the number of hypotheses kept.")
    return Diverse(keep)


class Sampled(Weighting):
    """Draw the hypotheses that survive; needs `init(key=...)`."""

    keep: int = static()
    needs_key = True
    name = "DA[K] by sampling"

    def __call__(self, log_weight: Float[Array, " C"], key: Key[Array, ""]) -> Float[Array, " C"]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Log weights log(n/K) of the hypotheses that were drawn n times."""
        total = jnp.cumsum(jax.nn.softmax(log_weight))
        total = total / total[-1]
        marks = (
            jax.random.uniform(key, (), log_weight.dtype) + jnp.arange(self.keep, dtype=log_weight.dtype)
        ) / self.keep
        drawn = jnp.searchsorted(total, marks, side="right").clip(0, log_weight.size - 1)
        count = jnp.zeros_like(log_weight).at[drawn].add(1.0)
        return jnp.log(count / self.keep)


def sampled(keep: Any) -> Sampled:
    """Draw `keep` times which hypotheses survive a step.

    >>> jnp.exp(sampled(4)(jnp.log(jnp.array([0.25, 0.75, 0.0])), key=jax.random.key(0))).tolist()
    [0.25, 0.75, 0.0]
    """
    checks.whole("sampled(keep=...)", keep, least=1, hint="It is the number of draws, and the most that survive.")
    return Sampled(keep)
