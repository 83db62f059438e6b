"""What a run learns: one `Series` and one `Monitor` for each key, or one `Labels`; rows in, columns and events out.

A forecast of step k of row t was made k steps before it. Where known columns are needed ahead, rows wait until those of
the rows ahead of them have been read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from filtax.forecasting import Clock, Labels, Series
from filtax.monitoring import Monitor
from filtax.pipeline._config import Config
from filtax.pipeline._rows import Block, Columns, Plan, label_of, missing_steps

ENDS = ("forecast", "lower", "upper")
SEEN = ("tail", "outlier", "change_probability", "runlength")
THINNED = 500  # rows at which the weights of the experts are kept, at most
Event = tuple[int, str, Any]  # row of a batch, kind, value
State = dict[str, Any]


def head_type(dated: bool) -> np.dtype:
    """What is known of each row before it is learned: where it stood, its time (NaN without one) and its target."""
    place = [("row", "<i8"), ("line", "<i8"), ("file", "<i4"), ("series", "<i4")]
    return np.dtype([*place, ("time", "<M8[us]" if dated else "<f8"), ("y", "<f8")])


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table.

    Attributes:
        head: (T,) records, as `head_type`; the target of a label is its code, NaN where missing.
        known: (T, F) known columns.
    """

    head: np.ndarray
    known: np.ndarray

    def __len__(self) -> int:
        return len(self.head)

    @property
    def y(self) -> np.ndarray:
        """Targets (T,)."""
        return self.head["y"]

    @property
    def time(self) -> np.ndarray:
        """Times (T,)."""
        return self.head["time"]

    def take(self, rows: Any) -> "Rows":
        """Some of the rows."""
        return Rows(self.head[rows], self.known[rows])

    @staticmethod
    def joined(parts: Sequence["Rows"]) -> "Rows":
        """Rows one after the other."""
        return Rows(np.concatenate([part.head for part in parts]), np.concatenate([part.known for part in parts]))

    @staticmethod
    def blank(count: int, plan: Plan) -> "Rows":
        """Rows of which nothing is known but that they come."""
        rows = Rows(np.zeros(count, head_type(plan.dated)), np.full((count, plan.width), np.nan))
        rows.head["y"] = np.nan
        return rows


@dataclass(frozen=True, eq=False)
class Learned:
    """Rows that were learned, in order, and what there is to say of each.

    Attributes:
        rows: The rows.
        released: (T,) number of the row whose arrival let each be learned; mostly itself.
        columns: (T, N) numbers, as `names` of the learner.
        chances: (T, C) probabilities of the labels met so far; no columns for numbers.
        events: Row of this batch, kind and value of what happened, in order.
    """

    rows: Rows
    released: np.ndarray
    columns: np.ndarray
    chances: np.ndarray
    events: list[Event]

    @staticmethod
    def nothing(plan: Plan, width: int) -> "Learned":
        """No rows, and columns of a width."""
        return Learned(Rows.blank(0, plan), np.zeros(0, np.int64), np.zeros((0, width)), np.zeros((0, 0)), [])


@dataclass(eq=False)
class Trace:
    """Weights of the experts at evenly spaced rows, at most `THINNED` of them, whatever the batches.

    >>> trace = Trace()
    >>> for _ in range(3):
    ...     trace.learn(("last", "mean"), np.ones((400, 2)))
    >>> len(trace.rows), trace.rows[:3].tolist(), trace.weights.shape
    (300, [0, 4, 8], (300, 2))
    """

    names: list[str] = field(default_factory=list)
    rows: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    weights: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    stride: int = 1
    count: int = 0

    def learn(self, names: Sequence[str], weights: np.ndarray) -> None:
        """Weights (T, K) of the next rows; experts that are new had no weight before."""
        if list(names) != self.names:
            wide = np.zeros((len(self.weights), len(names)))
            for i, name in enumerate(self.names):
                if name in names:
                    wide[:, names.index(name)] = self.weights[:, i]
            self.names, self.weights = list(names), wide
        rows = np.arange(self.count, self.count + len(weights))
        self.count += len(weights)
        self.rows, self.weights = np.concatenate([self.rows, rows]), np.concatenate([self.weights, weights])
        while True:
            keep = self.rows % self.stride == 0
            self.rows, self.weights = self.rows[keep], self.weights[keep]
            if len(self.rows) <= THINNED:
                return
            self.stride *= 2


class Track:
    """One series of numbers: its forecasts, and what is unusual.

    Args:
        config: Of the run.
        plan: Of the run.
        saved: What `state` returned, to go on from.
    """

    def __init__(self, config: Config, plan: Plan, saved: State | None = None) -> None:
        self.config, self.plan = config, plan
        steps = tuple(step + config.delay for step in config.steps)
        self.waits = steps[-1] - 1 if plan.width else 0
        if saved is None:
            self.series = Series(
                steps, known=plan.width, season=config.season, miss=round(1.0 - config.level, 12), method=config.method
            )
            self.monitor = Monitor(config.level, config.false_alarms)
            self.last: np.ndarray | None = None  # time of the last row, (1,)
            self.held = Rows.blank(0, plan)
        else:
            self.series, self.monitor = Series.restore(*saved["series"]), Monitor.restore(*saved["monitor"])
            self.last, self.held = saved["last"], Rows(**saved["held"])

    def state(self) -> State:
        """All that it needs to go on."""
        parts = {"series": _parts(self.series), "monitor": _parts(self.monitor)}
        return {**parts, "last": self.last, "held": vars(self.held)}

    def learn(self, rows: Rows, trace: Trace | None, end: bool = False) -> Learned:
        """Learn rows, but those that wait for known columns ahead; at the end these too."""
        whole = Rows.joined([self.held, rows])
        ready = len(whole) if end else max(len(whole) - self.waits, 0)
        self.held, rows = whole.take(slice(ready, None)), whole.take(slice(ready))
        if not ready:
            return Learned.nothing(self.plan, 3 * len(self.config.steps) + len(SEEN))
        ahead = whole.take(slice(ready + self.waits)) if self.plan.width else rows
        known = ahead.known if self.plan.width else None
        out = self.series.learn(rows.y, ahead.time if self.plan.dated else None, known)
        if trace is not None:
            trace.learn(self.series.names, out.weights)
        seen = self.monitor.learn(rows.y, *out.due[:, 0].T, times=rows.time if self.plan.dated else None)
        events = [(row, "gap", missing) for row, missing in self._gaps(rows)]
        events += [(int(i), "outlier", float(seen.tail[i])) for i in np.flatnonzero(seen.outlier)]
        changes = (seen.change_probability, seen.runlength)
        if self.config.delay:  # errors of late targets come in groups, so a run of them is no change
            changes = (np.full(ready, np.nan), np.full(ready, np.nan))
        else:
            events += [(int(i), "change", int(seen.start[i])) for i in np.flatnonzero(seen.change)]
        unusual = np.stack([seen.tail, seen.outlier, *changes], axis=1)
        said = np.concatenate([out.due[:, -1:], out.due[:, :-1]], axis=1).reshape(ready, -1)
        columns = np.concatenate([said, unusual], axis=1)
        released = whole.head["row"][len(whole) - ready :]
        return Learned(rows, released, columns, np.zeros((ready, 0)), sorted(events, key=lambda event: event[0]))

    @property
    def clock(self) -> Clock:
        """The clock of the series; with keys, that of the first one until it is known."""
        known = self.config.key is not None and self.series.clock.kind != "index"
        return self.series.clock if known else self.plan.clock

    def after(self, count: int) -> Rows:
        """The next rows, of which nothing is known."""
        rows, steps = Rows.blank(count, self.plan), np.arange(1, count + 1)
        if self.last is not None and self.plan.dated:
            rows.head["time"] = self.clock.ahead(self.last, steps)[0]
        elif not self.plan.dated:
            rows.head["time"] = (0.0 if self.last is None else self.last) + self.clock.step * steps
        return rows

    def _gaps(self, rows: Rows) -> list[tuple[int, int]]:
        """Rows before which steps of the clock are missing, and how many."""
        before, self.last = self.last, rows.time[-1:].copy()
        if not self.plan.dated:
            if np.isnan(self.last[0]):  # the number of rows then takes the place of a time
                self.last = (np.zeros(1) if before is None else before) + len(rows)
            return []
        missing = missing_steps(self.clock, before, rows.time)
        if self.config.key is not None:  # whatever the batches: the first rows of a key do not know its clock
            missing[: max(Clock.ROWS - (self.series.count - len(rows)), 0)] = 0
        return [(int(row), int(missing[row])) for row in np.flatnonzero(missing)]


class Numbers:
    """All series of a table of numbers."""

    def __init__(self, config: Config, plan: Plan) -> None:
        self.config, self.plan = config, plan
        self.columns, self.keys, self.trace = list[Columns](), dict[str, int](), Trace()
        self.tracks: list[Track] = []

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of `Learned`."""
        nearer = [f"{end}_{step}" for step in self.config.steps[:-1] for end in ENDS]
        return (*ENDS, *nearer, *SEEN)

    def read(self, block: Block, first: int) -> Rows:
        """Rows of a block, the first of which has number `first` in the table."""
        T, target = len(block), self.config.target
        if block.key is None:
            series = np.zeros(T, np.int64)
            self.keys.setdefault("", 0)
        else:
            values, begins, at = np.unique(block.key.astype(str), return_index=True, return_inverse=True)
            for value in values[np.argsort(begins)].tolist():
                self.keys.setdefault(value, len(self.keys))
            series = np.array([self.keys[value] for value in values.tolist()], np.int64)[at]
        self.make_room()
        known = np.zeros((T, self.plan.width))
        for number, own in by_series(series) if self.plan.width else ():
            numbers, texts = (
                {name: part[own] for name, part in parts.items()} for parts in (block.numbers, block.texts)
            )
            known[own] = self.columns[number].read(numbers, texts)
        y = block.numbers.get(target, np.full(T, np.nan))
        return _rows(self.plan, block, first, series, y, known)

    def learn(self, rows: Rows) -> Learned:
        """Learn rows, those of a series together. Results are ordered by `released`."""
        self.make_room()
        found = []
        for number, own in by_series(rows.head["series"]):
            found.append(self.tracks[number].learn(rows.take(own), self.trace if number == 0 else None))
        return _in_order(found) if found else Learned.nothing(self.plan, len(self.names))

    def make_room(self) -> None:
        """A track for each key."""
        while len(self.tracks) < len(self.keys):
            self.tracks.append(Track(self.config, self.plan))
            self.columns.append(Columns(self.plan))

    def finish(self) -> Learned:
        """Learn the rows that wait, whose known columns ahead are those of the last row."""
        none = Rows.blank(0, self.plan)
        tracks = [(number, track) for number, track in enumerate(self.tracks) if len(track.held)]
        found = [track.learn(none, self.trace if number == 0 else None, end=True) for number, track in tracks]
        return _in_order(found) if found else Learned.nothing(self.plan, len(self.names))

    def state(self) -> State:
        """All that a resumed run needs."""
        met = [columns.met for columns in self.columns]
        tracks = [track.state() for track in self.tracks]
        return {"keys": list(self.keys), "met": met, "trace": vars(self.trace), "tracks": tracks}

    def restore(self, state: State) -> None:
        """Go on from what `state` returned."""
        self.keys = {key: number for number, key in enumerate(state["keys"])}
        self.columns = [Columns(self.plan, met) for met in state["met"]]
        self.trace = Trace(**state["trace"])
        self.tracks = [Track(self.config, self.plan, saved) for saved in state["tracks"]]


class Classes:
    """Labels of a table."""

    names = ("forecast", "probability", "p_true", *SEEN)

    def __init__(self, config: Config, plan: Plan) -> None:
        self.config, self.plan = config, plan
        self.columns, self.trace, self.codes = Columns(plan), Trace(), dict[str, int]()
        self.labels = Labels(plan.width, method=config.method, delay=config.delay)
        self.monitor = Monitor(config.level, config.false_alarms)

    def read(self, block: Block, first: int) -> Rows:
        """Rows of a block, the first of which has number `first` in the table."""
        T, target = len(block), self.config.target
        known = self.columns.read(block.numbers, block.texts) if self.plan.width else np.zeros((T, 0))
        if target in block.texts:
            words = block.texts[target].astype(str).tolist()
        elif target in block.numbers:
            words = [label_of(value) if np.isfinite(value) else "" for value in block.numbers[target].tolist()]
        else:
            words = [""] * T
        codes = [self.codes.setdefault(word, len(self.codes)) if word else np.nan for word in words]
        return _rows(self.plan, block, first, 0, codes, known)

    def learn(self, rows: Rows) -> Learned:
        """Forecast each row, then learn it."""
        codes, T = np.nan_to_num(rows.y, nan=-1.0).astype(int), len(rows)
        out = self.labels.learn(codes, rows.known)
        self.trace.learn(self.labels.names, out.weights)
        chances = np.asarray(out.probability)
        seen = self.monitor.learn_labels(codes, chances)
        total = chances.sum(axis=1)
        own = chances[np.arange(T), np.maximum(codes, 0)] if chances.shape[1] else np.zeros(T)
        own = np.where(own > 0.0, own, 1.0 - total)  # a label never met has the rest
        best = np.argmax(chances, axis=1) if chances.shape[1] else np.zeros(T)
        highest = chances.max(axis=1, initial=0.0)
        said = [best.astype(float), highest, own]
        said = [np.where(total > 0.0, each, np.nan) for each in said]
        said[2] = np.where(codes >= 0, said[2], np.nan)
        unusual = (seen.tail, np.asarray(seen.outlier, float), seen.change_probability, seen.runlength)
        events = [(int(i), "outlier", float(seen.tail[i])) for i in np.flatnonzero(seen.outlier)]
        if not self.config.delay:
            events += [(int(i), "change", int(seen.start[i])) for i in np.flatnonzero(seen.change)]
        events.sort(key=lambda event: event[0])
        return Learned(rows, rows.head["row"], np.stack([*said, *unusual], axis=1), chances, events)

    def finish(self) -> Learned:
        """No row waits."""
        return Learned.nothing(self.plan, len(self.names))

    def state(self) -> State:
        """All that a resumed run needs."""
        parts = {"labels": _parts(self.labels), "monitor": _parts(self.monitor)}
        return {**parts, "codes": list(self.codes), "met": self.columns.met, "trace": vars(self.trace)}

    def restore(self, state: State) -> None:
        """Go on from what `state` returned."""
        self.labels, self.monitor = Labels.restore(*state["labels"]), Monitor.restore(*state["monitor"])
        self.codes = {label: code for code, label in enumerate(state["codes"])}
        self.columns, self.trace = Columns(self.plan, state["met"]), Trace(**state["trace"])


def _parts(one: Series | Labels | Monitor) -> list[Any]:
    """What its `restore` takes."""
    return [one.settings(), one.arrays()]


Learner = Numbers | Classes


def make(config: Config, plan: Plan) -> Learner:
    """The learner of a plan."""
    return Classes(config, plan) if plan.task == "classify" else Numbers(config, plan)


def _rows(plan: Plan, block: Block, first: int, series: Any, y: Any, known: np.ndarray) -> Rows:
    head = np.zeros(len(block), head_type(plan.dated))
    head["row"], head["line"], head["file"] = first + np.arange(len(block)), block.line, block.file
    head["time"], head["series"], head["y"] = np.nan if block.time is None else block.time, series, y
    return Rows(head, known)


def by_series(series: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Rows of each series."""
    order = np.argsort(series, kind="stable")
    numbers, starts = np.unique(series[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(order, starts[1:]), strict=False)  # no row, no series


def _in_order(found: list[Learned]) -> Learned:
    """Rows of all series in the order of the rows that released them."""
    released = np.concatenate([learned.released for learned in found])
    order = np.argsort(released, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    events, start = [], 0
    for learned in found:
        events += [(int(place[start + row]), kind, value) for row, kind, value in learned.events]
        start += len(learned.rows)
    rows = Rows.joined([learned.rows for learned in found]).take(order)
    columns = np.concatenate([learned.columns for learned in found])[order]
    events.sort(key=lambda event: event[0])
    return Learned(rows, released[order], columns, np.zeros((len(rows), 0)), events)
