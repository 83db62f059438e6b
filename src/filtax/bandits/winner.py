r"""The probability that each of several uncertain numbers is the largest: the propensities of Thompson sampling.

Independent numbers: $P(a) = \int f_a(z) \prod_{b \ne a} F_b(z)\,dz$, one integral over a line for any number of arms.
Its integrand has the widths of all arms in it, so it is cut where any of them bends and Gauss-Legendre is used in
each piece. Two Gaussians, independent or not, have the closed form $\Phi((m_1 - m_2)/\sqrt{v_1 + v_2 - 2 v_{12}})$.
"""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jax.scipy.special import log_ndtr, ndtr
from jaxtyping import Array, Float

__all__ = ["larger_of_two", "largest_of_betas", "largest_of_normals"]

BENDS = (-8.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 8.0)  # where a Gaussian is cut, in its standard deviations
NODES = 8  # of each piece
TAIL = (2.0, 6.0, 12.0, 20.0)  # where the tails of a Beta's log odds are cut, in their own lengths
KINK = (-12.0, -6.0, -3.0, 0.0, 3.0, 6.0, 12.0)  # where those of small counts bend from one tail to the other
SHOWN = 4  # hypotheses of an arm that the pieces are laid by: its most probable ones
FAINT = 1e-7  # a number known better than this share of the whole range is taken to be this uncertain


def larger_of_two(mean: Float[Array, " 2"], cov: Float[Array, "2 2"]) -> Float[Array, " 2"]:
    """Probabilities that the first and the second of two Gaussians is the larger; a half each if they are one.

    >>> larger_of_two(jnp.array([1.0, 0.0]), jnp.eye(2) * 0.5).round(4).tolist()
    [0.8413, 0.1587]
    """
    gap, var = mean[0] - mean[1], jnp.maximum(cov[0, 0] + cov[1, 1] - 2.0 * cov[0, 1], 0.0)
    known = var <= 0.0
    z = jnp.where(known, jnp.inf * jnp.sign(gap), gap / jnp.sqrt(jnp.where(known, 1.0, var)))
    z = jnp.where(known & (gap == 0.0), 0.0, z)
    return jnp.stack([ndtr(z), ndtr(-z)])


@jax.jit
def largest_of_normals(
    mean: Float[Array, "A C"], var: Float[Array, "A C"], log_weight: Float[Array, "A C"]
) -> Float[Array, " A"]:
    """Probability that each of A independent mixtures of C Gaussians is the largest.

    >>> same = jnp.zeros((4, 1))
    >>> largest_of_normals(same, same + 1.0, same).round(6).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if mean.shape == (2, 1):
        return larger_of_two(mean[:, 0], jnp.diag(var[:, 0]))
    alive = jnp.isfinite(log_weight)
    middle = jnp.sum(jnp.where(alive, jnp.exp(log_weight), 0.0) * mean, axis=1, keepdims=True)
    mean, var = jnp.where(alive, mean, middle), jnp.where(alive, var, jnp.max(var))
    sd = jnp.sqrt(var)
    reach = jnp.max(mean + 8.0 * sd) - jnp.min(mean - 8.0 * sd)
    sd = jnp.maximum(sd, FAINT * jnp.where(reach > 0.0, reach, 1.0))
    shown = jax.lax.top_k(log_weight, min(SHOWN, mean.shape[1]))[1]
    pick = lambda values: jnp.take_along_axis(values, shown, axis=1)[:, :, None]  # noqa: E731
    bends = pick(mean) + pick(sd) * jnp.asarray(BENDS, mean.dtype)[None, None, :]
    ends = jnp.stack([jnp.min(mean - 8.0 * sd), jnp.max(mean + 8.0 * sd)])
    at, weight = _pieces(jnp.concatenate([bends.reshape(-1), ends]))
    z = (at[None, None, :] - mean[:, :, None]) / sd[:, :, None]
    log_pdf = -0.5 * z * z - jnp.log(sd * float(np.sqrt(2.0 * np.pi)))[:, :, None]
    average = lambda part: logsumexp(log_weight[:, :, None] + part, axis=1)  # noqa: E731
    return _first_among(average(log_pdf), average(log_ndtr(z)), weight)


@jax.jit
def largest_of_betas(
    ones: Float[Array, "A C"], zeros: Float[Array, "A C"], log_weight: Float[Array, "A C"]
) -> Float[Array, " A"]:
    r"""Probability that each of A independent mixtures of C Betas is the largest; integrated over the log odds.

    There the density $\propto \sigma(z)^a \sigma(-z)^b$ has no poles, whatever the counts: it is a Gaussian of variance
    1/a + 1/b for large ones, and falls as $e^{az}$ to the left and $e^{-bz}$ to the right for small ones.

    >>> ones, zeros = jnp.array([[2.0], [1.0]]), jnp.ones((2, 1))
    >>> largest_of_betas(ones, zeros, jnp.zeros((2, 1))).round(4).tolist()  # 2/3: of three uniforms, one of two
    [0.6667, 0.3333]
    """
    mode, sd = jnp.log(ones) - jnp.log(zeros), jnp.sqrt(1.0 / ones + 1.0 / zeros)
    core, tail = (jnp.asarray(part, mode.dtype) for part in (BENDS, TAIL))
    far = BENDS[-1] * sd
    bends = [mode[..., None] + sd[..., None] * core[None, None]]
    bends += [(mode - far)[..., None] - tail[None, None] / ones[..., None]]
    bends += [(mode + far)[..., None] + tail[None, None] / zeros[..., None]]
    shown = jax.lax.top_k(log_weight, min(SHOWN, mode.shape[1]))[1]
    laid = jnp.take_along_axis(jnp.concatenate(bends, axis=2), shown[:, :, None], axis=1)
    at, weight = _pieces(jnp.concatenate([laid.reshape(-1), jnp.asarray(KINK, mode.dtype)]))
    pdf = _beta_of_log_odds(at[None, None] - mode[..., None], ones[..., None], zeros[..., None])
    mass = jnp.sum(pdf * weight[None, None], axis=2, keepdims=True)  # its own integral, so that no constant is rounded
    pdf = jnp.sum(jnp.exp(log_weight)[..., None] * pdf / jnp.where(mass > 0.0, mass, 1.0), axis=1)
    least = jnp.finfo(pdf.dtype).tiny
    cdf = jnp.clip(_running_integral(pdf, weight), least, 1.0)
    return _first_among(jnp.log(jnp.maximum(pdf, least)), jnp.log(cdf), weight)


def _beta_of_log_odds(d: Array, a: Array, b: Array) -> Array:
    """Density of the log odds at d above its mode, where it is 1: (p + q e^-d)^-a (q + p e^d)^-b, p = a / (a + b)."""
    p, q = a / (a + b), b / (a + b)
    near = jnp.clip(d, -1.0, 1.0)
    small = a * jnp.log1p(q * jnp.expm1(-near)) + b * jnp.log1p(p * jnp.expm1(near))
    large = a * jnp.logaddexp(jnp.log(p), jnp.log(q) - d) + b * jnp.logaddexp(jnp.log(q), jnp.log(p) + d)
    return jnp.exp(-jnp.where(jnp.abs(d) < 1.0, small, large))


def _first_among(log_pdf: Float[Array, "A N"], log_cdf: Float[Array, "A N"], weight: Float[Array, " N"]) -> Array:
    """Integrate each density times the distribution functions of the others; what rounding lost is shared out."""
    others = jnp.sum(log_cdf, axis=0, keepdims=True) - log_cdf
    share = jnp.sum(jnp.exp(log_pdf + others) * weight[None, :], axis=1)
    return share / jnp.sum(share)


def _pieces(bends: Float[Array, " B"]) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
    """Points and weights of a Gauss-Legendre rule between each two neighbours."""
    bends = jnp.sort(bends)
    nodes, weights = (jnp.asarray(part, bends.dtype) for part in _legendre())
    half, middle = 0.5 * (bends[1:] - bends[:-1]), 0.5 * (bends[1:] + bends[:-1])
    at = middle[:, None] + half[:, None] * nodes[None, :]
    return at.reshape(-1), (half[:, None] * weights[None, :]).reshape(-1)


def _running_integral(values: Float[Array, "A N"], weight: Float[Array, " N"]) -> Float[Array, "A N"]:
    """Integral from the first bend up to each point: whole pieces before it, and its own piece by interpolation."""
    parts = (values * weight[None, :]).reshape(len(values), -1, NODES)
    whole = jnp.sum(parts, axis=2)
    inside = parts @ jnp.asarray(_partial(), values.dtype).T
    return (jnp.cumsum(whole, axis=1) - whole)[:, :, None].repeat(NODES, axis=2).reshape(values.shape) + inside.reshape(
        values.shape
    )


@lru_cache
def _partial() -> np.ndarray:
    """Row i times the weighted values of a piece is the integral of their interpolant up to node i."""
    nodes, weights = _legendre()
    integrals = np.stack(
        [np.polynomial.legendre.legval(nodes, np.polynomial.legendre.legint(e, lbnd=-1)) for e in np.eye(NODES)]
    )
    to_series = np.linalg.inv(np.polynomial.legendre.legvander(nodes, NODES - 1))  # values to Legendre coefficients
    return (integrals.T @ to_series) / weights[None, :]


@lru_cache
def _legendre() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(NODES)
