"""A stream of forecasts as arrays: what was said about each y before it came."""

import math

from jaxtyping import Bool, Real

from filtax.checks import numeric
from filtax.evaluate.arrays import Numbers, Values, by_row, namespaced, settle
from filtax.evaluate.calibration import (
    crps_gaussian,
    crps_points,
    crps_student_t,
    pit_gaussian,
    pit_points,
    pit_student_t,
)
from filtax.evaluate.scores import log_density_gaussian, log_density_student_t, log_probability
from filtax.module import Module

__all__ = ["Forecast"]


class Forecast(Module):
    """T forecasts, row t for y of row t; only `mean` is needed, the rest serves the scores that ask for it.

    The spread is that of equally likely `points` if they are given, of a Student-t if `df` and `scale` are, and else
    Gaussian with variance `var`. For classes the mean holds the probabilities, (T, C), or (T,) for label 1 against 0.

    Attributes:
        mean: Forecast mean, of the shape of y; or class probabilities.
        var: Forecast variance.
        scale: Scale of a Student-t forecast.
        df: Its degrees of freedom.
        points: Equally likely points on the last axis: draws, or the quantiles at (i - 1/2)/N.
        log_prob: Log density, or mass, of the y that came, where it is known better than the above can tell.
        below: Probability of less than the y that came; with `upto`, likewise.
        upto: Probability of at most the y that came.
        ranked: Continuous ranked probability score of the y that came, likewise.
        lower: Lower end of an interval, for those who draw it.
        upper: Its upper end.
        label: The class that is named, where it is not the most probable one.
        made: Rows that have a forecast, if not all: the others are not scored.
        spread: Rows whose forecast has a spread, if not all: the others have no score that needs one.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import Forecast, coverage, rmse
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
            value = getattr(self, field)
            if value is not None and numeric(f"Forecast({field}=...)", value).shape != mean.shape:
                raise ValueError(
                    f"Forecast({field}=...) has shape {value.shape} but the mean {mean.shape}; give one for each."
                )

    def crps(self, y: Numbers) -> Values:
        """Continuous ranked probability score of each element of y."""
        if self.ranked is not None:
            xp, ranked, y = namespaced(self.ranked, y)
            return self._spread_only(settle(xp, ranked, xp.isfinite(y)))
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
        """Probability of less than y and of at most y; they differ where the forecast gives y itself a probability."""
        if self.upto is not None:
            xp, below, upto, y = namespaced(self._given("below"), self.upto, y)
            below, upto = (settle(xp, part, xp.isfinite(y), worst=0.0) for part in (below, upto))
        elif self.points is not None:
            below, upto = pit_points(self.points, y, 0.0), pit_points(self.points, y, 1.0)
        elif self.df is not None:
            below = upto = pit_student_t(self.mean, self._given("scale"), self.df, y)
        else:
            below = upto = pit_gaussian(self.mean, self._given("var"), y)
        return self._spread_only(below), self._spread_only(upto)

    def log_score(self, y: Numbers) -> Values:
        """Log density or mass of the part of each row of y that came, (T,): recorded, or of independent outputs."""
        xp, mean, y = namespaced(self.mean, y)
        if self.log_prob is not None:
            xp, score, y = namespaced(self.log_prob, y)
            score = settle(xp, score, xp.any(xp.isfinite(by_row(xp, y)), axis=1), worst=-math.inf)
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
        value = getattr(self, field)
        if value is None:
            raise ValueError(f"Forecast has no `{field}`, which this score needs; give Forecast(..., {field}=...).")
        return value
