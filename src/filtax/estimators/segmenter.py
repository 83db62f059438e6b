"""Tell when a stream of readings changed."""

import math
from collections.abc import Mapping
from itertools import repeat
from typing import Any

import jax
import numpy as np

from filtax import checks
from filtax.estimators import arrays
from filtax.estimators.alarms import acted_on
from filtax.estimators.features import is_missing
from filtax.estimators.gross import gross
from filtax.estimators.params import Estimator
from filtax.estimators.reading import reader
from filtax.estimators.stretch import deviation
from filtax.segmentation import Settings
from filtax.segmentation.plan import build
from filtax.state import State

__all__ = ["Segmenter"]

READINGS = "reading"
SPARED = 2  # odd readings in a row that may be errors; one more, and all of them are believed
FAR = 1e100  # units that a reading is taken to be away at most: its square is a number too
OFTEN, PACE = 0.3, 0.1  # share of odd readings among the last 1/PACE or so from which on they are no errors


class Segmenter(Estimator):
    """Changes of one or several readings that change together, told of while they come.

    The alarms of `filtax.segmentation.detect` without a cycle, one reading at a time and in bounded memory: in each
    segment a line and a noise of its own, and the posterior of where the present segment began. A reading that is odd
    is an outlier, and not learned from; if two more follow, or every third of late was odd, they are no errors, and
    are believed.

    Args:
        threshold: Probability of a new regime at which to give an alarm; `filtax.segmentation.calibrate` finds one for
            a chosen rate of false alarms.
        hazard: Probability of a change at a reading.
        least: Readings that a new regime must hold before it is told of.
        warmup: Readings that give the unit of the stream; no change is told of before they are there, and only gross
            errors are outliers, from the ninth reading on.
        keep: Hypotheses kept about the start of the present segment.
        false_alarms: Probability that a good reading is called an outlier; above 0.001 such a reading is learned from
            all the same, if it is no odder than 0.001 of good ones are. 0 believes every reading.

    >>> model = Segmenter()
    >>> for t in range(120):
    ...     model.learn_one({"volts": math.sin(37.0 * t) + (9.0 if t >= 80 else 0.0)})
    >>> model.changes_
    [80]
    """

    def __init__(
        self,
        threshold: Any = 0.99,
        hazard: Any = 0.01,
        least: Any = 5,
        warmup: Any = 30,
        keep: Any = 100,
        false_alarms: Any = 0.001,
    ):
        self.threshold = threshold
        self.hazard = hazard
        self.least = least
        self.warmup = warmup
        self.keep = keep
        self.false_alarms = false_alarms

    def learn_one(self, x: Any, y: Any = None) -> None:
        """Take one reading.

        Args:
            x: A number, or several by name; None or NaN where missing, and an infinite one is an outlier: neither is
                learned. The names of the first reading stay.
            y: The reading itself where x is None or empty, as in `learn_one({}, error)`, which watches a target or the
                errors of another model; not looked at otherwise.

        >>> model = Segmenter()
        >>> for t in range(120):
        ...     model.learn_one({}, math.sin(37.0 * t) + (9.0 if t >= 80 else 0.0))
        >>> model.changes_
        [80]
        """
        x = x if isinstance(x, Mapping) else {READINGS: x}
        empty = not x or (len(x) == 1 and x.get(READINGS, 0.0) is None)
        if empty and y is not None and vars(self).get("_names", [READINGS]) == [READINGS]:
            x = {READINGS: y}
        if "_names" not in vars(self):
            if not x:
                raise ValueError(
                    "Segmenter.learn_one: x is {} and there is no y; give {name: number}, or the reading as y."
                )
            self._begin(sorted(x, key=repr))
        row = [math.nan if is_missing(x.get(name)) else float(x[name]) for name in self._names]
        self._read(np.array([row]))

    def learn_many(self, X: Any, y: Any = None) -> None:
        """Take many readings, as `learn_one` does with each: a data frame, or a sequence of dicts or numbers."""
        rows = X.to_dict("records") if hasattr(X, "columns") else X
        for x, own in zip(rows, repeat(None) if y is None else y, strict=y is not None):
            self.learn_one(x, own)

    def predict_one(self, x: Any = None) -> int:
        """The segment that the next reading is in, counted from 0, as far as is known."""
        return len(vars(self).get("changes_", ()))

    def fit(self, X: Any, y: Any = None) -> "Segmenter":
        """Forget everything, then take the rows of an array (T, O) as readings."""
        held = "_names _early _doubted _before _calm _share _state _sums _unit _last"
        for name in (*held.split(), "changes_", "n_features_in_", "feature_names_in_", "t_"):
            vars(self).pop(name, None)
        return self.partial_fit(X)

    def partial_fit(self, X: Any, y: Any = None) -> "Segmenter":
        """Go on with the rows of an array (T, O) as readings."""
        owner = type(self).__name__
        names, table = arrays.names_of(X), arrays.matrix(owner, X)
        if "n_features_in_" not in vars(self):
            self.n_features_in_ = table.shape[1]
            if names is not None:
                self.feature_names_in_ = names
        known = getattr(self, "feature_names_in_", None)
        arrays.same_features(owner, known, self.n_features_in_, names, table.shape[1])
        if "_names" not in vars(self):
            self._begin(list(range(table.shape[1])) if known is None else list(known))
        for row in table:
            self._read(row[None])
        return self

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """The segment of each row, counted from 0, as known at the end."""
        self.fit(X)
        return np.searchsorted(self.changes_, np.arange(self.t_), side="right")

    def _begin(self, names: list) -> None:
        checks.share("threshold", self.threshold, hint="It is the probability of a new regime that gives an alarm.")
        checks.whole("warmup", self.warmup, least=2, hint="It is a number of readings.")
        checks.share("false_alarms", self.false_alarms, hint="It is a probability for each reading.")
        checks.whole("least", self.least, least=1, hint="It is a number of readings.")
        self._settings()
        self._names, self._early = names, []
        self._doubted: list[np.ndarray] = []  # odd readings in a row, and what was known before them
        self._before: tuple = ()
        self._calm, self._share = 0, 0.0  # readings that are believed whatever they are; how many were odd of late
        self.changes_: list[int] = []
        self.t_ = 0
        self._last = {"alarm": None, "trust": 1.0, "odds": -math.inf, "start": 0}

    def _settings(self) -> Settings:
        return Settings(hazard=self.hazard, noise=0.5, keep=self.keep)

    def _read(self, row: np.ndarray) -> None:
        """One reading: kept until there are enough to know their unit, then watched."""
        infinite, row = bool(np.isinf(row).any()), np.where(np.isfinite(row), row, np.nan)
        self.t_ += 1
        self._last = {**self._last, "alarm": None, "trust": 1.0}
        if "_state" not in vars(self):
            self._early.append(row)
            if self._gross(np.concatenate(self._early))[-1]:
                self._last |= {"alarm": "outlier", "trust": 0.0}
            if len(self._early) == self.warmup:
                rows, self._early = np.concatenate(self._early), []
                self._set_out(rows)
        else:
            self._judge(self._in_units(row))
        if np.isnan(row).all() and self._last["alarm"] is None:
            self._last |= {"alarm": "outlier" if infinite else "missing", "trust": 0.0}

    def _set_out(self, rows: np.ndarray) -> None:
        """The first readings give the unit, and what a segment born among them expects; not gross errors among them."""
        wrong, given = self._gross(rows), rows
        unsettled = int(np.argmin(wrong[::-1]))  # odd readings at the end, of which the next ones tell what they are
        rows = np.where(wrong[:, None], np.nan, rows)
        came = np.isfinite(rows)
        number = np.maximum(came.sum(axis=0), 1)
        filled = np.where(came, rows, 0.0)
        middle = filled.sum(axis=0) / number
        spread = np.sqrt(np.where(came, (filled - middle) ** 2, 0.0).sum(axis=0) / number)
        self._unit = (middle, np.where(spread > 0.0, spread, 1.0))
        z = (rows - middle) / self._unit[1]
        self._sums = [np.zeros(len(middle)) for _ in range(3)]
        self._count(z)
        self._state = self._start(len(middle))
        for one in z[: len(z) - unsettled]:
            self._watch(one[None], count=False)
        for one in given[len(z) - unsettled :]:
            self._judge(self._in_units(one[None]))

    def _in_units(self, row: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.clip((row - self._unit[0]) / self._unit[1], -FAR, FAR)

    def _gross(self, rows: np.ndarray) -> np.ndarray:
        doubts = 0.0 < self.false_alarms < 1.0
        return gross(rows, SPARED, OFTEN) if doubts else np.zeros(len(rows), bool)

    def _start(self, outputs: int) -> State:
        with jax.enable_x64(True):
            return build(self._settings(), outputs, cyclic=False)[1]

    def _count(self, z: np.ndarray) -> None:
        came = np.isfinite(z)
        filled = np.where(came, z, 0.0)
        for total, more in zip(self._sums, (came, filled, filled**2), strict=True):
            total += more.sum(axis=0)

    def _judge(self, z: np.ndarray) -> None:
        """Learn a reading, unless it is odd; too many odd ones in a row were none."""
        read = self._look(z)
        odd = self._beyond(z, read[2], acted_on(self.false_alarms))
        self._share += PACE * (float(odd) - self._share)
        believed, self._calm = bool(self._calm) or self._share > OFTEN, max(self._calm - 1, 0)
        if not odd or believed:
            self._doubted = [] if np.isfinite(z).any() else self._doubted
            self._take(z, read)
            if not believed and self._beyond(z, read[2], self.false_alarms):
                self._last["alarm"] = self._last["alarm"] or "outlier"
            return None
        if not self._doubted:
            self._before = (self._state, [total.copy() for total in self._sums])
        self._doubted.append(z)
        if len(self._doubted) <= SPARED:
            nothing = np.full_like(z, np.nan)
            self._take(nothing, self._look(nothing))
            self._last |= {"alarm": self._last["alarm"] or "outlier", "trust": 0.0}
            return None
        (self._state, self._sums), rows, self._doubted = self._before, self._doubted, []
        self._calm = max(self.least, 1)
        for one in rows:
            self._take(one, self._look(one))
        return None

    def _beyond(self, z: np.ndarray, deviations: float, rate: float) -> bool:
        """Whether the oddest of the readings that came is odder than that of good ones is at a rate."""
        each = 1.0 - (1.0 - rate) ** (1.0 / max(np.isfinite(z).sum(), 1))
        return 0.0 < self.false_alarms < 1.0 and deviations > deviation(1.0 - each)

    def _watch(self, z: np.ndarray, count: bool = True) -> None:
        self._take(z, self._look(z), count)

    def _look(self, z: np.ndarray) -> tuple[State, tuple, float]:
        """What a reading would make of the state, what it would tell, and how odd it is; nothing changes."""
        number = np.maximum(self._sums[0], 1.0)
        centre = self._sums[1] / number
        variance = max(float((self._sums[2] / number - centre**2).mean()), 1e-6)
        since = self.changes_[-1] if self.changes_ else 0
        odds = math.log(self.threshold) - math.log1p(-self.threshold) if 0.0 < self.threshold < 1.0 else math.inf
        y = z if len(centre) > 1 else z[:, 0]
        with jax.enable_x64(True):
            kernel = reader(self._settings(), len(centre))
            state, told, odd = kernel(self._state, centre, variance, y, odds, since, self.least)
        return state, told, float(odd)

    def _take(self, z: np.ndarray, read: tuple, count: bool = True) -> None:
        self._state, told, _ = read
        alarm, start, log_odds = (part[0] for part in map(np.asarray, told))
        if count:
            self._count(z)
        self._last = {**self._last, "odds": float(log_odds), "start": int(start)}
        if alarm:
            self.changes_.append(int(start))
            self._last["alarm"] = "change"

    def __sklearn_is_fitted__(self) -> bool:
        """Whether anything was read."""
        return "_names" in vars(self)

    def _told(self, name: str) -> Any:
        if "_last" not in vars(self):
            raise AttributeError(f"nothing was read yet: Segmenter has no {name} before the first reading.")
        return self._last[name]

    @property
    def alarm_(self) -> str | None:
        """What the last reading brought: None, "outlier", "change", or "missing"."""
        return self._told("alarm")

    @property
    def change_probability_(self) -> float:
        """Probability that a regime began after the last change that was told of."""
        return 1.0 / (1.0 + math.exp(-max(self._told("odds"), -700.0)))

    @property
    def runlength_(self) -> int:
        """Most probable number of readings since the present segment began."""
        return self.t_ - 1 - self._told("start") if "_state" in vars(self) else self.t_ - 1

    @property
    def trust_(self) -> float:
        """1.0 for a reading that was learned from, 0.0 for one that is missing or too odd."""
        return self._told("trust")
