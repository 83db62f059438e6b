r"""Learn a label from blocks of rows.

While at most two labels are known, they are one logistic filter. Of more, each has a filter of its own for "this label
or another", $p_c$, with probabilities $p_c / \sum_k p_k$ over the K labels known so far, as in
`filtax.estimators.Classifier`. A further label has, after n labels, the probability
$$\frac{K (K + 1)}{n^2 + n + 2 K}$$
of Ristad's natural law of succession (1995), and those of the known labels are less by this share. How many labels come
later decides how much room there is, and no forecast, but for its last bit.

Axes: B rows, H heads, C labels.
"""

from functools import partial
from typing import Any

import numpy as np
from jaxtyping import PyTree

from filtax.runs.blocks import Block, padded
from filtax.runs.carry import mean_of, moved
from filtax.runs.engine import Learner
from filtax.runs.inputs import Inputs, Pool, next_stop
from filtax.runs.large import held
from filtax.runs.late import Arrived, Late
from filtax.runs.onset import Onset
from filtax.runs.plan import Plan, label_of
from filtax.runs.rivals import LabelRivals
from filtax.runs.surprise import Once, Surprise
from filtax.runs.trace import Trace

__all__ = ["LabelStream"]

TINY = 1e-300


class LabelStream:
    """Everything that is known about the labels of a run; `learn` takes the next rows in.

    >>> from filtax.runs.config import Config
    >>> from filtax.runs.plan import decide
    >>> x = np.arange(200) % 2
    >>> words = np.array(["no", "yes"], object)[x]
    >>> block = Block({"x": x * 1.0}, {"y": words}, None, None, np.arange(200), np.zeros(200), [], None)
    >>> stream = LabelStream(decide(Config("-", "y", method="LG+C-Static", block=256), block))
    >>> told, _ = stream.learn(block)
    >>> bool(np.all(told["forecast"][-9:] == told["y"][-9:])), stream.labels
    (True, ['no', 'yes'])
    """

    def __init__(self, plan: Plan, labels: list[str] | None = None, met: dict | None = None) -> None:
        config = plan.config
        self.plan, self.rows = plan, 0
        self.labels = list(labels or [])
        self.inputs = Inputs(plan.numbers, plan.texts, met)
        extra = len(self.inputs.names)
        self.pool, self.units = Pool.start(extra), Pool.start(extra)
        assert config.method is not None
        assert config.prior is not None
        self.learner = Learner(config.method, 1 + extra, config.prior, plan.heads, plan.limit, plan.elder)
        self.carry = self.learner.fresh(plan.heads)
        self.late = Late(config.late, extra + 1)
        self.seen, self.trace = 0, Trace(1 + extra)
        self.rivals, self.surprise = LabelRivals(self.room, config.late), Surprise(config.false_alarms)
        self.once, self.onset = Once(), Onset()

    @property
    def room(self) -> int:
        """Labels that there is room for."""
        return 2 if self.plan.heads == 1 else self.plan.heads

    @property
    def names(self) -> tuple[str, ...]:
        """What `learn` returns for each row; labels by their number."""
        chances = [f"p{i}" for i in range(self.room)]
        return ("y", "forecast", "probability", "p_true", "trust", "change_probability", *chances, *self.rivals.names)

    @property
    def columns(self) -> tuple[str, ...]:
        """Name of each weight."""
        return ("constant", *self.inputs.names)

    @property
    def watches(self) -> bool:
        """Whether changes are looked for: where labels come late, errors come in groups, and it makes no sense."""
        return not self.late.delay

    def learn(self, block: Block) -> tuple[dict[str, np.ndarray], list[tuple[int, str, Any]]]:
        """Forecast each row, then learn it: what is to be written for each, and the events."""
        found: list[tuple[int, str, Any]] = []
        y, known = self._codes(block, found)
        rows = np.concatenate([self._raw(block), known[:, None]], axis=1)
        slot = np.zeros(len(y), np.int64)
        come = np.cumsum(self.late.come(slot))
        count = self.rivals.come(y)
        chances, told = np.zeros((len(y), self.room)), np.full((len(y), 4), np.nan)
        start = 0
        while start < len(y):
            before = come[start - 1] if start else 0
            renewed = int(np.searchsorted(come, before + next_stop(self.rows) - self.rows)) + 1
            stop = min(len(y), renewed, start + self.plan.config.block, start + self.trace.left(self.seen))
            part = slice(start, stop)
            arrived = self.late.exchange(slot[part], rows[part], y[part])
            known[part] = np.where(arrived.come, arrived.rows[:, -1], 0.0)
            chances[part], told[part] = self._advance(rows[part], arrived, known[part])
            self._renew(rows[part], arrived)
            self.seen += stop - start
            self.trace.look(self.seen, lambda: mean_of(self.carry))
            start = stop
        inside = np.where(np.isfinite(y), y, 0).astype(int)
        expected = np.where(y < known, chances[np.arange(len(y)), inside], np.nan)
        likeliest = np.where(known > 0, chances.max(axis=1), 0.5)
        alarms, excess = np.nan_to_num(told[:, 2]), np.nan_to_num(told[:, 3])
        if self.plan.together:
            alarms = self.onset.since(excess, alarms)
        found += self.surprise.labels(expected, likeliest, not self.late.delay, alarms)
        if self.plan.elder:
            found = self.once.tell(slot, found)
        rivals = self.rivals.forecast(y)
        new, said, most, chances = self._said(chances, known, count)
        true = np.where(y < known, chances[np.arange(len(y)), inside], new)
        true[~np.isfinite(y) | (known == 0)] = np.nan
        columns = [y, said, most, true, told[:, 0], told[:, 1], *chances.T, *rivals.T]
        return dict(zip(self.names, columns, strict=True)), found

    def foresee(self, block: Block) -> dict[str, np.ndarray]:
        """Forecast the labels of rows from what is known; nothing is learned from them."""
        n, size = block.rows, self.plan.config.block
        rows = self.design(self._raw(block))
        made = self.learner.foresee(self.carry, np.zeros(size, int), padded(rows, size), self.late.delay + 1)
        known = np.full(n, len(self.labels))
        _, said, most, chances = self._said(self.shares(made, known), known, np.full(n, self.rivals.counts.sum()))
        names = ("forecast", "probability", *(f"p{i}" for i in range(self.room)))
        return dict(zip(names, [said, most, *chances.T], strict=True))

    def state(self) -> PyTree:
        """All arrays that a resumed run needs."""
        arrays = {
            "units": [self.pool.arrays, self.units.arrays],
            "last": self.rivals.last,
            "counts": self.rivals.counts,
            "past": self.rivals.past,
            "late": self.late.arrays,
            "scores": self.surprise.scores,
            "rows": np.array([self.rows, self.seen]),
            "trace": self.trace.arrays,
            **({"once": self.once.arrays} if self.plan.elder else {}),
            **({"onset": self.onset.arrays} if self.plan.together else {}),
        }
        return {"carry": self.carry, "arrays": arrays}

    def restore(self, state: PyTree) -> None:
        """Go on from what `state` returned."""
        self.carry, arrays = state["carry"], state["arrays"]
        self.pool, self.units = (Pool(*array) for array in arrays["units"])
        self.rivals.last, self.rivals.counts = arrays["last"], arrays["counts"]
        self.rivals.past = arrays["past"]
        self.late.restore(arrays["late"])
        self.surprise.scores = arrays["scores"]
        self.rows, self.seen = arrays["rows"].tolist()
        self.trace.restore(arrays["trace"])
        if self.plan.elder:
            self.once.restore(arrays["once"])
        if self.plan.together:
            self.onset.restore(arrays["onset"])

    def note(self) -> dict[str, Any]:
        """The rest: plain values."""
        return {"labels": self.labels, "met": self.inputs.met}

    def _codes(self, block: Block, found: list[tuple[int, str, Any]]) -> tuple[np.ndarray, np.ndarray]:
        """Number of each label, and how many were known before each row; one too many is told of and left out."""
        target = self.plan.config.target
        given = block.texts[target].astype(str) if target in block.texts else block.numbers[target]
        values, first, code = np.unique(given, return_index=True, return_inverse=True, equal_nan=False)
        names = ["" if value != value else label_of(value) for value in values.tolist()]
        known, numbers = np.full(len(given), len(self.labels)), np.full(len(names), np.nan)
        for i in np.argsort(first).tolist():  # in the order of appearance
            if names[i] == "":
                continue
            if names[i] not in self.labels and len(self.labels) < self.room:
                self.labels.append(names[i])
                known[first[i] + 1 :] += 1
            if names[i] in self.labels:
                numbers[i] = self.labels.index(names[i])
            else:
                found += [(row, "unexpected label", names[i]) for row in np.flatnonzero(code == i).tolist()]
        found.sort(key=lambda event: event[0])
        return numbers[code], known.astype(np.float64)

    def _raw(self, block: Block) -> np.ndarray:
        return self.inputs.read(block._replace(numbers=held(block.numbers, self.plan.powers)))

    def design(self, rows: np.ndarray) -> np.ndarray:
        """Rows in the units of now."""
        return np.concatenate([np.ones((len(rows), 1)), self.units.standard(rows)], axis=1)

    def shares(self, made: Any, known: np.ndarray) -> np.ndarray:
        """Probability of each label, (B, C), from what the heads say, given that it is one of those that are known."""
        each = np.asarray(made)[: len(known)].reshape(len(known), -1)
        pair = np.zeros((len(known), self.room))
        pair[:, 0], pair[:, 1] = each[:, 0], 1.0 - each[:, 0]
        each = pair if self.plan.heads == 1 else np.where(known[:, None] <= 2, pair, each)
        inside = np.where(np.arange(self.room) < known[:, None], np.maximum(each, TINY), 0.0)
        return inside / np.maximum(inside.sum(axis=1, keepdims=True), TINY)

    def _said(self, chances: np.ndarray, known: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, ...]:
        """Probability of a label that is not known, the forecast, its probability, and that of each label that is.

        Args:
            chances: Of labels, given that it is a known one, (B, C).
            known: How many of them are, (B,); where none is, all is NaN.
            count: Labels that had come before, (B,).
        """
        some = np.maximum(known, 1)
        new = some * (some + 1) / (count * count + count + 2 * some)
        each = np.where(np.arange(self.room) < known[:, None], (1.0 - new[:, None]) * chances, np.nan)
        said = np.argmax(chances, axis=1)
        return new, np.where(known > 0, said, np.nan), each[np.arange(len(each)), said], each

    def _advance(self, rows: np.ndarray, arrived: Arrived, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n, size, y = len(rows), self.plan.config.block, arrived.labels
        pad = partial(padded, size=size)
        late = None
        if self.late.delay:
            late = (pad(self.design(arrived.rows[:, :-1])), pad(arrived.come), pad(arrived.ahead))
        given = (np.zeros(size, int), pad(self.design(rows[:, :-1])), pad(y), n, late)
        self.carry, made, told = self.learner.advance(self.carry, *given, pad(known))
        asked = ("trust", "change_probability", "alarm", "excess")
        trust, change, alarm, excess = (np.asarray(told[name])[:n].reshape(n, -1) for name in asked)
        used = np.arange(trust.shape[1]) < np.maximum(known, 1)[:, None]
        trust, change = np.where(used, trust, 1.0), np.where(used, change, 0.0)
        shown = np.stack([trust.min(axis=1), change.max(axis=1), alarm.max(axis=1), excess[:, 0]], axis=1)
        there = np.isfinite(y)[:, None] & (not self.late.delay)
        return self.shares(made, known), np.where(there, shown, np.nan)

    def _renew(self, rows: np.ndarray, arrived: Arrived) -> None:
        self.pool.add(rows[:, :-1])
        before, self.rows = self.rows, self.rows + int(arrived.come.sum())
        if self.rows < next_stop(before) or not self.inputs.names:
            return
        self.pool.close()
        now = Pool(*self.pool.moments)
        self.carry = moved(self.carry, [self.units], [now], 1, target=False)
        self.units = now
