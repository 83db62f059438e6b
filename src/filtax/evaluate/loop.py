"""The loop behind `prequential`: forecast, then learn, in compiled chunks, on a clock.

A method whose forecast is its mean and variance goes through its own `scan`. All else, delayed labels and several
horizons too, goes through one loop that asks `forecast` for the rows ahead and then takes a `step`.
"""

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from filtax.evaluate.record import keep

__all__ = ["Outcome", "Task", "run"]

Kept = dict[str, Any]


class Task(NamedTuple):
    """What to run: rows as numpy arrays, and how to go through them (see `prequential`).

    >>> Task(np.ones((3, 1)), np.ones(3)).ahead
    0
    """

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
        """Rows beyond its own that a step looks at."""
        return self.delay + self.horizon - 1

    @property
    def direct(self) -> bool:
        """Whether `scan` alone tells all that is wanted."""
        return self.plain and not self.ahead


class Outcome(NamedTuple):
    """What came out: fields of `Forecast` for each horizon, the refused rows, the last state, and the time per row."""

    kept: list[Kept]
    refused: np.ndarray
    state: PyTree
    microseconds: float


def run(method: Any, state: PyTree, task: Task, progress: Callable[[int], object] | None = None) -> Outcome:
    """Go through the rows.

    The clock counts what `scan` takes for a row, forecast included, once it is compiled: all full chunks but the first
    where the run itself goes through `scan`, else its first chunk once more.

    >>> import filtax as fx
    >>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    >>> outcome = run(kf, kf.init(mean=jnp.zeros(1), cov=1.0), Task(np.ones((3, 1)), np.full(3, 2.0)))
    >>> outcome.kept[0]["mean"].round(3).tolist()
    [0.0, 1.0, 1.333]
    """
    rows, first = len(task.Y), state
    early = _before_any_label(method, state, task) if task.delay else {}
    padded = _padded(task)
    parts, clock = [], []
    for start in range(0, rows, task.chunk):
        stop = min(start + task.chunk, rows)
        began = perf_counter()
        state, part = jax.block_until_ready(_advance(method, state, padded, start, stop))
        if stop - start == task.chunk:
            clock.append((perf_counter() - began) / task.chunk)
        parts.append(jax.tree.map(np.asarray, part))
        if progress is not None:
            progress(stop - start)
    kept, refused = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    filed = [{name: _file(kept[name], early.get(name), h, task) for name in kept} for h in range(task.horizon)]
    seconds = np.mean(clock[1:]) if task.direct and clock[1:] else _seconds_per_row(method, first, task)
    return Outcome(filed, refused, state, 1e6 * float(seconds))


def _advance(method: Any, state: PyTree, task: Task, start: int, stop: int) -> tuple[PyTree, tuple[Kept, Array]]:
    """Rows start..stop-1; what is kept has axes (rows, horizon, ...)."""
    rows = slice(start, stop + task.ahead)
    dt = None if task.dt is None else task.dt[rows]
    if not task.direct:
        how = {"delay": task.delay, "horizon": task.horizon, "level": task.level, "ranked": task.ranked}
        return _look_and_step(method, state, task.X[rows], task.Y[rows], dt, **how)
    state, info = method.scan(state, task.X[rows], task.Y[rows], ("mean", "var", "log_evidence", "ok"), dt=dt)
    kept = {"mean": info.mean, "var": info.var, "log_prob": info.log_evidence}
    return state, ({name: values[:, None] for name, values in kept.items()}, _refused(info))


def _seconds_per_row(method: Any, state: PyTree, task: Task) -> float:
    first, began = task._replace(delay=0, horizon=1, plain=True), 0.0
    stop = min(task.chunk, len(task.Y))
    for _ in range(2):  # the first time, it may still have to be compiled
        began = perf_counter()
        jax.block_until_ready(_advance(method, state, first, 0, stop))
    return (perf_counter() - began) / stop


@partial(jax.jit, static_argnames=("delay", "horizon", "level", "ranked"))
def _look_and_step(
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
) -> tuple[PyTree, tuple[Kept, Array]]:
    """At each row: forecast from the labels known so far, keep the last `horizon` rows of it, learn the next label."""

    def body(state: PyTree, row: Array) -> tuple[PyTree, tuple[Kept, Array]]:
        window = lambda rows, start, size: jax.lax.dynamic_slice_in_dim(rows, start, size)  # noqa: E731
        times = None if dt is None else window(dt, row, delay + horizon)
        path = method.forecast(state, window(X, row, delay + horizon), dt=times)
        path = jax.tree.map(lambda leaf: leaf[delay:], path)
        kept = _keep_all(path, window(Y, row + delay, horizon), level, ranked)
        state, info = method.step(state, X[row], Y[row], dt=None if dt is None else dt[row])
        return state, (kept, _refused(info))

    return jax.lax.scan(body, state, jnp.arange(len(Y) - delay - horizon + 1))


def _before_any_label(method: Any, state: PyTree, task: Task) -> Kept:
    """Forecasts of the first rows, whose turn comes before the first label does."""
    padded = _padded(task)
    rows = slice(0, task.ahead)
    path = method.forecast(state, padded.X[rows], dt=None if padded.dt is None else padded.dt[rows])
    kept = jax.jit(_keep_all, static_argnums=(2, 3))(path, padded.Y[rows], task.level, task.ranked)
    return jax.tree.map(np.asarray, kept)


def _keep_all(path: PyTree, Y: Array, level: float, ranked: bool) -> Kept:
    return jax.vmap(lambda dist, y: keep(dist, y, level, ranked))(path, jnp.asarray(Y))


def _refused(info: Any) -> Array:
    """A refused row adds exactly nothing to the evidence; a method that failed looks different, and is scored."""
    return ~info.ok & (info.log_evidence == 0.0)


def _file(kept: np.ndarray, early: np.ndarray | None, h: int, task: Task) -> np.ndarray:
    """Put the forecasts of horizon h under the rows they speak of; NaN for rows that nobody could look at yet."""
    rows, shape = len(kept), kept.shape[2:]
    unseen = np.full((h, *shape), np.nan)
    start = unseen[:0] if early is None else early[h : h + task.delay]
    return np.concatenate([unseen, start, kept[: max(rows - h - task.delay, 0), h]])[:rows]


def _padded(task: Task) -> Task:
    """Let the rows go on beyond the end, as far as a step looks; what is forecast there is thrown away."""
    if not task.ahead:
        return task
    again = lambda rows: np.concatenate([rows, np.repeat(rows[-1:], task.ahead, axis=0)])  # noqa: E731
    unknown = np.full((task.ahead, *task.Y.shape[1:]), np.nan)
    return task._replace(
        X=again(task.X), Y=np.concatenate([task.Y, unknown]), dt=None if task.dt is None else again(task.dt)
    )
