"""Names to columns: features that come and go, numbers and texts, in rows of one width.

A number has a column, and a text has an indicator column for each of its values. The first `FIRST` rows decide the
width: the least of `SIZES` that has a column for each name. Names that come when all columns are taken share the last
ones by a checksum, so that memory stays bounded.
"""

import math
import warnings
import zlib
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from filtax import _validation as checks
from filtax.estimators._frames import Frame, is_missing

FIRST = 64  # rows that decide the width
SIZES = (0, 3, 9, 15, 31, 63, 127, 255)
SHARED = 8  # one column in so many is kept for names that come when the others are taken
MOST = 1000  # columns; a filter has the square of them

Key = tuple[Hashable, str | None]  # a name, and the value of a text


class Features:
    """Which name lies in which column.

    Args:
        capacity: Width of the rows; None lets the first rows decide.

    >>> features = Features()
    >>> features.row({"load": 2.0, "day": "monday"})
    [1.0, 2.0, nan]
    >>> features.row({"load": 3.0, "day": "sunday"}, learn=False)
    [0.0, 3.0, nan]
    """

    def __init__(self, capacity: int | None = None):
        if capacity is not None:
            hint = "It is the number of columns for features; None lets the first rows decide."
            checks.whole("capacity", capacity, least=3, most=MOST, hint=hint)
        self.column: dict[Key, int] = {}
        self.numbers: dict[Hashable, int] = {}  # the same for numbers alone, which are looked up most
        self.growing, self.warned = capacity is None, False
        self._set_width(capacity or 0)

    def row(self, x: Any, *, learn: bool = True) -> list[float]:
        """One row; `learn` gives columns to new names, which are passed over without."""
        if not isinstance(x, Mapping):
            raise TypeError(f"x is {x!r:.60}; give a dict of names to values, or use the verbs for arrays.")
        row, others = self.blank.copy(), []
        find = self.numbers.get
        for name, value in x.items():
            at = find(name)
            if at is not None and type(value) is float and value - value == 0.0:
                row[at] = value
            else:
                others.append((name, value))
        if not others:
            return row
        found = [entry for name, value in others if (entry := _entry(name, value)) is not None]
        new = [key for key, _ in found if key not in self.column] if learn else []
        if new and self.admit(sorted(new, key=repr)):
            return self.row(x)
        for key, value in found:
            at = self._place(key)
            if at is not None:
                row[at] = value if row[at] != row[at] or key in self.column else max(row[at], value)
        return row

    def table(self, frame: Frame, *, learn: bool = True) -> Float[np.ndarray, "T W"]:
        """Rows of a table: those that `row` makes of each."""
        pairs = zip(frame.names, frame.columns, strict=True)
        found = [column for name, values in pairs for column in _columns(name, values)]
        new = sorted((there[0], repr(key), key) for key, there, _ in found if key not in self.column and len(there))
        first = {key: at for at, _, key in new} if learn else {}
        if first:
            self.admit(first)
        table = np.tile(self.blank, (len(frame), 1))
        for key, start in first.items():
            if key in self.column:
                table[:start, self.column[key]] = np.nan  # an indicator has no value before it appears
        for key, there, values in found:
            at = self._place(key)
            if at is not None:
                table[there, at] = values if key in self.column else np.fmax(table[there, at], values)
        return table

    def admit(self, keys: Iterable[Key]) -> bool:
        """Give columns to new names, in their order; whether there was one for any."""
        before = len(self.column)
        for key in keys:
            if self.growing and len(self.column) == own_columns(self.width) and self.width < SIZES[-1]:
                self._set_width(next(size for size in SIZES if size > self.width))
            if len(self.column) < own_columns(self.width):
                self.put(key, len(self.column))
            elif not self.warned:
                self.warned, shared = True, self.width - own_columns(self.width)
                fate = f"share {shared} columns" if shared else "are not used"
                warnings.warn(
                    f"capacity={self.width}: the feature {key[0]!r:.40} and all further ones {fate}, as the first "
                    f"{FIRST} rows left no other column; give a larger capacity.",
                    stacklevel=5,
                )
        return len(self.column) > before

    def put(self, key: Key, at: int) -> None:
        """Give a column to a name."""
        self.column[key] = at
        if key[1] is None:
            self.numbers[key[0]] = at
        else:
            self.blank[at] = 0.0

    def settings(self) -> dict[str, Any]:
        """What `restore` needs; names are in the order of their columns."""
        names = [list(key) for key in self.column]
        return {"names": names, "width": self.width, "growing": self.growing, "warned": self.warned}

    def restore(self, settings: Mapping[str, Any]) -> None:
        """Go on with the columns of others."""
        self.growing, self.warned = settings["growing"], settings["warned"]
        self._set_width(settings["width"])
        for at, (name, text) in enumerate(settings["names"]):
            self.put((name, text), at)

    def _set_width(self, width: int) -> None:
        self.width, self.blank = width, [math.nan] * width
        for (_, text), at in self.column.items():
            self.blank[at] = math.nan if text is None else 0.0

    def _place(self, key: Key) -> int | None:
        """The column of a name, its own or a shared one; None for a name that has none yet."""
        at, own = self.column.get(key), own_columns(self.width)
        if at is None and own and self.warned and len(self.column) == own:
            return own + zlib.crc32(repr(key).encode()) % (self.width - own)
        return at


def own_columns(width: int) -> int:
    """Columns that are given to one name each."""
    return width - max(1, width // SHARED) if width else 0


def _entry(name: Hashable, value: Any) -> tuple[Key, float] | None:
    """What one feature puts into a row; nothing if it is missing."""
    if type(value) is float and value - value == 0.0:
        return (name, None), value
    if isinstance(value, str):
        return (name, str(value)), 1.0
    if is_missing(value):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"feature {name!r:.40} is {value!r:.40}; the argument must be a string for a category, a number, or None "
            "where it is missing."
        ) from None
    if math.isinf(number):
        raise ValueError(f"feature {name!r:.40} is {number}; give a finite number, or None where it is missing.")
    return ((name, None), number) if number == number else None


def _columns(name: Hashable, values: np.ndarray) -> list[tuple[Key, np.ndarray, Any]]:
    """The columns that one column of a table becomes: key, rows where it is there, and its values there."""
    if values.dtype.kind == "f":
        there = np.flatnonzero(~np.isnan(values))
        return [((name, None), there, values[there])]
    rows: dict[Key, tuple[list[int], list[float]]] = {}
    for at, value in enumerate(values.tolist()):
        entry = _entry(name, value)
        if entry is not None:
            places, numbers = rows.setdefault(entry[0], ([], []))
            places.append(at)
            numbers.append(entry[1])
    return [(key, np.array(places), np.array(numbers)) for key, (places, numbers) in rows.items()]
