"""Kullback-Leibler divergence between two beliefs."""

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from filtax.beliefs._conjugate import Beta, Counts, Gamma, NormalInverseGamma
from filtax.beliefs._mixture_reduction import Collapsed
from filtax.beliefs._point_estimate import Point
from filtax.linalg import cholesky, solve_lower
from filtax.protocols import Belief


def kl(p: PyTree, q: PyTree) -> Float[Array, ""]:
    r"""Return KL(p ‖ q), in nats, between two beliefs of one family.

    For Gaussians, in any forms,
    $\tfrac12\bigl(\mathrm{tr}(\Sigma_q^{-1}\Sigma_p) + (\mu_p-\mu_q)^\top\Sigma_q^{-1}(\mu_p-\mu_q) - D +
    \log|\Sigma_q|/|\Sigma_p|\bigr)$. Of two beliefs with unknown noise, the joint one of parameters and noise variance:
    that of the Gaussians in its unit, averaged over p, and that of the inverse-gammas.

    Args:
        p: The belief that the average is taken over.
        q: The belief that it is compared with, over the same D parameters.

    Returns:
        A non-negative scalar; infinite or NaN where a covariance is singular.

    >>> from filtax.beliefs import SquareRoot
    >>> p, q = (SquareRoot.start(jnp.full(2, m), jnp.ones(2)) for m in (0.0, 1.0))
    >>> kl(p, q).item()
    1.0
    """
    for belief in (p, q):
        if not isinstance(belief, Belief | Collapsed):
            raise ValueError(f"kl: {type(belief).__name__} is no belief; give method.belief(state).")
    if p.mean.shape != q.mean.shape:
        raise ValueError(
            f"kl: beliefs over {p.mean.size} and {q.mean.size} parameters; both must be about the same ones."
        )
    if type(p) is type(q) and isinstance(p, Beta | Gamma):
        return p.kl(q)
    if isinstance(p, NormalInverseGamma) and isinstance(q, NormalInverseGamma):
        noise, other = (Gamma(belief.shape[None], belief.rate[None]) for belief in (p, q))  # its precision
        return _gaussians(p.unit, q.unit, noise.mean[0]) + noise.kl(other)
    if isinstance(p, Point) or isinstance(q, Point):
        raise ValueError("kl of a Point: it has no spread, so that the divergence is infinite; compare the means.")
    if isinstance(p, Counts | NormalInverseGamma) or isinstance(q, Counts | NormalInverseGamma):
        raise ValueError(
            f"kl({type(p).__name__}, {type(q).__name__}) has no closed form; compare two beliefs of one family."
        )
    return _gaussians(p, q)


def _gaussians(p: PyTree, q: PyTree, precision: Array | float = 1.0) -> Float[Array, ""]:
    """Divergence of Gaussians whose covariances are in units of a noise of this mean precision."""
    Lp, Lq = cholesky(p.cov), cholesky(q.cov)
    ratio = solve_lower(Lq, Lp)
    shift = solve_lower(Lq, p.mean - q.mean)
    log_ratio = 2.0 * jnp.sum(jnp.log(jnp.diag(Lq)) - jnp.log(jnp.diag(Lp)))
    return 0.5 * (jnp.sum(ratio * ratio) + precision * jnp.sum(shift * shift) - p.mean.size + log_ratio)
