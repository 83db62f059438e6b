"""One live series: the plan is decided by its first rows, then the pipeline is driven. No numerics of its own.

What is decided, and when:
    first row    baselines alone: last value, running mean, running median
    warm-up      season, slots, units and the whole bank; without times a season is looked for in 300 rows
    knots        filters on known columns, whose bends lie at quantiles of their first 30 seasons (at most 2000 rows)
Each time the rows so far are replayed through the new pipeline, so that nothing is lost. An expert sleeps until it has
been planned, so that nothing looks ahead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from filtax.forecasting._clock import DETECTION, Clock, detect_season
from filtax.forecasting._experts import Expert
from filtax.forecasting._features import QUANTILES, Scale
from filtax.forecasting._layout import Layout
from filtax.forecasting._pipeline import Out, pipeline

SHORTEST = 48  # rows from which the step of a clock is read
FEWEST = 10  # targets from which units are taken
SEASONS, MOST = 30, 2000  # seasons of a known column before its bends are placed, and the most rows of them
NEVER = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Table:
    """Rows of a series: times (or row numbers), targets, known columns, and where a forecast is wanted."""

    times: np.ndarray
    y: np.ndarray
    known: np.ndarray
    issue: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def cut(self, start: int, stop: int | None = None) -> "Table":
        """Some of the rows."""
        return Table(*(part[start:stop] for part in (self.times, self.y, self.known, self.issue)))

    def joined(self, other: "Table") -> "Table":
        """These rows and others after them."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Table(*(np.concatenate(pair) for pair in pairs))


class Series:
    """Forecasts of one series, row by row or in batches; the numbers are the same.

    Args:
        steps: How many rows ahead to forecast: a number for 1 up to it, or the steps themselves.
        known: Number of columns that are known ahead.
        season: Rows of a season, for rows without times; detected if left out.
        stride: Rows from one forecast to the next, where not every row gets one.
        experts: Members of the bank instead of the standard ones.
        miss: Share of targets that may lie outside of the interval.

    >>> series = Series(steps=2)
    >>> series.learn([3.0, 3.0, 3.0]).forecast[-1].tolist()
    [3.0, 3.0]
    """

    def __init__(
        self,
        steps: int | Sequence[int] = 1,
        *,
        known: int = 0,
        season: int | None = None,
        stride: int = 1,
        experts: Sequence[Expert] | None = None,
        miss: float = 0.1,
    ):
        self.steps = tuple(range(1, steps + 1)) if isinstance(steps, int) else tuple(steps)
        if not self.steps or min(self.steps) < 1:
            raise ValueError(f"Series(steps={steps!r}) must be at least 1; give a number of rows ahead, or several.")
        self._known, self._season, self._stride, self._experts, self._miss = known, season, stride, experts, miss
        self._past: Any = None  # rows that the next plan will replay
        self._count, self._next, self._planned = 0, 0, False
        self.pipe: Any = None  # the pipeline (a `Pipeline`) and its packed state, once a row has come
        self.packed: Any = None

    def learn(self, y: Any, times: Any = None, known: Any = None, issue: Any = None) -> Out:
        """Forecast each row before it is looked at, then learn it.

        Args:
            y: (T,) targets, NaN where missing.
            times: (T,) datetime64, in all calls or in none.
            known: (T, F) known columns.
            issue: (T,) True where a forecast is wanted; everywhere if left out.

        Returns:
            Forecasts and intervals (T, H), the first target being the row itself; weights (T, K) as `names`.
        """
        y = np.asarray(y, float)
        if y.ndim != 1:
            raise ValueError(f"learn: y has shape {y.shape}; give (T,) targets of one series.")
        y, T = np.where(np.isfinite(y), y, np.nan), len(y)  # what is not finite is missing
        for name, rows in (("times", times), ("issue", issue)):
            if rows is not None and np.shape(rows) != (T,):
                raise ValueError(f"learn: {name} has shape {np.shape(rows)}; give ({T},), one for each y.")
        rows = Table(
            np.arange(self._count, self._count + T) if times is None else np.asarray(times, "datetime64[us]"),
            y,
            np.zeros((T, 0)) if known is None else np.asarray(known, float),
            np.ones(T, bool) if issue is None else np.asarray(issue, bool),
        )
        if rows.known.shape != (T, self._known):
            raise ValueError(f"learn: known has shape {rows.known.shape}; give ({T}, {self._known}), a row for each y.")
        outs = []
        with jax.enable_x64(True):
            if self.pipe is None:
                self._begin(rows)
            while len(rows):
                part = rows.cut(0, max(self._next - len(self._past), 1) if self._next else None)
                rows = rows.cut(len(part))
                outs.append((self.names, self._advance(part)))
                self._count += len(part)
                if self._next:
                    self._past = self._past.joined(part)
                    if len(self._past) >= self._next:
                        self._decide()
        return _joined(outs, self.names, len(self.steps))

    def ahead(self, time: Any = None, known: Any = None) -> Out:
        """What comes next, without a row to learn from.

        Args:
            time: Of the next row; a step after the last one if left out.
            known: (N, F) known columns from the next row on, up to the last target.

        Returns:
            Forecasts and intervals (H,), weights (K,).
        """
        if self.pipe is None:
            raise ValueError("ahead: the series has not seen a row; call learn first.")
        layout, N = self.pipe.layout, self.pipe.layout.furthest
        if time is None:
            time = self._clock.ahead(self._latest, np.ones(1, int))[0, 0]
        columns = np.zeros((N, 0)) if not layout.known else np.asarray(known, float)
        if columns.shape != (N, layout.known):
            raise ValueError(
                f"ahead: known has shape {columns.shape}; give ({N}, {layout.known}), up to the last target."
            )
        rows = layout.rows(self._clock, np.array([time]), np.full(1, np.nan), columns[:1], np.ones(1, bool))
        row = jax.tree.map(lambda leaf: leaf[0], rows)
        row = replace(row, knowns=columns)
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, self.pipe.forecast(self.pipe.unpack(self.packed), row))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the experts, in the order of the weights."""
        return () if self.pipe is None else self.pipe.names

    def _begin(self, rows: Table) -> None:
        """Baselines alone, which have no units and no season."""
        self._past, self._timed = rows.cut(0, 0), rows.times.dtype.kind == "M"
        self._clock = Clock.by_index(1)
        self._next = SHORTEST if self._timed or self._season else DETECTION
        self._set(Layout(self.steps, stride=self._stride), None, (0, NEVER, NEVER))

    def _decide(self) -> None:
        """What the rows so far decide, if they are enough; they are then replayed, and their forecasts dropped."""
        past, known = self._past, 0
        if np.sum(~np.isnan(past.y)) < FEWEST:
            self._next = 2 * len(past)
            return
        if not self._planned:
            found = detect_season(past.y) if self._season is None else self._season
            self._clock = Clock.of(past.times) if self._timed else Clock.by_index(found)
            warmup = Layout.of(self._clock, self.steps).warmup()
            if len(past) < warmup:
                self._next = warmup
                return
            self._planned = True
            self._next = max(len(past) + 1, min(SEASONS * self._clock.season, MOST)) if self._known else 0
        else:
            known, self._next = self._known, 0
        layout = Layout.of(self._clock, self.steps, known, self._stride)
        self._set(layout, _units(past, layout), (0, layout.warmup(), len(past)))
        self._advance(past)
        if not self._next:
            self._past = None

    def _set(self, layout: Layout, scale: Scale | None, wakes: tuple[int, int, int]) -> None:
        self.pipe = pipeline(layout, self._experts, self._miss)
        self.packed = self.pipe.pack(self.pipe.init(scale, wakes))

    def _advance(self, table: Table) -> Out:
        known, self._latest = table.known[:, : self.pipe.layout.known], table.times[-1:]
        times = np.zeros(len(table), int) if self._clock.season == 1 and self._clock.kind == "index" else table.times
        rows = self.pipe.layout.rows(self._clock, times, table.y, known, table.issue)
        self.packed, out = self.pipe.advance(self.packed, rows)
        return out


def _units(past: Table, layout: Layout) -> Scale:
    """Units from the first observed rows, and the bends of known columns from all."""
    y = past.y[~np.isnan(past.y)][: layout.warmup()]
    known = past.known[:, : layout.known]
    center, spread = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    knots = np.nanquantile((known - center) / spread, QUANTILES, axis=0).T
    unit = float(np.std(y)) or abs(float(np.mean(y))) or 1.0
    return Scale(*(jnp.asarray(part, float) for part in (np.mean(y), unit, center, spread, knots)))


def _joined(outs: list[tuple[tuple[str, ...], Out]], names: tuple[str, ...], H: int) -> Out:
    """Batches one after the other; an expert that was not there yet has weight 0."""
    columns = {name: k for k, name in enumerate(names)}
    weights = [np.zeros((0, len(names)))]
    for known, out in outs:
        wide = np.zeros((len(out.weights), len(names)))
        wide[:, [columns[name] for name in known]] = out.weights
        weights.append(wide)
    empty = np.zeros((0, H))
    forecast, lower, upper = (
        np.concatenate([empty, *(getattr(out, name) for _, out in outs)]) for name in ("forecast", "lower", "upper")
    )
    return Out(forecast, lower, upper, np.concatenate(weights))
