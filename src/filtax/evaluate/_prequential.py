"""Prequential evaluation: forecast each y before it comes, then learn from it, through the whole stream.

Time. At row t the method forecasts y[t] from x[t] and from the labels it has by then. Labels may come k
steps late (`delay`): then it knows those up to row t - 1 - k, and its forecast rolls the belief forward over the k rows
whose labels are still to come and the row itself, with their own x and dt: there time passes and nothing is learned.
Labels are learned in order, so the state at the end is the same for every delay. With a `horizon` H the method also
forecasts rows t + 1, ..., t + H - 1 at row t, from their x; these forecasts are stored with the row they are about.

Thesis: sec:prequential-inference, eq:prequential-forecast-measure, experiment:prequential.
"""

from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree
from scipy.special import ndtri

from filtax import _validation as checks
from filtax.bone import Bone
from filtax.distributions import Bernoulli, Categorical, Mixture, NegativeBinomial, Normal, Poisson, StudentT
from filtax.evaluate._baselines import (
    Baseline,
    last_class,
    last_value,
    majority_class,
    running_mean,
    seasonal_naive,
)
from filtax.evaluate._comparison import Report, Run
from filtax.evaluate._forecast import Forecast, Numbers
from filtax.evaluate.metrics import Metric, accuracy, brier, coverage, crps, log_score, mae, metric, pit, rmedse, rmse

Recorded = dict[str, Any]
UNRANKED = (rmse, mae, rmedse, log_score, accuracy, brier, pit)  # metrics that need no ranked score
NODES = 64  # of the quadrature on each side of y: the ranked score of a Gaussian is then right to 1e-9
CELLS = 128  # whole numbers on each side of y that are added up one by one; if there are more, in strides
EXAMPLES = {"metrics": '["rmse", "crps"]', "baselines": "[last_value()]"}
TAIL = 1e-6  # probability outside of the range that is integrated


class Task(NamedTuple):
    """The rows as numpy arrays, and how to go through them (see `prequential`)."""

    X: np.ndarray
    Y: np.ndarray
    dt: np.ndarray | None = None
    delay: int = 0
    horizon: int = 1
    chunk: int = 1024
    level: float = 0.9
    ranked: bool = False
    plain: bool = True

    @property
    def ahead(self) -> int:
        """Rows after its own that a step reads."""
        return self.delay + self.horizon - 1

    @property
    def direct(self) -> bool:
        """Whether the output of `scan` is enough."""
        return self.plain and not self.ahead


class Outcome(NamedTuple):
    """Fields of `Forecast` for each horizon, the refused rows, the last state, and the time per row."""

    recorded: list[Recorded]
    refused: np.ndarray
    state: PyTree
    microseconds: float


def prequential(
    method: Any,
    state: PyTree,
    X: Numbers | None,
    Y: Numbers,
    *,
    delay: int = 0,
    horizon: int = 1,
    metrics: Sequence[str | Metric] | None = None,
    baselines: Sequence[Baseline] | None = None,
    period: int | None = None,
    level: float = 0.9,
    mask: Numbers | None = None,
    dt: Numbers | None = None,
    chunk: int = 1024,
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
        period: Steps in a season: adds the seasonal value to those.
        level: Of the interval that is recorded with the forecasts, and of the coverage if `metrics` is not given.
        mask: Of the shape of Y, False where y is to be taken as missing.
        dt: (T,) lengths of the steps.
        chunk: Rows that are compiled into one loop.

    Returns:
        A report; print it. Its state has learned every row, late labels included.

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
        >>> report.comparison()
        ['LG+C-Static beats every baseline on rmse.']
    """
    X, Y, dt = _rows(X, Y, mask, dt)
    checks.whole("prequential(delay=...)", delay, hint="0 is a label that is known before the next forecast.")
    checks.whole("prequential(horizon=...)", horizon, least=1, hint="1 is a forecast of the next row alone.")
    checks.whole("prequential(chunk=...)", chunk, least=1, hint="It is how many rows are learned at a time.")
    if not isinstance(method, Bone):
        raise ValueError(f"prequential(method=...) must come from filtax.method, got {type(method).__name__}.")
    checks.check_state("prequential", state)
    for word, given, kinds in (("metrics", metrics, str | list | tuple), ("baselines", baselines, list | tuple)):
        if given is not None and not isinstance(given, kinds):
            raise ValueError(
                f"prequential({word}=...) must be {word} in a list, such as {EXAMPLES[word]}, got {given!r:.40}."
            )
    coverage(level)  # refuses a level outside of (0, 1)
    dist = jax.eval_shape(lambda s, x: method.predict(s, x), state, X[0])
    if metrics is None:
        metrics = _default_metrics(dist, level)
    chosen = tuple(metric(one) for one in ([metrics] if isinstance(metrics, str) else metrics))
    if not chosen:
        raise ValueError("prequential(metrics=()) names no metric; leave it out for the usual ones.")
    ranked = not all(one in UNRANKED or one.name.startswith("coverage(") for one in chosen)
    task = Task(X, Y, dt, delay, horizon, chunk, level, ranked, is_plain(dist))
    outcome = run(method, state, task)
    y = np.where(outcome.refused.reshape(-1, *(1,) * (Y.ndim - 1)), np.nan, Y)
    y = y if _classes(dist) else y.reshape(outcome.recorded[0]["mean"].shape)
    runs = {method.name: _method_run(outcome, y, chosen, dist, level)}
    for baseline in baselines if baselines is not None else _default_baselines(dist, period):
        if not isinstance(baseline, Baseline):
            raise ValueError(
                f"prequential(baselines=...) must hold baselines such as last_value(), got {baseline!r:.40}."
            )
        runs[baseline.name] = _baseline_run(baseline, y, chosen, dist, task)
    return Report(runs, y, chosen, delay, int(outcome.refused.sum()))


def _rows(X: Any, Y: Any, mask: Any, dt: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Rows as numpy arrays that pair up; y as floats, NaN where it is masked."""
    if Y is None:
        raise ValueError("prequential: Y is None; give the targets, (T,) or (T, O), NaN where they are missing.")
    X, Y, mask, dt = (None if rows is None else np.asarray(rows) for rows in checks.arrays(X=X, Y=Y, mask=mask, dt=dt))
    Y = Y if np.issubdtype(Y.dtype, np.floating) else Y.astype(np.float64)
    if Y.ndim == 0 or not len(Y):
        raise ValueError("prequential: Y has no rows; give arrays with a leading axis T.")
    X = np.zeros((len(Y), 1), Y.dtype) if X is None else X
    for word, rows in (("inputs", X), ("lengths dt", dt)):
        if rows is not None and (rows.ndim == 0 or len(rows) != len(Y)):
            count = len(rows) if rows.ndim else "no"
            raise ValueError(f"prequential: {count} {word} but {len(Y)} targets; row t of each must belong together.")
    checks.check_extras(mask, dt, None, rank=1)
    if mask is not None:
        if mask.shape != Y.shape:
            raise ValueError(
                f"prequential: mask has shape {mask.shape} but Y {Y.shape}; give True where y was observed."
            )
        Y = np.where(mask, Y, np.nan)
    return X, Y, dt


def _classes(dist: PyTree) -> int | None:
    """Number of classes when y is the index of one; None for numbers, and for labels 0 and 1 with one probability."""
    part = _part(dist)
    return part.log_probability.shape[-1] if isinstance(part, Categorical) else None


def _default_metrics(dist: PyTree, level: float) -> tuple[Metric, ...]:
    if is_labelled(dist):
        return accuracy, brier, log_score
    cheap = (crps,) if is_plain(dist) or isinstance(dist, StudentT) else ()  # the score has a closed form
    return rmse, mae, log_score, *cheap, coverage(level)


def _default_baselines(dist: PyTree, period: int | None) -> list[Baseline]:
    if is_labelled(dist):
        return [last_class(_classes(dist)), majority_class(_classes(dist))]
    seasonal = [] if period is None else [seasonal_naive(period)]
    return [last_value(), *seasonal, running_mean()]


def _method_run(outcome: Outcome, y: np.ndarray, metrics: Sequence[Metric], dist: PyTree, level: float) -> Run:
    forecasts = []
    for h, recorded in enumerate(outcome.recorded):
        if "lower" not in recorded and not is_labelled(dist):
            half = np.sqrt(recorded["var"]) * ndtri(0.5 + 0.5 * level)
            with np.errstate(invalid="ignore"):  # a refused row has no forecast
                recorded = recorded | {"lower": recorded["mean"] - half, "upper": recorded["mean"] + half}
        forecasts.append(Forecast(**recorded, made=np.arange(len(y)) >= h))
    losses = {one.name: one.losses(forecasts[0], y) for one in metrics}
    return Run(tuple(forecasts), losses, state=outcome.state, microseconds=outcome.microseconds)


def _baseline_run(baseline: Any, y: np.ndarray, metrics: Sequence[Metric], dist: PyTree, task: Task) -> Run:
    whole = counts_whole(dist)
    forecasts = tuple(baseline(y, delay=task.delay + h, whole=whole) for h in range(task.horizon))
    return Run(forecasts, {one.name: one.losses(forecasts[0], y) for one in metrics}, baseline=True)


def run(method: Any, state: PyTree, task: Task) -> Outcome:
    """Forecast and learn every row, in compiled chunks.

    A method whose forecast is its mean and variance goes through its own `scan`. Anything else, delayed labels and
    several horizons too, goes through one loop that asks `forecast` for the rows ahead and then takes a `step`.
    """
    rows, first = len(task.Y), state
    early = _before_any_label(method, state, task) if task.delay else {}
    padded = _padded(task)
    parts = []
    for start in range(0, rows, task.chunk):
        state, part = _advance(method, state, padded, start, min(start + task.chunk, rows))
        parts.append(jax.tree.map(np.asarray, part))
    recorded, refused = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    filed = [{name: _align(recorded[name], early.get(name), h, task) for name in recorded} for h in range(task.horizon)]
    return Outcome(filed, refused, state, 1e6 * _seconds_per_row(method, first, task))


def _advance(method: Any, state: PyTree, task: Task, start: int, stop: int) -> tuple[PyTree, tuple[Recorded, Array]]:
    """Go through rows start..stop-1; what is recorded has axes (rows, horizon, ...)."""
    rows = slice(start, stop + task.ahead)
    dt = None if task.dt is None else task.dt[rows]
    if not task.direct:
        how = {"delay": task.delay, "horizon": task.horizon, "level": task.level, "ranked": task.ranked}
        return _forecast_and_step(method, state, task.X[rows], task.Y[rows], dt, **how)
    state, info = method.scan(state, task.X[rows], task.Y[rows], ("mean", "var", "log_evidence", "ok"), dt=dt)
    recorded = {"mean": info.mean, "var": info.var, "log_prob": info.log_evidence}
    return state, ({name: values[:, None] for name, values in recorded.items()}, _refused(info))


def _seconds_per_row(method: Any, state: PyTree, task: Task) -> float:
    """Time of `scan` for a row of the first chunk, its forecast included and compilation omitted."""
    first, began = task._replace(delay=0, horizon=1, plain=True), 0.0
    stop = min(task.chunk, len(task.Y))
    for _ in range(2):  # the first time includes compilation
        began = perf_counter()
        jax.block_until_ready(_advance(method, state, first, 0, stop))
    return (perf_counter() - began) / stop


@partial(jax.jit, static_argnames=("delay", "horizon", "level", "ranked"))
def _forecast_and_step(
    method: Any,
    state: PyTree,
    X: Array,
    Y: Array,
    dt: Array | None,
    *,
    delay: int,
    horizon: int,
    level: float,
    ranked: bool,
) -> tuple[PyTree, tuple[Recorded, Array]]:
    """At each row: forecast from the labels known so far, record the last `horizon` rows, learn the next label."""

    def body(state: PyTree, row: Array) -> tuple[PyTree, tuple[Recorded, Array]]:
        window = jax.lax.dynamic_slice_in_dim
        gaps = None if dt is None else window(dt, row, delay + horizon)
        path = method.forecast(state, window(X, row, delay + horizon), dt=gaps)
        path = jax.tree.map(lambda leaf: leaf[delay:], path)
        recorded = _record_all(path, window(Y, row + delay, horizon), level, ranked)
        state, info = method.step(state, X[row], Y[row], dt=None if dt is None else dt[row])
        return state, (recorded, _refused(info))

    return jax.lax.scan(body, state, jnp.arange(len(Y) - delay - horizon + 1))


def _before_any_label(method: Any, state: PyTree, task: Task) -> Recorded:
    """Forecasts of the first rows, which come before the first label."""
    padded = _padded(task)
    rows = slice(0, task.ahead)
    path = method.forecast(state, padded.X[rows], dt=None if padded.dt is None else padded.dt[rows])
    recorded = jax.jit(_record_all, static_argnums=(2, 3))(path, padded.Y[rows], task.level, task.ranked)
    return jax.tree.map(np.asarray, recorded)


def _record_all(path: PyTree, Y: Array, level: float, ranked: bool) -> Recorded:
    return jax.vmap(lambda dist, y: record(dist, y, level, ranked))(path, jnp.asarray(Y))


def _refused(info: Any) -> Array:
    """Rows that were refused, which add exactly 0 to the evidence; where a method failed it is not 0, and is scored."""
    return ~info.ok & (info.log_evidence == 0.0)


def _align(recorded: np.ndarray, early: np.ndarray | None, h: int, task: Task) -> np.ndarray:
    """Put the forecasts of horizon h at the rows they are about; NaN at the first h rows."""
    rows, shape = len(recorded), recorded.shape[2:]
    unseen = np.full((h, *shape), np.nan)
    start = unseen[:0] if early is None else early[h : h + task.delay]
    return np.concatenate([unseen, start, recorded[: max(rows - h - task.delay, 0), h]])[:rows]


def _padded(task: Task) -> Task:
    """Repeat the last row as often as a step reads ahead; what is forecast there is dropped."""
    if not task.ahead:
        return task
    unknown = np.full((task.ahead, *task.Y.shape[1:]), np.nan)
    X, dt = (
        None if rows is None else np.concatenate([rows, np.repeat(rows[-1:], task.ahead, axis=0)])
        for rows in (task.X, task.dt)
    )
    return task._replace(X=X, Y=np.concatenate([task.Y, unknown]), dt=dt)


def is_labelled(dist: PyTree) -> bool:
    """Return whether y is a label, not a number."""
    return isinstance(_part(dist), Bernoulli | Categorical)


def counts_whole(dist: PyTree) -> bool:
    """Return whether y can only be a whole number."""
    return isinstance(_part(dist), Poisson | NegativeBinomial)


def is_plain(dist: PyTree) -> bool:
    """Return whether mean and variance (for classes, the probabilities) determine the distribution."""
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
    """
    lower, upper = dist.interval(1.0 - TAIL)
    y = jnp.asarray(y, lower.dtype)
    inside = jnp.clip(y, lower, upper)
    cut = _cells if counts_whole(dist) else _nodes
    (left, below), (right, above) = cut(lower, inside), cut(inside, upper)
    F = jax.vmap(dist.cdf)(jnp.concatenate([left, right]))  # in one call, because it takes long to compile
    score = jnp.sum(below * F[: len(left)] ** 2, axis=0) + jnp.sum(above * (1.0 - F[len(left) :]) ** 2, axis=0)
    return jnp.abs(y - inside) + score


def _nodes(start: Array, end: Array) -> tuple[Array, Array]:
    """Nodes and weights of the quadrature of a smooth function between start and end."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    nodes, weights = _on_first_axis(0.5 * (nodes + 1.0), start), _on_first_axis(0.5 * weights, start)
    return start[None] + (end - start)[None] * nodes, (end - start)[None] * weights


def _cells(start: Array, end: Array) -> tuple[Array, Array]:
    """The same for a function that is constant from one whole number to the next."""
    stride = jnp.maximum(jnp.ceil((end - start) / CELLS), 1.0)[None]
    edges = start[None] + stride * _on_first_axis(np.arange(CELLS), start)
    widths = jnp.clip(end[None] - edges, 0.0, stride)
    return edges + 0.5 * widths, widths


def _part(dist: PyTree) -> Any:
    return dist.parts if isinstance(dist, Mixture) else dist


def _on_first_axis(values: np.ndarray, like: Array) -> Array:
    """Put values on a new first axis, before those of `like`."""
    return jnp.asarray(values, like.dtype).reshape((-1,) + (1,) * like.ndim)
