"""Prequential evaluation: forecast each y before it comes, then learn from it, through the whole stream.

What time means. At row t the method forecasts y[t] from x[t] and from the labels it has by then. Labels may come k
steps late (`delay`): then it knows those up to row t - 1 - k, and its forecast rolls the belief forward over the k rows
whose labels are still to come and the row itself, with their own x and dt: time passes there, nothing is learned.
Labels are learned in order, so the state at the end is the same for every delay. With a `horizon` H the method also
forecasts rows t + 1, ..., t + H - 1 at row t, from their x; these forecasts are filed under the row they speak of.

Thesis: sec:prequential-inference, eq:prequential-forecast-measure, experiment:prequential.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.scipy.special as jsp
import numpy as np
from jaxtyping import PyTree

from filtax import boundary, checks
from filtax.distributions import StudentT
from filtax.evaluate.arrays import Numbers, special
from filtax.evaluate.baselines import Baseline, last_value, naive_plus_change, running_mean, seasonal_naive
from filtax.evaluate.buckets import times
from filtax.evaluate.forecast import Forecast
from filtax.evaluate.label_baselines import LabelBaseline, last_class, majority_class
from filtax.evaluate.loop import Outcome, Task, run
from filtax.evaluate.metrics import Metric, accuracy, brier, coverage, crps, log_score, mae, metric, pit, rmedse, rmse
from filtax.evaluate.record import counts_whole, is_labelled, is_plain
from filtax.evaluate.report import Report, Run

__all__ = ["prequential"]

_UNRANKED = (rmse, mae, rmedse, log_score, accuracy, brier, pit)  # known to need no ranked score


def prequential(
    method: Any,
    state: PyTree,
    X: Numbers | None,
    Y: Numbers,
    *,
    delay: int = 0,
    horizon: int = 1,
    metrics: Sequence[str | Metric] | None = None,
    baselines: Sequence[Baseline | LabelBaseline] | None = None,
    period: int | None = None,
    level: float = 0.9,
    mask: Numbers | None = None,
    dt: Numbers | None = None,
    time: Any = None,
    chunk: int = 1024,
    progress: Callable[[int], object] | None = None,
    name: str | None = None,
) -> Report:
    """Forecast every row before it is learned, and score the forecasts beside those of baselines.

    Args:
        method: What `filtax.method` returns.
        state: Where it starts; `method.init(...)`.
        X: Rows of x, (T, ...); None for a model without x.
        Y: Rows of y, (T,) or (T, O), NaN where missing; labels of classes are 0, 1, ...
        delay: Steps that a label comes late; 0 if it is known before the next forecast.
        horizon: Steps ahead to forecast; with more than one, see `Report.by_horizon`.
        metrics: Columns; if not given, rmse, mae, log_score, crps (where it has a closed form) and coverage, or for
            labels accuracy, brier and log_score.
        baselines: Lines beside the method; if not given, last value and running mean, or last and majority class.
        period: Steps in a season: adds the seasonal baselines to those.
        level: Of the interval that is kept with the forecasts, and of the coverage if `metrics` is not given.
        mask: Of the shape of Y, False where y is to be taken as missing.
        dt: (T,) lengths of the ticks.
        time: (T,) dates, for views by the calendar.
        chunk: Rows that are compiled into one loop.
        progress: Called after each chunk with the number of rows just learned.
        name: The method's line in the table; its own name if not given.

    Returns:
        A report; print it. Its state has learned every row, those whose labels came late too.

    Example:
        >>> import jax.numpy as jnp, numpy as np, filtax as fx
        >>> from filtax.evaluate import prequential
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(500, 2))
        >>> y = x @ np.array([1.0, -2.0]) + 0.5 * rng.normal(size=500)
        >>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=0.25))
        >>> report = prequential(kf, kf.init(mean=jnp.zeros(2), cov=4.0), x, y, metrics=("rmse", "coverage"))
        >>> {name: round(line["rmse"], 2) for name, line in report.table().items()}
        {'LG+C-Static': 0.51, 'last-value': 3.25, 'running-mean': 2.26}
        >>> report.verdicts()
        ['LG+C-Static beats every baseline on rmse.']
    """
    X, Y, dt, time = _rows(X, Y, mask, dt, time)
    checks.whole("prequential(delay=...)", delay, hint="0 is a label that is known before the next forecast.")
    checks.whole("prequential(horizon=...)", horizon, least=1, hint="1 is a forecast of the next row alone.")
    checks.whole("prequential(chunk=...)", chunk, least=1, hint="It is how many rows are learned at a time.")
    if not hasattr(method, "predict"):
        raise ValueError(f"prequential(method=...) must come from filtax.method, got {type(method).__name__}.")
    boundary.check_state("prequential", state)
    _check_words(metrics, baselines, progress, name)
    coverage(level)  # refuses a level outside of (0, 1)
    dist = jax.eval_shape(lambda s, x: method.predict(s, x), state, X[0])
    chosen = tuple(
        metric(one)
        for one in (_columns(dist, level) if metrics is None else [metrics] if isinstance(metrics, str) else metrics)
    )
    if not chosen:
        raise ValueError("prequential(metrics=()) names no metric; leave it out for the usual ones.")
    ranked = not all(one in _UNRANKED or one.name.startswith("coverage(") for one in chosen)
    task = Task(X, Y, dt, delay, horizon, chunk, level, ranked, is_plain(dist))
    outcome = run(method, state, task, progress)
    y = np.where(outcome.refused.reshape(-1, *(1,) * (Y.ndim - 1)), np.nan, Y)
    y = y if _classes(dist) else y.reshape(outcome.kept[0]["mean"].shape)
    runs = {name or method.name: _line(outcome, y, chosen, dist, level)}
    for baseline in baselines if baselines is not None else _beside(dist, period):
        if not isinstance(baseline, Baseline | LabelBaseline):
            raise ValueError(
                f"prequential(baselines=...) must hold baselines such as last_value(), got {baseline!r:.40}."
            )
        runs[baseline.name] = _baseline_line(baseline, y, chosen, dist, task)
    return Report(runs, y, chosen, delay, int(outcome.refused.sum()), time)


def _rows(X: Any, Y: Any, mask: Any, dt: Any, time: Any) -> tuple[np.ndarray, np.ndarray, Any, Any]:
    """Rows as numpy arrays that pair up; y as floats, NaN where it is masked."""
    if Y is None:
        raise ValueError("prequential: Y is None; give the targets, (T,) or (T, O), NaN where they are missing.")
    X, Y, mask, dt = (
        None if rows is None else np.asarray(rows) for rows in boundary.arrays(X=X, Y=Y, mask=mask, dt=dt)
    )
    Y = Y if np.issubdtype(Y.dtype, np.floating) else Y.astype(np.float64)
    if Y.ndim == 0 or not len(Y):
        raise ValueError("prequential: Y has no rows; give arrays with a leading axis T.")
    X = np.zeros((len(Y), 1), Y.dtype) if X is None else X
    time = None if time is None else np.asarray(time)
    for word, rows in (("inputs", X), ("lengths dt", dt), ("times", time)):
        if rows is not None and (rows.ndim == 0 or len(rows) != len(Y)):
            count = len(rows) if rows.ndim else "no"
            raise ValueError(f"prequential: {count} {word} but {len(Y)} targets; row t of each must belong together.")
    time = None if time is None else times("prequential", time)
    boundary.check_extras(mask, dt, None, rank=1)
    if mask is not None:
        if mask.shape != Y.shape:
            raise ValueError(
                f"prequential: mask has shape {mask.shape} but Y {Y.shape}; give True where y was observed."
            )
        Y = np.where(mask, Y, np.nan)
    return X, Y, dt, time


def _check_words(metrics: Any, baselines: Any, progress: Any, name: Any) -> None:
    """Refuse what names no columns or lines, or cannot be called."""
    if not (metrics is None or isinstance(metrics, str | list | tuple)):
        raise ValueError(f"prequential(metrics=...) must be names or metrics in a list, got {metrics!r:.40}.")
    if not (baselines is None or isinstance(baselines, list | tuple)):
        raise ValueError(
            f"prequential(baselines=...) must be baselines in a list, such as [last_value()], got {baselines!r:.40}."
        )
    if progress is not None and not callable(progress):
        raise ValueError(f"prequential(progress=...) must be a function of a number of rows, got {progress!r:.40}.")
    if name is not None and not isinstance(name, str):
        raise ValueError(f"prequential(name=...) must be a text, the method's line in the table, got {name!r:.40}.")


def _classes(dist: PyTree) -> int | None:
    """Number of classes when y is the index of one; None for numbers, and for labels 0 and 1 with one probability."""
    parts = getattr(dist, "parts", dist)
    return parts.log_probability.shape[-1] if hasattr(parts, "log_probability") else None


def _columns(dist: PyTree, level: float) -> tuple[Metric, ...]:
    if is_labelled(dist):
        return accuracy, brier, log_score
    cheap = (crps,) if is_plain(dist) or isinstance(dist, StudentT) else ()  # it has a closed form
    return rmse, mae, log_score, *cheap, coverage(level)


def _beside(dist: PyTree, period: int | None) -> list[Baseline | LabelBaseline]:
    if is_labelled(dist):
        return [last_class(_classes(dist)), majority_class(_classes(dist))]
    seasonal = [] if period is None else [seasonal_naive(period), naive_plus_change(period)]
    return [last_value(), *seasonal, running_mean()]


def _line(outcome: Outcome, y: np.ndarray, metrics: Sequence[Metric], dist: PyTree, level: float) -> Run:
    forecasts = []
    for h, kept in enumerate(outcome.kept):
        if "lower" not in kept and not is_labelled(dist):
            half = np.sqrt(kept["var"]) * special(np, jsp.ndtri, np.asarray(0.5 + 0.5 * level))
            with np.errstate(invalid="ignore"):  # a refused row has no forecast
                kept = kept | {"lower": kept["mean"] - half, "upper": kept["mean"] + half}
        forecasts.append(Forecast(**kept, made=np.arange(len(y)) >= h))
    losses = {one.name: np.asarray(one.losses(forecasts[0], y)) for one in metrics}
    return Run(tuple(forecasts), losses, state=outcome.state, microseconds=outcome.microseconds)


def _baseline_line(baseline: Any, y: np.ndarray, metrics: Sequence[Metric], dist: PyTree, task: Task) -> Run:
    whole = {"whole": True} if counts_whole(dist) else {}
    forecasts = tuple(baseline(y, delay=task.delay + h, **whole) for h in range(task.horizon))
    return Run(forecasts, {one.name: np.asarray(one.losses(forecasts[0], y)) for one in metrics}, baseline=True)
