"""One online pipeline: features, scale, bank of experts, mixture, calibration. A pure function of a pytree and a row.

    state = pipe.init()
    state, out = pipe.step(state, row)            # pure: the forecast is made before y is looked at
    packed, outs = pipe.advance(packed, rows)     # compiled; the same bits for any batches, learned or only asked about

A row is an origin and a datum: first the targets ahead are forecast, of which the row itself is the first (with
`steps = (1, ...)`), then its y is learned. One compiled loop of at most `BLOCK` rows serves every batch. It works on
the state packed into one vector, as handing over a hundred arrays would cost more than the row itself.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from filtax.forecasting._aggregate import Aggregate
from filtax.forecasting._calibrate import Calibration
from filtax.forecasting._experts import Expert, baseline, profile
from filtax.forecasting._features import RECENT, History, Scale, View, look, own_designs, scaled_known
from filtax.forecasting._heads import Heads
from filtax.forecasting._layout import Layout, Row
from filtax.protocols import pytree, static

SMALL = 2500  # numbers of a state that the compiled loop carries packed; of a larger one packing costs more
BLOCK = 64  # rows of one call of the compiled loop
STILL = 4  # regressors of a residual head
GROSS = 20.0  # running errors beyond which a target counts as being there
SETTLED = 10.0  # errors from which the running error is known; before it the unit of the series serves
BENT = 8  # known columns up to which their effects may bend


@pytree
class Errors:
    """The latest errors of the targeted experts, as regressors of their heads.

    Attributes:
        last, before: (N,) the last two errors; a missing target leaves them.
        sums: (2, N) running sums over a few rows and over a season.
        weights: (2,) of these sums.
    """

    last: Float[Array, " N"]
    before: Float[Array, " N"]
    sums: Float[Array, "2 N"]
    weights: Float[Array, " 2"]

    @classmethod
    def start(cls, N: int) -> "Errors":
        """No errors."""
        return cls(jnp.zeros(N), jnp.zeros(N), jnp.zeros((2, N)), jnp.zeros(2))

    def learn(self, layout: Layout, errors: Float[Array, " N"]) -> "Errors":
        """One row later."""
        rates, last = jnp.asarray(layout.rates[:2]), jnp.where(jnp.isnan(errors), self.last, errors)
        sums = (1.0 - rates)[:, None] * self.sums + rates[:, None] * last[None]
        return Errors(last, self.last, sums, (1.0 - rates) * self.weights + rates)

    @property
    def regressors(self) -> Float[Array, "N 4"]:
        """The last error, two running means, and the error before."""
        means = self.sums / jnp.where(self.weights > 0.0, self.weights, 1.0)[:, None]
        return jnp.stack([self.last, means[0], means[1], self.before], axis=1)


@pytree
class State:
    """Everything the pipeline remembers: arrays of fixed shape.

    Attributes:
        scale: Units of the series.
        wakes: (3,) rows after which experts that wake "first", "warm" and "known" are listened to.
        history: What is remembered of the series.
        experts: The states of the experts.
        errors, heads: Errors of the targeted experts, and what follows from them.
        walk: The head on the last value and its differences (an autoregression).
        mixture: The weights of the experts.
        calibration: The intervals.
    """

    scale: Scale
    wakes: Int[Array, " 3"]
    history: History
    experts: tuple
    errors: Errors
    heads: Heads
    walk: Heads
    mixture: Aggregate
    calibration: Calibration


@pytree
class Out:
    """What one row showed, in the units of the series.

    Attributes:
        forecast, lower, upper: (H,) or (T, H) at the targets, made before y; NaN where nothing was known yet.
        weights: (K,) or (T, K) of the experts in the first forecast.
        due: (T, H, 3) what had been forecast for this row 1...H steps earlier; from `Series.learn` only.
    """

    forecast: Any
    lower: Any
    upper: Any
    weights: Any
    due: Any = None

    def take(self, rows: Any) -> "Out":
        """Some of the rows."""
        return Out(self.forecast[rows], self.lower[rows], self.upper[rows], self.weights[rows])


@pytree
class Issued:
    """What is issued before a row, in scaled units."""

    base: Float[Array, "N H"]
    forecasts: Float[Array, "K H"]
    mixtures: Float[Array, "2 H"]
    mixed: Float[Array, " H"]
    low: Float[Array, " H"]
    high: Float[Array, " H"]
    weights: Float[Array, "H K"]


@pytree
class Pipeline:
    """The five stages of a forecast, as one value.

    Attributes:
        layout: Fixed sizes.
        experts: The members of the bank, beside the autoregression.
        miss: Share of targets that may lie outside of the interval.
    """

    layout: Layout = static()
    experts: tuple[Expert, ...] = static()
    miss: float = static(default=0.1)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the K forecasts that are mixed, in their order."""
        plain = [name for expert in self.experts if not expert.targeted for name in expert.names]
        return (*plain, *self.targeted, "autoregression")

    @property
    def targeted(self) -> tuple[str, ...]:
        """Names of the forecasts that have residual heads."""
        return tuple(name for expert in self.experts if expert.targeted for name in expert.names)

    def init(self, scale: Scale | None = None, wakes: Any = (0, 48, 0)) -> State:
        """The state before the first row.

        Args:
            scale: Units of the series; 0 and 1 by default.
            wakes: Rows after which experts that wake "first", "warm" and "known" are listened to.
        """
        layout, N, K = self.layout, len(self.targeted), len(self.names)
        H, L = len(layout.steps), layout.furthest
        return State(
            jax.tree.map(jnp.asarray, scale or Scale.start(layout.known)),
            jnp.asarray(wakes, jnp.int32),
            History.start(layout),
            tuple(expert.init(layout) for expert in self.experts),
            Errors.start(N),
            Heads.start(N, H, STILL, L),
            Heads.start(1, H, RECENT + 2, L),
            Aggregate.start(K, H, L),
            Calibration.start(layout),
        )

    def step(self, state: State, row: Row) -> tuple[State, Out]:
        """Forecast the targets ahead of a row, then learn the row: a pure function for `jax.jit` and `jax.vmap`."""
        mixture, issued = _said(self, state, row)
        return _learned(self, state, row, mixture, issued), _out(state, issued)

    def scan(self, state: State, rows: Row) -> tuple[State, Out]:
        """Do `step` for every row (T, ...), under `jax.jit`."""
        return jax.lax.scan(self.step, state, rows)

    @jax.jit
    def start(self, scale: Scale, wakes: Any) -> Float[Array, " B"]:
        """`init` as a packed state."""
        return _pack(self.init(scale, wakes))

    @jax.jit
    def pack(self, state: State) -> Float[Array, " B"]:
        """All numbers of a state in one vector, which costs little to hand over, to store and to send."""
        return _pack(state)

    @jax.jit
    def unpack(self, packed: Float[Array, " B"]) -> State:
        """The state of a vector."""
        return _cut(jax.eval_shape(self.init), packed)

    def advance(self, packed: Float[Array, " B"], rows: Row, asked: int = 0) -> tuple[Float[Array, " B"], Out]:
        """`step` for every row (T, ...), from a packed state to a packed state: the way to drive a live series.

        Of the last `asked` rows nothing is learned: each is forecast as if it came next.
        """
        T, tables = len(rows.y), []
        leaves = [np.asarray(leaf, float).reshape(T, -1) for leaf in jax.tree.leaves(rows)]
        matrix = np.concatenate(leaves, axis=1)
        for start in range(0, T, BLOCK):
            block = matrix[start : start + BLOCK]
            count = len(block)
            if count < BLOCK:
                block = np.concatenate([block, np.zeros((BLOCK - count, matrix.shape[1]))])
            packed, table = _block(self, packed, block, count, T - asked - start)
            tables.append(np.asarray(table)[:count])
        return packed, self._outs(tables)

    def _outs(self, tables: list[np.ndarray]) -> Out:
        H = len(self.layout.steps)
        table = tables[0] if len(tables) == 1 else np.concatenate([np.zeros((0, _width(self))), *tables])
        return Out(table[:, :H], table[:, H : 2 * H], table[:, 2 * H : 3 * H], table[:, 3 * H :])

    def explain(self, state: State, row: Row) -> dict[str, tuple[Array, Array]]:
        """Which expert carries the forecast: for each, its own forecast and its weight at the targets, (H,) both."""
        weights, forecasts = _explain(self, state, row)
        return {name: (forecasts[k], weights[:, k]) for k, name in enumerate(self.names)}


def standard(known: int = 0) -> tuple[Expert, ...]:
    """The members of the default bank. Experts that do not fit the layout are dropped by `pipeline`.

    >>> [name for expert in standard() for name in expert.names][:3]
    ['last', 'mean', 'median']
    """
    rules = ("last", "mean", "median", "season", "week", "shifted season")
    filters = (profile("slot mean", "constant", slow=0.03), profile("profile", fast=0.01))
    if not known:
        return (*map(baseline, rules), *filters)
    bent, alone = known <= BENT, False if known <= BENT else None
    bends = (profile("known", "bends", fast=0.01, seasonal=None),) if bent else ()
    lines = (
        profile("static", "linear", 0.0, seasonal=alone),
        profile("linear", fast=0.01, design="linear", seasonal=alone),
    )
    return (*map(baseline, rules), *filters, *bends, *lines)


def pipeline(layout: Layout, experts: Sequence[Expert] | None = None, miss: float = 0.1) -> Pipeline:
    """The pipeline of a shape, without the experts that have no place in it.

    >>> pipeline(Layout()).names
    ('last', 'mean', 'median', 'autoregression')
    """
    members = standard(layout.known) if experts is None else tuple(experts)
    for expert in members:
        if not (expert.names and isinstance(expert.names, tuple)):
            kind = type(expert).__name__
            raise ValueError(f'{kind} has names = {expert.names!r}; name its forecasts, as in names = ("trend",).')
    return Pipeline(layout, tuple(expert for expert in members if expert.fits(layout)), miss)


def _pack(state: State) -> Float[Array, " B"]:
    return jnp.concatenate([jnp.ravel(leaf).astype(float) for leaf in jax.tree.leaves(state)])


def _cut(like: PyTree, packed: Float[Array, " B"]) -> PyTree:
    """The arrays of a pytree from one vector; whole numbers and truth values are exact in it."""
    leaves, tree = jax.tree.flatten(like)
    parts = jax.lax.split(packed, [leaf.size for leaf in leaves])
    return jax.tree.unflatten(
        tree, [part.astype(leaf.dtype).reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
    )


@jax.jit
def _block(pipe: Pipeline, packed: Array, rows: Array, count: Any, learned: Any) -> tuple[Array, Array]:
    """Forecasts of the first `count` rows of a block, of which the first `learned` are learned, too.

    The compiler knows neither number, so that one row or 64, learned or only asked about, are one program and one
    result. A small state is carried packed, so that XLA makes one kernel of the loop and a call of one row costs half.
    """
    like, small = jax.eval_shape(pipe.layout.empty_row), packed.size <= SMALL
    unpacked, repacked = (pipe.unpack, _pack) if small else (_same, _same)

    def turn(i: Array, carry: tuple[PyTree, Array]) -> tuple[PyTree, Array]:
        state, row = unpacked(carry[0]), _cut(like, rows[i])
        mixture, issued = _said(pipe, state, row)
        after = jax.lax.cond(
            i < learned, lambda: repacked(_learned(pipe, state, row, mixture, issued)), lambda: carry[0]
        )
        return after, carry[1].at[i].set(_line(_out(state, issued)))

    state, outs = jax.lax.fori_loop(
        0, count, turn, (packed if small else pipe.unpack(packed), jnp.zeros((BLOCK, _width(pipe))))
    )
    return state if small else _pack(state), outs


def _same(value: PyTree) -> PyTree:
    return value


def _line(out: Out) -> Float[Array, " W"]:
    return jnp.concatenate([out.forecast, out.lower, out.upper, out.weights])


def _width(pipe: Pipeline) -> int:
    return 3 * len(pipe.layout.steps) + len(pipe.names)


@jax.jit
def _explain(pipe: Pipeline, state: State, row: Row) -> tuple[Float[Array, "H K"], Float[Array, "K H"]]:
    issued = _said(pipe, state, row)[1]
    return issued.weights, state.scale.center + state.scale.spread * issued.forecasts


def _said(pipe: Pipeline, state: State, row: Row) -> tuple[Aggregate, Issued]:
    """What is issued before a row, and the weights that it is issued with."""
    view = look(pipe.layout, state.history, row, state.scale)
    settled = state.mixture.settle(pipe.layout.stride)
    mixture = jax.tree.map(partial(jnp.where, row.issue), settled, state.mixture)
    return mixture, _issue(pipe, state, mixture, view)


def _learned(pipe: Pipeline, state: State, row: Row, mixture: Aggregate, issued: Issued) -> State:
    """The state after a row, with what was issued before it."""
    layout, history = pipe.layout, state.history
    place = history.count % layout.furthest  # of this origin, in what waits for targets
    origins = history.count // layout.stride
    heads = state.heads.issue(place, origins, issued.base, state.errors.regressors, row.issue)
    last = jnp.broadcast_to(history.recent[0], (1, len(layout.steps)))
    walk = state.walk.issue(place, origins, last, _differences(history)[None], row.issue)
    mixture = mixture.issue(place, issued.forecasts, issued.mixtures, issued.mixed, row.issue)
    calibration = state.calibration.issue(place, issued.low, issued.high)

    z = jnp.where(jnp.isfinite(row.y), (row.y - state.scale.center) / state.scale.spread, jnp.nan)
    known = scaled_known(layout, state.scale, row.known, history.known)
    places = (history.count + 1 - np.asarray(layout.steps, np.int32)) % layout.furthest
    here = row.slot * layout.bins // layout.season
    head = np.arange(places.size)
    due = mixture.issued[places, head]
    reach = GROSS * jnp.where(calibration.count[0] < SETTLED, 1.0, calibration.error[0])
    expected = jnp.where(jnp.isnan(due[0]), history.recent[0], due[0])
    bounded = jnp.where(reach > 0.0, expected + jnp.clip(z - expected, -reach, reach), z)
    calibration = calibration.learn(layout, places, here, z, due, pipe.miss)
    designs = own_designs(layout, history, row, state.scale, known)
    learned = [e.learn(s, layout, row, bounded, designs) for e, s in zip(pipe.experts, state.experts, strict=True)]
    errors = [error for e, (_, error) in zip(pipe.experts, learned, strict=True) if e.targeted]
    return State(
        state.scale,
        state.wakes,
        history.learn(layout, row, bounded, known),
        tuple(new for new, _ in learned),
        state.errors.learn(layout, jnp.concatenate([*errors, jnp.zeros(0)])),
        heads.learn(places, bounded),
        walk.learn(places, bounded),
        mixture.learn(places, z),
        calibration,
    )


def _issue(pipe: Pipeline, state: State, mixture: Aggregate, view: View) -> Issued:
    """What each expert, the mixtures and the intervals say at the targets."""
    plain, base, wakes = [], [], []
    order = {"first": 0, "warm": 1, "known": 2}
    for targeted in (False, True):
        for expert, memory in zip(pipe.experts, state.experts, strict=True):
            if expert.targeted == targeted:
                said = jnp.atleast_2d(expert.forecast(memory, view))
                (base if targeted else plain).append(said)
                wakes += [order[expert.wakes]] * len(expert.names)
    H = len(pipe.layout.steps)
    base = jnp.concatenate([*base, jnp.zeros((0, H))])
    last = view.everywhere(view.last)[None]
    corrected = state.heads.correct(base, state.errors.regressors)
    walk = state.walk.correct(last, _differences(state.history)[None])
    said = jnp.concatenate([*plain, corrected, walk])
    history = state.history
    margin = 0.5 * (history.high - history.low)
    said = jnp.clip(said, history.low - margin, history.high + margin)  # never far outside the range so far
    awake = (history.count >= state.wakes[np.asarray([*wakes, 1])]) & (history.seen > 0)
    said = jnp.where(awake[:, None], said, jnp.nan)
    mixtures, mixed, weights = mixture.mix(said)
    low, high = state.calibration.interval(mixed, view.bins)
    return Issued(base, said, mixtures, mixed, low, high, weights)


def _out(state: State, issued: Issued) -> Out:
    center, spread = state.scale.center, state.scale.spread
    forecast, lower, upper = (center + spread * part for part in (issued.mixed, issued.low, issued.high))
    rounding = 4.0 * jnp.finfo(forecast.dtype).eps * (jnp.abs(center) + jnp.abs(forecast))  # of a unit put back
    return Out(forecast, lower - rounding, upper + rounding, issued.weights[0])


def _differences(history: History) -> Float[Array, " R"]:
    """Regressors of the autoregression: 24 differences, and how far the last value is from three running means."""
    recent = history.recent
    return jnp.concatenate([recent[:-1] - recent[1:], recent[0] - history.running])
