r"""Columns of a table into rows of numbers, in units that are learned from the rows before.

A column of numbers fills one slot; a missing number stands at the mean. A column of text fills `WIDTH` slots: the first
texts that appear have one each, all later ones share the last. Units, a mean and a scale for each slot, are fixed for a
stretch of rows and renewed where the rows before have doubled, later every `STRETCH` rows; the belief is then
re-expressed (`filtax.estimators.units`), so that it goes on saying the same.

Axes: B rows, M slots.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from filtax.runs.blocks import Block

__all__ = ["Inputs", "Pool", "next_stop"]

WIDTH = 12  # slots of a column of text
FIRST, STRETCH = 8, 4096  # rows before the first units, and between two units later on
MEMORY = 32768.0  # rows that old data count for at most
FAR = 20.0  # scales beyond which a number counts as being there
FARTHEST = 2.0**450  # and whatever the scale: squares stay finite


def next_stop(rows: int) -> int:
    """The number of rows at which units are renewed next.

    >>> [next_stop(rows) for rows in (0, 8, 9, 4096, 5000)]
    [8, 16, 16, 8192, 8192]
    """
    stop = FIRST
    while stop <= rows and stop < STRETCH:
        stop *= 2
    return stop if rows < STRETCH else (rows // STRETCH + 1) * STRETCH


class Pool:
    """Count, mean and variance of M columns; what is not finite was not seen.

    Rows are added one after the other to sums, which `close` takes in: so it does not matter how rows are cut.

    >>> pool = Pool.start(1)
    >>> pool.add(np.array([[1.0], [3.0], [np.nan]]))
    >>> pool.close()
    >>> pool.mean.tolist(), pool.var.tolist()
    ([2.0], [1.0])
    """

    def __init__(self, count: np.ndarray, mean: np.ndarray, var: np.ndarray, *sums: np.ndarray) -> None:
        self.count, self.mean, self.var = count, mean, var
        self.sums = np.stack(sums) if sums else np.zeros((3, len(count)))  # of 1, x - mean and its square

    @classmethod
    def start(cls, columns: int) -> "Pool":
        """Nothing seen."""
        return cls(*np.zeros((3, columns)))

    @property
    def moments(self) -> np.ndarray:
        """What was closed, (3, M)."""
        return np.stack([self.count, self.mean, self.var])

    @property
    def arrays(self) -> np.ndarray:
        """All of it, (6, M)."""
        return np.concatenate([self.moments, self.sums])

    @property
    def scale(self) -> np.ndarray:
        """Standard deviations; 0 where a column has held one value only."""
        return np.sqrt(self.var)

    def add(self, rows: np.ndarray) -> None:
        """Take more rows in, (B, M). A number further off than `FAR` scales counts as one that is so far."""
        if self.count.size == 0 or len(rows) == 0:
            return
        seen = np.isfinite(rows)
        fresh = (self.count + self.sums[0] == 0.0) & seen.any(axis=0)
        if fresh.any():  # near the first number, squares lose nothing
            first = rows[np.argmax(seen, axis=0), np.arange(rows.shape[1])]
            self.mean = np.where(fresh, np.clip(first, -FARTHEST, FARTHEST), self.mean)
        known = (self.count >= FIRST) & (self.var > 0.0)
        reach = np.minimum(np.where(known, FAR * self.scale, np.inf), FARTHEST)
        off = np.where(seen, np.clip(np.where(seen, rows, 0.0) - self.mean, -reach, reach), 0.0)
        for total, each in zip(self.sums, (seen.astype(np.float64), off, off * off), strict=True):
            total[:] = np.cumsum(np.concatenate([total[None], each]), axis=0)[-1]  # one after the other

    def outgrown(self) -> bool:
        """Forget the first rows if a gross error among them is their scale, by what the rows behind show; whether so.

        >>> pool = Pool(np.array([8.0]), np.array([0.0]), np.array([1e6]))
        >>> pool.add(np.arange(8.0)[:, None])
        >>> pool.outgrown(), pool.close(), pool.scale.round(2).tolist()
        (True, None, [2.29])
        """
        n, first, second = self.sums
        safe = np.maximum(n, 1.0)
        var = second / safe - (first / safe) ** 2
        wrong = (self.count == FIRST) & (n >= FIRST) & (var > 0.0) & (self.var > FAR**2 * var)
        self.count = np.where(wrong, 0.0, self.count)
        return bool(wrong.any())

    def close(self) -> None:
        """Let what was added count."""
        n, first, second = self.sums
        safe = np.maximum(n, 1.0)
        gap = first / safe
        var = np.maximum(second / safe - gap * gap, 0.0)
        old = np.minimum(self.count, MEMORY)
        share = n / np.maximum(old + n, 1.0)
        self.var = (1.0 - share) * self.var + share * var + share * (1.0 - share) * gap * gap
        self.mean = self.mean + share * gap
        self.count = self.count + n
        self.sums = np.zeros_like(self.sums)

    def standard(self, rows: np.ndarray) -> np.ndarray:
        """Rows in these units: 0 for what is missing (NaN) or has no scale yet, 1 for a category (infinity)."""
        scale = self.scale
        there = np.isfinite(rows) & (scale > 0.0)
        z = (np.where(there, rows, 0.0) - self.mean) / np.where(scale > 0.0, scale, 1.0)
        return np.where(np.isinf(rows), 1.0, np.where(there, np.clip(z, -FAR, FAR), 0.0))


class Inputs:
    """Which columns fill which slots.

    >>> inputs = Inputs(["wind"], ["day"])
    >>> inputs.raw(np.array([[2.0], [3.0]]), {"day": np.array(["mo", "tu"])})[:, :3].tolist()
    [[2.0, inf, nan], [3.0, nan, inf]]
    """

    def __init__(
        self, numbers: Sequence[str], texts: Sequence[str], met: Mapping[str, list[str]] | None = None
    ) -> None:
        self.numbers, self.texts = tuple(numbers), tuple(texts)
        self.met: dict[str, list[str]] = {name: list((met or {}).get(name, [])) for name in self.texts}

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each slot."""
        slots = [f"{name}={self._label(name, i)}" for name in self.texts for i in range(WIDTH)]
        return (*self.numbers, *slots)

    def read(self, block: Block) -> np.ndarray:
        """The columns of a block, as they are, (B, M)."""
        numbers = [block.numbers[name] for name in self.numbers]
        return self.raw(np.stack(numbers, axis=1) if numbers else np.empty((block.rows, 0)), block.texts)

    def raw(self, numbers: np.ndarray, texts: Mapping[str, Any]) -> np.ndarray:
        """Rows (B, M): numbers as they are, and infinity where a category is there, NaN where it is not."""
        columns = [numbers]
        for name in self.texts:
            found = np.full((len(numbers), WIDTH), np.nan)
            values, codes = np.unique(np.asarray(texts[name]).astype(str), return_inverse=True)
            first = np.argsort([int(np.argmax(codes == i)) for i in range(len(values))])
            for i in first:  # in the order of appearance
                if values[i] != "":
                    found[codes == i, self._slot(name, str(values[i]))] = np.inf
            columns.append(found)
        return np.concatenate(columns, axis=1)

    def _slot(self, name: str, text: str) -> int:
        met = self.met[name]
        if text not in met and len(met) < WIDTH - 1:
            met.append(text)
        return met.index(text) if text in met else WIDTH - 1

    def _label(self, name: str, slot: int) -> str:
        met = self.met[name]
        return met[slot] if slot < len(met) else "others" if slot == WIDTH - 1 else f"({slot})"
