"""A stream of forecasts as arrays: what was forecast for each y before it came, and what is kept of each distribution.

`record` takes from one predictive distribution what the metrics need once y is known. A Gaussian or a class forecast is
its mean and variance; a Student-t has a scale and degrees of freedom besides. Any other (counts, a mixture of
hypotheses) is asked for its distribution function and its ranked score at y.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PyTree, Real

from filtax._validation import numeric
from filtax.distributions import Bernoulli, Categorical, Mixture, NegativeBinomial, Normal, Poisson, StudentT
from filtax.evaluate._scores import (
    Numbers,
    Values,
    by_row,
    crps_gaussian,
    crps_points,
    crps_student_t,
    log_density_gaussian,
    log_density_student_t,
    log_probability,
    masked_loss,
    namespaced,
    pit_gaussian,
    pit_points,
    pit_student_t,
)
from filtax.protocols import Module

_NODES = 64  # on each side of y: the score of a Gaussian is then right to 1e-9
_CELLS = 128  # whole numbers on each side of y that are added up one by one; if there are more, in strides
_TAIL = 1e-6  # probability left outside of the range that is integrated


class Forecast(Module):
    """T forecasts, row t for y of row t. Only `mean` is required; the other fields serve the scores that need them.

    The spread is that of equally likely `points` if they are given, of a Student-t if `df` and `scale` are, and else
    Gaussian with variance `var`. For classes the mean holds the probabilities, (T, C), or (T,) for label 1 against 0.

    Attributes:
        mean: Forecast mean, of the shape of y; or class probabilities.
        var: Forecast variance.
        scale: Scale of a Student-t forecast.
        df: Its degrees of freedom.
        points: Equally likely points on the last axis: draws, or the quantiles at (i - 1/2)/N.
        log_prob: Log density, or mass, of the observed y, where it is not that of the fields above.
        below: Probability of less than the observed y, likewise.
        upto: Probability of at most the observed y, likewise.
        ranked: Continuous ranked probability score of the observed y, likewise.
        lower: Lower end of an interval, for drawings.
        upper: Its upper end.
        label: The predicted class, where it is not the most probable one.
        made: Rows that have a forecast, if not all; the others are not scored.
        spread: Rows whose forecast has a spread, if not all; the others have no score that needs one.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import Forecast
        >>> from filtax.evaluate.metrics import coverage, rmse
        >>> forecast = Forecast(mean=np.array([0.0, 0.0]), var=np.array([1.0, 1.0]))
        >>> rmse(forecast, np.array([1.0, np.nan])).item(), coverage(0.5)(forecast, np.array([0.5, 3.0])).item()
        (1.0, 0.5)
    """

    mean: Real[Values, "T *O"]
    var: Real[Values, "T *O"] | None = None
    scale: Real[Values, "T *O"] | None = None
    df: Real[Values, "T *O"] | None = None
    points: Real[Values, "T *O N"] | None = None
    log_prob: Real[Values, " T"] | None = None
    below: Real[Values, "T *O"] | None = None
    upto: Real[Values, "T *O"] | None = None
    ranked: Real[Values, "T *O"] | None = None
    lower: Real[Values, "T *O"] | None = None
    upper: Real[Values, "T *O"] | None = None
    label: Real[Values, "T *L"] | None = None
    made: Bool[Values, " T"] | None = None
    spread: Bool[Values, " T"] | None = None

    def __check_init__(self) -> None:
        mean = numeric("Forecast(mean=...)", self.mean)
        for field in ("var", "scale", "df"):
            value = vars(self)[field]
            if value is not None and numeric(f"Forecast({field}=...)", value).shape != mean.shape:
                raise ValueError(
                    f"Forecast({field}=...) has shape {value.shape} but the mean {mean.shape}; give one for each."
                )

    def crps(self, y: Numbers) -> Values:
        """Compute the continuous ranked probability score of each element of y."""
        if self.ranked is not None:
            xp, ranked, y = namespaced(self.ranked, y)
            return self._spread_only(masked_loss(xp, ranked, xp.isfinite(y)))
        if self.upto is not None and self.points is None and self.df is None:
            raise ValueError(
                "crps: no ranked score was kept of these forecasts; run prequential(metrics=(..., 'crps'))."
            )
        if self.points is not None:
            return self._spread_only(crps_points(self.points, y))
        if self.df is not None:
            return self._spread_only(crps_student_t(self.mean, self._given("scale"), self.df, y))
        return self._spread_only(crps_gaussian(self.mean, self._given("var"), y))

    def position(self, y: Numbers) -> tuple[Values, Values]:
        """Compute P(Y < y) and P(Y <= y); they differ where the forecast gives y itself a probability."""
        if self.upto is not None:
            xp, below, upto, y = namespaced(self._given("below"), self.upto, y)
            below, upto = (masked_loss(xp, part, xp.isfinite(y), worst=0.0) for part in (below, upto))
        elif self.points is not None:
            below, upto = pit_points(self.points, y, 0.0), pit_points(self.points, y, 1.0)
        elif self.df is not None:
            below = upto = pit_student_t(self.mean, self._given("scale"), self.df, y)
        else:
            below = upto = pit_gaussian(self.mean, self._given("var"), y)
        return self._spread_only(below), self._spread_only(upto)

    def log_score(self, y: Numbers) -> Values:
        """Log density or mass of the observed part of each row, (T,): recorded, or of independent outputs."""
        xp, mean, y = namespaced(self.mean, y)
        if self.log_prob is not None:
            xp, score, y = namespaced(self.log_prob, y)
            score = masked_loss(xp, score, xp.any(xp.isfinite(by_row(xp, y)), axis=1), worst=-math.inf)
        elif self.df is not None:
            score = log_density_student_t(mean, self._given("scale"), self.df, y)
        elif self.var is not None and mean.ndim == y.ndim:
            score = log_density_gaussian(mean, self.var, y)
        else:
            score = log_probability(mean, y)
        score = by_row(xp, score)
        return self._spread_only(xp.sum(xp.where(xp.isnan(score), 0.0, score), axis=1))

    def _spread_only(self, score: Values) -> Values:
        if self.spread is None:
            return score
        xp, score = namespaced(score)
        return xp.where(xp.reshape(xp.asarray(self.spread), (-1,) + (1,) * (score.ndim - 1)), score, math.nan)

    def _given(self, field: str) -> Values:
        value = vars(self)[field]
        if value is None:
            raise ValueError(f"Forecast has no `{field}`, which this score needs; give Forecast(..., {field}=...).")
        return value


def is_labelled(dist: PyTree) -> bool:
    """Return whether y is a label, not a number.

    >>> is_labelled(Categorical(jnp.zeros(2)))
    True
    """
    return isinstance(_part(dist), Bernoulli | Categorical)


def counts_whole(dist: PyTree) -> bool:
    """Return whether y can only be a whole number.

    >>> counts_whole(NegativeBinomial(jnp.ones(1), jnp.ones(1)))
    True
    """
    return isinstance(_part(dist), Poisson | NegativeBinomial)


def is_plain(dist: PyTree) -> bool:
    """Return whether mean and variance (for classes, the probabilities) determine the distribution.

    >>> is_plain(Normal(jnp.zeros(1), jnp.eye(1)))
    True
    """
    return isinstance(dist, Normal | Bernoulli | Categorical)


def record(dist: PyTree, y: Array, level: float, ranked: bool) -> dict[str, Array]:
    """Compute from a distribution all that the metrics need at y.

    Args:
        dist: The forecast of one y.
        y: The observed value, NaN where missing.
        level: Of the interval that is kept.
        ranked: Whether to compute the ranked score, which costs more than all the rest.

    Returns:
        Fields of `Forecast` for one row.

    >>> kept = record(Normal(jnp.zeros(1), jnp.eye(1), scalar=True), jnp.zeros(()), 0.9, ranked=True)
    >>> {name: round(value.item(), 3) for name, value in kept.items()}
    {'mean': 0.0, 'var': 1.0, 'log_prob': -0.919}
    """
    observed = jnp.isfinite(y)
    y = jnp.where(observed, y, 0.0)
    kept = {"mean": dist.mean, "var": dist.var, "log_prob": dist.log_prob(y, observed.reshape(-1))}
    if is_plain(dist) or is_labelled(dist):
        return kept
    y = y.reshape(dist.mean.shape).astype(dist.mean.dtype)
    kept["lower"], kept["upper"] = dist.interval(level)
    if isinstance(dist, StudentT):
        scale = jnp.sqrt(jnp.diagonal(dist.scale)).reshape(dist.mean.shape)
        return kept | {"scale": scale, "df": jnp.broadcast_to(dist.freedom, scale.shape)}
    below, upto = jax.vmap(dist.cdf)(jnp.stack([y - 0.5 if counts_whole(dist) else y, y]))
    kept |= {"below": below, "upto": upto}
    return kept | {"ranked": ranked_score(dist, y)} if ranked else kept


def ranked_score(dist: PyTree, y: Array) -> Array:
    r"""Integrate $\int (F(z) - 1[z \ge y])^2 dz$ for each output: the continuous ranked probability score.

    By Gauss-Legendre quadrature on either side of y; for whole numbers the integral is a sum. Beyond the range of the
    forecast F is 0 or 1, and the distance of y from it counts in full.

    >>> fair = Bernoulli(jnp.log(jnp.array([0.5])), jnp.log(jnp.array([0.5])), scalar=True)
    >>> ranked_score(fair, jnp.ones(())).round(6).item()
    0.25
    """
    lower, upper = dist.interval(1.0 - _TAIL)
    y = jnp.asarray(y, lower.dtype)
    inside = jnp.clip(y, lower, upper)
    cut = _cells if counts_whole(dist) or is_labelled(dist) else _nodes
    (left, below), (right, above) = cut(lower, inside), cut(inside, upper)
    F = jax.vmap(dist.cdf)(jnp.concatenate([left, right]))  # in one call, because it takes long to compile
    score = jnp.sum(below * F[: len(left)] ** 2, axis=0) + jnp.sum(above * (1.0 - F[len(left) :]) ** 2, axis=0)
    return jnp.abs(y - inside) + score


def _nodes(start: Array, end: Array) -> tuple[Array, Array]:
    """Nodes and weights of the quadrature of a smooth function between start and end."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    nodes, weights = _on_first_axis(0.5 * (nodes + 1.0), start), _on_first_axis(0.5 * weights, start)
    return start[None] + (end - start)[None] * nodes, (end - start)[None] * weights


def _cells(start: Array, end: Array) -> tuple[Array, Array]:
    """The same for a function that is constant from one whole number to the next."""
    stride = jnp.maximum(jnp.ceil((end - start) / _CELLS), 1.0)[None]
    edges = start[None] + stride * _on_first_axis(np.arange(_CELLS), start)
    widths = jnp.clip(end[None] - edges, 0.0, stride)
    return edges + 0.5 * widths, widths


def _part(dist: PyTree) -> Any:
    return dist.parts if isinstance(dist, Mixture) else dist


def _on_first_axis(values: np.ndarray, like: Array) -> Array:
    """Put values on a new first axis, before those of `like`."""
    return jnp.asarray(values, like.dtype).reshape((-1,) + (1,) * like.ndim)
