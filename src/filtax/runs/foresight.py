"""What a run would say of other rows: its checkpoint is read, used, and left as it is."""

import csv
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from filtax.io import Rejected, open_table
from filtax.io._files import PARTIAL, drop, unwritten
from filtax.runs.blocks import Block, blocks, picked
from filtax.runs.foretell import foresee, reach, settle
from filtax.runs.numbers import NumberStream
from filtax.runs.results import Run

__all__ = ["Foresight", "write_csv", "write_table"]

_FORMULA = re.compile(r"[=@\t\r]|[+-](?!(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z)")


class Foresight:
    """The forecasts of a run for the rows of a source, in blocks.

    Attributes:
        rows: Rows that were forecast so far.
        early: Rows that were left out because they are not behind the end of the run.
        blank: Rows without a forecast: further ahead than the run looked, or of a series that it never met.
        rejected: How many rows could not be read.
        first: The first of them.

    Args:
        run: From `open_run`.
        source: As for `open_table`; the target need not be there.
        on_bad: As for `open_table`.
    """

    def __init__(self, run: Run, source: str, on_bad: str = "reject") -> None:
        plan, config = run.stream.plan, run.config
        self.run, self.source = run, source
        kinds = {**dict.fromkeys(plan.numbers, "number"), **dict.fromkeys(plan.texts, "text")}
        self.table = open_table(
            source,
            time=config.time,
            key=config.key,
            features=[*plan.numbers, *plan.texts],
            types=kinds,
            perhaps=[config.target],
            on_bad=on_bad,
        )
        self.rows = self.early = self.blank = self.rejected = 0
        self.first: Rejected | None = None
        self.files: list[str] = []
        self._known: dict[int, int] = {}
        if isinstance(run.stream, NumberStream):
            settle(run.stream)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Columns by name, block by block: line, key, time, the target where it is there, and the forecast."""
        for block in blocks(self.table, self.run.config.block, self.files, eager=self.source == "-"):
            self.rejected += len(block.rejected)
            self.first = self.first or next(iter(block.rejected), None)
            block = self._behind(block)
            if not block.rows:
                continue
            stream, step = self.run.stream, self._step(block)
            numbers = isinstance(stream, NumberStream)
            said = foresee(stream, block, np.maximum(step, 0)) if numbers else stream.foresee(block)
            valid = step >= 0
            self.rows += block.rows
            self.blank += int(np.sum(~(valid & np.isfinite(said["forecast"]))))
            yield self._columns(block, {name: np.where(valid, values, np.nan) for name, values in said.items()})

    def _maker(self) -> Any:
        return getattr(self.run.stream, "maker", None)

    def _cells(self, block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slot and step of each row on the grid of its series, and the last step of the series; -1 where unknown."""
        stream: Any = self.run.stream
        assert block.time is not None
        key = [""] * block.rows if block.key is None else block.key.astype(str).tolist()
        slot = np.array([stream.keys.get(each, -1) for each in key])
        cells, last = np.zeros(block.rows, np.int64), np.full(block.rows, -(2**62))
        for series in np.unique(slot[slot >= 0]):
            own = slot == series
            grid = stream.grids[series]
            cells[own] = stream.maker.season.cells(block.time[own], float(grid["phase"]))
            last[own] = int(grid["cell"])
        return slot, cells, last

    def _behind(self, block: Block) -> Block:
        """The rows behind the end of the run, where there is a clock to tell by."""
        if self._maker() is None or not block.rows:
            return block
        assert block.time is not None
        if (block.time.dtype.kind == "M") != (self.run.note["clock"] != "number"):
            raise ValueError(f"{self.source}: its times are of another kind than those of the run.")
        slot, cells, last = self._cells(block)
        for series, end in zip(slot.tolist(), last.tolist(), strict=True):
            self._known.setdefault(series, end)
        keep = (slot < 0) | (cells > last)
        self.early += int((~keep).sum())
        return picked(block, keep)

    def _step(self, block: Block) -> np.ndarray:
        """Which stream forecasts each row, (B,): the nearest whose newest reading has come; -1 if there is none."""
        if self._maker() is None:
            return np.zeros(block.rows, np.int64)
        stream: Any = self.run.stream
        slot, cells, _ = self._cells(block)
        target, reaches = self.run.config.target, reach(stream)
        there = np.isfinite(block.numbers[target]) if target in block.numbers else np.zeros(block.rows, bool)
        step = np.full(block.rows, -1)
        for i, series in enumerate(slot.tolist()):
            end = self._known[series]
            if series >= 0 and cells[i] - end <= reaches[-1]:
                step[i] = np.searchsorted(reaches, cells[i] - end)
            if there[i]:
                self._known[series] = max(end, int(cells[i]))
        return step

    def _columns(self, block: Block, said: dict[str, np.ndarray]) -> dict[str, Any]:
        config, labels = self.run.config, self.run.note.get("labels")
        found: dict[str, Any] = {"line": block.line}
        if block.key is not None:
            found[config.key or "key"] = block.key
        if block.time is not None:
            found[config.time or "time"] = block.time
        for part in (block.numbers, block.texts):
            if config.target in part:
                found[config.target] = part[config.target]
        for name, values in said.items():
            if labels is not None and name[0] == "p" and name[1:].isdigit():
                if int(name[1:]) < len(labels):
                    found[f"p({labels[int(name[1:])]})"] = values
            elif labels is not None and name == "forecast":
                found[name] = np.array(labels, object)[values.astype(int)]
            else:
                found[name] = values
        return found


def write_csv(columns: dict[str, Any], to: Any, head: bool) -> None:
    r"""Write columns as lines of CSV; NaN is an empty field, and a formula has a ' before it.

    >>> import sys
    >>> write_csv({"line": np.array([2, 3]), "forecast": np.array([0.5, np.nan])}, sys.stdout, True)
    line,forecast
    2,0.5
    3,
    """
    writer = csv.writer(to, lineterminator="\n")
    if head:
        writer.writerow(map(_inert, columns))
    plain = []
    for values in columns.values():
        if values.dtype.kind == "M":
            plain.append([str(moment).removesuffix(".000000") for moment in values])
        else:
            plain.append(["" if value != value else _inert(value) for value in values.tolist()])
    writer.writerows(zip(*plain, strict=True))
    to.flush()


def _inert(value: Any) -> Any:
    """A cell; with a ' before it where a spreadsheet would compute it. A text that is a number is no formula."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def write_table(told: Iterable[dict[str, Any]], path: Path) -> None:
    """Write forecasts to a file, .parquet or else CSV, in one step: whole, or not at all, as where there are none."""
    aside = path.with_name(path.name + PARTIAL)
    writer, first = None, True
    try:
        aside.parent.mkdir(parents=True, exist_ok=True)
        drop(aside)
        with open(aside, "xb") as raw:
            if path.suffix == ".parquet":
                import pyarrow
                from pyarrow import parquet

                for columns in told:
                    told_of = {name: pyarrow.array(each, from_pandas=True) for name, each in columns.items()}
                    table = pyarrow.table(told_of)
                    writer = writer or parquet.ParquetWriter(raw, table.schema, compression="zstd")
                    writer.write_table(table)
                    first = False
                if writer is not None:
                    writer.close()
            else:
                with open(raw.fileno(), "w", encoding="utf-8", newline="", closefd=False) as text:
                    for columns in told:
                        write_csv(columns, text, first)
                        first = False
            raw.flush()
            os.fsync(raw.fileno())
        if not first:
            os.replace(aside, path)
    except OSError as problem:
        if problem.filename is not None and Path(problem.filename) not in (aside, aside.parent):  # it was the source
            raise
        raise unwritten(path, problem) from problem
    finally:
        drop(aside)
