"""One live series: the plan is decided by its first rows, then the pipeline is driven. No numerics of its own.

What is decided, and when:
    first rows   units, each time the rows have doubled, up to 1024, for baselines, autoregression and known columns
    warm-up      season and slots, after two seasons; without times a season is detected in 300 rows
    bends        quantiles of the known columns, up to 30 seasons of rows (at most 2000)
Each time the rows so far are replayed through the new pipeline, so that nothing is lost and nothing looks ahead.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from filtax.forecasting._clock import DETECTION, Clock
from filtax.forecasting._experts import Expert, filtered
from filtax.forecasting._features import QUANTILES, Scale
from filtax.forecasting._layout import Layout, Row
from filtax.forecasting._pipeline import Out, Pipeline, pipeline, standard

FIRST, LAST = 4, 1024  # rows at which units are taken first and last where there is no season
FEWEST = 3  # targets from which units are taken
SEASONS, MOST = 30, 2000  # seasons of a known column before its bends are fixed, and the most rows of them
LISTENED = 24  # rows after which the autoregression is listened to where there is no season
GROSS = 10.0  # median absolute deviations beyond which a value counts as being there, when units are taken
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
        return Table(*(part[start:stop] for part in vars(self).values()))

    def joined(self, other: "Table") -> "Table":
        """These rows and others after them."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Table(*(np.concatenate(pair) for pair in pairs))


class Series:
    """Forecasts of one series, row by row or in batches; the numbers are the same.

    Args:
        steps: How many rows ahead to forecast: a number for 1 up to it, or the steps themselves.
        known: Number of columns that are known for the row itself, and ahead where a step lies beyond it.
        season: Rows of a season, for rows without times; detected by default, 1 for none.
        stride: Rows from one forecast to the next, where not every row gets one.
        experts: Members of the bank instead of the standard ones.
        miss: Share of targets that may lie outside of the interval.
        method: Name of a filter (`filtax.method`) that takes the place of the standard filters.

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
        method: str | None = None,
    ):
        self.steps = tuple(range(1, steps + 1)) if isinstance(steps, int) else tuple(steps)
        if not self.steps or min(self.steps) < 1:
            raise ValueError(f"Series(steps={steps!r}) must be at least 1; give a number of rows ahead, or several.")
        if method is not None:
            plain = [expert for expert in standard() if not expert.targeted]
            experts = (*(plain if experts is None else experts), filtered(method))
        self._experts = None if experts is None else tuple(experts)
        self._known, self._season, self._stride, self._miss, self._method = known, season, stride, miss, method
        self.count = 0  # rows so far
        self._past: Table | None = None  # rows that the next plan will replay
        self._next = FIRST  # how many rows make the next plan; 0 after the last one
        self._timed = False
        self._clock = Clock.by_index(1)
        self._late = np.zeros(known, bool)  # known columns whose unit is still to be found
        self._center: np.ndarray | None = None  # of the known columns, once it is asked for
        self.packed: Any = None  # the state of the pipeline
        self._latest: Any = None  # time of the last row
        self._issued = np.full((max(self.steps), len(self.steps), 3), np.nan)  # at the last rows
        self._back = np.asarray(self.steps) - 1  # rows between a row and the origins of what is due at it
        self._set(self._clock)

    def learn(self, y: Any, times: Any = None, known: Any = None, issue: Any = None) -> Out:
        """Forecast each row before it is looked at, then learn it.

        Args:
            y: (T,) targets, NaN where missing.
            times: (T,) datetime64, in all calls or in none; or (T + n,) with those of the n rows that come next. A
                step that is missing in a regular clock is learned as a row without a target, which the result does not
                contain.
            known: (T, F) known columns, NaN where missing; or (T + n, F) with those of the n rows that come next.
            issue: (T,) True where a forecast is wanted, which is NaN elsewhere; everywhere by default.

        Returns:
            Forecasts and intervals (T, H), the first target being the row itself; weights (T, K) as `names`; and `due`,
            what was forecast of each row as many steps before it as `steps` says.
        """
        return self._learned(*self._checked(y, times, known, issue))[0]

    def learn_and_predict(self, y: Any, known: Any, asked: Any) -> tuple[Out, Out]:
        """`learn(y, known=known)`, then `predict(asked)`, mostly in one compiled call."""
        out, said = self._learned(*self._checked(y, None, known, None), np.asarray(asked, float))
        return out, self.predict(asked) if said is None else said

    def _learned(self, rows: Table, following: Table, asked: np.ndarray | None = None) -> tuple[Out, Out | None]:
        """Forecasts of rows, which are then learned, and of those asked about, unless a new plan came in between."""
        if self.packed is None:
            self._timed = rows.times.dtype.kind == "M"
            self._past = rows.cut(0, 0)
        outs, due, said = [], [np.zeros((0, len(self.steps), 3))], None
        with jax.enable_x64(True):
            if self.packed is None:
                self.packed = self.pipe.start(Scale.start(self._known), (0, NEVER, NEVER))
            while len(rows):
                part = rows.cut(0, self._next - self.count if self._next else None)
                rows = rows.cut(len(part))
                after = rows.joined(following) if len(rows) else following
                self.count += len(part)
                plans = self._past is not None and self.count == self._next
                out, own, filled, said = self._take(part, after, None if plans or len(rows) else asked)
                outs.append((self._names, out))
                due.append(own)
                if self._past is not None:
                    self._past = self._past.joined(filled)
                    if plans:
                        self._decide(self._past, after)
        return _joined(outs, self._names, np.concatenate(due) if len(due) != 2 else due[1]), said

    def ahead(self, time: Any = None, known: Any = None) -> Out:
        """What comes next, without a row to learn from.

        Args:
            time: Of the next row; a step after the last one by default.
            known: (N, F) known columns from the next row on, up to the last target.

        Returns:
            Forecasts and intervals (H,), weights (K,).
        """
        rows = self._coming("ahead", time, known)
        with jax.enable_x64(True):
            return self.pipe.advance(self.packed, rows, asked=1)[1].take(0)

    def explain(self, time: Any = None, known: Any = None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Which experts carry what comes next.

        Args:
            time: Of the next row; a step after the last one by default.
            known: (N, F) known columns from the next row on, up to the last target.

        Returns:
            For each expert its own forecast and its weight in the mixture, (H,) both.

        >>> series = Series()
        >>> _ = series.learn([1.0, 2.0, 2.0])
        >>> forecast, weight = series.explain()["last"]
        >>> forecast.tolist(), bool(weight[0] > 0.0)
        ([2.0], True)
        """
        row = jax.tree.map(lambda part: part[0], self._coming("explain", time, known))
        with jax.enable_x64(True):
            found = self.pipe.explain(self.pipe.unpack(self.packed), row)
        return {name: (np.asarray(forecast), np.asarray(weight)) for name, (forecast, weight) in found.items()}

    def predict(self, known: Any, times: Any = None) -> Out:
        """Forecast each of some rows as if it came next; nothing is learned.

        Args:
            known: (T, F) known columns of each row, which serve its later targets too.
            times: (T,) of each row; a step after the last row by default.

        Returns:
            Forecasts and intervals (T, H), weights (T, K).
        """
        known = np.asarray(known, float)
        if known.ndim != 2 or known.shape[1] != self._known:
            raise ValueError(f"predict: known has shape {known.shape}; give (T, {self._known}).")
        if self.packed is None:
            none = np.full((len(known), len(self.steps)), np.nan)
            return Out(none, none, none, np.zeros((len(known), 0)))
        with jax.enable_x64(True):
            return self.pipe.advance(self.packed, self._rows(known, times), asked=len(known))[1]

    @property
    def clock(self) -> Clock:
        """The clock, as far as it is known: that of rows without times before the plan that finds it."""
        return self._clock

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the experts, in the order of the weights."""
        return () if self.packed is None else self._names

    def settings(self) -> dict[str, Any]:
        """What `restore` needs beside the arrays, of plain values; experts of one's own are not among them."""
        return {
            "given": {
                "steps": list(self.steps),
                "known": self._known,
                "season": self._season,
                "stride": self._stride,
                "miss": self._miss,
                "method": self._method,
            },
            "clock": asdict(self._clock),
            "seasonal": self.pipe.layout.season > 1,
            "timed": self._timed,
            "count": self.count,
            "next": self._next,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """The state, the forecasts that wait for their targets, and the rows that the next plan will replay."""
        found = {"issued": self._issued, "late": self._late}
        if self.packed is not None:
            found |= {"packed": np.asarray(self.packed), "latest": _plain(self._latest)}
        if self._past is not None:
            found |= {f"past_{name}": _plain(part) for name, part in vars(self._past).items()}
        return found

    @classmethod
    def restore(
        cls, settings: dict[str, Any], arrays: dict[str, np.ndarray], experts: Sequence[Expert] | None = None
    ) -> "Series":
        """The series of `settings` and `arrays`, which goes on bit for bit.

        >>> one = Series()
        >>> _ = one.learn([1.0, 2.0])
        >>> two = Series.restore(one.settings(), one.arrays())
        >>> two.ahead().forecast.tolist() == one.ahead().forecast.tolist()
        True
        """
        given: dict[str, Any] = {**settings["given"], "experts": experts}
        one = cls(tuple(given.pop("steps")), **given)
        one.count, one._next, one._timed = settings["count"], settings["next"], settings["timed"]
        one._clock = Clock(**settings["clock"])
        one._set(one._clock if settings["seasonal"] else Clock.by_index(1))
        one._issued, one._late = np.array(arrays["issued"]), np.array(arrays["late"])
        when = "datetime64[us]" if one._timed else int
        if "packed" in arrays:
            one._latest = np.asarray(arrays["latest"]).astype(when)
            with jax.enable_x64(True):
                one.packed = jnp.asarray(arrays["packed"])
        if "past_y" in arrays:
            past = Table(*(np.array(arrays[f"past_{name}"]) for name in Table.__dataclass_fields__))
            one._past = replace(past, times=past.times.astype(when))
        return one

    def _checked(self, y: Any, times: Any, known: Any, issue: Any) -> tuple[Table, Table]:
        """The rows of a call, and the rows that come next as far as they are known."""
        y = np.asarray(y, float)
        if y.ndim != 1:
            raise ValueError(f"learn: y has shape {y.shape}; give (T,) targets of one series.")
        y, T = np.where(np.isfinite(y), y, np.nan), len(y)  # what is not finite is missing
        columns = np.zeros((T, 0)) if known is None else np.asarray(known, float)
        if columns.ndim != 2 or columns.shape[0] < T or columns.shape[1] != self._known:
            raise ValueError(f"learn: known has shape {columns.shape}; give ({T}, {self._known}), a row for each y.")
        n = len(columns) - T
        for name, rows, shapes in (("times", times, ((T,), (T + n,))), ("issue", issue, ((T,),))):
            if rows is not None and np.shape(rows) not in shapes:
                raise ValueError(f"learn: {name} has shape {np.shape(rows)}; give ({T},), one for each y.")
        if times is None:
            when = np.arange(self.count, self.count + T + n)
        else:
            when = np.full(T + n, np.datetime64("NaT"), "datetime64[us]")
            when[: len(times)] = times
        wanted = np.ones(T, bool) if issue is None else np.asarray(issue, bool)
        rows = Table(when, np.append(y, np.full(n, np.nan)), columns, np.append(wanted, np.ones(n, bool)))
        if self.packed is not None and T and (when.dtype.kind == "M") != self._timed:
            raise ValueError("learn: give times in all calls or in none.")
        return rows.cut(0, T), rows.cut(T)

    def _decide(self, past: Table, following: Table) -> None:
        """What the rows so far decide, if they are enough; they are then replayed, and their forecasts dropped."""
        n = self.count
        if np.sum(~np.isnan(past.y)) < FEWEST:
            self._next = 2 * n
            return
        clock, waits = self._found(past)
        warmup = self._layout(clock).warmup()
        if clock.season > 1 and n >= warmup:
            if self._timed:
                past = self._regular(past, clock)
            fixed = min(SEASONS * clock.season, MOST) if self._known else 0
            self._next, wakes, slots = 0 if n >= fixed else min(2 * n, fixed), (0, warmup, len(past)), clock
        else:
            waits += [warmup] if clock.season > 1 else []
            waits.append(min(2 * n, LAST))
            self._next, wakes = min((wait for wait in waits if wait > n), default=0), (0, LISTENED, FIRST)
            slots = Clock.by_index(1)
        self._clock = clock
        self._set(slots)
        scale, self._late = _units(past, self.pipe.layout)
        self.packed, self._center = self.pipe.start(scale, wakes), None
        self._advance(past, following)
        self._past = past if self._next else None

    def _found(self, past: Table) -> tuple[Clock, list[int]]:
        """The clock of the rows so far, and how many more rows it waits for."""
        if self._timed:
            return (Clock.of(past.times), []) if self.count >= Clock.ROWS else (Clock.by_index(1), [Clock.ROWS])
        if self._season is not None:
            return Clock.by_index(self._season), []
        return Clock.by_values(past.y) if self.count >= DETECTION else Clock.by_index(1), [DETECTION]

    def _regular(self, past: Table, clock: Clock) -> Table:
        """The rows so far with the steps that are missing in them, and the forecasts that wait moved accordingly."""
        where = clock.missing(past.times[:1], past.times)
        filled = _filled(past, where, clock, self._stride)
        if len(filled) > len(past):
            N = len(self._issued)
            place = (np.arange(len(past)) + np.cumsum(where))[-N:] + N - len(filled)
            moved = np.full_like(self._issued, np.nan)
            moved[place[place >= 0]] = self._issued[-len(place) :][place >= 0]
            self._issued = moved
        return filled

    def _take(
        self, part: Table, following: Table, asked: np.ndarray | None
    ) -> tuple[Out, np.ndarray, Table, Out | None]:
        """Learn some rows by the plan as it is.

        Returns:
            Forecasts of these rows; what had been forecast for each earlier, (T, H, 3); the rows with missing steps
            filled in; forecasts of the rows that are asked about.
        """
        rows, own = part, np.arange(len(part))
        if self._timed and self.pipe.layout.season > 1:
            blank = self._clock.missing(self._latest, part.times)
            rows, own = _filled(part, blank, self._clock, self._stride), own + np.cumsum(blank)
        if self._past is None and self._late.any():
            self._find_units(part.known)
        (out, said), N = self._advance(rows, following, asked), len(self._issued)
        if not rows.issue.all():
            out = jax.tree.map(lambda part: np.where(rows.issue[:, None], part, np.nan), out)
        every = np.concatenate([self._issued, np.stack([out.forecast, out.lower, out.upper], axis=-1)])
        due = every[N + own[:, None] - self._back, np.arange(self._back.size)]
        self._issued = every[-N:]
        return (out if len(part) == len(rows) else out.take(own)), due, rows, said

    def _find_units(self, known: np.ndarray) -> None:
        """A column constant so far gets its first deviation as unit."""
        if self._center is None:
            self._center = np.array(self.pipe.unpack(self.packed).scale.known_center)
        center = self._center
        if not np.any(np.abs(known[:, self._late] - center[self._late]) > 0.0):
            return
        state = self.pipe.unpack(self.packed)
        spread = np.array(state.scale.known_spread)
        for column in np.flatnonzero(self._late):
            off = np.abs(known[:, column] - center[column])
            off = off[np.isfinite(off) & (off > 0.0)]
            if off.size:
                spread[column], self._late[column] = off[0], False
        scale = replace(state.scale, known_spread=jnp.asarray(spread))
        self.packed = self.pipe.pack(replace(state, scale=scale))

    def _layout(self, slots: Clock) -> Layout:
        return Layout.of(slots, self.steps, self._known, self._stride)

    def _set(self, slots: Clock) -> None:
        """Go on with the slots of a clock, which need not be the whole clock yet."""
        self._slots, self.pipe = slots, _shared(self._layout(slots), self._experts, self._miss)
        self._names = self.pipe.names

    def _advance(self, table: Table, following: Table, asked: np.ndarray | None = None) -> tuple[Out, Out | None]:
        """Drive the pipeline over rows; known columns of the `following` rows serve their later targets."""
        layout = self.pipe.layout
        if len(table):
            self._latest = table.times[-1:]
        following = following.cut(0, layout.furthest - 1)
        if self._timed and layout.season > 1 and len(following):
            blank = self._clock.missing(self._latest, following.times)
            following = _filled(following, blank, self._clock, self._stride).cut(0, layout.furthest - 1)
        known = np.concatenate([table.known, following.known])
        rows = layout.rows(self._slots, table.times, table.y, known, table.issue)
        if asked is None:
            self.packed, out = self.pipe.advance(self.packed, rows)
            return out, None
        both = jax.tree.map(lambda *parts: np.concatenate(parts), rows, self._rows(asked, None))
        self.packed, out = self.pipe.advance(self.packed, both, asked=len(asked))
        return out.take(slice(len(table))), out.take(slice(len(table), None))

    def _coming(self, verb: str, time: Any, known: Any) -> Row:
        """The row that comes next, (1, ...)."""
        if self.packed is None:
            raise ValueError(f"{verb}: the series has not seen a row; call learn first.")
        N = self.pipe.layout.furthest
        columns = np.zeros((N, 0)) if not self._known else np.asarray(known, float)
        if columns.shape != (N, self._known):
            shape = f"({N}, {self._known})"
            raise ValueError(f"{verb}: known has shape {columns.shape}; give {shape}, up to the last target.")
        return self._rows(columns[None], None if time is None else np.array([time]))

    def _rows(self, knowns: np.ndarray, times: Any) -> Row:
        """Rows, each as if it came next, with known columns (T, N, F), or (T, F) that serve all targets."""
        layout, T = self.pipe.layout, len(knowns)
        if knowns.ndim == 2:
            knowns = np.repeat(knowns[:, None, :], layout.furthest, axis=1)
        if times is None:
            clocked = self._timed and layout.season > 1
            after = self._clock.ahead(self._latest, np.ones(1, int))[0] if clocked else np.array([self.count])
            times = np.repeat(after, T)
        times = np.asarray(times, "datetime64[us]" if self._timed else int)
        rows = layout.rows(self._slots, times, np.full(T, np.nan), knowns[:, 0], np.ones(T, bool))
        return replace(rows, knowns=knowns)


@cache
def _shared(layout: Layout, experts: tuple[Expert, ...] | None, miss: float) -> Pipeline:
    """The same object for equal shapes, so that jit reuses its program."""
    return pipeline(layout, experts, miss)


def _filled(rows: Table, blank: np.ndarray, clock: Clock, stride: int) -> Table:
    """Insert `blank[t]` rows without a target before row t."""
    if not blank.any():
        return rows
    at = np.repeat(np.arange(len(rows)), blank + 1)
    before = (np.arange(len(rows)) + np.cumsum(blank))[at] - np.arange(at.size)  # steps before the next row
    own = before == 0
    return Table(
        rows.times[at] - (before * round(clock.step * 1e6)).astype("timedelta64[us]"),
        np.where(own, rows.y[at], np.nan),
        np.where(own[:, None], rows.known[at], np.nan),
        np.where(own, rows.issue[at], stride == 1),
    )


def _units(past: Table, layout: Layout) -> tuple[Scale, np.ndarray]:
    """Units from the first observed rows, the bends of known columns from all, and which columns have no unit yet."""
    center, spread = _unit(past.y[~np.isnan(past.y)][: layout.warmup() if layout.season > 1 else None])
    columns = [_unit(column[np.isfinite(column)]) for column in past.known.T]
    known_center, known_spread = np.array(columns).reshape(-1, 2).T
    late = known_spread == 0.0
    known_spread = np.where(late, 1.0, known_spread)
    z = (past.known - known_center) / known_spread
    knots = [
        np.quantile(column[np.isfinite(column)], QUANTILES) if np.isfinite(column).any() else np.zeros(4)
        for column in z.T
    ]
    spread = spread or abs(center) or 1.0
    parts = (center, spread, known_center, known_spread, np.array(knots).reshape(-1, 4))
    return Scale(*(np.asarray(part, float) for part in parts)), late


def _unit(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation, gross errors bounded; 0 and 0 of nothing."""
    if not values.size:
        return 0.0, 0.0
    middle = np.median(values)
    reach = GROSS * np.median(np.abs(values - middle))
    values = np.clip(values, middle - reach, middle + reach) if reach > 0.0 else values
    most = float(np.max(np.abs(values))) or 1.0  # squares and sums of a share of it stay finite
    return most * float(np.mean(values / most)), most * float(np.std(values / most))


def _plain(part: np.ndarray) -> np.ndarray:
    return part.astype(np.int64) if part.dtype.kind == "M" else part


def _joined(outs: list[tuple[tuple[str, ...], Out]], names: tuple[str, ...], due: np.ndarray) -> Out:
    """Batches one after the other; an expert that was not there yet has weight 0."""
    if len(outs) == 1 and outs[0][0] == names:
        return replace(outs[0][1], due=due)
    columns = {name: k for k, name in enumerate(names)}
    weights = [np.zeros((0, len(names)))]
    for known, out in outs:
        wide, kept = np.zeros((len(out.weights), len(names))), [k for k, name in enumerate(known) if name in columns]
        wide[:, [columns[known[k]] for k in kept]] = out.weights[:, kept]
        weights.append(wide)
    empty = np.zeros((0, due.shape[1]))
    forecast = np.concatenate([empty, *(out.forecast for _, out in outs)])
    lower = np.concatenate([empty, *(out.lower for _, out in outs)])
    upper = np.concatenate([empty, *(out.upper for _, out in outs)])
    return Out(forecast, lower, upper, np.concatenate(weights), due)
