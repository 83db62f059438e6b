r"""(A.1) How an inner iteration for the nearest Gaussian is kept from overshooting, without a step size to choose.

The iteration $q_i \to q_{i+1}$ conditions the prior on score and curvature averaged over $q_i$. Two things can go
wrong. The mean overshoots where the curvature grows along the step, as for a count far above its forecast. The spread
oscillates where a wider q meets more curvature, as for a count of zero under a vague prior. Both are told by numbers
that the iteration has at hand, and where nothing goes wrong nothing is changed: a linear-Gaussian model is solved at
once.

Thesis: algo:rvga-update (errata E6).
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from filtax.linalg import matmul, trace
from filtax.module import Module
from filtax.posteriors.averages import Site

__all__ = ["Pace", "begin", "shorten", "widen"]

SLOPES = (-9.0, 0.0)  # of the spread that comes out over the one put in; outside, an estimate is not believed


class Pace(Module):
    r"""Where an inner iteration stands.

    `pull` is $\Sigma^{-1}(\mu_i - \mu)$; `width` the factor on the variance of q for the next average; `asked` the log
    of the output variance averaged over, and `answers` the last such value with the one that it led to.

    >>> begin(jnp.zeros(2), jnp.eye(1)).width.item()
    1.0
    """

    pull: Float[Array, " D"]
    width: Float[Array, ""]
    asked: Float[Array, ""]
    answers: tuple[Float[Array, ""], Float[Array, ""]]


def begin(mean: Float[Array, " D"], spread: Float[Array, "O O"]) -> Pace:
    """Start at the prior, whose mean is pulled nowhere.

    >>> begin(jnp.zeros(2), jnp.eye(1)).asked.item()
    0.0
    """
    size = _log_size(spread)
    return Pace(jnp.zeros_like(mean), jnp.ones((), mean.dtype), size, (size, size))


def shorten(pace: Pace, prior: PyTree, old: PyTree, new: PyTree, site: Site, ahead: Site) -> tuple[PyTree, Pace]:
    r"""Take the step of the mean from `old` to `new`, or a part of it where it overshoots.

    The pull of the new mean follows from the site, $G^\top(r - G(\mu_{new} - \mu))$ with G its rows, so the prior is
    never inverted. Past the optimum the slope of the objective along the step has turned; `ahead`, the site at the new
    mean, says by how much. Up to half the size it had, that is left to the next step. Beyond, with $\beta$ the largest
    change of an output, the share $\log(1+\beta)/\beta$ is taken, which is safe where the log of the curvature changes
    by at most one for a unit of eta (Sun and Tran-Dinh, 2019), as it does for labels and counts.

    >>> from filtax.beliefs import SquareRoot
    >>> prior, far = (SquareRoot.start(jnp.full(1, m), jnp.ones(1)) for m in (0.0, 3.0))
    >>> site = Site(jnp.eye(1), jnp.eye(1), jnp.full(1, 6.0))
    >>> shorten(begin(prior.mean, jnp.eye(1)), prior, prior, far, site, site)[0].mean.item()
    3.0
    """
    move, G = new.mean - old.mean, site.rows
    pull = _times(G.T, site.residual - _times(G, new.mean - prior.mean))
    change = _times(ahead.jacobian, move)
    before = jnp.sum(_times(G, move) * (site.residual - _times(G, old.mean - prior.mean))) - jnp.sum(move * pace.pull)
    after = jnp.sum(_times(ahead.whitener, change) * ahead.residual) - jnp.sum(move * pull)
    beta = jnp.max(jnp.abs(change))
    some = (beta > 0.0) & jnp.isfinite(beta)
    safe = jnp.where(some, beta, 1.0)
    share = jnp.where(some & ~(after >= -0.5 * before), jnp.log1p(safe) / safe, 1.0)
    mean = jnp.where(share == 1.0, new.mean, old.mean + share * move)
    moved = new.at(mean)
    return moved, eqx.tree_at(lambda p: p.pull, pace, (1.0 - share) * pace.pull + share * pull)


def widen(pace: Pace, spread: Float[Array, "O O"]) -> Pace:
    """Choose the variance to average over next, by the secant through the last two: asked for, and come out.

    >>> later = widen(widen(begin(jnp.zeros(1), 4.0 * jnp.eye(1)), jnp.eye(1)), 2.0 * jnp.eye(1))
    >>> round(later.width.item(), 4)  # from 4 came 1, from 1 came 2: about 1.6 would come from itself
    0.7937
    """
    got = _log_size(spread)
    asked, came = pace.answers
    gap = pace.asked - asked
    slope = jnp.where(gap != 0.0, (got - came) / jnp.where(gap != 0.0, gap, 1.0), 0.0)
    following = pace.asked + (got - pace.asked) / (1.0 - jnp.clip(slope, *SLOPES))
    return Pace(pace.pull, jnp.exp(following - got), following, (pace.asked, got))


def _log_size(spread: Array) -> Array:
    """Log of the total variance; of one where there is none, or no finite one."""
    size = trace(spread)
    some = (size > 0.0) & jnp.isfinite(size)
    return jnp.log(jnp.where(some, size, 1.0))


def _times(A: Array, v: Array) -> Array:
    return matmul(A, v[:, None])[:, 0]
