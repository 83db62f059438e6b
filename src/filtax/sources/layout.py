"""Which columns of a table serve for what, and which of them hold numbers: decided once, then fixed for the run."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from filtax.sources.numerals import is_missing, number, show
from filtax.sources.rejected import InputError, RowError

__all__ = ["Layout", "choose", "find", "has_all"]

KINDS = ("number", "text")
MOST = 4096  # columns that are read
_NUMERAL = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")  # the usual ones, told at a glance


@dataclass(frozen=True)
class Layout:
    """The columns that are read, by name, and their kinds ("number" or "text").

    >>> layout = Layout("load", "when", None, ("load", "wind"), {"load": "number", "wind": "number"})
    >>> layout.numbers, layout.words, layout.wanted
    (('load', 'wind'), ('when',), ('load', 'wind', 'when'))
    """

    target: str | None
    time: str | None
    key: str | None
    columns: tuple[str, ...]  # the target first, then the features
    kinds: Mapping[str, str]
    clock: str | None = None  # how times are written, once the first was seen

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Columns of numbers."""
        return tuple(name for name in self.columns if self.kinds[name] == "number")

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Columns that are read as text: also time and key."""
        return tuple(name for name in self.wanted if self.kinds.get(name) != "number")

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Columns of text, without time and key."""
        return tuple(name for name in self.columns if self.kinds[name] == "text")

    @cached_property
    def wanted(self) -> tuple[str, ...]:
        """All columns that are read."""
        return tuple(dict.fromkeys([*self.columns, *(name for name in (self.time, self.key) if name)]))

    def to_json(self) -> dict[str, Any]:
        """Return the layout as plain values."""
        return {**asdict(self), "columns": list(self.columns)}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Layout":
        """Read it back."""
        return cls(**{**plain, "columns": tuple(plain["columns"]), "kinds": dict(plain["kinds"])})


def choose(
    file: str,
    names: Collection[str],
    sample: Mapping[str, Sequence[Any]],
    asked: Mapping[str, Any],
    types: Mapping[str, str],
) -> Layout:
    """Find the asked columns among the names, and tell numbers from text by the first rows.

    A column is one of numbers if most of what the first rows hold of it reads as a number, or if they hold nothing.

    >>> rows = {"a": ["1", "NA"], "b": ["x", "y"]}
    >>> choose("t.csv", ["a", "b"], rows, {"target": "a", "time": None, "key": None, "features": None}, {}).kinds
    {'a': 'number', 'b': 'text'}
    """
    names = dict.fromkeys(names)
    target, time, key, features = (asked[word] for word in ("target", "time", "key", "features"))
    roles = [("target", target), ("time", time), ("key", key), *(("features", each) for each in features or ())]
    for role, name in roles:
        find(file, names, name, role)
    for name, kind in types.items():
        find(file, names, name, "types")
        if kind not in KINDS:
            raise InputError(f"types: {show(name)} must be one of {', '.join(KINDS)}, got {kind!r:.40}.")
    single = [name for role, name in roles if role != "features" and name]
    if len(set(single)) < len(single):
        raise InputError(f"{file}: target, time and key must be three columns, got {', '.join(single)}.")
    chosen = features if features is not None else [name for name in names if name not in single]
    there = [name for name in asked.get("perhaps", ()) if name in names]
    columns = tuple(dict.fromkeys(name for name in (target, *chosen, *there) if name))
    if len(columns) > MOST:
        raise InputError(
            f"{file}:1:1: there are {len(columns)} columns to read, and {MOST} is the most; name those that matter as "
            "features."
        )
    kinds = {name: types.get(name) or _kind(sample.get(name, ())) for name in columns}
    return Layout(target, time, key, columns, kinds)


def find(file: str, names: Collection[str], name: str | None, role: str) -> None:
    """Refuse a column that is not there, and say which one may have been meant.

    >>> find("t.csv", ["load"], "load", "target")
    """
    if name is not None and name not in names:
        raise InputError(f"{file}:1:1: there is no column {show(name)} for {role}. {_hint(names, name)}")


def has_all(file: str, names: Sequence[str], layout: Layout, before: str) -> None:
    """Refuse a file that lacks a column of the one before.

    >>> has_all("may.csv", ["kw"], Layout("load", None, None, ("load",), {"load": "number"}), "april.csv")
    Traceback (most recent call last):
    filtax.sources.rejected.InputError: may.csv:1:1: there is no column 'load', which april.csv has; ...
    """
    there = set(names)
    for name in layout.wanted:
        if name not in there:
            raise InputError(
                f"{file}:1:1: there is no column {show(name)}, which {before} has; files that follow one another must "
                f"have the same columns. {_hint(names, name)}"
            )


def _hint(names: Collection[str], name: str) -> str:
    close = difflib.get_close_matches(name, names, 1)
    shown = [show(each)[1:-1] for each in list(names)[:12]]
    known = ", ".join(shown) + (", ..." if len(names) > 12 else "")
    return f"Did you mean {show(close[0])}?" if close else f"Its columns: {known}."


def _kind(values: Iterable[Any]) -> str:
    known = [value for value in values if not (value is None or (isinstance(value, str) and is_missing(value)))]
    return "number" if 2 * sum(map(_is_number, known)) > len(known) or not known else "text"


def _is_number(value: Any) -> bool:
    if isinstance(value, str) and _NUMERAL.fullmatch(value):
        return True
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return True
    try:
        return isinstance(value, str) and number(value) is not None
    except RowError as fault:
        return "64-bit" in fault.reason  # a number all the same
