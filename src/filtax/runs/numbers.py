"""Learn a number from blocks of rows: features, forecast, learning, what each row showed.

With a season, the features are made of the target itself, and further columns stand beside them; without, the other
columns are all there is, and the target is put into units as they are.

Axes: B rows, S series, D columns of the design.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from filtax._validation import placed
from filtax.estimators.intervals import Parts, interval, parts_of, place
from filtax.runs.bands import ENDS, Bands, restored
from filtax.runs.blocks import Block, numbered, padded
from filtax.runs.carry import mean_of, moved
from filtax.runs.course import Course, cells
from filtax.runs.early import Early
from filtax.runs.engine import Learner
from filtax.runs.hindsight import Beginning, in_hindsight
from filtax.runs.hourly import Hours
from filtax.runs.inputs import Inputs, Pool, next_stop
from filtax.runs.jumps import Jumps
from filtax.runs.large import FAR, held, released
from filtax.runs.late import Arrived, Late
from filtax.runs.moves import Moves
from filtax.runs.plan import Plan
from filtax.runs.rivals import Rivals
from filtax.runs.surprise import Once, Surprise
from filtax.runs.trace import Trace
from filtax.runs.verdicts import verdicts
from filtax.streams import TimedFeatures
from filtax.streams.timed import SPARED

__all__ = ["NumberStream"]

SAID = ("forecast", "lower", "upper", "pit", "log_score", "trust", "change_probability", "runlength")
KEPT = ("late", "bands", "jumps", "trace")
# What runs of before do not have, and what of their plan says so.
LATER = {"once": "races", "course": "bends", "beginning": "hindsight", "early": "early", "moves": "moves"}
LATER["hours"] = "hourly"


class NumberStream:
    """Everything that is known about the series of a run; `learn` takes the next rows in.

    >>> from filtax.runs.config import Config
    >>> from filtax.runs.plan import decide
    >>> t = np.arange(300.0)
    >>> block = Block({"y": np.sin(t)}, {}, t, None, np.arange(300), np.zeros(300), [], None)
    >>> asked = Config("-", "y", time="t", method="LG+C-Static", block=512)
    >>> stream = NumberStream(decide(asked, block))
    >>> said, found = stream.learn(block)
    >>> bool(np.abs(said["forecast"] - np.sin(t))[-50:].max() < 0.1)
    True
    """

    def __init__(
        self,
        plan: Plan,
        keys: list[str] | None = None,
        met: dict | None = None,
        width: int = 0,
        learner: Learner | None = None,
    ) -> None:
        config = plan.config
        self.plan, self.rows = plan, 0
        self.keys = {key: i for i, key in enumerate(keys or [""])} if keys else ({} if config.key else {"": 0})
        self.inputs = Inputs(plan.numbers, plan.texts, met)
        spared = SPARED if plan.patient else 1
        more = {"spared": spared, "recurring": plan.recurring, "levels": plan.levels}
        self.maker = TimedFeatures(plan.season, config.late + 1, **more) if plan.season else None
        cycles = plan.season.cycles if plan.season else ()
        self.made = max(width, len(self.maker.names) if self.maker else 1)  # columns up to the width are zero
        extra = len(self.inputs.names)
        self.pools = [Pool.start(extra), Pool.start(1)]  # of the columns, of the target
        self.units = [Pool.start(extra), Pool.start(1)]  # those in use
        assert config.method is not None
        assert config.prior is not None
        self.learner = learner or Learner(config.method, self.made + extra, config.prior, limit=plan.limit)
        self.rivals, self.surprise = Rivals(cycles or plan.cycles, config.late), Surprise(config.false_alarms)
        self.slots, self.carry = 1, self.learner.fresh(1)
        self.seen, self.trace = 0, Trace(self.made + extra)
        self.grids: list[dict[str, np.ndarray]] = []
        self.late, self.bands = Late(config.late, self.made + extra), Bands(config.level, config.late, plan.wary)
        self.once, self.kept = Once(), (*KEPT, *(name for name, since in LATER.items() if getattr(plan, since)))
        season = cycles[0] if cycles else 0
        self.jumps, self.early = Jumps(config.false_alarms, season), Early(config.false_alarms, season)
        self.moves, self.hours = Moves(config.false_alarms, cycles), Hours(config.level, cycles)
        self.course, self.beginning = Course(config.false_alarms, cycles, plan.growth), Beginning(config.late)
        self._make_room()

    @property
    def names(self) -> tuple[str, ...]:
        """What `learn` returns for each row."""
        return ("y", *SAID, *self.rivals.names)

    @property
    def columns(self) -> tuple[str, ...]:
        """Name of each weight."""
        made = self.maker.names if self.maker else ("constant",)
        return (*made, *("(none)",) * (self.made - len(made)), *self.inputs.names)

    @property
    def watches(self) -> bool:
        """Whether changes are looked for; not where labels come late, as errors then come in groups."""
        return not self.late.delay

    @property
    def streams(self) -> tuple["NumberStream", ...]:
        """A stream for each step that is forecast, the nearest first."""
        return (self,)

    def learn(self, block: Block) -> tuple[dict[str, np.ndarray], list[tuple[int, str, Any]]]:
        """Forecast each row, then learn it: what is to be written for each, and the events."""
        return in_hindsight(self, block) if self.plan.hindsight else self.take(block)

    def young(self) -> "NumberStream":
        """One that knows nothing yet, for a single series."""
        return NumberStream(replace(self.plan, hindsight=False), None, None, self.made, self.learner)

    def take(self, block: Block) -> tuple[dict[str, np.ndarray], list[tuple[int, str, Any]]]:
        """The same, without a look back at the first rows."""
        given, block = block, block._replace(numbers=held(block.numbers, self.plan.powers))
        y = np.asarray(block.numbers[self.plan.config.target], np.float64)
        slot = self.slots_of(block)
        X, base, scale, u, absurd, usual = self.features(block, slot, y)
        rows = np.concatenate([X, self.inputs.read(block)], axis=1)
        come, v = np.cumsum(self.late.come(slot)), y if self.maker is None else u
        said, stretch = {name: np.full(len(y), np.nan) for name in SAID}, np.zeros(len(y))
        alarms, start, again = np.zeros(len(y)), 0, absurd > 1.0  # a fault that lasts is one, however many rows it has
        while start < len(y):
            stop = min(len(y), self._stretch(come, start), start + self.plan.config.block)
            stop = min(stop, start + self.trace.left(self.seen))
            part = slice(start, stop)
            if self.maker is None:
                base[part], scale[part] = self.target_units()
            arrived = self.late.exchange(slot[part], rows[part], v[part])
            told = self.advance(slot[part], rows[part], arrived, (y[part] - base[part]) / scale[part])
            stretch[part] = self._say(said, part, told, slot[part], base[part], scale[part], v[part], again[part])
            alarms[part] = told[3]["alarm"]
            self._renew(rows[part], arrived)
            self.seen += stop - start
            self.trace.look(self.seen, lambda: mean_of(self.carry))
            start = stop
        rivals = self.rivals.forecast(slot, y)
        cell = cells(self.plan.season, self.grids, block.time, slot)
        alone = (scale != 1.0) & (absurd != 0.0)
        found = verdicts(self, slot, y, said, stretch, alarms, alone, again, usual, cell)
        found = self.once.tell(slot, found)
        for row, kind, _ in found:  # other watches than the method's own have told of it: so sure is each of them
            if kind == "change" and not self.late.delay:
                said["change_probability"][row] = np.fmax(said["change_probability"][row], 1.0 - self.surprise.rate)
        told = {**said, **dict(zip(self.rivals.names, rivals.T, strict=True))}
        return {"y": given.numbers[self.plan.config.target], **released(told, self.plan.power)}, found

    def state(self) -> PyTree:
        """All arrays that a resumed run needs."""
        arrays = {
            "units": [pool.arrays for pool in (*self.pools, *self.units)],
            "grids": self.grids,
            "past": self.rivals.past,
            "total": self.rivals.total,
            "scores": self.surprise.scores,
            "rows": np.array([self.rows, self.seen]),
            **{name: getattr(self, name).arrays for name in self.kept},
        }
        return {"carry": self.carry, "arrays": arrays}

    def restore(self, state: PyTree) -> None:
        """Go on from what `state` returned."""
        self.carry, arrays = state["carry"], state["arrays"]
        pools = [Pool(*array) for array in arrays["units"]]
        self.pools, self.units, self.grids = pools[:2], pools[2:], arrays["grids"]
        self.rivals.past, self.rivals.total = arrays["past"], arrays["total"]
        self.surprise.scores = arrays["scores"]
        self.rows, self.seen = arrays["rows"].tolist()
        for name in self.kept:
            getattr(self, name).restore(arrays[name])

    def note(self) -> dict[str, Any]:
        """The rest: plain values."""
        return {"keys": list(self.keys), "met": self.inputs.met}

    def slots_of(self, block: Block) -> np.ndarray:
        """Number of the series of each row, (B,)."""
        slot = numbered(block, self.keys)
        self._make_room()
        return slot

    def _make_room(self) -> None:
        """Room for the series: 1, 2, 4, ... slots, so that few sizes are ever compiled."""
        slots = self.slots
        while slots < len(self.keys):
            slots *= 2
        if slots > self.slots:
            more = self.learner.fresh(slots - self.slots)
            self.carry = jax.tree.map(lambda old, new: placed(np.concatenate([old, new])), self.carry, more)
            self.slots = slots
        for name in (*KEPT[:-1], "rivals", "surprise", *LATER):
            getattr(self, name).make_room(slots)
        if self.maker:
            self.grids += [self.maker.init() for _ in range(slots - len(self.grids))]

    def features(self, block: Block, slot: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
        """Rows of what is made of y; base, scale, what to learn, if y is absurd, usual; NaN where none is made."""
        X, (base, scale, u, absurd, usual) = np.eye(1, self.made).repeat(len(y), 0), np.full((5, len(y)), np.nan)
        if self.maker is None or block.time is None:
            return X, base, scale, u, absurd, usual
        for series in np.unique(slot[slot >= 0]):
            rows = np.flatnonzero(slot == series)
            self.grids[series], made = self.maker.make(self.grids[series], block.time[rows], y[rows])
            X[rows, : made.X.shape[1]], base[rows] = made.X, made.base
            scale[rows], u[rows], absurd[rows], usual[rows] = made.scale, made.target, made.absurd, made.usual
        if self.plan.patient:  # too far off to learn from
            u = np.where((absurd > 0.0) & np.isfinite(u), np.inf, u)
        return X, base, scale, u, absurd, usual

    def _stretch(self, come: np.ndarray, start: int) -> int:
        """The row of a block before which units are renewed: they change with the number of labels that have come."""
        if self.maker is not None and not self.inputs.names:
            return len(come)
        before = come[start - 1] if start else 0
        return int(np.searchsorted(come, before + next_stop(self.rows) - self.rows)) + 1

    def target_units(self) -> tuple[np.ndarray, np.ndarray]:
        """Base and scale of a target of which no features are made."""
        unit = self.units[1]
        known = np.where(unit.count > 0.0, 1.0, np.nan)
        return known * unit.mean, np.where(unit.scale > 0.0, unit.scale, known)

    def design(self, rows: np.ndarray) -> np.ndarray:
        """Rows in the units of now."""
        return np.concatenate([rows[:, : self.made], self.units[0].standard(rows[:, self.made :])], axis=1)

    def advance(
        self, slot: np.ndarray, rows: np.ndarray, arrived: Arrived, y: np.ndarray
    ) -> tuple[Parts, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Forecast rows and learn those whose labels came: forecasts, where y fell in them, its density, and infos."""
        n, pad, v = len(rows), partial(padded, size=self.plan.config.block), arrived.labels
        if self.maker is None:
            base, scale = self.target_units()
            v = (v - base) / scale
        far = np.abs(v) > FAR
        v = np.where(far, np.nan, v)
        late = None
        if self.late.delay:
            late = (pad(self.design(arrived.rows)), pad(arrived.come), pad(arrived.ahead))
        self.carry, made, told = self.learner.advance(self.carry, pad(slot), pad(self.design(rows)), pad(v), n, late)
        parts = parts_of(made, n)
        with np.errstate(invalid="ignore"):
            pit, density = place(parts, np.clip(y, -FAR, FAR))
        infos = {name: np.asarray(values)[:n] for name, values in told.items()}
        return parts, pit, density, {**infos, "trust": np.where(far, 0.0, infos["trust"])}

    def _say(
        self, said: dict[str, np.ndarray], part: slice, told: tuple, slot: np.ndarray, *units: np.ndarray
    ) -> np.ndarray:
        """Fill in what is told of some rows, in the unit of the target; how far their intervals are stretched."""
        parts, pit, density, infos = told
        base, scale, u, again = units
        ready = np.isfinite(scale)
        warm = ready & ~np.isnan(u)  # while the scale is not known, where y falls tells nothing
        said["pit"][part] = np.where(warm, pit, np.nan)
        stretch = self.bands.follow(slot, np.where(again, np.nan, said["pit"][part]))
        lower, upper = interval(parts, self.bands.levels(stretch))
        for name, values in zip(ENDS, (parts.mean, lower, upper), strict=True):
            said[name][part] = restored(name, base, scale, values)
        said["log_score"][part] = np.where(warm, density - np.log(np.where(ready, scale, 1.0)), np.nan)
        if not self.late.delay:
            for name in ("trust", "change_probability", "runlength"):
                said[name][part] = np.where(warm, infos[name], np.nan)
        return stretch

    def _renew(self, rows: np.ndarray, arrived: Arrived) -> None:
        """Remember the rows; where it is time, go over to new units."""
        self.pools[0].add(rows[:, self.made :])
        if self.maker is None:
            self.pools[1].add(arrived.labels[arrived.come, None])
        before, self.rows = self.rows, self.rows + int(arrived.come.sum())
        if (self.maker is not None and not self.inputs.names) or self.rows < next_stop(before):
            return
        if self.maker is None and self.pools[1].outgrown():
            self.carry, self.units = self.learner.fresh(self.slots), [Pool.start(p.count.size) for p in self.pools]
        for pool in self.pools:
            pool.close()
        now = [Pool(*pool.moments) for pool in self.pools]
        if self.maker is not None:
            now[1] = self.units[1]
        self.carry = moved(self.carry, self.units, now, self.made, target=self.maker is None)
        self.units = now
