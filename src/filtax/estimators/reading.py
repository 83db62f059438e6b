"""Readings through the filter of a `Segmenter`, compiled, and how odd each is for the segment that goes on.

A state is one vector, as a memory is: it crosses to the kernel and back for the price of one array. The kernel is a
loop over the streams of a call, of as many turns as there are streams, so that one stream alone goes the same way as
one of many, and has the same bits. A call has room for 1, 16 or 256 streams; nothing else is ever compiled.

Axes: B streams in a call, N numbers in a state, O outputs. Cost of a call: that of B steps.
"""

from collections.abc import Generator, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from filtax._step import cast_and_bind, propose
from filtax._xla import tune_if_possible
from filtax.bone import Bone
from filtax.distributions import Mixture
from filtax.estimators.memory import Layout
from filtax.numerics import normalised
from filtax.protocols import over_hypotheses
from filtax.segmentation import Settings
from filtax.segmentation._alarms import watch_scan
from filtax.segmentation._plan import build
from filtax.state import State

__all__ = ["Answer", "Course", "Question", "Reader", "reader", "together"]

WIDTHS = (1, 16, 256)  # streams that one call has room for; few sizes, as each is compiled
TOLD = 4  # numbers behind the state in an answer


class Question(NamedTuple):
    """What a stream asks of the kernel: what would come of a reading?

    Attributes:
        reader: The kernel.
        state: What is known before, (N,).
        row: What a segment born now expects of each output, the reading itself (NaN where missing), the variance, the
            log odds that give an alarm, the start of the present segment, and the least readings of a new one.
    """

    reader: "Reader"
    state: np.ndarray
    row: np.ndarray


class Answer(NamedTuple):
    """What would come of a reading.

    Attributes:
        state: What would be known, (N,).
        alarm: Whether there would be an alarm, 0 or 1.
        start: Where the present segment most probably began.
        log_odds: Of a segment that began after the one agreed upon.
        deviation: How odd the reading is, in standard deviations; 0 if it is missing.
    """

    state: np.ndarray
    alarm: float
    start: float
    log_odds: float
    deviation: float


Course = Generator[Question, Answer, Any]  # what a stream does with a reading, as far as its next question


@lru_cache(maxsize=64)
def reader(settings: Settings, outputs: int) -> "Reader":
    """The kernel for a setting; compiled once in a process.

    >>> reader(Settings(keep=5), 1) is reader(Settings(keep=5), 1)
    True
    """
    return Reader(settings, outputs)


class Reader:
    """The kernel for a setting; a segment born now expects mean and variance of what came before.

    >>> one = reader(Settings(keep=5), 1)
    >>> row = np.array([0.0, 2.0, 1.0, 4.6, 0.0, 5.0])
    >>> [answer.alarm for answer in one.answers([Question(one, one.fresh, row)] * 2)]
    [0.0, 0.0]
    """

    def __init__(self, settings: Settings, outputs: int):
        tune_if_possible()
        with jax.enable_x64(True):
            method, state = build(settings, outputs, cyclic=False)
        self.layout = Layout(state)
        self.fresh = self.layout.flat(state)
        self._loop = jax.jit(partial(_loop, partial(_read, method, settings, outputs, self.layout)))

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """To one question of each of some streams, in few calls."""
        found: list[Answer] = []
        for start in range(0, len(questions), WIDTHS[-1]):
            part = questions[start : start + WIDTHS[-1]]
            room = next(width for width in WIDTHS if width >= len(part))
            states, rows = (np.zeros((room, len(given))) for given in part[0][1:])
            for at, (_, state, row) in enumerate(part):
                states[at], rows[at] = state, row
            with jax.enable_x64(True):
                told = np.asarray(self._loop(states, rows, len(part)))
            found += [Answer(one[:-TOLD].copy(), *one[-TOLD:].tolist()) for one in told[: len(part)]]
        return found


def together(courses: Iterable[Course]) -> None:
    """Go on with some streams side by side: the questions that wait are asked in one call, until none is left.

    >>> one = reader(Settings(keep=5), 1)
    >>> def course(reading):
    ...     row = np.array([0.0, reading, 1.0, 4.6, 0.0, 5.0])
    ...     print((yield Question(one, one.fresh, row)).deviation > 10.0)
    >>> together([course(0.0), course(100.0)])
    False
    True
    """
    going: list[tuple[Course, Any]] = [(course, None) for course in courses]
    while going:
        waiting: dict[Reader, list[tuple[Course, Question]]] = {}
        for course, answer in going:
            try:
                question = course.send(answer)
            except StopIteration:
                continue
            waiting.setdefault(question.reader, []).append((course, question))
        going = []
        for kernel, asked in waiting.items():
            answers = kernel.answers([question for _, question in asked])
            going += [(course, answer) for (course, _), answer in zip(asked, answers, strict=True)]


def _loop(read: Any, states: Float[Array, "B N"], rows: Float[Array, "B R"], count: Any) -> Array:
    """Answers to the first `count` of some questions."""
    room = jnp.zeros((len(states), states.shape[1] + TOLD), states.dtype)
    return jax.lax.fori_loop(0, count, lambda at, found: found.at[at].set(read(states[at], rows[at])), room)


def _read(method: Bone, settings: Settings, outputs: int, layout: Layout, vector: Array, row: Array) -> Array:
    state: State = layout.unpack(vector)
    centre, y = row[:outputs], row[outputs : 2 * outputs]
    variance, odds, since, least = row[2 * outputs :]
    y = y[None] if outputs > 1 else y
    initial = state.initial
    mean = jnp.zeros_like(initial.mean).at[:outputs].set(centre)
    rate = settings.shape * settings.noise * variance
    first = eqx.tree_at(lambda belief: (belief.unit.mean, belief.rate), initial, (mean, rate))
    slots = state.hypotheses.log_weight.size
    anew = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (slots, *leaf.shape)), first)
    belief = jax.tree.map(lambda new, old: jnp.where(state.t == 0, new, old), anew, state.hypotheses.belief)
    state = eqx.tree_at(lambda s: (s.initial, s.hypotheses.belief), state, (first, belief))
    born = jax.tree.map(lambda leaf: leaf[None], first)
    since, least = since.astype(jnp.int32), least.astype(jnp.int32)
    carry, seen = watch_scan(method, state, (None, y, born, jnp.zeros(1, bool)), odds, since, least, posterior=False)
    told = (seen.alarm, seen.start, seen.log_odds, _deviation(method, state, y))
    return layout.pack((state.after(*carry), told))


def _deviation(method: Bone, state: State, y: Array) -> Array:
    """Standard deviations from what the segments that go on expect, the largest of all outputs; 0 if it is missing."""
    method = cast_and_bind(method, state)
    proposed, beliefs = propose(method, state.hypotheses, state.initial, None)
    look = lambda belief, aux: method.posterior.forecast(belief, method.model, None, aux, False)  # noqa: E731
    log_weight = jnp.where(proposed.is_new, -jnp.inf, proposed.hypotheses.log_weight)
    law = Mixture(over_hypotheses(look, beliefs, proposed.hypotheses.aux), normalised(log_weight))
    off = jnp.reshape(y, (-1,)) - jnp.reshape(law.mean, (-1,))
    return jnp.max(jnp.nan_to_num(jnp.abs(off) / jnp.sqrt(jnp.reshape(law.var, (-1,))), nan=0.0))
