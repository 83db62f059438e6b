"""Forecasts of T rows as arrays, and the scores of their distributions at what was observed.

Scores are those of numpy in float64. A y that is missing (NaN) or infinite is not scored: its score is NaN. A forecast
that is not a number gets the worst score for a y that came, so that no method wins by failing.

Thesis: experiment:prequential.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import ndtr, poch, stdtr

from filtax._validation import numeric

Numbers = Any  # what a user may give where an array is meant: whatever numpy turns into one
QUIET = np.errstate(all="ignore")  # a failed forecast divides by zero or overflows; its score says so


@dataclass(frozen=True, eq=False)
class Forecast:
    """T forecasts, row t for y of row t. Only `mean` is required; the other fields serve the scores that need them.

    The spread is that of a Student-t if `df` and `scale` are given, and else Gaussian with variance `var`. For classes
    the mean holds the probabilities, (T, C), or (T,) for label 1 against 0.

    Attributes:
        mean: Forecast mean, of the shape of y; or class probabilities.
        var: Forecast variance.
        scale: Scale of a Student-t forecast.
        df: Its degrees of freedom.
        log_prob: Log density, or mass, of the observed y, where it is not that of the fields above.
        below: Probability of less than the observed y, likewise.
        upto: Probability of at most the observed y, likewise.
        ranked: Continuous ranked probability score of the observed y, likewise.
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

    mean: Float[np.ndarray, "T *O"]
    var: Float[np.ndarray, "T *O"] | None = None
    scale: Float[np.ndarray, "T *O"] | None = None
    df: Float[np.ndarray, "T *O"] | None = None
    log_prob: Float[np.ndarray, " T"] | None = None
    below: Float[np.ndarray, "T *O"] | None = None
    upto: Float[np.ndarray, "T *O"] | None = None
    ranked: Float[np.ndarray, "T *O"] | None = None
    label: Float[np.ndarray, "T *L"] | None = None
    made: Bool[np.ndarray, " T"] | None = None
    spread: Bool[np.ndarray, " T"] | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, vars(self)[field.name]
            if name in ("made", "spread") or (value is None and name != "mean"):
                continue
            array = np.asarray(numeric(f"Forecast({name}=...)", value), np.float64)
            object.__setattr__(self, name, array)
            if name in ("var", "scale", "df") and array.shape != self.mean.shape:
                raise ValueError(
                    f"Forecast({name}=...) has shape {array.shape} but the mean {self.mean.shape}; give one for each."
                )

    @QUIET
    def crps(self, y: np.ndarray) -> np.ndarray:
        r"""Compute the continuous ranked probability score $\int (F(z) - 1[z \ge y])^2 dz$ of each element of y.

        With $z = (y - \mu)/\sigma$ it is for a Gaussian $\sigma\{z(2\Phi(z) - 1) + 2\varphi(z) - 1/\sqrt\pi\}$
        (Gneiting and Raftery 2007). For a Student-t with density f, distribution F and $\nu > 1$ degrees of freedom
        $$\sigma\Bigl\{z(2F(z) - 1) + 2f(z)\frac{\nu + z^2}{\nu - 1}
          - \frac{2\sqrt\nu}{\nu - 1}\frac{B(1/2, \nu - 1/2)}{B(1/2, \nu/2)^2}\Bigr\};$$
        with $\nu \le 1$ it is infinite. A forecast without spread scores its absolute error.
        """
        if self.ranked is not None:
            score = self.ranked
        elif self.df is not None:
            score = _crps_student(y - self.mean, self._given("scale"), self.df)
        elif self.upto is not None:
            raise ValueError(
                "crps: no ranked score was kept of these forecasts; run prequential(metrics=(..., 'crps'))."
            )
        else:
            score = _crps_gaussian(y - self.mean, np.sqrt(self._given("var")))
        return self._scored(score, y, worst=math.inf)

    @QUIET
    def position(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute P(Y < y) and P(Y <= y); they differ where the forecast gives y itself a probability."""
        if self.upto is not None:
            below, upto = self._given("below"), self.upto
        elif self.df is not None:
            below = upto = stdtr(self.df, (y - self.mean) / self._given("scale"))
        else:
            below = upto = ndtr((y - self.mean) / np.sqrt(self._given("var")))
        return self._scored(below, y, worst=0.0), self._scored(upto, y, worst=0.0)

    @QUIET
    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Compute the log density of each element of y, or the log probability of its label, from the fields."""
        if self.df is not None:
            scale = self._given("scale")
            score = _log_density_student((y - self.mean) / scale, self.df) - np.log(scale)
        elif self.var is not None and self.mean.ndim == y.ndim:
            score = -0.5 * ((y - self.mean) ** 2 / self.var + np.log(2.0 * math.pi * self.var))
        else:
            probability = class_probabilities(self.mean, y)
            score = np.log(np.sum(np.where(one_hot(probability, y), probability, 0.0), axis=-1))
        return self._scored(score, y, worst=-math.inf)

    def log_score(self, y: np.ndarray) -> np.ndarray:
        """Log density or mass of the observed part of each row, (T,): recorded, or of independent outputs."""
        if self.log_prob is None:
            score = by_row(self.log_density(y))
            return np.where(np.all(np.isnan(score), axis=1), math.nan, np.nansum(score, axis=1))
        came = np.where(np.any(np.isfinite(by_row(y)), axis=1), 0.0, math.nan)
        return self._scored(self.log_prob, came, worst=-math.inf)

    def _scored(self, score: np.ndarray, y: np.ndarray, worst: float) -> np.ndarray:
        """Scores of what was observed, NaN in the rows without a spread."""
        score = observed(score, y, worst)
        if self.spread is None:
            return score
        return np.where(np.reshape(self.spread, (-1,) + (1,) * (score.ndim - 1)), score, math.nan)

    def _given(self, field: str) -> np.ndarray:
        value = vars(self)[field]
        if value is None:
            raise ValueError(f"Forecast has no `{field}`, which this score needs; give Forecast(..., {field}=...).")
        return value


def observed(score: np.ndarray, y: np.ndarray, worst: float = math.inf) -> np.ndarray:
    """Scores of what was observed, the worst where none could be computed; NaN where y is missing."""
    return np.where(np.isfinite(y), np.where(np.isnan(score), worst, score), math.nan)


def by_row(values: np.ndarray) -> np.ndarray:
    """Flatten each row, (T, N); unlike `reshape(T, -1)` it also works without rows."""
    return values.reshape(len(values), math.prod(values.shape[1:]))


def class_probabilities(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return probabilities with a class axis: as they are, or (1 - p, p) for a lone probability of label 1."""
    if y.shape not in (p.shape, p.shape[:-1]):
        raise ValueError(
            f"probabilities of shape {p.shape} do not fit labels of shape {y.shape}; give one axis more, the classes, "
            "or the probability of label 1 for each."
        )
    return p if p.ndim > y.ndim else np.stack([1.0 - p, p], axis=-1)


def one_hot(probabilities: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mark the class of each label among those that have a probability."""
    return np.arange(probabilities.shape[-1]) == y[..., None]


def _log_density_student(z: np.ndarray, df: np.ndarray) -> np.ndarray:
    """Log density of the standard Student-t; `poch` is Γ(x + ½)/Γ(x), without loss of digits for large x."""
    return np.log(poch(0.5 * df, 0.5)) - 0.5 * np.log(math.pi * df) - 0.5 * (df + 1.0) * np.log1p(z**2 / df)


def _crps_gaussian(residual: np.ndarray, scale: np.ndarray) -> np.ndarray:
    z = residual / np.where(scale > 0, scale, 1.0)
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    score = scale * (z * (ndtr(z) - ndtr(-z)) + 2.0 * density - 1.0 / math.sqrt(math.pi))
    return np.where(scale == 0, np.abs(residual), score)


def _crps_student(residual: np.ndarray, scale: np.ndarray, df: np.ndarray) -> np.ndarray:
    z, n = residual / scale, np.where(df > 1, df, 2.0)
    ratio = poch(0.5 * n, 0.5) ** 2 / poch(n - 0.5, 0.5) / math.sqrt(math.pi)  # of the beta functions
    ends = np.exp(_log_density_student(z, n)) * (n + z**2) - np.sqrt(n) * ratio
    score = z * (stdtr(n, z) - stdtr(n, -z)) + 2.0 * ends / (n - 1.0)
    return np.where(df > 1, scale * score, math.inf)
