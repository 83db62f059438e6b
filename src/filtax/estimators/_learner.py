"""What `Regressor` and `Classifier` share: rows into a series and its monitor, late labels, alarms, copies.

Rows wait and are learned together, `BLOCK` of them at most, or as soon as a forecast is asked for. A series gives the
same bits for any batching, so that this changes the time it takes and nothing else. The first rows are kept until the
width of the features is decided; where it grows, a wider series learns them again.
"""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from filtax import _validation as checks
from filtax._xla import cache_compilations, tune_if_possible
from filtax.estimators import _frames as frames
from filtax.estimators._frames import FIRST, Features
from filtax.estimators._parameters import Estimator, one_at_a_time
from filtax.monitoring import Monitor

BLOCK = 64  # rows that wait at most


class Seen(NamedTuple):
    """What the monitor said of the last row."""

    missing: float = 0.0
    outlier: float = 0.0
    change: float = 0.0
    change_probability: float = 0.0
    runlength: float = 0.0


class Learner(Estimator, ABC):
    """A stream of features and a target; `Regressor` and `Classifier` say what a target is."""

    method: Any
    level: Any = 0.9
    false_alarms: Any
    capacity: Any
    pending: Any

    # one row

    @one_at_a_time
    def learn_one(self, x: Any, y: Any, *, id: Hashable = None) -> None:
        """Learn from one row.

        Args:
            x: Features by name: numbers, texts, None where missing. None for a row that waits under `id`.
            y: The target; None or NaN where it is missing.
            id: Of a row that `predict_one(x, id=...)` was asked about. A label for an id that does not wait (never
                asked about, given up, or labelled before) is counted in `late_` and teaches nothing.
        """
        self._begin()
        if x is None:
            if id is None:
                raise ValueError("learn_one(None, y): give the features x, or the id of a row that was predicted.")
            if id not in self._late:
                self._unknown += 1
                return
            x = self._late[id]
        target = self._checked(y)  # before x gets new columns; a label becomes a class after x was read
        row = self._features.row(x)
        self._targets.append(self._code(target))
        self._rows.append(row)
        if id is not None:
            self._late.pop(id, None)
        self._counted(1)
        if len(self._rows) >= BLOCK:
            self._settle()

    def _ask(self, x: Any, id: Hashable = None) -> np.ndarray | None:
        """One row to forecast, (1, W), which waits for its label if it has an id; None before anything was learned."""
        if id is not None:
            self._begin()
            self._late.pop(id, None)
            self._late[id] = dict(x)
            while len(self._late) > self.pending:
                del self._late[next(iter(self._late))]
                self._given_up += 1
        if not self.__sklearn_is_fitted__():
            return None
        return np.array([self._features.row(x, learn=False)])

    # many rows

    @one_at_a_time
    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from many rows: exactly what `learn_one` learns from each in turn.

        Args:
            X: A table of pandas, polars, pyarrow or DuckDB, a dict of columns, an array, or a sequence of dicts.
            y: As many targets.
        """
        if frames.are_dicts(X):
            for x, target in zip(X, frames.labels(y, len(X)), strict=True):
                self.learn_one(x, target)
        else:
            self._begin()
            frame = frames.frame_of(X)
            self._learn_frame(frame, self._codes(y, len(frame)))

    def _learn_frame(self, frame: frames.Frame, y: np.ndarray) -> None:
        start = min(max(FIRST - self._count, 0), len(y))
        for rows in (slice(0, start), slice(start, len(y))):  # the width is decided in between
            if rows.start == rows.stop:
                continue
            table = self._features.table(frame.cut(rows))
            self._counted(len(table))
            if len(self._rows) + len(table) < BLOCK:
                self._rows += table.tolist()
                self._targets += y[rows].tolist()
            else:
                self._settle()
                self._learn(table, y[rows])

    @one_at_a_time
    def fit(self, X: Any, y: Any):
        """Forget everything, then learn from the rows of a table or an array, in their order."""
        self._forget("_features", "_labels")
        return self._fit(X, y, whole=True)

    def _fit(self, X: Any, y: Any, whole: bool = False):
        self._begin()
        frame = self._fitted(X)
        codes = self._codes(y, len(frame))
        if whole and np.isnan(codes).all():
            raise ValueError("Input y contains NaN in every row; give at least one target.")
        self._learn_frame(frame, codes)
        self._settle()
        return self

    def _rows_of(self, X: Any) -> Float[np.ndarray, "T W"]:
        """Rows to forecast, of a table or an array like those that were fitted."""
        if "sklearn" in sys.modules:
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self)
        if not self.__sklearn_is_fitted__():
            raise ValueError(f"This {type(self).__name__} is not fitted yet; call fit, partial_fit or learn_one first.")
        return self._table(self._fitted(X) if "n_features_in_" in vars(self) else frames.frame_of(X))

    def _table(self, frame: frames.Frame) -> Float[np.ndarray, "T W"]:
        return self._features.table(frame, learn=False)

    # what the last row showed

    @property
    def alarm_(self) -> str | None:
        """What the last row was: None if it was as expected, else "outlier", "change" or "missing"."""
        seen = self._shown("alarm_")
        return "missing" if seen.missing else "change" if seen.change else "outlier" if seen.outlier else None

    @property
    def change_probability_(self) -> float:
        """Probability that the process has changed of late."""
        return self._shown("change_probability_").change_probability

    @property
    def runlength_(self) -> int:
        """Rows since the last change."""
        return int(self._shown("runlength_").runlength)

    @property
    def late_(self) -> dict[str, int]:
        """Labels that came late: how many rows wait, how many were given up, how many labels had no row."""
        if "_late" not in vars(self):
            return {"waiting": 0, "given_up": 0, "unknown": 0}
        return {"waiting": len(self._late), "given_up": self._given_up, "unknown": self._unknown}

    @one_at_a_time
    def _shown(self, name: str) -> Seen:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"nothing was learned yet: {type(self).__name__} has no {name} before the first row.")
        self._settle()
        self._watch()
        return self._seen

    def __sklearn_is_fitted__(self) -> bool:
        """Whether anything was learned."""
        return vars(self).get("_count", 0) > 0

    # what a target is

    @abstractmethod
    def _checked(self, y: Any) -> Any:
        """A target, refused where it cannot be learned; nothing is stored yet."""

    def _code(self, target: Any) -> float:
        """The number of a checked target, NaN where it is missing."""
        return target

    @abstractmethod
    def _codes(self, y: Any, length: int) -> Float[np.ndarray, " T"]:
        """Targets as numbers."""

    @abstractmethod
    def _new(self, width: int, saved: tuple[dict, dict] | None = None) -> Any:
        """The series that learns, or that goes on from settings and arrays."""

    @abstractmethod
    def _advance(self, rows: np.ndarray, y: np.ndarray, asked: np.ndarray | None) -> tuple[tuple[np.ndarray, ...], Any]:
        """Learn rows; what was forecast for them, and what is then said of the rows that are asked about."""

    @abstractmethod
    def _judge(self, y: np.ndarray, *issued: np.ndarray) -> Any:
        """What the monitor says of rows and their forecasts."""

    # what is remembered

    def _begin(self) -> None:
        """Start the stream, once; the parameters are checked here and not before."""
        if "_features" in vars(self):
            return
        for name, value in (("false_alarms", self.false_alarms), ("level", self.level)):
            if not isinstance(value, int | float) or not 0.0 < value < 1.0:
                raise ValueError(f"{name} must lie between 0 and 1, got {value!r:.60}; it is a probability.")
        checks.whole("pending", self.pending, least=0, hint="It is how many rows may wait for a label.")
        if not isinstance(self.method, str | None):
            raise ValueError(
                f"method must be the name of a filter, or None for the standard ones, got {self.method!r:.60}."
            )
        features = Features(self.capacity)
        start_jax()
        if self.method is not None:
            self._new(0)  # refuses an odd name at once
        self._driver: Any = None
        self._monitor: Any = None
        self._width = 0  # of the driver
        self._rows: list[list[float]] = []  # that wait, with their targets
        self._targets: list[float] = []
        self._first: tuple[np.ndarray, np.ndarray] | None = (np.zeros((0, 0)), np.zeros(0))
        self._issued: list[tuple[np.ndarray, ...]] = []  # targets and forecasts that the monitor has not seen
        self._late: dict[Hashable, dict] = {}
        self._count = self._given_up = self._unknown = 0
        self._seen = Seen()
        self._features = features

    def _counted(self, rows: int) -> None:
        self._count += rows
        if self._count >= FIRST:
            self._features.growing = False

    def _settle(self, asked: np.ndarray | None = None) -> Any:
        """Learn the rows that wait; what is then said of the rows that are asked about."""
        if not self._rows:
            return None if asked is None else self._driver.predict(asked)
        said = self._learn(_padded(self._rows, self._features.width), np.array(self._targets), asked)
        self._rows, self._targets = [], []
        return said

    def _learn(self, rows: np.ndarray, y: np.ndarray, asked: np.ndarray | None = None) -> Any:
        width = self._features.width
        new = self._driver is None or self._width != width
        if self._first is not None:
            past = np.concatenate([_padded(self._first[0], width), rows]), np.concatenate([self._first[1], y])
            self._first = past if len(past[0]) < FIRST else None
            rows, y = past if new else (rows, y)
        if new:
            self._driver, self._width, self._issued = self._new(width), width, []
            self._monitor = Monitor(level=self.level, false_alarms=self.false_alarms)
        issued, said = self._advance(rows, y, asked)
        self._issued.append((y, *issued))
        if len(self._issued) >= BLOCK or len(y) >= BLOCK:
            self._watch()
        return said

    def _watch(self) -> None:
        """Show the monitor what it has not seen."""
        if not self._issued:
            return
        y, *issued = (_joined(parts) for parts in zip(*self._issued, strict=True))
        seen, self._issued = self._judge(y, *issued), []
        last = (seen.outlier, seen.change, seen.change_probability, seen.runlength)
        self._seen = Seen(float(np.isnan(y[-1])), *(float(part[-1]) for part in last))

    # copies

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What was learned: settings that json can write if it can write the names, and arrays."""
        self._begin()
        self._watch()
        counts = np.array([self._count, self._given_up, self._unknown, *self._seen])
        arrays = {"rows": _padded(self._rows, self._features.width), "y": np.array(self._targets), "counts": counts}
        if self._first is not None:
            arrays |= {"first rows": self._first[0], "first y": self._first[1]}
        note = {
            "features": self._features.settings(),
            "late": [[id, [[name, value] for name, value in x.items()]] for id, x in self._late.items()],
            "width": self._width,
            **self._columns(),
        }
        if self._driver is not None:
            note |= {"driver": self._driver.settings(), "monitor": self._monitor.settings()}
            arrays |= {f"driver {name}": array for name, array in self._driver.arrays().items()}
            arrays |= {f"monitor {name}": array for name, array in self._monitor.arrays().items()}
        return note, arrays

    def _resume(self, note: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        self._begin()
        super()._resume(note, arrays)
        self._features.restore(note["features"])
        self._late = {id: dict(map(tuple, row)) for id, row in note["late"]}
        self._width = note["width"]
        count, given_up, unknown, *seen = arrays["counts"].tolist()
        self._count, self._given_up, self._unknown, self._seen = int(count), int(given_up), int(unknown), Seen(*seen)
        self._rows, self._targets = arrays["rows"].tolist(), arrays["y"].tolist()
        self._first = (arrays["first rows"], arrays["first y"]) if "first y" in arrays else None
        if "driver" in note:
            self._driver = self._new(self._width, (note["driver"], _named(arrays, "driver ")))
            self._monitor = Monitor.restore(note["monitor"], _named(arrays, "monitor "))

    @property
    def _raw_memory_usage(self) -> int:  # for river
        note, arrays = self._state()
        return len(str(note)) + sum(array.nbytes for array in arrays.values())

    @property
    def _memory_usage(self) -> str:  # for river
        return f"{self._raw_memory_usage / 1024:.2f} KiB"

    @one_at_a_time
    def __getstate__(self) -> dict[str, Any]:
        return {"params": self.get_params(), "learned": self._state() if "_features" in vars(self) else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state["params"])
        if state["learned"] is not None:
            self._resume(*state["learned"])


@cache
def start_jax() -> None:
    """Compile small loops as one kernel where JAX has not begun, and keep compiled programs in the user's cache."""
    tune_if_possible()
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ and jax.config.values["jax_compilation_cache_dir"] is None:
        cache_compilations()


def _padded(rows: Any, width: int) -> Float[np.ndarray, "T W"]:
    """Rows of one width; the columns that some of them lack are missing there."""
    padded = [[*row, *[np.nan] * (width - len(row))] if len(row) < width else row for row in rows]
    return np.array(padded, float).reshape(len(rows), width)


def _joined(parts: tuple[np.ndarray, ...]) -> np.ndarray:
    """Batches one after the other; a column that a batch lacks, as of a class not met yet, is 0 there."""
    width = max(part.shape[1:] for part in parts)
    if any(part.shape[1:] != width for part in parts):
        parts = tuple(np.pad(part, ((0, 0), (0, width[0] - part.shape[1]))) for part in parts)
    return np.concatenate(parts)


def _named(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
