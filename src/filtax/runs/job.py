"""A run: read rows, forecast, learn, write, checkpoint; from the start, or from where an earlier one ended."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from filtax import io as store
from filtax.io import InputError, Position, Table, open_table
from filtax.runs.blocks import Block, blocks
from filtax.runs.config import Config
from filtax.runs.folder import CHECKPOINT, hold
from filtax.runs.gaps import gaps_before
from filtax.runs.labels import LabelStream
from filtax.runs.ledger import Ledger
from filtax.runs.numbers import NumberStream
from filtax.runs.plan import Plan, decide
from filtax.runs.progress import Progress
from filtax.runs.streams import kind_of, make_stream, place_of, tell_skipped
from filtax.runs.telling import Telling

__all__ = ["CHECKPOINT", "Progress", "carry_on"]

PATIENCE = 10.0  # seconds after which a checkpoint is due, however few the rows
TIMED = 64  # rows that standard input must give at once for their time to say how long a row takes
WAIT = 50  # rows that standard input must give before anything is decided


def carry_on(
    config: Config,
    root: Path,
    *,
    home: Path | None = None,
    tell: Callable[[Progress, Block, dict[str, np.ndarray], Any], object] | None = None,
    stop: Callable[[], bool] | None = None,
    warn: Callable[[str], object] | None = None,
) -> Progress:
    r"""Learn a source to its end, from the latest checkpoint in the folder if there is one.

    Args:
        config: What to do. Where there is a checkpoint, that of the run it belongs to.
        root: Folder of the run; made if it is not there.
        home: Folder in which a relative source lies; the working one if not given.
        tell: Called after each block with the progress, the block, what was told of its rows, and the stream.
        stop: Asked after each block; True ends the run at a checkpoint.
        warn: Called with a sentence for each newer checkpoint that could not be used.

    Returns:
        How far it came.

    Example:
        >>> import tempfile
        >>> from filtax.runs import Config, carry_on, open_run
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "t.csv"
        ...     _ = path.write_text("x,y\n" + "".join(f"{t % 7},{2 * (t % 7) + 0.5}\n" for t in range(100)))
        ...     asked = Config(str(path), "y", method="LG+C-Static", block=64)
        ...     carry_on(asked, Path(folder) / "run").rows, open_run(Path(folder) / "run").rows
        (100, 100)
    """
    with hold(root) as folder:
        job = _Job(config, root, folder, home)
        try:
            tell_skipped(job.skipped, warn, job.where)
            for block in job.blocks():
                seen = job.learn(block)
                if tell is not None and job.stream is not None:
                    tell(job.progress, block, seen, job.stream)
                if stop is not None and stop():
                    job.progress.stopped = True
                    break
            if job.stream is None and not job.progress.stopped:
                early = job.telling.early
                why = f"; the first that was left out: {early[0]}" if early else ""
                raise InputError(f"{config.source}: not one row could be read{why}.")
            job.save(done=not job.progress.stopped)
        except InputError:  # the rows before the bad one are kept
            if job.stream is not None:
                job.save(done=False)
            raise
        except KeyboardInterrupt:
            if (
                not job.busy
            ):  # between two blocks all is whole; else the block is learned again from the last checkpoint
                job.save(done=False)
            raise
        finally:
            job.close()
        return job.progress


class _Job:
    """One process's part of a run."""

    def __init__(self, config: Config, root: Path, folder: Path, home: Path | None) -> None:
        self.config, self.root, self.folder, self.home = config, root, folder, home
        self.files: list[str] = []
        self.skipped: list[str] = []  # why newer checkpoints could not be used
        self.where = ""  # the one in use stands
        self.stream: NumberStream | LabelStream | None = None
        self.ledger: Ledger | None = None
        self.table: Table | None = None
        self.position: Position | None = None  # of the latest checkpoint
        self.latest: Callable[[], Position] | None = None  # of the latest block
        self.clock: str | None = None
        self.progress = Progress()
        self.telling = Telling(self.progress, self.files)
        self.saved, self.warm, self.busy = (0, perf_counter()), False, False
        if store.generations(folder):
            self._restore()

    def blocks(self) -> Iterator[Block]:
        """The rows that are left."""
        c = self.config
        asked: dict[str, Any] = {"target": c.target, "time": c.time, "key": c.key, "on_bad": c.on_bad}
        asked["folder"] = self.home
        eager = c.source == "-"
        try:
            asked["features"] = self._features(eager)
            table = self.table = open_table(c.source, **asked, start=self.position)
        except (InputError, OSError) as problem:
            if self.position is None:
                raise
            why = str(problem) if str(problem).endswith("?") else f"{str(problem).rstrip('.')}."
            raise store.Damaged(f"{why} The run in {self.root} cannot go on.") from None
        often = -(-c.every // -(-c.every // c.block))  # rows of a block: checkpoints come at the end of one
        first = c.block if self.stream is None else often  # by which the plan is made
        yield from blocks(table, first, self.files, eager=eager, least=WAIT, then=often)

    def _features(self, eager: bool) -> list[str] | None:
        """Columns to read: a series that is forecast from its own past needs no others."""
        c = self.config
        if c.features is not None:
            return list(c.features)
        if c.time is None or not c.made or c.task == "classify":
            return None
        if c.task == "auto" and not eager:
            table = open_table(c.source, target=c.target, time=c.time, key=c.key, features=[], folder=self.home)
            layout = table.layout
            table.close()
            if layout is not None and layout.kinds[c.target] == "text":
                return None
        return []

    def learn(self, block: Block) -> dict[str, np.ndarray]:
        """Take a block in."""
        began, self.busy = perf_counter(), True
        if self.stream is None and block.rows:
            self._begin(block)
        self.telling.rejected(block, self.ledger)
        said: dict[str, np.ndarray] = {}
        if block.rows:
            assert self.stream is not None
            assert self.ledger is not None
            gaps = gaps_before(self.stream, block)
            with np.errstate(over="ignore"):  # what leaves the range is infinite, and not believed
                said, found = self.stream.learn(block)
            self.ledger.append(self._records(block, said))
            strange = {row for row, kind, _ in found if kind == "unexpected label"}
            without = np.flatnonzero(np.isnan(said["y"])).tolist()
            blank = [(row, "blank", self._column(block, row)) for row in without if row not in strange]
            self.progress.blank += len(blank)
            for row, kind, value in sorted([*gaps, *found, *blank], key=lambda event: event[0]):
                self.telling.event(block, row, kind, value, self.ledger)
            self.progress.rows += block.rows
            self.latest = block.position or self.latest
        if self.warm and (self.config.source != "-" or block.rows >= TIMED):
            self.progress.seconds += perf_counter() - began
        else:
            self.progress.untimed += block.rows
            self.warm = self.warm or block.rows > 0
        if self.progress.rows - self.saved[0] >= self.config.every or perf_counter() - self.saved[1] > PATIENCE:
            self.save(done=False)
        self.busy = False
        return said

    def _column(self, block: Block, row: int) -> int | None:
        """With which character of its line the target of a row begins."""
        return None if block.place is None else block.place(row, self.config.target)

    def save(self, *, done: bool) -> None:
        """Write a checkpoint: first what it counts on, then itself."""
        if self.stream is None or self.ledger is None:
            return
        rows, events = self.ledger.flush()
        note = {
            **self.stream.note(),
            "rows": rows,
            "events": events,
            "sums": self.ledger.sums,
            "files": self.files,
            **self.telling.note(),
            "clock": self.clock,
            "progress": asdict(self.progress),
            "plan": self.stream.plan.to_json(),
            "done": done,
        }
        if self.latest is not None:
            self.position, self.latest = self.latest(), None
        source = None if self.position is None else self.position.to_json()
        config = self.stream.plan.config.to_json()
        store.save(self.folder, self.stream.state(), config=config, source=source, note=note, held=True)
        self.saved = (self.progress.rows, perf_counter())

    def close(self) -> None:
        """Close what is open."""
        if self.table is not None:
            self.table.close()
        if self.ledger is not None:
            self.ledger.close()

    def _begin(self, block: Block) -> None:
        plan = decide(self.config, block)
        self.config = plan.config
        self.stream = make_stream(plan)
        plan.config.write(self.root)
        self.clock = None if block.time is None else "local" if block.time.dtype.kind == "M" else "number"
        self.ledger = Ledger(self.root, kind_of(self.stream, self.clock), 0, 0)

    def _restore(self) -> None:
        made: list[NumberStream | LabelStream] = []

        def like(manifest: dict) -> Any:
            made.append(make_stream(Plan.from_json(manifest["note"]["plan"]), manifest["note"]))
            return made[-1].state()

        state, manifest = store.load(self.folder, like, config=self.config.to_json())
        self.stream, self.skipped = made[-1], manifest["skipped"]
        self.stream.restore(state)
        note = manifest["note"]
        self.files, self.clock = note["files"], note["clock"]
        self.progress = Progress(**{**note["progress"], "stopped": False})
        self.telling = Telling(self.progress, self.files, note)
        self.position, self.where = place_of(manifest)
        if self.position is None:
            raise store.Damaged(f"{self.root}: a run on standard input cannot be resumed; name a file.")
        known = (note["rows"], note["events"], note.get("sums"))
        self.ledger = Ledger(self.root, kind_of(self.stream, self.clock), *known)
        self.saved = (self.progress.rows, perf_counter())

    def _records(self, block: Block, said: dict[str, np.ndarray]) -> np.ndarray:
        assert self.stream is not None
        assert self.ledger is not None
        records = np.zeros(block.rows, self.ledger.kind)
        records["line"], records["file"] = block.line, block.file
        if block.key is not None and isinstance(self.stream, NumberStream):
            records["series"] = [self.stream.keys[key] for key in block.key.astype(str).tolist()]
        if block.time is not None:
            whole = block.time.dtype.kind == "M"
            records["time"] = block.time.astype("datetime64[us]").astype(np.int64) if whole else block.time
        for name, values in said.items():
            records[name] = values
        return records
