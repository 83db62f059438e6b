"""The compiled loop of a run: forecast a row, then learn one, for as many rows as there are.

Rows come in blocks of one size, of which the first n count: so nothing is compiled twice, and a block that is not full
costs what its rows cost. A block may hold rows of several series; each has its own slot in the carry.

Axes: B rows of a block, S series (or H heads, one for each label), D columns of the design.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from filtax._step import cast_and_bind, filter_step, look_ahead
from filtax._validation import placed
from filtax.bone import Bone
from filtax.estimators.rivalry import unsuspected
from filtax.methods._parse import method as build
from filtax.models import bernoulli, linear
from filtax.runs.racing import raced, raced_heads
from filtax.state import State, start_hypotheses, stores_data

__all__ = ["Learner"]

TOLD = ("trust", "change_probability", "runlength", "ok")


class Learner:
    """A method on D columns, for numbers (`heads` 0) or for labels, and the loop that runs it.

    >>> learner = Learner("LG+C-Static", columns=1, cov=1.0)
    >>> X, y = np.ones((4, 1)), np.full(4, 2.0)
    >>> carry, made, told = learner.advance(learner.fresh(1), np.zeros(4, int), X, y, 3)
    >>> np.asarray(made.mean).round(3).tolist()  # the fourth row does not count
    [0.0, 1.0, 1.333, 0.0]
    """

    def __init__(
        self, name: str, columns: int, cov: float, heads: int = 0, limit: float | None = None, elder: bool = False
    ) -> None:
        model = linear(likelihood=bernoulli()) if heads else linear(noise=1.0)
        self.method: Bone = build(name, model=model)
        if self.method.posterior.draws or self.method.posterior.needs_key:
            raise ValueError(f"--method {name}: it draws at random; a run takes methods that do not.")
        if self.method.auxiliary.slots_needed(0) is not None:
            raise ValueError(
                f"--method {name}: it keeps ever more hypotheses; write {self.method.auxiliary.name}[K] with a number."
            )
        if stores_data(self.method):
            raise ValueError(
                f"--method {name}: it remembers data as they came, and a run changes their units; take another."
            )
        self.state = self.method.init(mean=np.zeros(columns), cov=cov)
        self.heads, self.elder = heads, elder
        several = start_hypotheses(self.method, self.state.initial).log_weight.size > 1
        self.limit = None if limit is None or not several else np.float64(limit)

    @property
    def races(self) -> bool:
        """Whether what a method believed before a change goes on beside it, and tells whether it was one."""
        return self.limit is not None

    def fresh(self, slots: int) -> PyTree:
        """What a run carries from row to row before any datum, for so many series or heads."""
        state = self.state
        hypotheses = start_hypotheses(self.method, state.initial)
        race = [unsuspected(state.initial.decompress() if self.elder else hypotheses)]
        race += [jnp.zeros((), jnp.int32)] if self.elder else []
        one = (hypotheses, *state.carry[1:], *(race if self.races else []))
        return jax.tree.map(lambda leaf: placed(np.array(np.broadcast_to(leaf, (slots, *leaf.shape)))), one)

    def advance(
        self,
        carry: PyTree,
        slot: np.ndarray,
        X: np.ndarray,
        y: np.ndarray,
        n: int,
        late: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
        known: np.ndarray | None = None,
    ) -> tuple[PyTree, PyTree, dict[str, Array]]:
        """Forecast the first n rows of a block, and learn as many.

        Args:
            carry: From `fresh`, or from the block before.
            slot: Series of each row, (B,); not looked at where there are heads.
            X: Rows to forecast, (B, D).
            y: What is learned, (B,): a number, or the number of a label; NaN where it is missing.
            n: How many rows count.
            late: Where labels come late, the rows that y belongs to, (B, D); whether there is one, (B,); and the length
                of the tick to the forecast row, (B,).
            known: Where there are several heads, labels met before each row, (B,); all there is room for if not given.

        Returns:
            The carry; the forecasts, a distribution with leading axis B (of the chance of each head: then H, too); and
            what the learned rows showed.
        """
        y = self._own(y)
        run = _heads if self.heads > 1 else _series
        known = np.full(len(y), float(self.heads)) if known is None else known
        given = (slot.astype(np.int32), X, y, late, self.limit, *([known] if self.heads > 1 else []))
        carry, made, told = run(self.method, self.state, carry, given, np.int32(n))
        return carry, made.mean if self.heads == 1 else made, told

    def foresee(self, carry: PyTree, slot: np.ndarray, X: np.ndarray, ahead: int) -> PyTree:
        """Forecast rows from the same belief, each as if it came next; nothing is learned.

        Args:
            carry: From `advance`.
            slot: Series of each row, (B,).
            X: Rows, (B, D).
            ahead: Length of the tick to each of them.

        Returns:
            As the forecasts of `advance`.
        """
        look = _foresee_heads if self.heads > 1 else _foresee
        made = look(self.method, self.state, carry, slot.astype(np.int32), X, np.float64(ahead))
        return made.mean if self.heads else made

    def _own(self, y: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(y), np.nan, y == 0.0) if self.heads == 1 else y  # the one head is that of label 0


@partial(jax.jit, donate_argnums=(2,))
def _series(
    method: Bone, state: State, carry: PyTree, given: tuple, n: Array
) -> tuple[PyTree, PyTree, dict[str, Array]]:
    method = cast_and_bind(method, state)
    slot, X, y, late, limit = given

    def row(i: Array, one: PyTree) -> tuple[PyTree, Any]:
        made, one, told = _row(method, state, one, X[i], y[i], _at(late, i), limit)
        return one, (made, told)

    if jax.tree.leaves(carry)[0].shape[0] > 1:
        return _by_series(row, carry, slot, n)
    # a single series needs no looking up: it is updated in place
    carry, made, told = _loop(row, jax.tree.map(lambda leaf: leaf[0], carry), len(y), n)
    return jax.tree.map(lambda leaf: leaf[None], carry), made, told


@partial(jax.jit, donate_argnums=(2,))
def _heads(
    method: Bone, state: State, carry: PyTree, given: tuple, n: Array
) -> tuple[PyTree, PyTree, dict[str, Array]]:
    method = cast_and_bind(method, state)
    _, X, y, late, limit, known = given
    heads = jnp.arange(jax.tree.leaves(carry)[0].shape[0]).astype(y.dtype)

    def row(i: Array, carry: PyTree) -> tuple[PyTree, Any]:
        own = jnp.where(jnp.isnan(y[i]), jnp.nan, (heads == y[i]).astype(y.dtype))
        step = lambda one, y: _row(method, state, one, X[i], y, _at(late, i))  # noqa: E731
        made, carry, told = jax.vmap(step)(carry, own)
        if limit is not None:
            after = raced_heads(method, list(carry[5:]), carry[0], made.mean, X[i], y[i], known[i], limit)
            carry, told = (*carry[:5], *after.race), {**told, "alarm": after.alarm, "excess": after.excess}
        return carry, (made.mean, told)

    return _loop(row, carry, len(y), n)


@jax.jit
def _foresee(method: Bone, state: State, carry: PyTree, slot: Array, X: Array, ahead: Array) -> PyTree:
    method = cast_and_bind(method, state)

    def row(i: Array, x: Array) -> PyTree:
        hypotheses = jax.tree.map(lambda leaf: leaf[i], carry[0])
        return look_ahead(method, hypotheses, state.initial, x, ahead, False)

    return jax.lax.map(lambda each: row(*each), (slot, X))


@jax.jit
def _foresee_heads(method: Bone, state: State, carry: PyTree, slot: Array, X: Array, ahead: Array) -> PyTree:
    method = cast_and_bind(method, state)
    one = lambda hypotheses, x: look_ahead(method, hypotheses, state.initial, x, ahead, False)  # noqa: E731
    return jax.lax.map(lambda x: jax.vmap(one, in_axes=(0, None))(carry[0], x), X)


def _at(late: tuple | None, i: Array) -> tuple | None:
    return None if late is None else tuple(each[i] for each in late)


def _row(
    method: Bone, state: State, one: PyTree, x: Array, y: Array, late: tuple | None, limit: Array | None = None
) -> tuple:
    """Forecast x, then let a tick pass and learn a row: the same, and its forecast, unless labels come late."""
    hypotheses, t, began, refused, conditioning_ratio, *race = one
    before = state.after(hypotheses, t, began, refused, conditioning_ratio)
    after, info, made = filter_step(method, before, x if late is None else late[0], y)
    alarm, excess = jnp.zeros((), jnp.int32), jnp.zeros((), y.dtype)
    if race and limit is not None:
        race, alarm, excess = raced(method, before, race, (after, info, made), x, y, limit)
    new = (*after.carry, *race)
    if late is not None:  # one tick as long as it takes; and where no label has come yet, nothing happens
        _, come, ahead = late
        made = look_ahead(method, hypotheses, state.initial, x, ahead, False)
        new = jax.tree.map(lambda after, before: jnp.where(come, after, before), new, one)
    told = {name: getattr(info, name) for name in TOLD}
    return made, new, {**told, "alarm": alarm, "excess": excess}


def _loop(row: Any, carry: PyTree, rows: int, n: Array) -> tuple:
    carry, (made, told) = jax.lax.fori_loop(0, n, partial(_turn, row), (carry, _unfilled(row, carry, rows)))
    return carry, made, told


def _by_series(row: Any, carry: PyTree, slot: Array, n: Array) -> tuple:
    """One series after the other, each by its rows in their order.

    Looked up and written back row by row, all series would be copied with each row: XLA does not see that what is read
    is not written to before.
    """
    rows = jnp.arange(slot.size, dtype=slot.dtype)
    series = jnp.where(rows < n, slot, jnp.iinfo(slot.dtype).max)  # what does not count comes last
    order = jnp.argsort(series, stable=True).astype(slot.dtype)
    sorted_series = series[order]
    first = (rows < n) & jnp.concatenate([jnp.ones(1, bool), sorted_series[1:] != sorted_series[:-1]])
    starts = jnp.nonzero(first, size=slot.size + 1, fill_value=slot.size)[0].astype(slot.dtype)
    ends = jnp.minimum(starts[1:], n)

    def turn(j: Array, held: tuple) -> tuple:
        return _turn(row, order[j], held)

    def of_one(k: Array, held: tuple) -> tuple:
        after, kept = held
        at = sorted_series[starts[k]]
        one = jax.tree.map(lambda leaf: leaf[at], carry)
        one, kept = jax.lax.fori_loop(starts[k], ends[k], turn, (one, kept))
        return jax.tree.map(lambda leaf, new: leaf.at[at].set(new), after, one), kept

    kept = _unfilled(row, jax.tree.map(lambda leaf: leaf[0], carry), slot.size)
    carry, (made, told) = jax.lax.fori_loop(0, jnp.sum(first, dtype=slot.dtype), of_one, (carry, kept))
    return carry, made, told


def _unfilled(row: Any, carry: PyTree, rows: int) -> PyTree:
    """Room for what is told of so many rows."""
    shapes = jax.eval_shape(row, jnp.zeros((), jnp.int32), carry)[1]
    return jax.tree.map(lambda leaf: jnp.zeros((rows, *leaf.shape), leaf.dtype), shapes)


def _turn(row: Any, i: Array, held: tuple) -> tuple:
    """Take one row, and keep what it told."""
    carry, kept = held
    carry, seen = row(i, carry)
    return carry, jax.tree.map(lambda leaf, new: leaf.at[i].set(new), kept, seen)
