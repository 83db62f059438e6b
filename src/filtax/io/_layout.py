"""Which columns of a table serve for what, which of them hold numbers, and the rows that every reader returns.

The layout is decided once, by what the user asked for and the first rows, and then holds for the whole source.
"""

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from filtax.io._errors import InputError, Rejected, RowError
from filtax.io._text import BLOCK, LIMIT, is_missing, number, show, shown

KINDS = ("number", "text")
MOST = 4096  # columns that are read


@dataclass(frozen=True)
class Request:
    """What the user asked `open_table` for, the same for all files."""

    target: str | None = None
    time: str | None = None
    key: str | None = None
    features: Sequence[str] | None = None
    perhaps: Sequence[str] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None
    format: str | None = None
    block: int = BLOCK
    limit: int = LIMIT
    folder: str = ""  # where relative names are looked for; the working folder

    def at(self, file: str) -> str:
        """Where a file is, as seen from the working folder."""
        return str(Path(self.folder, file)) if self.folder and file != "-" else file


@dataclass(frozen=True)
class Layout:
    """The columns that are read, by name, and their kinds ("number" or "text")."""

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


@dataclass
class Raw:
    """Rows of one block as they stand in the source, before times are read, and what was rejected between them.

    `offset` is where each row ends; `digest(offset)` is the sha256 of the file up to there, and `place(line, name)` the
    character where a column of that line begins. `unended` says that the last line had no end, so that it may still
    grow. Times are in `texts` if the format holds them as text, else in `moments`.
    """

    numbers: np.ndarray
    texts: dict[str, np.ndarray]
    line: np.ndarray
    offset: np.ndarray
    digest: Callable[[int], str]
    place: Callable[[int, str], int]
    rejected: list[Rejected] = field(default_factory=list)
    moments: np.ndarray | None = None
    unended: bool = False

    @classmethod
    def empty(cls, layout: Layout, rejected: Rejected, *, unended: bool = False) -> "Raw":
        """No rows, and one record."""
        nothing, texts = np.empty(0, np.int64), {name: np.empty(0, object) for name in layout.words}
        numbers, where = np.empty((0, len(layout.numbers))), (lambda offset: "", lambda line, name: 1)
        return cls(numbers, texts, nothing, nothing, *where, [rejected], unended=unended)

    def reject(self, file: str, faults: Mapping[int, tuple[str, str]]) -> None:
        """Reject rows, in place: `faults` has for each of them the column and the reason."""
        if not faults:
            return
        for i, (name, reason) in faults.items():
            line = int(self.line[i])
            self.rejected.append(Rejected(file, line, self.place(line, name), f"{shown(name)}: {reason}"))
        self.rejected.sort(key=lambda each: each.line)
        keep = np.ones(len(self.line), bool)
        keep[list(faults)] = False
        self.keep(keep)

    def stop(self) -> None:
        """Keep the rows before the first record, in place, and that record."""
        if self.rejected:
            self.rejected = self.rejected[:1]
            self.keep(self.line < self.rejected[0].line)

    def keep(self, rows: np.ndarray) -> None:
        """Keep the rows of a mask, in place."""
        self.numbers, self.line, self.offset = self.numbers[rows], self.line[rows], self.offset[rows]
        self.texts = {name: values[rows] for name, values in self.texts.items()}
        self.moments = None if self.moments is None else self.moments[rows]


def choose(file: str, names: Collection[str], sample: Mapping[str, Sequence[str]], request: Request) -> Layout:
    """Find the asked columns among the names, and tell numbers from text by the first rows.

    A column is one of numbers if most of what the first rows hold of it reads as a number, or if they hold nothing.
    """
    names = dict.fromkeys(names)
    single = [("target", request.target), ("time", request.time), ("key", request.key)]
    roles = [*single, *(("features", each) for each in request.features or ())]
    for role, name in [*roles, *(("types", each) for each in request.types)]:
        if name is not None and name not in names:
            raise InputError(f"{file}:1:1: there is no column {show(name)} for {role}. {_hint(names, name)}")
    for name, kind in request.types.items():
        if kind not in KINDS:
            raise InputError(f"types: {show(name)} must be one of {', '.join(KINDS)}, got {kind!r:.40}.")
    used = [name for _, name in single if name]
    if len(set(used)) < len(used):
        raise InputError(f"{file}: target, time and key must be three columns, got {', '.join(used)}.")
    chosen = request.features if request.features is not None else [name for name in names if name not in used]
    there = [name for name in request.perhaps if name in names]
    columns = tuple(dict.fromkeys(name for name in (request.target, *chosen, *there) if name))
    if len(columns) > MOST:
        raise InputError(
            f"{file}:1:1: there are {len(columns)} columns to read, and {MOST} is the most; name those that matter as "
            "features."
        )
    kinds = {name: request.types.get(name) or _kind(sample.get(name, ())) for name in columns}
    return Layout(request.target, request.time, request.key, columns, kinds)


def has_all(file: str, names: Sequence[str], layout: Layout, before: str) -> None:
    """Refuse a file that lacks a column of the one before."""
    there = set(names)
    for name in layout.wanted:
        if name not in there:
            raise InputError(
                f"{file}:1:1: there is no column {show(name)}, which {before} has; files that follow one another must "
                f"have the same columns. {_hint(names, name)}"
            )


def _hint(names: Collection[str], name: str) -> str:
    close = difflib.get_close_matches(name, names, 1)
    known = ", ".join(shown(each) for each in list(names)[:12]) + (", ..." if len(names) > 12 else "")
    return f"Did you mean {show(close[0])}?" if close else f"Its columns: {known}."


def _kind(texts: Iterable[str]) -> str:
    known = [text for text in texts if not is_missing(text)]
    return "number" if 2 * sum(map(_is_number, known)) > len(known) or not known else "text"


def _is_number(text: str) -> bool:
    try:
        number(text)
    except RowError as fault:
        return "64-bit" in fault.reason  # a number all the same
    return True
