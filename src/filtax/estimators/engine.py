"""The compiled part of an estimator: one datum in, one vector out. Kernels are shared by all streams of one size.

A filter that is believed (the champion) forecasts and learns. What its forecast calls an outlier it does not get to
see. From the first surprise on, a second filter (the challenger) learns from scratch; if the surprises turn out to be a
change, it takes over, with all it has learned since. So one bad datum costs nothing, and a change costs a few data.

Axes: M features, H heads (one for regression, one for each class otherwise). Cost: that of a step of the method; twice
that while something may have changed.
"""

from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from filtax.bone import Bone, advance
from filtax.distributions import Mixture, Normal, StudentT
from filtax.estimators import alarms
from filtax.estimators.forecast import Forecast
from filtax.estimators.memory import TOLD, Layout, Memory
from filtax.estimators.units import Units, reexpressed
from filtax.grammar import method as build
from filtax.models import bernoulli, linear
from filtax.state import State
from filtax.tick import conform, look_ahead

__all__ = ["Engine", "engine"]

CHUNKS = (256, 1)  # rows that one call of a compiled loop takes; few sizes, as each is compiled
WIDTHS = (256, 16, 1)  # streams that one call takes
KNOWN = 3.0  # data after which a forecast is held to what it says
RELEARN = 10.0  # data that the units of y are worth after a change
EXTRA = 3  # numbers that come with each row besides features and target: log(1/rate), rate, classes


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
    >>> row = np.array([[1.0, 5.0, 6.9, 0.001, 0.0]])
    >>> memory = small.learn(small.fresh, row)[0]
    >>> small.told(memory)["alarm"]
    0.0
    """

    def __init__(self, name: str, cov: float, slots: int, heads: int):
        self.slots, self.heads = slots, heads
        with jax.enable_x64(True):
            model = linear(likelihood=bernoulli()) if heads else linear(noise=1.0)
            method = build(name, model=model)
            if getattr(method.posterior, "draws", False) or getattr(method.posterior, "needs_key", False):
                raise ValueError(f"method={name!r} draws at random; an estimator takes methods that do not.")
            if method.auxiliary.room(0) is not None:
                raise ValueError(
                    f"method={name!r} keeps ever more hypotheses; write {method.auxiliary.name}[K] with a number K."
                )
            state = method.init(mean=np.zeros(slots + 1), cov=cov)
            method = conform(method, state)
            fresh = self._fresh(state)
            self.layout = Layout(fresh)
            self.fresh = np.asarray(self.layout.pack(fresh))
            step = partial(_labelled if heads else _measured, method, state)
            look = partial(_chances if heads else _forecast, method, state)
        self._width = slots + 1 + EXTRA
        self._step = jax.jit(lambda vector, row: self._one(step, vector, row))
        self._scan = jax.jit(lambda vector, rows: jax.lax.scan(partial(self._carry, step), vector, rows))
        self._each = jax.jit(lambda *streams: jax.lax.map(lambda one: self._one(step, *one), streams))
        self._full = jax.jit(lambda vector, x: _scaled(method, state, self.layout.unpack(vector), x))
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

    def told(self, vector: Any) -> dict[str, float]:
        """What the last datum showed."""
        return dict(zip(TOLD, np.asarray(vector)[-len(TOLD) :].tolist(), strict=True))

    def _fresh(self, state: State) -> Memory:
        carry = (state.bank, state.t, state.began, state.refused, state.strain)
        if self.heads:
            carry = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.heads, *leaf.shape)), carry)
        zero = jnp.zeros(())
        told = jnp.zeros(len(TOLD)).at[TOLD.index("trust")].set(1.0)
        return Memory(Units.start(self.slots), Units.start(1), carry, carry, zero, zero, told)

    def _one(self, step: Any, vector: Array, row: Array) -> Array:
        return self.layout.pack(step(self.layout.unpack(vector), row))

    def _carry(self, step: Any, vector: Array, row: Array) -> tuple[Array, Array]:
        vector = self._one(step, vector, row)
        return vector, vector[-len(TOLD) :]

    def _seen(self, look: Any, vector: Array, x: Array) -> Array:
        return look(self.layout.unpack(vector), x)


def _features(units: Units, x: Array) -> Array:
    return jnp.concatenate([jnp.ones(1, x.dtype), units.standard(x)])


def _both(
    method: Bone, state: State, carries: tuple, x: Array, ys: tuple, starting: Array, doubt: Array, heads: bool
) -> tuple[PyTree, PyTree, PyTree]:
    """The champion steps, and in doubt the challenger too: one loop of one or two rounds, so one compilation."""
    stack = lambda *leaves: jnp.stack(leaves)  # noqa: E731
    filters, data = jax.tree.map(stack, *carries), jnp.stack(ys)

    def step(carry: PyTree, y: Array, changed: Array) -> tuple:
        return advance(method, state, carry, x, y, None, None, changed, complete=False)

    step = jax.vmap(step, (0, 0, None)) if heads else step

    def turn(i: Array, held: tuple) -> tuple:
        filters, told = held
        carry, info = step(jax.tree.map(lambda leaf: leaf[i], filters), data[i], starting & (i == 1))
        seen = (info.trust, info.change_probability, info.runlength)
        told = jax.tree.map(lambda new, old: jnp.where(i == 0, new, old), seen, told)
        return jax.tree.map(lambda leaf, new: leaf.at[i].set(new), filters, carry), told

    shape = jax.eval_shape(step, jax.tree.map(lambda leaf: leaf[0], filters), data[0], starting)[1]
    empty = [jnp.zeros(part.shape, part.dtype) for part in (shape.trust, shape.change_probability, shape.runlength)]
    rounds = jnp.where(doubt, 2, 1)
    filters, told = jax.lax.fori_loop(0, rounds, turn, (filters, tuple(empty)))
    return *(jax.tree.map(lambda leaf, i=i: leaf[i], filters) for i in (0, 1)), told


def _moved(memory: Memory, inputs: Units, target: Units, heads: bool) -> tuple[PyTree, PyTree]:
    """Both filters in new units."""

    def one(belief: PyTree) -> PyTree:
        y = () if heads else (memory.target, target)
        return reexpressed(belief, memory.inputs, inputs, *y)

    def carry(whole: PyTree) -> PyTree:
        bank = whole[0]
        each = jax.vmap(jax.vmap(one)) if heads else jax.vmap(one)
        return (type(bank)(each(bank.belief), bank.aux, bank.log_weight), *whole[1:])

    return carry(memory.champion), carry(memory.challenger)


def _forecast(method: Bone, state: State, memory: Memory, x: Array) -> Array:
    """Mean and variance of y in its own units."""
    seen = _distribution(method, state, memory, x)
    centre, unit = _level(memory.target)
    return jnp.stack([centre + unit * seen.mean, unit * unit * seen.var])


def _distribution(method: Bone, state: State, memory: Memory, x: Array) -> PyTree:
    return look_ahead(method, memory.champion[0], state.initial, _features(memory.inputs, x), None, False)


def _scaled(method: Bone, state: State, memory: Memory, x: Array) -> PyTree:
    centre, unit = _level(memory.target)
    seen = _distribution(method, state, memory, x)
    parts = seen.parts if isinstance(seen, Mixture) else seen
    if not isinstance(parts, StudentT | Normal):
        raise ValueError(f"{method.name} has no forecast distribution of numbers in units of y.")
    location, spread, *rest = jax.tree.leaves(parts)
    scaled = [centre + unit * location, unit * unit * spread, *rest]
    parts = jax.tree.unflatten(jax.tree.structure(parts), scaled)
    return Mixture(parts, seen.log_weight) if isinstance(seen, Mixture) else parts


def _level(target: Units) -> tuple[Array, Array]:
    scale = target.scale[0]
    return target.mean[0], jnp.where(scale > 0.0, scale, 1.0)


def _chances(method: Bone, state: State, memory: Memory, x: Array) -> Array:
    """Probability of yes under each head."""
    z = _features(memory.inputs, x)
    head = lambda bank: look_ahead(method, bank, state.initial, z, None, False).mean  # noqa: E731
    return jax.vmap(head)(memory.champion[0])


def _measured(method: Bone, state: State, memory: Memory, row: Array) -> Memory:
    """Learn from one number."""
    M = memory.inputs.count.size
    x, y, limit, rate = row[:M], row[M], row[M + 1], row[M + 2]
    seen = ~jnp.isnan(y)
    forecast = _distribution(method, state, memory, x)
    old, size = _level(memory.target)
    below = forecast.cdf(jnp.where(seen, (y - old) / size, 0.0))
    known = seen & (memory.target.count[0] >= KNOWN) & (memory.target.scale[0] > 0.0)
    tail = jnp.where(known, 2.0 * jnp.minimum(below, 1.0 - below), 1.0)
    outlier, event = tail < rate, tail < alarms.SURPRISE
    score = alarms.next_score(memory.score, event, jnp.asarray(alarms.SURPRISE, y.dtype), known)

    inputs, target = memory.inputs.after(x), memory.target.after(jnp.where(outlier, jnp.nan, y)[None])
    z = _features(inputs, x)
    centre, unit = _level(target)
    level = (y - centre) / unit
    data = (jnp.where(outlier, jnp.nan, level), level)
    carries = _moved(memory, inputs, target, heads=False)
    champion, challenger, told = _both(method, state, carries, z, data, memory.score == 0.0, score > 0.0, heads=False)
    told = (old + size * forecast.mean, size * size * forecast.var, tail, jnp.where(outlier, 0.0, told[0]), *told[1:])
    return _decided(memory, inputs, target, champion, challenger, score, limit, outlier, seen, told)


def _labelled(method: Bone, state: State, memory: Memory, row: Array) -> Memory:
    """Learn from one label: every head is asked whether it is its own."""
    M = memory.inputs.count.size
    x, label, limit, rate, classes = row[:M], row[M], row[M + 1], row[M + 2], row[M + 3]
    seen = ~jnp.isnan(label)
    chances = _chances(method, state, memory, x)
    heads = jnp.arange(chances.size).astype(x.dtype)
    inside = jnp.where(heads < classes, chances, 0.0)
    shares = inside / jnp.where(classes > 0.0, jnp.maximum(jnp.sum(inside), 1e-300), 1.0)
    own = heads == label
    chance = jnp.sum(jnp.where(own, shares, 0.0))
    known = seen & (label < classes) & (classes > 1.0) & (memory.target.count[0] >= KNOWN)
    outlier = known & (chance < rate)
    event = chance < jnp.max(shares)
    score = alarms.next_score(memory.score, event, 1.0 - jnp.max(shares), known)

    inputs, target = memory.inputs.after(x), memory.target.after(label[None])
    z = _features(inputs, x)
    hit = jnp.where(seen, own.astype(x.dtype), jnp.nan)
    data = (jnp.where(outlier, jnp.nan, hit), hit)
    carries = _moved(memory, inputs, target, heads=True)
    champion, challenger, told = _both(method, state, carries, z, data, memory.score == 0.0, score > 0.0, heads=True)
    used = (heads < classes) | own
    trust = jnp.where(jnp.any(own), jnp.sum(jnp.where(own, told[0], 0.0)), 1.0)
    change = jnp.max(jnp.where(used, told[1], 0.0))
    runs = jnp.min(jnp.where(used, told[2], jnp.iinfo(told[2].dtype).max))
    told = (chance, chance * (1.0 - chance), chance, jnp.where(outlier, 0.0, trust), change, runs)
    return _decided(memory, inputs, target, champion, challenger, score, limit, outlier, seen, told)


def _decided(
    memory: Memory,
    inputs: Units,
    target: Units,
    champion: PyTree,
    challenger: PyTree,
    score: Array,
    limit: Array,
    outlier: Array,
    seen: Array,
    told: tuple,
) -> Memory:
    """If it was a change the challenger takes over; what is told of the datum."""
    changed = score > limit
    spell = jnp.where(memory.score == 0.0, 1.0, memory.spell + 1.0)
    champion = jax.tree.map(lambda new, old: jnp.where(changed, new, old), challenger, champion)
    quiet = jnp.where(outlier, float(alarms.OUTLIER), 0.0)
    alarm = jnp.where(changed, float(alarms.CHANGE), jnp.where(seen, quiet, float(alarms.MISSING)))
    told = (*told, alarm, jnp.where(changed, spell, 0.0))
    told = jnp.stack([jnp.asarray(value, score.dtype).reshape(()) for value in told])
    runs = told[TOLD.index("runlength")]
    told = told.at[TOLD.index("runlength")].set(jnp.where(changed, spell - 1.0, runs))
    score = jnp.where(changed, 0.0, score)
    return Memory(inputs, target.younger(RELEARN, changed), champion, challenger, score, spell, told)
