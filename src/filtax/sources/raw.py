"""What the readers of all formats hand on: columns as they stand in the source, before times are read."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from filtax.sources.rejected import Rejected

__all__ = ["Raw"]


@dataclass
class Raw:
    """Rows of one block, and what was left out between them.

    `before[i]` is the number of good rows before `rejected[i]`; `offset` is where each row ends; `digest(offset)` is
    the sha256 of the file up to there, and `place(offset, name)` the character where a column of that row begins.
    `unended` says that the last row had no line end, so that it may still grow. Times stand in `texts` if the format
    holds them as text, else in `moments`.

    >>> Raw.empty(("a",), ()).numbers.shape
    (0, 1)
    """

    numbers: np.ndarray
    texts: dict[str, np.ndarray]
    line: np.ndarray
    offset: np.ndarray
    rejected: list[Rejected] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    digest: Callable[[int], str] | None = None
    place: Callable[[int, str], int] | None = None
    moments: np.ndarray | None = None
    unended: bool = False

    @classmethod
    def empty(cls, numbers: tuple[str, ...], texts: tuple[str, ...]) -> "Raw":
        """No rows."""
        nothing = np.empty(0, np.int64)
        return cls(np.empty((0, len(numbers))), {name: np.empty(0, object) for name in texts}, nothing, nothing)

    def head(self, rows: int) -> "Raw":
        """The rows before the first fault, and that fault."""
        texts = {name: values[:rows] for name, values in self.texts.items()}
        cut = (self.numbers[:rows], texts, self.line[:rows], self.offset[:rows], self.rejected[:1], self.before[:1])
        return Raw(*cut, digest=self.digest, place=self.place, unended=self.unended and rows == len(self.line))

    def drop(self, keep: np.ndarray, rejected: dict[int, Rejected]) -> None:
        """Drop rows, and put their records in order with those that are there; `rejected` is by row."""
        kept = np.concatenate([[0], np.cumsum(keep)])
        found = [(before, 0, each) for before, each in zip(self.before, self.rejected, strict=True)]
        found += [(i, 1, each) for i, each in rejected.items()]
        found.sort(key=lambda entry: entry[:2])  # what stood before a row comes before that row
        self.rejected, self.before = [each for *_, each in found], [int(kept[i]) for i, *_ in found]
        self.unended = self.unended and bool(keep[-1])
        self.numbers, self.line, self.offset = self.numbers[keep], self.line[keep], self.offset[keep]
        self.texts = {name: values[keep] for name, values in self.texts.items()}
        self.moments = None if self.moments is None else self.moments[keep]
