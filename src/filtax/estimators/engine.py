"""The compiled part of an estimator: one datum in, one vector out. Kernels are shared by all streams of one size.

A filter that is believed (the champion) forecasts and learns. What its forecast calls an outlier it does not get to
see. From the first surprise on, a second filter (the challenger) learns from scratch; if the surprises turn out to be a
change, it takes over, with all it has learned since. So one bad datum costs nothing, and a change costs a few data. A
third (the elder) never forgets: where the champion has followed a change by itself, the elder's forecasts tell of it.

Axes: M features, H heads (one for regression, one for each class otherwise). Cost: that of a step of the method; twice
that while something may have changed.
"""

from functools import lru_cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from filtax._step import cast_and_bind
from filtax._validation import placed
from filtax._xla import tune_if_possible
from filtax.estimators.elder import followed
from filtax.estimators.forecast import Forecast
from filtax.estimators.memory import TOLD, Layout, Memory, embedded
from filtax.estimators.rivalry import unsuspected
from filtax.estimators.steps import chances, labelled, measured, moments, scaled
from filtax.estimators.units import Units
from filtax.methods._parse import method as build
from filtax.models import bernoulli, linear
from filtax.state import State, stores_data

__all__ = ["Engine", "engine", "grown"]

CHUNKS = (256, 1)  # rows that one call of a compiled loop takes; few sizes, as each is compiled
WIDTHS = (256, 16, 1)  # streams that one call takes
EXTRA = 5  # numbers that come with each row besides features and target: log(1/rate), rate, classes, level, deviation


@lru_cache(maxsize=256)
def engine(name: str, cov: float, slots: int, heads: int = 0) -> "Engine":
    """The kernels for a method and a size; compiled once in a process.

    >>> engine("LG+C-Static", 1.0, 3) is engine("LG+C-Static", 1.0, 3)
    True
    """
    return Engine(name, cov, slots, heads)


class Engine:
    """A method on M features, for numbers (heads 0) or for labels, with everything compiled that a stream needs.

    >>> small = engine("LG+C-Static", 1.0, 1)
    >>> row = np.array([[1.0, 5.0, 6.9, 0.001, 0.0, 0.9, 1.645]])
    >>> memory = small.learn(small.fresh, row)[0]
    >>> small.told(memory)["alarm"]
    0.0
    """

    def __init__(self, name: str, cov: float, slots: int, heads: int):
        tune_if_possible()
        self.slots, self.heads = slots, heads
        with jax.enable_x64(True):
            model = linear(likelihood=bernoulli()) if heads else linear(noise=1.0)
            method = build(name, model=model)
            if method.posterior.draws or method.posterior.needs_key:
                raise ValueError(f"method={name!r} draws at random; an estimator takes methods that do not.")
            if method.auxiliary.slots_needed(0) is not None:
                raise ValueError(
                    f"method={name!r} keeps ever more hypotheses; write {method.auxiliary.name}[K] with a number K."
                )
            if stores_data(method):
                raise ValueError(
                    f"method={name!r} remembers data as they came, and an estimator changes their units; take another."
                )
            state = method.init(mean=np.zeros(slots + 1), cov=np.full(slots + 1, cov))
            method = cast_and_bind(method, state)
            fresh = self._fresh(state)
            self.layout = Layout(fresh)
            self.fresh = self.layout.flat(fresh)
            step = partial(labelled if heads else measured, method, state)
            look = partial(chances if heads else moments, method, state)
        self._width = slots + 1 + EXTRA
        self._step = jax.jit(lambda vector, row: self._one(step, vector, row))
        self._scan = jax.jit(lambda vector, rows: jax.lax.scan(partial(self._carry, step), vector, rows))
        self._each = jax.jit(lambda *streams: jax.lax.map(lambda one: self._one(step, *one), streams))
        self._full = jax.jit(lambda vector, x: scaled(method, state, self.layout.unpack(vector), x))
        self._look = jax.jit(lambda vector, rows: jax.vmap(partial(self._seen, look, vector))(rows))

    def learn(self, vector: Any, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        """The memory after some rows, one by one or in chunks: the same numbers; and what each row showed, (T, R)."""
        told, done = [], 0
        with jax.enable_x64(True):
            while done < len(rows):
                length = next(size for size in CHUNKS if size <= len(rows) - done)
                if length == 1:
                    vector = self._step(vector, rows[done])
                    told.append(np.asarray(vector)[None, -len(TOLD) :])
                else:
                    vector, seen = self._scan(vector, rows[done : done + length])
                    told.append(np.asarray(seen))
                done += length
        return np.asarray(vector), np.concatenate(told) if told else np.zeros((0, len(TOLD)))

    def learn_each(self, vectors: Any, rows: np.ndarray) -> Any:
        """One row for each of many streams, (B, N) and (B, M + ...).

        A loop inside of one call: on a CPU it is as fast as a batch, compiles in a tenth of the time, and gives each
        stream the bits that it would have alone.
        """
        found, done = [], 0
        with jax.enable_x64(True):
            while done < len(rows):
                length = next(size for size in WIDTHS if size <= len(rows) - done)
                if length == 1:
                    found.append(np.asarray(self._step(vectors[done], rows[done]))[None])
                else:
                    found.append(np.asarray(self._each(vectors[done : done + length], rows[done : done + length])))
                done += length
        return np.concatenate(found)

    def look(self, vector: Any, rows: np.ndarray) -> np.ndarray:
        """Forecasts for rows (T, M): mean and variance, or a chance for each head. Nothing changes."""
        found = []
        with jax.enable_x64(True):
            for start in range(0, len(rows), CHUNKS[0]):
                part = rows[start : start + CHUNKS[0]]
                length = next(size for size in CHUNKS[::-1] if size >= len(part))
                padded = np.full((length, self.slots), np.nan)
                padded[: len(part)] = part
                found.append(np.asarray(self._look(vector, padded))[: len(part)])
        return np.concatenate(found) if found else np.zeros((0, 2))

    def distribution(self, vector: Any, x: np.ndarray) -> Forecast:
        """The forecast distribution for one row, in the units of y."""
        with jax.enable_x64(True):
            return Forecast(self._full(vector, x))

    @property
    def elder(self) -> int:
        """Numbers of a memory that belong to the race with the elder."""
        memory = self.layout.unpack(self.fresh)
        return sum(np.size(leaf) for leaf in jax.tree.leaves((memory.regime, memory.rival)))

    def renewed(self, vector: np.ndarray, elder: bool) -> np.ndarray:
        """A memory of before, with what has been kept since: how narrow forecasts are, and the elder if it had none."""
        end = len(TOLD) + 1
        whole = np.concatenate([vector[:-end], self.fresh[vector.size - end : -end], vector[-end:]])
        return whole if elder else self._with_elder(whole)

    def _with_elder(self, vector: np.ndarray) -> np.ndarray:
        """A memory with an elder that knows what its champion does."""
        with jax.enable_x64(True):
            memory = self.layout.unpack(jnp.asarray(vector))
            if memory.rival is not None:
                young = followed(memory.rival, memory.champion[0], jnp.array(True), memory.spell, bool(self.heads))
                memory = eqx.tree_at(lambda held: held.rival, memory, young)
            return np.asarray(self.layout.pack(memory))

    def stretch(self, vector: Any) -> float:
        """The logarithm of the factor by which intervals are stretched."""
        return float(np.asarray(vector)[-len(TOLD) - 1])

    def told(self, vector: Any) -> dict[str, float]:
        """What the last datum showed."""
        return dict(zip(TOLD, np.asarray(vector)[-len(TOLD) :].tolist(), strict=True))

    def _fresh(self, state: State) -> Memory:
        """Before the first datum; made by numpy, so that a new size compiles little but the kernels."""
        carry = state.carry
        belief = state.initial.decompress()
        if self.heads:
            spread = lambda leaf: placed(np.array(np.broadcast_to(leaf, (self.heads, *leaf.shape))))  # noqa: E731
            carry, belief = jax.tree.map(spread, (carry, belief))
        rival = (
            unsuspected(belief) if state.hypotheses.log_weight.size > 1 else None
        )  # with one hypothesis all is explained
        zero, never = placed(np.zeros(())), placed(np.array(np.inf))
        inputs, target = (Units(*(placed(np.zeros(slots)) for _ in range(3))) for slots in (self.slots, 1))
        told = placed(np.array([float(name == "trust") for name in TOLD]))
        return Memory(inputs, target, carry, carry, zero, zero, never, rival, zero, zero, told)

    def _one(self, step: Any, vector: Array, row: Array) -> Array:
        return self.layout.pack(step(self.layout.unpack(vector), row))

    def _carry(self, step: Any, vector: Array, row: Array) -> tuple[Array, Array]:
        vector = self._one(step, vector, row)
        return vector, vector[-len(TOLD) :]

    def _seen(self, look: Any, vector: Array, x: Array) -> Array:
        return look(self.layout.unpack(vector), x)


def grown(old: Engine, new: Engine, vector: np.ndarray) -> np.ndarray:
    """A memory in a larger one. A head that no class uses has learned what every other such head has.

    >>> small, large = (engine("LG+C-Static", 1.0, slots) for slots in (1, 2))
    >>> bool(np.array_equal(grown(small, large, small.fresh), large.fresh))
    True
    """
    small, large = old.layout.unpack(np.asarray(vector)), new.layout.unpack(new.fresh)
    if new.heads > old.heads:
        spare = lambda leaf: np.concatenate([leaf, np.repeat(leaf[-1:], new.heads - old.heads, axis=0)])  # noqa: E731
        held = lambda m: (m.champion, m.challenger, *([m.rival.hypotheses] if m.rival else []))  # noqa: E731
        small = eqx.tree_at(held, small, jax.tree.map(spare, held(small)))
    return new.layout.flat(embedded(small, large))
