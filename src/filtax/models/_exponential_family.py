r"""(M.1) Labels and counts by their natural parameter: Bernoulli, categorical, Poisson.

With $J = \partial\eta/\partial\theta$ and $AA^\top = \mathrm{Var}(y)$ the whitener is $B = A^\top$; the residual solves
$Ar = y - E[y]$: information $J^\top \mathrm{Var}(y) J$ and score $J^\top(y - E[y])$, one Newton step on the log
posterior. No variance is inverted, so a saturated or singular one needs no epsilon.

Thesis: sec:exponential-family-ekf (errata E8).
"""

import math

import jax.numpy as jnp
from jax.nn import log_sigmoid, log_softmax, logsumexp
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Bool

from filtax.distributions import Bernoulli, Categorical, Poisson
from filtax.distributions._numerics import cap, normal_points, normal_rule
from filtax.linalg import psd_root
from filtax.models._model import Likelihood, Whitened
from filtax.numerics import safe_sqrt

NODES = 24  # Gauss-Hermite nodes for one natural parameter: exact to 1e-7 up to a spread of 1.5
WIDE = 1.5  # spread from which the sigmoid is too steep for the distance between the nodes
PAIRS = 64  # mirrored points for several natural parameters


class BernoulliLikelihood(Likelihood):
    """y in {0, 1} with log odds eta, one by one for each output."""

    def admits(self, y: Array, outputs: int) -> Bool[Array, " W"]:
        """Zero or one."""
        return (y == 0.0) | (y == 1.0)

    def whiten(self, eta: Array, x: Array | None, y: Array, mask: Array | None) -> Whitened:
        """B = sqrt(p (1 - p)) and B r = y - p, for log odds of any size."""
        eta = _within(eta)
        half = 0.5 * (log_sigmoid(eta) + log_sigmoid(-eta))
        B, r = jnp.exp(half), jnp.where(y > 0.5, jnp.exp(-0.5 * eta), -jnp.exp(0.5 * eta))
        return _masked(B, r, mask)

    def predictive(self, eta: Array, spread: Array, x: Array | None, scalar: bool) -> Bernoulli:
        """Average the probability over N(eta, spread), one output at a time."""
        sd = safe_sqrt(jnp.diagonal(spread))
        return Bernoulli(_log_sigmoid_normal(eta, sd), _log_sigmoid_normal(-eta, sd), scalar)

    def log_flat(self, count: Array, outputs: int) -> Array:
        """Log probability of `count` labels, all classes being equally probable."""
        return -count * math.log(2.0)

    def given(self, eta: Array, x: Array | None, scalar: bool) -> Bernoulli:
        """Probability sigmoid(eta) of a one."""
        eta = _within(eta)
        return Bernoulli(log_sigmoid(eta), log_sigmoid(-eta), scalar)


class CategoricalLikelihood(Likelihood):
    """y is the index of one of O classes with logits eta."""

    def width(self, outputs: int) -> int:
        """One label; a single output is refused, since it leaves nothing to tell apart."""
        if outputs < 2:
            raise ValueError(
                f"categorical() needs an output for each class, but the model has {outputs}; give one for each of two "
                "or more classes, or use bernoulli() for yes and no."
            )
        return 1

    def admits(self, y: Array, outputs: int) -> Bool[Array, " W"]:
        """A whole number from 0 to O - 1."""
        return (y >= 0) & (y < outputs) & (y == jnp.round(y))

    def whiten(self, eta: Array, x: Array | None, y: Array, mask: Array | None) -> Whitened:
        """A = diag(√p) - p √pᵀ, B = Aᵀ and r = (y - p) / √p, so that A r = y - p."""
        log_p = jnp.maximum(log_softmax(eta), -cap(eta.dtype))
        root = jnp.exp(0.5 * log_p)
        p = root * root
        observed = jnp.arange(eta.size, dtype=y.dtype) == y[0]
        B = jnp.diag(root) - root[:, None] * p[None, :]
        r = jnp.where(observed, (1.0 - p) / root, -root)
        return Whitened(B, r) if mask is None else Whitened(jnp.where(mask[0], B, 0.0), jnp.where(mask[0], r, 0.0))

    def predictive(self, eta: Array, spread: Array, x: Array | None, scalar: bool) -> Categorical:
        """Average the class probabilities, not the logits, over N(eta, spread)."""
        points = jnp.asarray(normal_points(eta.size, PAIRS), eta.dtype)
        logits = eta[None, :] + points @ psd_root(spread).T
        log_p = logsumexp(log_softmax(logits, axis=1), axis=0)
        return Categorical(log_p - logsumexp(log_p))

    def residual(self, y: Array, mean: Array) -> Array:
        """Indicator of the class minus its forecast probability, (O,)."""
        observed = (jnp.arange(mean.size, dtype=y.dtype) == y[0]).astype(mean.dtype)
        return jnp.where(jnp.isnan(y[0]), jnp.nan, observed - mean)

    def log_flat(self, count: Array, outputs: int) -> Array:
        """Log probability of `count` labels, all classes being equally probable."""
        return -count * math.log(outputs)

    def given(self, eta: Array, x: Array | None, scalar: bool) -> Categorical:
        """Probabilities softmax(eta)."""
        return Categorical(jnp.maximum(log_softmax(eta), -cap(eta.dtype)))


class PoissonLikelihood(Likelihood):
    """y counts events with log rate eta, one by one for each output."""

    def admits(self, y: Array, outputs: int) -> Bool[Array, " W"]:
        """Whole numbers from 0."""
        return (y >= 0.0) & jnp.isfinite(y) & (y == jnp.round(y))

    def whiten(self, eta: Array, x: Array | None, y: Array, mask: Array | None) -> Whitened:
        """B = sqrt(rate) and B r = y - rate."""
        root = jnp.exp(0.5 * _within(eta))
        return _masked(root, y / root - root, mask)

    def predictive(self, eta: Array, spread: Array, x: Array | None, scalar: bool) -> Poisson:
        """Average the Poisson over N(eta, spread), one output at a time."""
        return Poisson(_below(eta), safe_sqrt(jnp.diagonal(spread)), scalar)

    def given(self, eta: Array, x: Array | None, scalar: bool) -> Poisson:
        """Counts of rate exp(eta)."""
        return Poisson(_below(eta), None, scalar)


def bernoulli() -> BernoulliLikelihood:
    """Yes-or-no outcomes; eta is the log odds, so that `linear(likelihood=bernoulli())` is logistic regression.

    >>> bernoulli().predictive(jnp.zeros(1), jnp.eye(1), None, scalar=True).mean.item()
    0.5
    """
    return BernoulliLikelihood()


def categorical() -> CategoricalLikelihood:
    """Class labels 0 to O - 1; eta holds one logit for each class.

    `linear(likelihood=categorical())` is softmax regression with an M x O matrix of parameters.

    >>> round(categorical().predictive(jnp.zeros(4), jnp.eye(4), None, scalar=False).mean.sum().item(), 5)
    1.0
    """
    return CategoricalLikelihood()


def poisson() -> PoissonLikelihood:
    """Counts; eta is the log rate, so that `linear(likelihood=poisson())` is Poisson regression.

    The filter takes one Newton step for each count, which overshoots if the first forecasts are far too low: start near
    the log of a typical count (`init(mean=...)`), start with a small `cov`, or use `RVGA`, which does not overshoot.

    >>> round(poisson().predictive(jnp.zeros(1), jnp.zeros((1, 1)), None, scalar=True).mean.item(), 5)
    1.0
    """
    return PoissonLikelihood()


def _masked(B: Array, r: Array, mask: Array | None) -> Whitened:
    if mask is not None:
        B, r = jnp.where(mask, B, 0.0), jnp.where(mask, r, 0.0)
    return Whitened(jnp.diag(B), r)


def _within(eta: Array) -> Array:
    return jnp.clip(eta, -cap(eta.dtype), cap(eta.dtype))


def _below(eta: Array) -> Array:
    """A log rate whose rate is finite; there is no lower limit."""
    return jnp.minimum(eta, cap(eta.dtype))


def _log_sigmoid_normal(m: Array, sd: Array) -> Array:
    r"""Log E[sigmoid(e)] for e ~ N(m, sd²), so that the values at m and -m sum to one.

    For a narrow belief the average is over Gauss-Hermite nodes. For a wide one the sigmoid is too steep for these, and
    the average is over a logistic u instead, $E_u[\Phi((m - u)/sd)]$, by the trapezium rule. Far in the tail neither
    rule has points where the product is large; there the mean is reflected, since $\sigma(e) = e^e\sigma(-e)$ gives
    $E(m) = e^{m + sd^2/2} E(-m - sd^2)$. The error is below 1e-6.
    """
    v = sd * sd
    far = (sd > WIDE) & (m < -0.5 * v)
    m, shift = jnp.where(far, -m - v, m), jnp.where(far, m + 0.5 * v, 0.0)
    nodes, weights = normal_rule(NODES)
    at = m[:, None] + sd[:, None] * jnp.asarray(nodes, m.dtype)[None, :]
    narrow = logsumexp(log_sigmoid(at) + jnp.log(jnp.asarray(weights, m.dtype))[None, :], axis=1)
    u = jnp.arange(-40.0, 41.0, dtype=m.dtype)
    density = log_sigmoid(u) + log_sigmoid(-u)
    ratio = (m[:, None] - u[None, :]) / jnp.where(sd > WIDE, sd, 1.0)[:, None]
    wide = logsumexp(log_ndtr(ratio) + (density - logsumexp(density))[None, :], axis=1)
    return shift + jnp.where(sd > WIDE, wide, narrow)
