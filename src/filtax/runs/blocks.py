"""Rows in blocks of one size, whatever the chunks of the source: a run that goes on cuts them as it did before."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from filtax.io import Chunk, InputError, Position, Rejected, Table

KEPT = 1000  # records of bad rows that are held at once, where there are many

__all__ = ["Block", "blocks", "numbered", "padded", "picked"]


class Block(NamedTuple):
    """Some rows, and where the source stands behind them.

    Attributes:
        numbers: Columns of numbers by name.
        texts: Columns of text by name.
        time: Times, or None.
        key: Keys, or None.
        line: Line of each row.
        file: Number of the file of each row.
        rejected: Rows that were left out before the last of these.
        position: Tells how to go on behind it, when it is asked; None if the source cannot be read again.
        place: Tells with which character of its line a column begins in a row, from 1; None where there are no lines.

    >>> Block({}, {}, None, None, np.arange(3), np.zeros(3), [], None).rows
    3
    """

    numbers: Mapping[str, np.ndarray]
    texts: Mapping[str, np.ndarray]
    time: np.ndarray | None
    key: np.ndarray | None
    line: np.ndarray
    file: np.ndarray
    rejected: list[Rejected]
    position: Callable[[], Position] | None
    place: Callable[[int, str], int] | None = None

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.line)


def picked(block: Block, rows: slice | np.ndarray) -> Block:
    """Some rows of a block.

    >>> picked(Block({"y": np.arange(3.0)}, {}, None, None, np.arange(3), np.zeros(3), [], None), slice(1)).numbers
    {'y': array([0.])}
    """
    pick = lambda values: None if values is None else values[rows]  # noqa: E731
    numbers, texts = ({name: each[rows] for name, each in part.items()} for part in (block.numbers, block.texts))
    line, file = block.line[rows], block.file[rows]
    held, place = np.arange(block.rows)[rows], block.place
    return block._replace(
        numbers=numbers,
        texts=texts,
        time=pick(block.time),
        key=pick(block.key),
        line=line,
        file=file,
        place=None if place is None else lambda row, name: place(int(held[row]), name),
    )


def numbered(block: Block, keys: dict[str, int]) -> np.ndarray:
    """Number of the series of each row, (B,); `keys` grows by those that are new.

    >>> keys = {"b": 0}
    >>> rows = Block({}, {}, None, np.array(["b", "a"]), np.arange(2), np.zeros(2), [], None)
    >>> numbered(rows, keys).tolist(), keys
    ([0, 1], {'b': 0, 'a': 1})
    """
    if block.key is None:
        return np.zeros(block.rows, np.int64)
    values, codes = np.unique(block.key.astype(str), return_inverse=True)
    for value in values.tolist():
        keys.setdefault(value, len(keys))
    return np.array([keys[value] for value in values.tolist()])[codes]


def blocks(
    table: Table, size: int, files: list[str], *, eager: bool, least: int = 1, then: int | None = None
) -> Iterator[Block]:
    r"""Cut a table into blocks; the last may be shorter, and where rows are to be handed on at once, any.

    Where the table ends in a fault, or standard input is interrupted, the rows before it are handed on first. Where
    many rows are left out, a block without rows hands on their records.

    Args:
        table: An open table.
        size: Rows of a block.
        files: Grows by the names of files as they are met.
        eager: Hand on what there is, as for standard input.
        least: Rows that the first block must have if the source has them.
        then: Rows of all blocks but the first, where those are to be shorter.

    >>> import pathlib, tempfile
    >>> from filtax.io import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "t.csv"
    ...     _ = path.write_text("load,wind\n1,2\nx,2\n3,4\n5,6\n")
    ...     cut = list(blocks(open_table(path, target="load"), 2, [], eager=False))
    >>> [(block.rows, len(block.rejected)) for block in cut]
    [(2, 1), (1, 0)]
    """
    held: list[tuple[Chunk, int, int]] = []
    left: list[Rejected] = []
    chunks = iter(table)
    while True:
        try:
            chunk = next(chunks, None)
        except (InputError, KeyboardInterrupt) as ended:  # who interrupts a wait is given what has come
            if held and (eager or isinstance(ended, InputError)):
                yield _joined(table, held, left, files, eager)
            raise
        if chunk is None:
            break
        if chunk.file not in files:
            files.append(chunk.file)
        left += chunk.rejected
        at = 0
        while at < len(chunk):
            have = sum(stop - start for _, start, stop in held)
            stop = min(len(chunk), at + size - have)
            held.append((chunk, at, stop))
            have, at = have + stop - at, stop
            if have == size:
                yield _joined(table, held, left, files, eager)
                held, least, size = [], 1, then or size
        if len(left) > KEPT:
            yield _joined(table, [], left, files, eager)
        if eager and held and sum(stop - start for _, start, stop in held) >= least:
            yield _joined(table, held, left, files, eager)
            held, least = [], 1
    if held or left:
        yield _joined(table, held, left, files, eager, whole=True)


def _joined(
    table: Table,
    held: list[tuple[Chunk, int, int]],
    left: list[Rejected],
    files: list[str],
    eager: bool,
    whole: bool = False,
) -> Block:
    if not held:
        told, left[:] = list(left), []
        return Block({}, {}, None, None, np.empty(0, np.int64), np.empty(0, np.int32), told, None)

    def join(pick: Any) -> np.ndarray:
        found = [pick(chunk)[start:stop] for chunk, start, stop in held]
        return found[0] if len(found) == 1 else np.concatenate(found)

    first, last = held[0][0], held[-1]
    numbers = join(lambda chunk: chunk.numbers)
    line = join(lambda chunk: chunk.line)
    number = [np.full(stop - start, files.index(chunk.file), np.int32) for chunk, start, stop in held]
    end = (files.index(last[0].file), int(line[-1]))
    before = [row for row in left if whole or (files.index(row.file), row.line) < end]
    left[:] = left[len(before) :]
    return Block(
        {name: numbers[:, i] for i, name in enumerate(first.names)},
        {name: join(lambda chunk, name=name: chunk.texts[name]) for name in first.texts},
        None if first.time is None else join(lambda chunk: chunk.time),
        None if first.key is None else join(lambda chunk: chunk.key),
        line,
        np.concatenate(number),
        before,
        None if eager else partial(table.position, last[0], last[2] - 1),
        partial(_place, tuple(held)),
    )


def _place(held: tuple[tuple[Chunk, int, int], ...], row: int, name: str) -> int:
    for chunk, start, stop in held:
        if row < stop - start:
            return chunk.place(start + row, name)
        row -= stop - start
    raise IndexError("there are not so many rows in this block.")


def padded(rows: np.ndarray, size: int) -> np.ndarray:
    """Rows, and zeros behind them up to the size of a block, so that blocks of any length have one shape.

    >>> padded(np.ones(2), 3).tolist()
    [1.0, 1.0, 0.0]
    """
    return np.concatenate([rows, np.zeros((size - len(rows), *rows.shape[1:]), rows.dtype)])
