"""One live stream of labels: units and room for classes are decided by the rows so far, then the pipeline is driven.

Columns are scaled by mean and standard deviation of the first rows. Each time these have doubled, up to `PILOT`,
they are replayed in new units; after that the units stay. Room for classes grows from 3 to 15, 63, ... when all of it
is taken. Both depend on the rows alone, never on the batches they come in.
"""

import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from filtax.forecasting._label_pipeline import LabelPipeline

PILOT = 1024  # rows from which units are taken


@dataclass(frozen=True)
class LabelOut:
    """What rows showed.

    Attributes:
        probability: (T, C) of each class met so far, made before the label; 0 for one not met yet. The rest to 1 is the
            probability of a class never met.
        weights: (T, K) of the experts.
    """

    probability: np.ndarray
    weights: np.ndarray


class Labels:
    r"""Probabilities of the labels of one stream, row by row or in batches; the numbers are the same.

    Classes are 0, 1, 2, ... in the order of their first appearance. Experts on past labels and on the known columns
    are mixed by log loss: the loss of the mixture exceeds that of any sequence of its K experts that changes m times in
    T labels by at most $(m + 1) \log(K T)$.

    Args:
        known: Number of columns that are known with a row; NaN in them is missing.
        method: Name of a filter that takes the place of the standard ones, in the grammar of `filtax.method`.
        delay: Rows after which a label comes: row t is forecast with the labels up to t - delay - 1.

    >>> labels = Labels(known=1)
    >>> x = np.arange(200) % 5.0
    >>> out = labels.learn((x > 2).astype(int), x[:, None])
    >>> bool(np.all(out.probability[100:].argmax(axis=1) == (x[100:] > 2)))
    True
    """

    def __init__(self, known: int = 0, method: str | None = None, delay: int = 0):
        if min(known, delay) < 0:
            raise ValueError(f"Labels(known={known}, delay={delay}) must not be negative; give whole numbers from 0.")
        self.pipe = LabelPipeline(known, method, delay)
        self.count, self._met = 0, 0  # rows, and classes, so far
        self._late = np.zeros(delay, int)  # classes after each of the rows that wait for their label
        self._past = np.zeros((0, known)), np.zeros(0, int)  # the first rows, which new units will replay
        with jax.enable_x64(True):
            self.packed = self.pipe.start(np.zeros(known), np.ones(known))

    def learn(self, y: Any, known: Any = None) -> LabelOut:
        """Forecast each row before its label is looked at, then learn it.

        Args:
            y: (T,) numbers of the classes, -1 where missing.
            known: (T, F) known columns.

        Returns:
            Probabilities (T, C) of the C classes met when the batch ends, and weights (T, K) as `names`.
        """
        y = np.asarray(y)
        if y.ndim != 1 or (y.size and y.dtype.kind not in "iub"):
            raise ValueError(f"learn: y is {y.dtype} of shape {y.shape}; give (T,) whole numbers, one for each row.")
        y, known, start = y.astype(int), self._columns("learn", known, len(y)), 0
        met = np.maximum.accumulate(np.append(self._met, y + 1))  # classes before each row, and at the end
        wrong = np.flatnonzero((y < -1) | (y > met[:-1]))
        if wrong.size:
            raise ValueError(
                f"learn: y[{wrong[0]}] is {y[wrong[0]]} after {met[wrong[0]]} classes; number them 0, 1, 2, ... in the "
                "order of their first appearance, and give -1 for a missing label."
            )
        arrived = np.append(self._late, met[1:])  # classes whose label has come, after each row
        probability, weights = np.zeros((len(y), met[-1])), np.zeros((len(y), len(self.names)))
        with jax.enable_x64(True):
            while start < len(y):
                full = start + int(np.searchsorted(arrived[start:], self.pipe.room)) + 1  # the row that fills the room
                part = slice(start, min(len(y), full, start + self._until_replay()))
                self.packed, said, weights[part] = self.pipe.scan(self.packed, known[part], y[part])
                width = min(met[-1], self.pipe.room)
                probability[part, :width] = said[:, :width]
                self.count, start = self.count + len(said), part.stop
                self._replan(known[part], y[part], full=start == full)
        self._met, self._late = int(met[-1]), arrived[len(y) :]
        return LabelOut(probability, weights)

    def predict(self, known: Any = None) -> np.ndarray:
        """Probabilities (T, C) for each row as if it came next; learns nothing.

        Args:
            known: (T, F) known columns; one row without columns by default.
        """
        rows = 1 if known is None else len(np.asarray(known))
        with jax.enable_x64(True):
            columns = self._columns("predict", known, rows)
            _, said, _ = self.pipe.scan(self.packed, columns, np.full(rows, -1), asked=rows)
        return np.pad(said, ((0, 0), (0, max(self._met - self.pipe.room, 0))))[:, : self._met]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the experts, in the order of the weights."""
        return self.pipe.names

    def settings(self) -> dict[str, Any]:
        """Everything that is not an array, for `restore`."""
        pipe = self.pipe
        given = {"known": pipe.known, "method": pipe.method, "delay": pipe.delay}
        return {**given, "room": pipe.room, "count": self.count, "met": self._met}

    def arrays(self) -> dict[str, np.ndarray]:
        """The packed state, how many classes were known after each waiting row, and the rows to replay."""
        known, labels = self._past
        return {"state": np.asarray(self.packed), "late": self._late, "known": known, "labels": labels}

    @classmethod
    def restore(cls, settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> "Labels":
        """What `settings` and `arrays` were taken from; it goes on with the same bits.

        >>> labels = Labels()
        >>> before = labels.learn([0, 1, 0, 1])
        >>> Labels.restore(labels.settings(), labels.arrays()).predict().tolist() == labels.predict().tolist()
        True
        """
        labels = cls(settings["known"], settings["method"], settings["delay"])
        labels.pipe = replace(labels.pipe, room=settings["room"])
        labels.count, labels._met = settings["count"], settings["met"]
        labels.packed, labels._late = np.asarray(arrays["state"]), arrays["late"]
        labels._past = arrays["known"], arrays["labels"]
        return labels

    def _columns(self, verb: str, known: Any, rows: int) -> np.ndarray:
        columns = np.zeros((rows, 0)) if known is None else np.asarray(known, float)
        if columns.shape != (rows, self.pipe.known):
            raise ValueError(
                f"{verb}: known has shape {columns.shape}; give ({rows}, {self.pipe.known}), a row for each y."
            )
        return columns

    def _until_replay(self) -> int:
        """Rows until there are 1, 2, 4, ..., `PILOT` of them."""
        replays = self.pipe.known and self.count < PILOT
        return (1 << self.count.bit_length()) - self.count if replays else sys.maxsize

    def _replan(self, known: np.ndarray, y: np.ndarray, full: bool) -> None:
        """Room for more classes if all of it is taken, and new units if the first rows have doubled."""
        if full:
            self.pipe, self.packed = self.pipe.grown(self.packed)
        if not self.pipe.known or self.count > PILOT:
            return
        known, y = self._past = np.concatenate([self._past[0], known]), np.append(self._past[1], y)
        if self.count.bit_count() == 1:
            self.packed, _, _ = self.pipe.scan(self.pipe.start(*_units(known)), known, y)
        if self.count == PILOT:
            self._past = known[:0], y[:0]


def _units(known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column; where it is constant, or has no values, any unit will do.

    Values further than 1.5 times the distance of the quartiles from them (Tukey's fences) count as if they lay there,
    unless the quartiles are equal.
    """
    values = np.where(np.isfinite(known), known, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of numpy, about a column without values
        largest = np.nanmax(np.abs(values), axis=0)
        unit = np.where(largest > 0.0, largest, 1.0)
        values = values / unit
        low, high = np.nanquantile(values, (0.25, 0.75), axis=0)
        reach = np.where(high > low, 1.5 * (high - low), np.inf)
        values = np.clip(values, low - reach, high + reach)
        center, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    varies = spread > 1e-12  # more than rounding
    return unit * np.nan_to_num(center), unit * np.where(varies, spread, 1.0)
