"""The rows of a table in blocks, with where each stood."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from filtax.io import Chunk, InputError, Position, Rejected, Table

KEPT = 1000  # records of rejected rows that are held at once


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
        rejected: Rows that were rejected before the last of these.
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


def blocks(table: Table, size: int, files: list[str], *, eager: bool, least: int = 1) -> Iterator[Block]:
    r"""Cut a table into blocks; the last may be shorter, and where rows are wanted at once, any.

    Where the table ends in a fault, or standard input is interrupted, the rows before it come first. Where many rows
    are rejected, a block without rows holds their records.

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
    if held or rejected:
        yield _joined(table, held, rejected, files, eager, whole=True)


def _joined(
    table: Table,
    held: list[tuple[Chunk, int, int]],
    rejected: list[Rejected],
    files: list[str],
    eager: bool,
    whole: bool = False,
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
    before = [row for row in rejected if whole or (files.index(row.file), row.line) < end]
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
