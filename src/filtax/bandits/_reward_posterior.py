r"""The posterior of the mean rewards of the arms at one context, in the form that policies ask.

Four kinds have the same methods: independent arms that are Gaussian in their natural parameter, independent Beta arms,
arms whose Gaussian parameters are shared, and any other belief, which is sampled. Scores are on the scale of the
natural parameter where there is one: the mean reward rises with it, so the best arm is the same.

The propensities of Thompson sampling are the probabilities that each arm has the largest value. For independent arms
$P(a) = \int f_a(z) \prod_{b \ne a} F_b(z)\,dz$ is one integral over a line for any number of arms. Its integrand has
the widths of all arms in it, so the line is cut where any of them bends, with Gauss-Legendre quadrature in each piece.
Two Gaussians, independent or not, have the closed form $\Phi((m_1 - m_2)/\sqrt{v_1 + v_2 - 2 v_{12}})$.

Axes: A arms, C hypotheses, S samples, N nodes.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jax.scipy.special import betainc, log_ndtr, ndtr, ndtri
from jaxtyping import Array, Float, Key, PyTree

from filtax._step import look_ahead
from filtax.beliefs import Beta, Gamma
from filtax.linalg import psd_root
from filtax.models._gaussian import GaussianLikelihood
from filtax.models._generalised_bayes import LossLikelihood
from filtax.protocols import Hypotheses, Module

HALVINGS = 50  # of a bisection for a quantile
BENDS = (-8.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 8.0)  # where a Gaussian is cut, in its standard deviations
NODES = 8  # of each piece
LEGENDRE = np.polynomial.legendre.leggauss(NODES)  # nodes and weights on [-1, 1]
TAIL = (2.0, 6.0, 12.0, 20.0)  # where the tails of a Beta's log odds are cut, in their own lengths
KINK = (-12.0, -6.0, -3.0, 0.0, 3.0, 6.0, 12.0)  # where those of small counts bend from one tail to the other
SHOWN = 4  # the most probable hypotheses of an arm, by which the pieces are placed
FAINT = 1e-7  # a number known better than this share of the whole range is taken to be this uncertain


class RewardPosterior(Module):
    """What a policy asks of the mean rewards of A arms; scores rise with them.

    `noise` draws what `draw` needs for many rounds at once, and `draw` gives one score for each arm. The propensities
    are `exact`, or estimated from `count` draws.
    """

    expected: Float[Array, " A"]

    def noise(self, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """Split the key."""
        return jax.random.split(key, lead) if lead else key


class IndependentGaussians(RewardPosterior):
    """Independent arms, each a mixture of C Gaussians over its natural parameter."""

    mean: Float[Array, "A C"]
    var: Float[Array, "A C"]
    log_weight: Float[Array, "A C"]
    exact = True

    def noise(self, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """Draw normals, and Gumbels if hypotheses must be chosen."""
        of_value, of_part = jax.random.split(key)
        normal = jax.random.normal(of_value, (*lead, self.mean.shape[-2]), self.mean.dtype)
        if self.mean.shape[-1] == 1:
            return (normal,)
        return normal, jax.random.gumbel(of_part, (*lead, *self.mean.shape[-2:]), self.mean.dtype)

    def draw(self, noise: PyTree) -> Float[Array, " A"]:
        """Draw one natural parameter for each arm."""
        mean, var = self.mean, self.var
        if len(noise) == 2:
            chosen = jnp.argmax(self.log_weight + noise[1], axis=1)[:, None]
            mean, var = (jnp.take_along_axis(values, chosen, axis=1) for values in (mean, var))
        return mean[:, 0] + jnp.sqrt(var[:, 0]) * noise[0]

    def upper_bound(self, c: Array | float, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Compute the mean plus c standard deviations."""
        return _upper_bound(c, self.mean, self.var, self.log_weight)

    def upper_quantile(self, tail: Array, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Compute the score that each arm exceeds with probability `tail`; exact."""
        sd = jnp.sqrt(self.var)
        each = self.mean - sd * ndtri(tail)
        if self.mean.shape[1] == 1:
            return each[:, 0]
        weight = jnp.exp(self.log_weight)
        used = weight > 0.0
        low, high = jnp.min(jnp.where(used, each, jnp.inf), axis=1), jnp.max(jnp.where(used, each, -jnp.inf), axis=1)

        def beyond(at: Array) -> Array:
            return jnp.sum(weight * ndtr((self.mean - at[:, None]) / sd), axis=1)

        return _bisect(beyond, tail, low, high)

    def probabilities(self, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Compute the probability that each arm has the largest draw."""
        return largest_of_normals(self.mean, self.var, self.log_weight)


class IndependentBetas(RewardPosterior):
    """Independent arms, each a mixture of C Betas over its probability of a reward."""

    ones: Float[Array, "A C"]
    zeros: Float[Array, "A C"]
    log_weight: Float[Array, "A C"]
    exact = True

    def draw(self, noise: PyTree) -> Float[Array, " A"]:
        """Draw the log odds of one probability for each arm, because those of small counts would round to 0 and 1."""
        of_part, of_ones, of_zeros = jax.random.split(noise, 3)
        chosen = jax.random.categorical(of_part, self.log_weight)[:, None]
        ones, zeros = (jnp.take_along_axis(values, chosen, axis=1)[:, 0] for values in (self.ones, self.zeros))
        gamma = jax.random.loggamma
        return gamma(of_ones, ones, dtype=ones.dtype) - gamma(of_zeros, zeros, dtype=zeros.dtype)

    def upper_bound(self, c: Array | float, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Compute the mean plus c standard deviations of the probability."""
        total = self.ones + self.zeros
        each = self.ones / total
        return _upper_bound(c, each, each * (1.0 - each) / (total + 1.0), self.log_weight)

    def upper_quantile(self, tail: Array, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Compute the log odds that each arm exceeds with probability `tail`, by bisection."""
        weight, most = jnp.exp(self.log_weight), -float(np.log(jnp.finfo(self.ones.dtype).tiny))

        def beyond(at: Array) -> Array:
            low, p = at[:, None] < 0.0, jax.nn.sigmoid(-jnp.abs(at))[:, None]  # the smaller of p and 1 - p
            ones, zeros = jnp.where(low, self.ones, self.zeros), jnp.where(low, self.zeros, self.ones)
            part = betainc(ones, zeros, jnp.broadcast_to(p, ones.shape))
            return jnp.sum(weight * jnp.where(low, 1.0 - part, part), axis=1)

        return _bisect(beyond, tail, jnp.full_like(self.ones[:, 0], -most), jnp.full_like(self.ones[:, 0], most))

    def probabilities(self, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Compute the probability that each arm has the largest draw."""
        return largest_of_betas(self.ones, self.zeros, self.log_weight)


class JointGaussian(RewardPosterior):
    """Arms that share parameters: under each of C hypotheses, natural parameters that are Gaussian together."""

    mean: Float[Array, "C A"]
    cov: Float[Array, "C A A"]
    log_weight: Float[Array, " C"]

    @property
    def exact(self) -> bool:
        """Whether `probabilities` is exact: for two arms and one hypothesis it is."""
        return self.mean.shape == (1, 2)

    def noise(self, key: Key[Array, ""], lead: tuple[int, ...] = ()) -> PyTree:
        """Draw normals, and Gumbels to choose a hypothesis."""
        of_value, of_part = jax.random.split(key)
        normal = jax.random.normal(of_value, (*lead, self.mean.shape[-1]), self.mean.dtype)
        return normal, jax.random.gumbel(of_part, (*lead, self.log_weight.shape[-1]), self.mean.dtype)

    def draw(self, noise: PyTree) -> Float[Array, " A"]:
        """Draw the natural parameters of all arms together."""
        chosen = jnp.argmax(self.log_weight + noise[1])
        return self.mean[chosen] + psd_root(self.cov[chosen]) @ noise[0]

    def upper_bound(self, c: Array | float, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Compute the mean plus c standard deviations."""
        return self._marginals.upper_bound(c, key, count)

    def upper_quantile(self, tail: Array, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Compute the score that each arm exceeds with probability `tail`; exact."""
        return self._marginals.upper_quantile(tail, key, count)

    def probabilities(self, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Compute the probability that each arm has the largest draw."""
        if self.exact:
            return larger_of_two(self.mean[0], self.cov[0])
        of_value, of_part = jax.random.split(key)
        parts = jax.random.categorical(of_part, self.log_weight, shape=(count,))
        roots = jax.vmap(psd_root)(self.cov)
        normal = jax.random.normal(of_value, (count, self.mean.shape[1]), self.mean.dtype)
        return _share_of_wins(self.mean[parts] + jnp.einsum("sij,sj->si", roots[parts], normal))

    @property
    def _marginals(self) -> IndependentGaussians:
        var = jnp.diagonal(self.cov, axis1=1, axis2=2).T
        return IndependentGaussians(self.expected, self.mean.T, var, jnp.broadcast_to(self.log_weight[None], var.shape))


class Sampled(RewardPosterior):
    """Any other belief: `sampler(key)` draws the mean rewards of all arms together."""

    sampler: Any
    exact = False

    def draw(self, noise: PyTree) -> Float[Array, " A"]:
        """Draw one mean reward for each arm."""
        return self.sampler(noise)

    def upper_bound(self, c: Array | float, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Compute the mean plus c standard deviations of `count` draws."""
        values = self._many(key, count)
        return jnp.mean(values, axis=0) + c * jnp.std(values, axis=0)

    def upper_quantile(self, tail: Array, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Compute the score that a share `tail` of `count` draws exceeds; for a tail below 1 / count the largest."""
        return jnp.quantile(self._many(key, count), 1.0 - tail, axis=0)

    def probabilities(self, key: Key[Array, ""], count: int) -> Float[Array, " A"]:
        """Compute the share of `count` draws in which each arm has the largest one."""
        return _share_of_wins(self._many(key, count))

    def _many(self, key: Key[Array, ""], count: int) -> Float[Array, "S A"]:
        return jax.vmap(self.draw)(jax.random.split(key, count))


def _upper_bound(
    c: Array | float, mean: Float[Array, "A C"], var: Float[Array, "A C"], log_weight: Float[Array, "A C"]
) -> Float[Array, " A"]:
    """The mean plus c standard deviations of each mixture."""
    weight = jnp.exp(log_weight)
    middle = jnp.sum(weight * mean, axis=1)
    return middle + c * jnp.sqrt(jnp.sum(weight * (var + (mean - middle[:, None]) ** 2), axis=1))


def argmax_at_random(scores: Float[Array, " A"], u: Float[Array, ""]) -> Array:
    """Find the index of the largest score; among equal ones, u in [0, 1) decides."""
    best = scores == jnp.max(scores)
    rank = jnp.cumsum(best)
    wanted = 1 + jnp.floor(u * rank[-1].astype(u.dtype)).astype(rank.dtype)
    return jnp.argmax(best & (rank == jnp.minimum(wanted, rank[-1]))).astype(jnp.int32)


def _share_of_wins(values: Float[Array, "S A"]) -> Float[Array, " A"]:
    """Share of the rows in which each arm is the best; a tie counts for all of its arms in equal parts.

    A compiler may compute the values twice, rounded differently: a row may then have no best, and does not count.
    """
    best = (values == jnp.max(values, axis=1, keepdims=True)).astype(values.dtype)
    share = jnp.sum(best / jnp.maximum(jnp.sum(best, axis=1, keepdims=True), 1.0), axis=0)
    return share / jnp.maximum(jnp.sum(share), jnp.finfo(values.dtype).tiny)


def _bisect(beyond: Callable[[Array], Array], tail: Array, low: Array, high: Array) -> Array:
    """The point that is exceeded with probability `tail`; `beyond` falls from `low` to `high`."""

    def halve(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = 0.5 * (low + high)
        short = beyond(middle) > tail
        return jnp.where(short, middle, low), jnp.where(short, high, middle)

    return jax.lax.fori_loop(0, HALVINGS, halve, (low, high))[1]


def larger_of_two(mean: Float[Array, " 2"], cov: Float[Array, "2 2"]) -> Float[Array, " 2"]:
    """Compute the probabilities that each of two Gaussians is the larger; a half each if they are equal."""
    gap, var = mean[0] - mean[1], jnp.maximum(cov[0, 0] + cov[1, 1] - 2.0 * cov[0, 1], 0.0)
    known = var <= 0.0
    z = jnp.where(known, jnp.inf * jnp.sign(gap), gap / jnp.sqrt(jnp.where(known, 1.0, var)))
    z = jnp.where(known & (gap == 0.0), 0.0, z)
    return jnp.stack([ndtr(z), ndtr(-z)])


@jax.jit
def largest_of_normals(
    mean: Float[Array, "A C"], var: Float[Array, "A C"], log_weight: Float[Array, "A C"]
) -> Float[Array, " A"]:
    """Compute the probability that each of A independent mixtures of C Gaussians is the largest."""
    if mean.shape == (2, 1):
        return larger_of_two(mean[:, 0], jnp.diag(var[:, 0]))
    alive = jnp.isfinite(log_weight)
    middle = jnp.sum(jnp.where(alive, jnp.exp(log_weight), 0.0) * mean, axis=1, keepdims=True)
    mean, var = jnp.where(alive, mean, middle), jnp.where(alive, var, jnp.max(var))
    sd = jnp.sqrt(var)
    reach = jnp.max(mean + 8.0 * sd) - jnp.min(mean - 8.0 * sd)
    sd = jnp.maximum(sd, FAINT * jnp.where(reach > 0.0, reach, 1.0))
    shown = jax.lax.top_k(log_weight, min(SHOWN, mean.shape[1]))[1]
    shown_mean, shown_sd = (jnp.take_along_axis(values, shown, axis=1)[:, :, None] for values in (mean, sd))
    bends = shown_mean + shown_sd * jnp.asarray(BENDS, mean.dtype)[None, None, :]
    ends = jnp.stack([jnp.min(mean - 8.0 * sd), jnp.max(mean + 8.0 * sd)])
    at, weight = _pieces(jnp.concatenate([bends.reshape(-1), ends]))
    z = (at[None, None, :] - mean[:, :, None]) / sd[:, :, None]
    log_pdf = -0.5 * z * z - jnp.log(sd * float(np.sqrt(2.0 * np.pi)))[:, :, None]
    log_pdf, log_cdf = (logsumexp(log_weight[:, :, None] + part, axis=1) for part in (log_pdf, log_ndtr(z)))
    return _first_among(log_pdf, log_cdf, weight)


@jax.jit
def largest_of_betas(
    ones: Float[Array, "A C"], zeros: Float[Array, "A C"], log_weight: Float[Array, "A C"]
) -> Float[Array, " A"]:
    r"""Compute the probability that each of A independent mixtures of C Betas is the largest.

    The integral is over the log odds. There the density $\propto \sigma(z)^a \sigma(-z)^b$ has no poles, whatever the
    counts. For large counts it is a Gaussian of variance 1/a + 1/b; for small ones it falls as $e^{az}$ to the left and
    $e^{-bz}$ to the right.
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
    mass = jnp.sum(pdf * weight[None, None], axis=2, keepdims=True)  # numerically: no constant is rounded
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
    """Integrate each density times the distribution functions of the others; the results are scaled to sum to 1."""
    others = jnp.sum(log_cdf, axis=0, keepdims=True) - log_cdf
    share = jnp.sum(jnp.exp(log_pdf + others) * weight[None, :], axis=1)
    return share / jnp.sum(share)


def _pieces(bends: Float[Array, " B"]) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
    """Points and weights of a Gauss-Legendre rule between each two neighbours."""
    bends = jnp.sort(bends)
    nodes, weights = (jnp.asarray(part, bends.dtype) for part in LEGENDRE)
    half, middle = 0.5 * (bends[1:] - bends[:-1]), 0.5 * (bends[1:] + bends[:-1])
    at = middle[:, None] + half[:, None] * nodes[None, :]
    return at.reshape(-1), (half[:, None] * weights[None, :]).reshape(-1)


def _running_integral(values: Float[Array, "A N"], weight: Float[Array, " N"]) -> Float[Array, "A N"]:
    """Integral from the first bend up to each point: whole pieces before it, and its own piece by interpolation."""
    parts = (values * weight[None, :]).reshape(len(values), -1, NODES)
    whole = jnp.sum(parts, axis=2)
    inside = parts @ jnp.asarray(_partial(), values.dtype).T
    return ((jnp.cumsum(whole, axis=1) - whole)[:, :, None] + inside).reshape(values.shape)


@lru_cache
def _partial() -> np.ndarray:
    """Row i times the weighted values of a piece is the integral of their interpolant up to node i."""
    nodes, weights = LEGENDRE
    integrals = np.stack(
        [np.polynomial.legendre.legval(nodes, np.polynomial.legendre.legint(e, lbnd=-1)) for e in np.eye(NODES)]
    )
    to_series = np.linalg.inv(np.polynomial.legendre.legvander(nodes, NODES - 1))  # values to Legendre coefficients
    return (integrals.T @ to_series) / weights[None, :]


def _draw_parameter(method: Any, hypotheses: Hypotheses, initial: PyTree, x: Array | None, key: Array) -> Array:
    """Mean rewards under one draw of the hypothesis and of theta."""
    of_part, of_value = jax.random.split(key)
    chosen = jax.random.categorical(of_part, hypotheses.log_weight)
    belief, aux = jax.tree.map(lambda leaf: leaf[chosen], (hypotheses.belief, hypotheses.aux))
    theta = belief.sample(of_value)
    if isinstance(belief, Beta | Gamma):
        return theta
    eta = method.model.value(theta, x, aux).eta
    plain = method.model.likelihood.plain
    direct = isinstance(plain, GaussianLikelihood | LossLikelihood)  # the mean reward is the prediction itself
    return eta if direct else plain.given(eta, x, False).mean


def _draw_reward(method: Any, hypotheses: Hypotheses, initial: PyTree, x: Array | None, key: Array) -> Array:
    """One draw of the rewards, noise included."""
    return look_ahead(method, hypotheses, initial, x, None, False).sample(key)


def sample(
    shared: bool, noisy: bool, method: Any, hypotheses: Hypotheses, initial: PyTree, x: Array | None, key: Array
) -> Array:
    """Draw the mean rewards of all arms together, or if `noisy` the rewards; each arm has hypotheses or they share."""
    draw = partial(_draw_reward if noisy else _draw_parameter, method)
    if shared:
        return draw(hypotheses, initial, x, key).reshape(-1)
    keys = jax.random.split(key, hypotheses.log_weight.shape[0])
    return jax.vmap(draw, in_axes=(0, 0, None, 0))(hypotheses, initial, x, keys).reshape(-1)
