"""The events of a run: rows that were left out or not trusted, changes, gaps; each told once, with file and line."""

from typing import Any

from filtax.io import Rejected
from filtax.io._source import NAMELESS
from filtax.io._table import NO_TARGET
from filtax.runs.blocks import KEPT, Block
from filtax.runs.ledger import Ledger
from filtax.runs.progress import Progress

__all__ = ["Telling"]


class Telling:
    """Writes events, and counts them.

    Rows behind the last good one are read again by a run that goes on; those that were told of are not told of again. A
    line that had no end when it was left out may have been completed since: then it is learned, and "completed" is
    told.

    Attributes:
        early: The first rows that were left out before there was anywhere to tell of them; more are only counted.

    >>> Telling(Progress(), []).note()
    {'told': [-1, 0]}
    """

    def __init__(self, progress: Progress, files: list[str], note: dict[str, Any] | None = None) -> None:
        self.progress, self.files = progress, files
        self.early: list[Rejected] = []
        note = note or {}
        self._told: list[int] = note.get("told", [-1, 0])  # file and line of the last rejected row
        self._open: list[int] | None = note.get("open")  # the same, where that line had no end

    def note(self) -> dict[str, Any]:
        """What a resumed run must know."""
        return {"told": self._told, **({"open": self._open} if self._open else {})}

    def rejected(self, block: Block, ledger: Ledger | None) -> None:
        """Tell of the rows that were left out with a block, and of one that was left out too early.

        Rows of before are put in front of those of the block.
        """
        if ledger is not None:
            for row in self.early:
                ledger.tell({"event": "rejected", **row.to_json()})
            block.rejected[:0], self.early = self.early, []
        for row in block.rejected:
            at = [self.files.index(row.file), row.line]
            if at <= self._told:
                continue
            self._told, self._open = at, at if row.unended else None
            self.progress.rejected += row.reason != NAMELESS  # a column is no row
            if ledger is not None:
                ledger.tell({"event": "rejected", **row.to_json()})
            elif len(self.early) < KEPT:
                self.early.append(row)
        if self._open and block.rows and ledger is not None:
            self._complete(block, ledger)

    def _complete(self, block: Block, ledger: Ledger) -> None:
        assert self._open is not None
        file, line = self._open
        if ((block.file == file) & (block.line == line)).any():
            self.progress.rejected -= 1
            ledger.tell({"event": "completed", "file": self.files[file], "line": line})
            self._open = None

    def event(self, block: Block, row: int, kind: str, value: Any, ledger: Ledger) -> None:
        """Tell of what a row of a block showed; `progress` counts the rows before that block."""
        if kind == "hindsight":
            self._in_hindsight(block, row, value, ledger)
            return
        event: dict[str, Any] = {"event": kind, "row": self.progress.rows + row + 1}
        event |= {"file": self.files[int(block.file[row])], "line": int(block.line[row])}
        if block.time is not None:
            event["time"] = str(block.time[row]).removesuffix(".000000")
        if block.key is not None:
            event["key"] = str(block.key[row])
        if kind == "change":
            self.progress.changes += 1
            event["began"] = ledger.earlier(event["row"], int(value))
        elif kind == "distrusted":
            self.progress.distrusted += 1
            event["probability"] = value
        elif kind == "blank":
            event |= {"column": value, "reason": NO_TARGET}
        elif kind == "gap":
            self.progress.gaps += 1
            self.progress.missing += value
            event["missing"] = value
        else:
            event["label"] = value
        ledger.tell(event)

    def _in_hindsight(self, block: Block, row: int, value: tuple[int, float], ledger: Ledger) -> None:
        """Tell of an earlier row of the same series that is not trusted any more; "known" is the row that showed it."""
        known, (back, chance) = self.progress.rows + row + 1, value
        earlier = ledger.earlier(known, back)
        own = ledger.record(earlier)
        event: dict[str, Any] = {"event": "distrusted", "row": earlier}
        event |= {"file": self.files[int(own["file"])], "line": int(own["line"])}
        if block.time is not None:
            dated = block.time.dtype.kind == "M"
            event["time"] = str(own["time"].astype("M8[us]") if dated else own["time"]).removesuffix(".000000")
        if block.key is not None:
            event["key"] = str(block.key[row])
        self.progress.distrusted += 1
        ledger.tell({**event, "probability": chance, "known": known})
