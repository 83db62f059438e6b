"""The table of a run: its rows in blocks, and what the first of them decide, once: task, clock and columns."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from filtax.forecasting import Clock
from filtax.io import Chunk, InputError, Position, Rejected, Table, open_table
from filtax.pipeline._config import Config

KEPT = 1000  # records of rejected rows that are held at once
FEW = 10  # different whole numbers that count as labels
SAMPLE = 1000  # rows that decide
WIDTH = 12  # indicators of a column of text
MOST = 2048  # known columns
AHEAD = 20_000  # numbers of known columns that a row looks at, up to its last target


def open_source(config: Config, home: Path | None, start: Position | None = None, **more: Any) -> Table:
    """Open the table of a run with the columns that it reads: with times and a target of numbers no others."""
    asked = {"target": config.target, "time": config.time, "key": config.key, "on_error": config.on_error}
    asked |= {"folder": home, "start": start, **more}
    features = None if config.features is None else list(config.features)
    if "features" in more:
        return open_table(config.source, **asked)
    if features is None and config.time is not None and config.task != "classify":
        table = open_table(config.source, **asked, features=[])
        text = table.layout is not None and table.layout.kinds.get(config.target) == "text"
        if not text or config.source == "-":
            return table
        table.close()
    return open_table(config.source, **asked, features=features)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows, and where the source stands behind them.

    Attributes:
        numbers: Columns of numbers by name.
        texts: Columns of text by name.
        time: Times, or None.
        key: Keys, or None.
        line: Line of each row.
        file: Number of the file of each row.
        rejected: Rows that were rejected before the last of these; in a block without rows, those behind them.
        position: Where to go on behind it, when it is called; None if the source cannot be read again.
    """

    numbers: Mapping[str, np.ndarray]
    texts: Mapping[str, np.ndarray]
    time: np.ndarray | None
    key: np.ndarray | None
    line: np.ndarray
    file: np.ndarray
    rejected: list[Rejected]
    position: Callable[[], Position] | None

    def __len__(self) -> int:
        return len(self.line)

    @property
    def dated(self) -> bool:
        """Whether times are dates."""
        return self.time is not None and self.time.dtype.kind == "M"


def blocks(table: Table, size: int, files: list[str], *, eager: bool, least: int = 1) -> Iterator[Block]:
    r"""Cut a table into blocks; the last may be shorter, and where rows are wanted at once, any.

    Where the table ends in a fault, or standard input is interrupted, the rows before it come first. What was rejected
    behind the last row, and many rejected rows in a row, come in blocks without rows.

    Args:
        table: An open table.
        size: Rows of a block.
        files: Grows by the names of files as they are met.
        eager: Give what there is, as for standard input.
        least: Rows that the first block must have if the source has them.

    >>> import pathlib, tempfile
    >>> from filtax.io import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "t.csv"
    ...     _ = path.write_text("load,wind\n1,2\nx,2\n3,4\n5,6\n")
    ...     cut = list(blocks(open_table(path, target="load"), 2, [], eager=False))
    >>> [(len(block), len(block.rejected)) for block in cut]
    [(2, 1), (1, 0)]
    """
    held: list[tuple[Chunk, int, int]] = []
    rejected: list[Rejected] = []
    chunks, wanted = iter(table), max(size, least)
    while True:
        try:
            chunk = next(chunks, None)
        except (InputError, KeyboardInterrupt) as ended:  # who interrupts a wait is given what has come
            if held and (eager or isinstance(ended, InputError)):
                yield _joined(table, held, rejected, files, eager)
            raise
        if chunk is None:
            break
        if chunk.file not in files:
            files.append(chunk.file)
        rejected += chunk.rejected
        at = 0
        while at < len(chunk):
            have = sum(stop - start for _, start, stop in held)
            stop = min(len(chunk), at + wanted - have)
            held.append((chunk, at, stop))
            have, at = have + stop - at, stop
            if have == wanted:
                yield _joined(table, held, rejected, files, eager)
                held, least, wanted = [], 1, size
        if len(rejected) > KEPT:
            yield _joined(table, [], rejected, files, eager)
        if eager and held and sum(stop - start for _, start, stop in held) >= least:
            yield _joined(table, held, rejected, files, eager)
            held, least, wanted = [], 1, size
    if held:
        yield _joined(table, held, rejected, files, eager)
    if rejected:
        yield _joined(table, [], rejected, files, eager)


def _joined(
    table: Table, held: list[tuple[Chunk, int, int]], rejected: list[Rejected], files: list[str], eager: bool
) -> Block:
    if not held:
        all_of, rejected[:] = list(rejected), []
        return Block({}, {}, None, None, np.empty(0, np.int64), np.empty(0, np.int32), all_of, None)

    def join(pick: Callable[[Chunk], Any]) -> np.ndarray:
        found = [pick(chunk)[start:stop] for chunk, start, stop in held]
        return found[0] if len(found) == 1 else np.concatenate(found)

    first, last = held[0][0], held[-1]
    numbers, line = join(lambda chunk: chunk.numbers), join(lambda chunk: chunk.line)
    file = [np.full(stop - start, files.index(chunk.file), np.int32) for chunk, start, stop in held]
    end = (files.index(last[0].file), int(line[-1]))
    before = [row for row in rejected if (files.index(row.file), row.line) < end]
    rejected[:] = rejected[len(before) :]
    return Block(
        {name: numbers[:, i] for i, name in enumerate(first.names)},
        {name: join(lambda chunk, name=name: chunk.texts[name]) for name in first.texts},
        None if first.time is None else join(lambda chunk: chunk.time),
        None if first.key is None else join(lambda chunk: chunk.key),
        line,
        np.concatenate(file),
        before,
        None if eager else partial(table.position, last[0], last[2] - 1),
    )


@dataclass(frozen=True)
class Plan:
    """What was decided, besides the configuration.

    Attributes:
        task: "regress" or "classify".
        numbers: Known columns of numbers.
        texts: Known columns of text.
        clock: The clock of the series; its season is that of the seasonal baseline.
        dated: Whether times are dates.
    """

    task: str
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    clock: Clock
    dated: bool = False

    @property
    def width(self) -> int:
        """Number of known columns, indicators included."""
        return len(self.numbers) + WIDTH * len(self.texts)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {**asdict(self), "numbers": list(self.numbers), "texts": list(self.texts)}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Plan":
        """Read it back."""
        columns = {name: tuple(plain[name]) for name in ("numbers", "texts")}
        return cls(**{**plain, **columns, "clock": Clock(**plain["clock"])})


def decide(config: Config, block: Block) -> Plan:
    """Decide by the first rows of a source.

    >>> rows = Block({"y": np.array([0.5, 0.7]), "x": np.ones(2)}, {}, None, None, np.arange(2), np.zeros(2), [], None)
    >>> plan = decide(Config("a.csv", "y"), rows)
    >>> plan.task, plan.numbers
    ('regress', ('x',))
    """
    task = _task(config, block)
    if task == "classify":
        for name, given in (("--horizon", config.horizon > 1), ("--key", config.key), ("--season", config.season)):
            if given:
                raise ValueError(f"{name}: it means nothing for labels; omit it, or say --task regress.")
    numbers, texts = (tuple(n for n in part if n != config.target) for part in (block.numbers, block.texts))
    plan = Plan(task, numbers, texts, _clock(config, block, task), block.dated)
    if plan.width > MOST:
        raise ValueError(
            f"{config.source}: its columns have {plan.width} weights, and {MOST} is the most; name those that matter "
            "with --features."
        )
    looked = plan.width * (config.horizon + config.delay)
    if looked > AHEAD:
        raise ValueError(
            f"--horizon {config.horizon} --delay {config.delay}: with these columns a row would look at {looked} "
            f"numbers ahead, and {AHEAD} is the most; shorten them, or name fewer --features."
        )
    return plan


def label_of(value: float | str) -> str:
    """The text of a label; a whole number is written as one.

    >>> label_of(3.0), label_of("spam")
    ('3', 'spam')
    """
    return value if isinstance(value, str) else f"{value:.17g}"


def _clock(config: Config, block: Block, task: str) -> Clock:
    """The clock of the first series."""
    own = slice(None) if block.key is None else block.key == block.key[0]
    if task == "classify":
        return Clock.by_index(1)
    if block.time is not None and block.dated:
        return Clock.of(block.time[own][:SAMPLE])
    y = block.numbers[config.target][own][:SAMPLE]
    clock = Clock.by_index(config.season) if config.season else Clock.by_values(y)
    if block.time is None or len(block.time[own]) < 2:
        return clock
    return replace(clock, step=float(np.median(np.diff(block.time[own][:SAMPLE]))))


def _task(config: Config, block: Block) -> str:
    target = config.target
    text = target in block.texts
    values = (block.texts if text else block.numbers)[target][:SAMPLE]
    values = values[values.astype(str) != ""] if text else values[np.isfinite(values)]
    found = np.unique(values.astype(str) if text else values)
    labels = text or (0 < len(found) <= FEW and not np.any(found != np.rint(found)))
    if config.task == "regress" and text:
        raise ValueError(f"--task regress: the target {target} holds text; use --task classify, or another --target.")
    if config.task == "classify" and not labels:
        raise ValueError(
            f"--task classify: the target {target} takes {len(found)} values in the first rows, too many for labels; "
            "use --task regress."
        )
    if config.task != "auto":
        return config.task
    if text and len(found) > max(FEW, len(values) / 2):
        comma = sum(bool(re.fullmatch(r"\s*[-+]?\d+,\d+\s*", each)) for each in found.tolist()) > len(found) / 2
        advice = "write numbers as 1.5, not 1,5" if comma else "name another --target, or say --task classify"
        raise ValueError(
            f"the target {target} is text and takes {len(found)} values in the first {len(values)} rows, such as "
            f"{str(found[0])!r:.60}: that is no label; {advice}."
        )
    return "classify" if labels and (text or not config.time) else "regress"


def missing_steps(clock: Clock, last: np.ndarray | None, time: np.ndarray) -> np.ndarray:
    """Steps that are missing before each of some times (T,), the row before the first of them being at `last` (1,)."""
    return clock.missing(time[:1] if last is None else last, time)


class Columns:
    """Known columns as numbers: of a text, an indicator for each of the first texts met, and one for all others.

    >>> columns = Columns(Plan("regress", (), ("day",), Clock.by_index(1)))
    >>> X = columns.read({}, {"day": np.array(["fri", "sat", "fri", ""], object)})
    >>> X[:3, :2].tolist(), bool(np.isnan(X[3]).all())
    ([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], True)
    """

    def __init__(self, plan: Plan, met: Mapping[str, list[str]] | None = None) -> None:
        self.plan = plan
        self.met: dict[str, list[str]] = {name: [] for name in plan.texts} | dict(met or {})

    def read(self, numbers: Mapping[str, np.ndarray], texts: Mapping[str, np.ndarray]) -> np.ndarray:
        """The columns of some rows, (T, F), NaN where missing; texts met for the first time take the next indicator."""
        parts = [numbers[name][:, None] for name in self.plan.numbers]
        for name in self.plan.texts:
            values, first, at = np.unique(texts[name].astype(str), return_index=True, return_inverse=True)
            met = self.met[name]
            for value in values[np.argsort(first)].tolist():
                if value and value not in met and len(met) < WIDTH - 1:
                    met.append(value)
            slots = np.array([met.index(v) if v in met else WIDTH - 1 for v in values.tolist()], int)
            shares = np.where((values == "")[:, None], np.nan, slots[:, None] == np.arange(WIDTH))
            parts.append(shares[at])
        return np.concatenate(parts, axis=1) if parts else np.zeros((0, 0))
