"""Times must grow: read them, and leave out the rows of a series whose time is missing, repeats or goes backwards.

A source whose newest row comes first would lose all rows but one. It is told by rows that lie before the row above
them, nearly all of them, and refused with a word on how to turn it.
"""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from filtax.sources.clock import clock_of, read_times
from filtax.sources.layout import Layout
from filtax.sources.numerals import show
from filtax.sources.raw import Raw
from filtax.sources.rejected import InputError, Rejected

__all__ = ["Order"]

LEAST = {"-": 50}  # steps back before standard input counts as newest first: it may begin with a few late rows
FEW = 2  # and for a file, of which many rows are seen at once
RARE = 20  # steps back for each step forth


class Order:
    """The latest time of each series, by key ("" where there is none), as plain numbers: microseconds or own units.

    >>> order = Order({})
    >>> order.after(np.array([3.0, 5.0]), None, 2)
    {'': 5.0}
    """

    def __init__(self, latest: Mapping[str, Any]) -> None:
        self.latest = dict(latest)
        self._above: dict[str, Any] = {}  # time of the row before, by key
        self._steps = [0, 0]  # forth, back
        self._begun = bool(latest)  # what was read before was in order

    def after(self, time: np.ndarray | None, key: np.ndarray | None, rows: int) -> dict[str, Any]:
        """Return the latest times once that many rows, all in order, have been read."""
        if time is None:
            return dict(self.latest)
        ticks = _ticks(time[:rows]).tolist()
        keys = [""] * rows if key is None else key[:rows].tolist()
        return {**self.latest, **dict(zip(keys, ticks, strict=True))}

    def apply(self, file: str, raw: Raw, layout: Layout) -> tuple[np.ndarray | None, Layout]:
        """Read the times of rows, drop those rows (of `raw`, in place) that have none or are too late."""
        column = layout.time
        if column is None or not len(raw.line):
            return None, layout
        if raw.moments is not None and raw.moments.dtype.kind == "M":
            layout, time = replace(layout, clock="local"), raw.moments
            faults = dict.fromkeys(np.flatnonzero(np.isnat(time)).tolist(), "the time is missing")
        else:
            values = raw.texts.pop(column) if raw.moments is None else raw.moments
            layout = replace(layout, clock=layout.clock or clock_of(values))
            time, faults = read_times(values, layout.clock or "local")
        key = raw.texts[layout.key] if layout.key else None
        faults = self._in_order(time, key, faults)
        self._refuse_newest_first(file, column)
        if faults:
            keep = np.ones(len(time), bool)
            keep[list(faults)] = False
            raw.drop(keep, {i: _record(file, raw, i, column, reason) for i, reason in faults.items()})
            time = time[keep]
        return time, layout

    def _in_order(self, time: np.ndarray, key: np.ndarray | None, faults: dict[int, str]) -> dict[int, str]:
        ticks = _ticks(time)
        if key is None and not faults and np.all(np.diff(ticks) > 0) and ticks[0] > self.latest.get("", -np.inf):
            self.latest[""] = self._above[""] = ticks[-1].item()
            self._steps[0] += len(ticks)
            return faults
        for i, tick in enumerate(ticks.tolist()):
            if i in faults:
                continue
            series = "" if key is None else key[i]
            latest, above = self.latest.get(series), self._above.get(series, tick)
            self._steps[tick < above] += tick != above
            self._above[series] = tick
            if latest is None or tick > latest:
                self.latest[series] = tick
            else:
                told = "repeats" if tick == latest else "goes backwards: it is before"
                faults[i] = f"{str(time[i]).removesuffix('.000000')} {told} the time of an earlier row"
        return dict(sorted(faults.items()))

    def _refuse_newest_first(self, file: str, column: str) -> None:
        forth, back = self._steps
        if self._begun or back < LEAST.get(file, FEW) or back < RARE * forth:
            return
        told = f"{file}: the newest row comes first: {back} times lie before the one above them, {forth} behind it"
        name = shlex.quote(file)
        turn = f", such as by (head -n 1 {name}; tail -n +2 {name} | tac) > turned.csv"
        way = turn if file.lower().endswith((".csv", ".tsv", ".txt")) else ""
        raise InputError(f"{told}. Sort it by {show(column)[1:-1]}, the oldest first{way}.")


def _record(file: str, raw: Raw, row: int, column: str, reason: str) -> Rejected:
    place = raw.place(int(raw.offset[row]), column) if raw.place else 1
    return Rejected(file, int(raw.line[row]), place, f"{show(column)[1:-1]}: {reason}")


def _ticks(time: np.ndarray) -> np.ndarray:
    return time.astype(np.int64) if time.dtype.kind == "M" else time
