"""Prequential evaluation: forecast each y before it comes, then learn from it, through the whole stream.

Time. At row t the method forecasts y[t] from x[t] and from the labels it has by then. Labels may come k steps late
(`delay`): then it knows those up to row t - 1 - k, and its forecast rolls the belief forward over the k rows whose
labels are still to come and the row itself, with their own x and dt: there time passes and nothing is learned. So it is
the forecast of k + 1 steps ahead. Labels are learned in order, and the state at the end is the same for every delay.

Thesis: sec:prequential-inference, eq:prequential-forecast-measure, experiment:prequential.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

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


def prequential(
    method: Any,
    state: PyTree,
    X: Numbers | None,
    Y: Numbers,
    *,
    delay: int = 0,
    metrics: Sequence[str | Metric] | None = None,
    baselines: Sequence[Baseline] | None = None,
    period: int | None = None,
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
        delay: Steps that a label comes late; 0 if it is known before the next forecast. It is one less than the steps
            ahead of the forecasts.
        metrics: Columns; if not given, rmse, mae, log_score, crps (where it has a closed form) and coverage, or for
            labels accuracy, brier and log_score.
        baselines: Lines beside the method; if not given, last value and running mean, or last and majority class.
        period: Steps in a season: adds the seasonal value to those.
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
    checks.whole("prequential(chunk=...)", chunk, least=1, hint="It is how many rows are learned at a time.")
    if not isinstance(method, Bone):
        raise ValueError(f"prequential(method=...) must come from filtax.method, got {type(method).__name__}.")
    checks.check_state("prequential", state)
    for word, given, kinds in (("metrics", metrics, str | list | tuple), ("baselines", baselines, list | tuple)):
        if given is not None and not isinstance(given, kinds):
            raise ValueError(
                f"prequential({word}=...) must be {word} in a list, such as {EXAMPLES[word]}, got {given!r:.40}."
            )
    dist = jax.eval_shape(lambda s, x: method.predict(s, x), state, X[0])
    if metrics is None:
        metrics = _default_metrics(dist)
    chosen = tuple(metric(one) for one in ([metrics] if isinstance(metrics, str) else metrics))
    if not chosen:
        raise ValueError("prequential(metrics=()) names no metric; leave it out for the usual ones.")
    ranked = not all(one in UNRANKED or one.name.startswith("coverage(") for one in chosen)
    recorded, refused, after = _run(method, state, X, Y, dt, delay, chunk, ranked, is_plain(dist))
    y = np.where(refused.reshape(-1, *(1,) * (Y.ndim - 1)), np.nan, Y)
    y = y if _classes(dist) else y.reshape(recorded["mean"].shape)
    forecasts = {method.name: Forecast(**recorded)}
    for baseline in baselines if baselines is not None else _default_baselines(dist, period):
        if not isinstance(baseline, Baseline):
            raise ValueError(
                f"prequential(baselines=...) must hold baselines such as last_value(), got {baseline!r:.40}."
            )
        forecasts[baseline.name] = baseline(y, delay=delay, whole=counts_whole(dist))
    losses = {name: {one.name: one.losses(forecast, y) for one in chosen} for name, forecast in forecasts.items()}
    runs = {name: Run(forecast, losses[name], baseline=True) for name, forecast in forecasts.items()}
    cost = 1e6 * _seconds_per_row(method, state, X[:chunk], Y[:chunk], None if dt is None else dt[:chunk])
    runs[method.name] = replace(runs[method.name], baseline=False, state=after, microseconds=cost)
    return Report(runs, y, chosen, delay, int(refused.sum()))


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


def _default_metrics(dist: PyTree) -> tuple[Metric, ...]:
    if is_labelled(dist):
        return accuracy, brier, log_score
    cheap = (crps,) if is_plain(dist) or isinstance(dist, StudentT) else ()  # the score has a closed form
    return rmse, mae, log_score, *cheap, coverage()


def _default_baselines(dist: PyTree, period: int | None) -> list[Baseline]:
    if is_labelled(dist):
        return [last_class(_classes(dist)), majority_class(_classes(dist))]
    seasonal = [] if period is None else [seasonal_naive(period)]
    return [last_value(), *seasonal, running_mean()]


def _run(
    method: Any, state: PyTree, X: Any, Y: Any, dt: Any, delay: int, chunk: int, ranked: bool, plain: bool
) -> tuple[Recorded, np.ndarray, PyTree]:
    """Forecast and learn every row, in compiled chunks: fields of `Forecast`, the refused rows, and the last state.

    A method whose forecast is its mean and variance goes through its own `scan`. Anything else, and delayed labels,
    goes through a loop that asks `forecast` for the rows up to the one ahead and then takes a `step`.
    """
    early = min(delay, len(Y))  # forecasts before the first label, and labels after the last forecast
    parts, refused = [], []

    def pick(rows: slice) -> tuple[Any, Any, Any]:
        return X[rows], Y[rows], None if dt is None else dt[rows]

    if early:
        parts.append(_before_any_label(method, state, *pick(slice(0, early)), ranked))
    for start in range(0, len(Y) - early, chunk):
        stop = min(start + chunk, len(Y) - early)
        if plain and not delay:
            state, part, wrong = _scan(method, state, *pick(slice(start, stop)))
        else:
            rows = pick(slice(start, stop + delay))
            state, (part, wrong) = _forecast_and_step(method, state, *rows, delay=delay, ranked=ranked)
        parts.append(jax.tree.map(np.asarray, part))
        refused.append(wrong)
    if early:
        state, _, wrong = _scan(method, state, *pick(slice(len(Y) - early, None)))
        refused.append(wrong)
    recorded = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    return recorded, np.concatenate(refused), state


def _scan(method: Any, state: PyTree, X: Any, Y: Any, dt: Any) -> tuple[PyTree, Recorded, Array]:
    state, info = method.scan(state, X, Y, ("mean", "var", "log_evidence", "ok"), dt=dt)
    return state, {"mean": info.mean, "var": info.var, "log_prob": info.log_evidence}, _refused(info)


def _seconds_per_row(method: Any, state: PyTree, X: Any, Y: Any, dt: Any) -> float:
    """Time of `scan` for a row, its forecast included and compilation omitted."""
    began = 0.0
    for _ in range(2):  # the first time includes compilation
        began = perf_counter()
        jax.block_until_ready(_scan(method, state, X, Y, dt))
    return (perf_counter() - began) / len(Y)


@partial(jax.jit, static_argnames=("delay", "ranked"))
def _forecast_and_step(
    method: Any, state: PyTree, X: Array, Y: Array, dt: Array | None, *, delay: int, ranked: bool
) -> tuple[PyTree, tuple[Recorded, Array]]:
    """At each row: forecast the row `delay` ahead from the labels known so far, then learn the label of this one."""

    def body(state: PyTree, row: Array) -> tuple[PyTree, tuple[Recorded, Array]]:
        window = partial(jax.lax.dynamic_slice_in_dim, start_index=row, slice_size=delay + 1)
        path = method.forecast(state, window(X), dt=None if dt is None else window(dt))
        recorded = record(jax.tree.map(lambda leaf: leaf[delay], path), Y[row + delay], ranked)
        state, info = method.step(state, X[row], Y[row], dt=None if dt is None else dt[row])
        return state, (recorded, _refused(info))

    return jax.lax.scan(body, state, jnp.arange(len(Y) - delay))


@partial(jax.jit, static_argnames=("ranked",))
def _before_any_label(method: Any, state: PyTree, X: Array, Y: Array, dt: Array | None, ranked: bool) -> Recorded:
    return jax.vmap(lambda dist, y: record(dist, y, ranked))(method.forecast(state, X, dt=dt), Y)


def _refused(info: Any) -> Array:
    """Rows that were refused, which add exactly 0 to the evidence; where a method failed it is not 0, and is scored."""
    return ~info.ok & (info.log_evidence == 0.0)


def is_labelled(dist: PyTree) -> bool:
    """Return whether y is a label, not a number."""
    return isinstance(_part(dist), Bernoulli | Categorical)


def counts_whole(dist: PyTree) -> bool:
    """Return whether y can only be a whole number."""
    return isinstance(_part(dist), Poisson | NegativeBinomial)


def is_plain(dist: PyTree) -> bool:
    """Return whether mean and variance (for classes, the probabilities) determine the distribution."""
    return isinstance(dist, Normal | Bernoulli | Categorical)


def record(dist: PyTree, y: Array, ranked: bool) -> dict[str, Array]:
    """Compute from a distribution all that the metrics need at y.

    Args:
        dist: The forecast of one y.
        y: The observed value, NaN where missing.
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
