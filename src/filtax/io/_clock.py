"""Times as they are written, and their order.

Times are ISO dates with or without a zone, seconds or milliseconds since 1970, or plain numbers in any unit. How they
are written is decided by the first one, and holds for the whole source. Calendar times come out as `datetime64[us]` (in
UTC if they carry a zone, else as written), plain numbers as float64.

Times must grow: rows of a series whose time is missing, repeats or goes backwards are rejected. A source whose newest
row comes first would lose all rows but one: where nearly all rows lie before the row above them, it is refused with the
command that turns it.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from filtax.io._errors import InputError, RowError
from filtax.io._layout import Layout, Raw
from filtax.io._text import is_missing, number, show, shown

_UNIT = {"seconds": 10**6, "milliseconds": 10**3}
_ISO = re.compile(
    r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}(?::[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?(?P<zone> ?(?:Z|[+-][0-9]{2}:?[0-9]{2}))?)?"
)
_ADVICE = "; write 2024-05-31, 2024-05-31T14:00, 2024-05-31T14:00:00+02:00, or seconds since 1970"
FEW, FEW_OF_PIPE = 2, 50  # steps back before a source counts as newest first: a pipe may begin with a few late rows
RARE = 20  # steps back for each step forth


def clock_of(texts: Iterable[str]) -> str | None:
    """How the first text that is a time is written; None if none is one.

    Returns:
        "local" or "zoned" calendar times, "seconds" or "milliseconds" since 1970, or "number".
    """
    for text in texts:
        if form := _ISO.fullmatch(text.strip(" \t")):
            return "zoned" if form["zone"] else "local"
        try:
            value = abs(number(text))
        except RowError:
            continue
        if value == value:
            return "seconds" if 1e8 <= value < 1e11 else "milliseconds" if 1e11 <= value < 1e14 else "number"
    return None


def read_times(texts: Sequence[str], clock: str) -> tuple[np.ndarray, dict[int, str]]:
    """Read times that are all written in one way, as by `clock_of`.

    Returns:
        `datetime64[us]`, or float64 for plain numbers; and the reason for each row that has none.
    """
    if clock == "local" and (quick := _all_local(texts)) is not None:
        return quick, {}
    read = _moment if clock in ("local", "zoned") else _count
    moments, faults = [], {}
    for i, text in enumerate(texts):
        try:
            moments.append(read(text, clock))
        except RowError as fault:
            faults[i] = "the time is missing" if is_missing(text) else fault.reason
            moments.append(None)
    return np.array(moments, np.float64 if clock == "number" else "datetime64[us]"), faults


def _all_local(texts: Sequence[str]) -> np.ndarray | None:
    """All times at once, where every one of them is well formed; None where one needs a closer look."""
    if all((form := _ISO.fullmatch(text)) and not form["zone"] for text in texts):
        try:
            return np.array(texts, "datetime64[us]")
        except ValueError:  # such as a 30th of February
            return None
    return None


def _moment(text: str, clock: str) -> datetime:
    bare = text.strip(" \t")
    form = _ISO.fullmatch(bare)
    if form is None:
        raise RowError(0, f"{show(bare)} is not a time{_ADVICE}")
    try:
        moment = datetime.fromisoformat(bare)
    except ValueError as error:
        raise RowError(0, f"{show(bare)} is not a time: {str(error).splitlines()[0]}") from None
    if moment.tzinfo is None:
        if clock == "zoned" and len(bare) > 10:
            raise RowError(0, f"{show(bare)} has no zone, but the first time has one")
        return moment
    if clock == "local":
        raise RowError(0, f"{show(bare)} has a zone, but the first time has none")
    try:
        return moment.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise RowError(0, f"{show(bare)} is too near the end of the calendar") from None


def _count(text: str, clock: str) -> float | int:
    """A plain number, or microseconds since 1970, rounded from the digits that are written."""
    try:
        read = number(text)
    except RowError:
        read = np.nan
    if read != read:
        raise RowError(0, f"{show(text)} is not a time{_ADVICE}")
    if clock == "number":
        return read
    if abs(read) * _UNIT[clock] > 9e18:
        raise RowError(0, f"{show(text)} is not a time in {clock} since 1970")
    return round(Decimal(text.strip(" \t")) * _UNIT[clock])


class Order:
    """The latest time of each series, by key ("" where there is none), as plain numbers: microseconds or own units."""

    def __init__(self, latest: Mapping[str, Any]) -> None:
        self.latest = dict(latest)
        self._above: dict[str, Any] = {}  # time of the row before, by key
        self._steps = [0, 0]  # forth, back
        self._begun = bool(latest)  # what was read before was in order

    def apply(self, file: str, raw: Raw, layout: Layout) -> tuple[np.ndarray | None, Layout]:
        """Read the times of rows, drop those rows (of `raw`, in place) that have none or are too late."""
        column = layout.time
        if column is None or not len(raw.line):
            return None, layout
        if raw.moments is not None:
            layout, time = replace(layout, clock="local"), raw.moments
            faults = dict.fromkeys(np.flatnonzero(np.isnat(time)).tolist(), "the time is missing")
        else:
            texts = raw.texts.pop(column).tolist()
            layout = replace(layout, clock=layout.clock or clock_of(texts))
            time, faults = read_times(texts, layout.clock or "local")
        key = raw.texts[layout.key] if layout.key else None
        faults = self._in_order(time, key, faults)
        self._refuse_newest_first(file, column)
        raw.reject(file, {i: (column, reason) for i, reason in faults.items()})
        return np.delete(time, list(faults)) if faults else time, layout

    def _in_order(self, time: np.ndarray, key: np.ndarray | None, faults: dict[int, str]) -> dict[int, str]:
        for i, moment in enumerate(_plain(time).tolist()):
            if i in faults:
                continue
            series = "" if key is None else key[i]
            latest, above = self.latest.get(series), self._above.get(series, moment)
            self._steps[moment < above] += moment != above
            self._above[series] = moment
            if latest is None or moment > latest:
                self.latest[series] = moment
            else:
                wrong = "repeats" if moment == latest else "goes backwards: it is before"
                faults[i] = f"{str(time[i]).removesuffix('.000000')} {wrong} the time of an earlier row"
        return dict(sorted(faults.items()))

    def _refuse_newest_first(self, file: str, column: str) -> None:
        forth, back = self._steps
        if self._begun or back < (FEW_OF_PIPE if file == "-" else FEW) or back < RARE * forth:
            return
        name = shlex.quote(file)
        turn = f", such as by (head -n 1 {name}; tail -n +2 {name} | tac) > turned.csv"
        way = turn if file.lower().endswith((".csv", ".tsv", ".txt")) else ""
        raise InputError(
            f"{file}: the newest row comes first: {back} times lie before the one above them, {forth} behind it. Sort "
            f"it by {shown(column)}, the oldest first{way}."
        )


def latest_times(
    before: Mapping[str, Any], time: np.ndarray | None, key: np.ndarray | None, rows: int
) -> dict[str, Any]:
    """The latest time of each key behind that many rows, all in order."""
    if time is None:
        return dict(before)
    keys = [""] * rows if key is None else key[:rows].tolist()
    return {**before, **dict(zip(keys, _plain(time[:rows]).tolist(), strict=True))}


def _plain(time: np.ndarray) -> np.ndarray:
    return time.astype(np.int64) if time.dtype.kind == "M" else time
