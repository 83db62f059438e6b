r"""(M.1, A.1, A.2) Probabilities of the next label: experts on features and on past labels, mixed by their log loss.

Every expert gives probabilities of the classes met so far. A class never met has the probability

$$\frac{M (M + 1)}{n^2 + n + 2 M}$$

after n labels of M classes (Ristad's natural law of succession, 1995), and the others are less by this share.

**Mixture.** Weights are those of Bayes' rule, of which a share $1/(t+1)$ is spread over all K experts after the t-th
label: $w_k \leftarrow (1 - \alpha) w_k p_k(y) / \sum_j w_j p_j(y) + \alpha / K$. The weight of any sequence of experts
that changes m times in T labels is at least $(K T)^{-(m+1)}$, so that the log loss of the mixture exceeds the loss of
that sequence by at most $(m + 1) \log(K T)$, whatever the labels do.

**Filters.** Softmax regression with logits $\eta_c = m_c^\top x$ and one covariance P for all classes. With
probabilities g and residual $r = 1_y - g$ the Hessian of the log loss along r is
$b = r^\top(\mathrm{diag}(g) - g g^\top) r / r^\top r$. Each class takes a Kalman step with noise 1/b:
$m_c \leftarrow m_c + P x\, r_c / (1 + b\, x^\top P x)$. With two classes that is the filter of logistic regression.
The drift adds c to a logit's variance for any D, half through the intercept.
Forecasts average the logits over their variance $s = x^\top P x$ by MacKay's $\eta / \sqrt{1 + \pi s / 8}$.

Axes: F known columns, D regressors, C room for classes, K experts, N filters on one design, L rows that wait.
Cost: O(N (D² + C D) + K C) for a row, whatever the number of classes so far.
"""

from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from filtax._step import cast_and_bind, filter_step, look_ahead
from filtax.beliefs import Covariance
from filtax.forecasting._pipeline import _cut
from filtax.methods._parse import method
from filtax.models import bernoulli, linear
from filtax.protocols import pytree, static
from filtax.state import with_memory

BLOCK = 64  # rows of one call of the compiled loop
MEMORY = 300.0  # labels that the recent frequencies hold
# Filters on each design: variance that a label adds to a logit, and whether the last-label expert is corrected.
FILTERS = {"slow": (1e-3, 0.0), "medium": (1e-2, 0.0), "fast": (1e-1, 0.0), "after last": (1e-2, 1.0)}
DRIFTS, CORRECTS = np.array(list(FILTERS.values())).T
BENT = 32  # known columns up to which filters have a bend at the mean of each
BASELINES = ("frequency", "recent frequency", "transition", "last")


@pytree
class Pending:
    """Rows that were forecast and wait for their label: L of them, or one."""

    known: Float[Array, "*L F"]  # scaled known columns
    label: Float[Array, "*L"]  # -1 where it is missing
    last: Float[Array, "*L"]  # last label known to the forecast, -1 where there was none
    said: Float[Array, "*L K C"]  # by the experts


@pytree
class LabelState:
    """Everything the pipeline remembers: arrays of fixed shape."""

    center: Float[Array, " F"]  # units of the known columns
    spread: Float[Array, " F"]
    rows: Float[Array, ""]  # so far
    counts: Float[Array, " C"]  # labels of each class so far
    recent: Float[Array, " C"]  # the same with a memory of `MEMORY` labels
    moves: Float[Array, "C C"]  # labels of each class by the last label known to their forecast
    repeats: Float[Array, " 2"]  # labels that were this last one, and labels that had one
    last: Float[Array, ""]  # label, -1 before any
    weights: Float[Array, " K"]  # of the experts
    filters: tuple[Covariance, ...]  # for each design, means (N, C, D) and covariances (N, D, D)
    heads: PyTree  # states of the named method for a class never met and for each class; None without one
    pending: Pending


@pytree
class LabelPipeline:
    """The experts and their mixture, as one value: pure functions of a packed state and rows."""

    known: int = static(default=0)  # F columns
    method: str | None = static(default=None)  # name of a filter that takes the place of the standard ones
    delay: int = static(default=0)  # rows after which a label comes
    room: int = static(default=3)  # for C classes

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the K experts, in their order."""
        filters = [f"{design} {name}" for design in self._designs for name in FILTERS]
        return (*BASELINES, *filters, *([self.method] if self.method else []))

    def init(self, center: Float[Array, " F"], spread: Float[Array, " F"]) -> LabelState:
        """The state before the first row, with the units of the known columns."""
        F, C, K, N, L = self.known, self.room, len(self.names), len(FILTERS), self.delay + 1
        zero, none = jnp.zeros, jnp.full(L, -1.0)
        widths = [_design(design, zero(F)).size for design in self._designs]
        filters = [Covariance(zero((N, C, D)), jnp.broadcast_to(jnp.eye(D), (N, D, D))) for D in widths]
        heads = None if self.method is None else _named(self.method, 1 + F)[1]
        return LabelState(
            center,
            spread,
            zero(()),
            zero(C),
            zero(C),
            zero((C, C)),
            zero(2),
            none[0],
            jnp.full(K, 1.0 / K),
            tuple(filters),
            jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (1 + C, *leaf.shape)), heads),
            Pending(zero((L, F)), none, none, zero((L, K, C))),
        )

    @jax.jit
    def start(self, center: Any, spread: Any) -> Float[Array, " B"]:
        """`init`, packed into one vector."""
        return _pack(self.init(center, spread))

    def scan(
        self, packed: Any, known: np.ndarray, labels: np.ndarray, asked: int = 0
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """Forecast each row, then learn its label (-1: missing); of the last `asked` rows nothing is learned.

        Returns:
            A packed state, probabilities (T, C) and weights (T, K).
        """
        rows, parts = np.column_stack([known, labels]), [np.zeros((0, self.room + len(self.names)))]
        for start in range(0, len(rows), BLOCK):
            block, part = np.zeros((BLOCK, rows.shape[1])), rows[start : start + BLOCK]
            block[: len(part)] = part
            packed, outs = _block(self, packed, block, len(part), len(rows) - asked - start)
            parts.append(np.asarray(outs)[: len(part)])
        probability, weights = np.split(np.concatenate(parts), [self.room], axis=1)
        return packed, probability, weights

    def grown(self, packed: Any) -> tuple["LabelPipeline", Any]:
        """The pipeline with room for four times as many classes, and its packed state: the same forecasts."""
        larger = replace(self, room=4 * self.room + 3)
        old = _unpack(self, packed)
        state = jax.tree.map(_corner, old, _unpack(larger, larger.start(old.center, old.spread)))
        for leaf in jax.tree.leaves(state.heads):
            leaf[1 + self.room :] = leaf[0]  # what a class never met has learned: that it was none of the labels
        return larger, _pack(state)

    @property
    def _designs(self) -> tuple[str, ...]:
        return () if self.method else ("linear", "bent") if 0 < self.known <= BENT else ("linear",)


@jax.jit
def _pack(state: LabelState) -> Float[Array, " B"]:
    return ravel_pytree(jax.tree.map(lambda leaf: leaf.astype(float), state))[0]


def _unpack(pipe: LabelPipeline, packed: Float[Array, " B"]) -> LabelState:
    units = jax.ShapeDtypeStruct((pipe.known,), float)
    return _cut(jax.eval_shape(pipe.init, units, units), packed)


def _corner(old: Array, new: Array) -> np.ndarray:
    """A larger array with the old one in its first corner."""
    table = np.array(new)
    table[tuple(map(slice, old.shape))] = old
    return table


@cache
def _named(name: str, D: int) -> tuple[Any, PyTree]:
    """A method by its name for "this class or another", and its state before any label."""
    bone = method(name, model=linear(likelihood=bernoulli()))
    if bone.posterior.draws or bone.posterior.needs_key or bone.auxiliary.grows:
        raise ValueError(f"Labels(method={name!r}) draws at random or grows without bound; give another, such as LG.")
    with jax.ensure_compile_time_eval():
        state = with_memory(bone, bone.init(mean=np.zeros(D), cov=1.0), jnp.zeros(D), jnp.zeros(1))
        return cast_and_bind(bone, state), state


@jax.jit
def _block(pipe: LabelPipeline, packed: Array, rows: Array, count: Any, learned: Any) -> tuple[Array, Array]:
    """Forecasts of the first `count` rows of a block, of which the first `learned` are learned, too.

    The compiler knows neither number, so one row or 64, learned or only asked about, are one program.
    """

    def turn(i: Array, carry: tuple[LabelState, Array]) -> tuple[LabelState, Array]:
        state, known, label = carry[0], rows[i, :-1], rows[i, -1]
        said = _experts(pipe, state, _scaled(state, known))
        after = jax.lax.cond(i < learned, lambda: _step(pipe, state, known, label, said), lambda: state)
        return after, carry[1].at[i].set(jnp.concatenate([_mixed(state, said), state.weights]))

    start = _unpack(pipe, packed), jnp.zeros((BLOCK, pipe.room + len(pipe.names)))
    state, outs = jax.lax.fori_loop(0, count, turn, start)
    return _pack(state), outs


def _step(pipe: LabelPipeline, state: LabelState, known: Array, label: Array, said: Array) -> LabelState:
    """Keep what was said of a row, then learn the row whose label comes now."""
    z, L = _scaled(state, known), pipe.delay + 1
    new, place = Pending(z, label, state.last, said), (state.rows % L).astype(int)
    pending = jax.tree.map(lambda table, row: table.at[place].set(row), state.pending, new)
    due = jax.tree.map(lambda table: table[((state.rows + 1.0) % L).astype(int)], pending)
    return _learn(pipe, state, pending, due)


def _scaled(state: LabelState, known: Float[Array, " F"]) -> Float[Array, " F"]:
    """Columns in their units, with extremes drawn in: linear near the mean, a logarithm far from it; missing is 0."""
    z = jnp.arcsinh((known - state.center) / state.spread)
    return jnp.where(jnp.isfinite(z), z, 0.0)


def _design(design: str, z: Float[Array, " F"]) -> Float[Array, " D"]:
    return jnp.concatenate([jnp.ones(1), z, *([jnp.abs(z)] if design == "bent" else [])])


def _experts(pipe: LabelPipeline, state: LabelState, z: Float[Array, " F"]) -> Float[Array, "K C"]:
    """Probabilities of the classes met so far, given that it is one of them; 0 for the others and before any."""
    seen, place = state.counts > 0.0, np.arange(pipe.room, dtype=float)
    frequency = _shares(jnp.where(seen, state.counts + 0.5, 0.0))
    recent = _shares(jnp.where(seen, state.recent + 0.5, 0.0))
    has_last, at = state.last >= 0.0, jnp.maximum(state.last, 0.0)
    row = jnp.where(has_last, state.moves[at.astype(int)], 0.0)
    transition = (row + frequency) / (jnp.sum(row) + 1.0)
    repeated = (state.repeats[0] + 0.5) / (state.repeats[1] + 1.0)
    other = _shares(jnp.where(place == at, 0.0, frequency))
    last = _shares(jnp.where(place == at, repeated, (1.0 - repeated) * other))
    last = jnp.where(has_last, last, frequency)
    parts = [jnp.stack([frequency, recent, transition, last])]
    for design, filters in zip(pipe._designs, state.filters, strict=True):
        x = _design(design, z)
        parts.append(jax.vmap(partial(_averaged, x=x, base=last, seen=seen))(filters, jnp.asarray(CORRECTS)))
    if pipe.method is not None:
        bone, _ = _named(pipe.method, 1 + pipe.known)
        x = _design("linear", z)
        ahead = jax.vmap(lambda one: look_ahead(bone, one.hypotheses, one.initial, x, None).mean)(state.heads)
        parts.append(_shares(jnp.where(seen, jnp.maximum(ahead.reshape(-1)[1:], 1e-300), 0.0))[None])
    return jnp.concatenate(parts)


def _mixed(state: LabelState, said: Float[Array, "K C"]) -> Float[Array, " C"]:
    """What the experts say by their weights, less the probability of a class never met."""
    n, M = jnp.sum(state.counts), jnp.sum((state.counts > 0.0).astype(float))
    new = jnp.maximum(M * (M + 1.0) / jnp.maximum(n * n + n + 2.0 * M, 1.0), 1e-15)
    return (1.0 - new) * jnp.sum(state.weights[:, None] * said, axis=0)


def _learn(pipe: LabelPipeline, state: LabelState, pending: Pending, due: Pending) -> LabelState:
    """The state after a row whose label has come; where it is missing nothing is learned."""
    known = due.label >= 0.0
    hit = (np.arange(pipe.room, dtype=float) == due.label).astype(float)
    on, base = (state.counts > 0.0) | (hit > 0.0), due.said[BASELINES.index("last")]
    filters = []
    for design, old in zip(pipe._designs, state.filters, strict=True):
        x = _design(design, due.known)
        share = np.where(np.arange(x.size) == 0, 0.5, 0.5 / max(x.size - 1, 1))
        one = partial(_conditioned, x=x, base=base, hit=hit, on=on)
        new = jax.vmap(one)(old, jnp.asarray(CORRECTS), jnp.asarray(np.outer(DRIFTS, share)))
        filters.append(jax.tree.map(lambda new, old: jnp.where(known, new, old), new, old))
    heads = state.heads
    if pipe.method is not None:
        bone, _ = _named(pipe.method, 1 + pipe.known)
        x, own = _design("linear", due.known), jnp.where(known, jnp.concatenate([jnp.zeros(1), hit]), jnp.nan)
        after = jax.vmap(lambda one, y: filter_step(bone, one, x, y[None])[0])(heads, own)
        heads = jax.tree.map(lambda new, old: jnp.where(known, new, old), after, heads)
    forget, before = jnp.where(known, 1.0 - 1.0 / MEMORY, 1.0), jnp.maximum(due.last, 0.0).astype(int)
    followed = jnp.where(due.last >= 0.0, hit, 0.0)
    return LabelState(
        state.center,
        state.spread,
        state.rows + 1.0,
        state.counts + hit,
        forget * state.recent + hit,
        state.moves.at[before].set(state.moves[before] + followed),
        state.repeats + jnp.stack([followed[before], jnp.sum(followed)]),
        jnp.where(known, due.label, state.last),
        reweighted(state.weights, jnp.sum(due.said * hit[None], axis=1), jnp.sum(state.counts)),
        tuple(filters),
        heads,
        pending,
    )


def reweighted(weights: Float[Array, " K"], said: Float[Array, " K"], labels: Array) -> Float[Array, " K"]:
    """The weights after a label that had the probabilities `said` (all 0: not one of them); `labels` came before it.

    >>> reweighted(jnp.array([0.5, 0.5]), jnp.array([0.9, 0.1]), jnp.array(8.0)).round(3).tolist()
    [0.86, 0.14]
    """
    total = jnp.sum(weights * said)
    share = 1.0 / (labels + 2.0)
    new = (1.0 - share) * weights * said / jnp.where(total > 0.0, total, 1.0) + share / weights.size
    return jnp.where(total > 0.0, new, weights)


def _averaged(belief: Covariance, after: Array, x: Array, base: Array, seen: Array) -> Float[Array, " C"]:
    """Forecast of one filter."""
    spread = belief.project_cov(x[None])[0, 0]
    return _softmax(_logits(belief, after, x, base) / jnp.sqrt(1.0 + np.pi / 8.0 * spread), seen)


def _conditioned(
    belief: Covariance, after: Array, drift: Array, x: Array, base: Array, hit: Array, on: Array
) -> Covariance:
    """One filter after a label, and the drift that follows it."""
    g = _softmax(_logits(belief, after, x, base), on)
    r = hit - g
    length, mean = jnp.sum(r * r), jnp.sum(g * r)
    curvature = (jnp.sum(g * r * r) - mean * mean) / jnp.where(length > 0.0, length, 1.0)
    root = jnp.sqrt(jnp.maximum(curvature, 1e-12))

    def each(mean: Array, r: Array) -> Covariance:
        now = Covariance(mean, belief.cov).condition(x[None], root[None, None], r[None]).belief
        return now.add(drift)

    return jax.vmap(each, out_axes=Covariance(0, None))(belief.mean, r / root)  # pyright: ignore[reportArgumentType]


def _logits(belief: Covariance, after: Array, x: Float[Array, " D"], base: Float[Array, " C"]) -> Float[Array, " C"]:
    """Logits of one filter; where `after` is 1 they are added to the log probabilities of a baseline."""
    there = base > 0.0
    logs = jnp.where(there, jnp.log(jnp.where(there, base, 1.0)), 0.0)
    mean = jnp.sum(logs) / jnp.maximum(jnp.sum(there.astype(float)), 1.0)
    return jnp.sum(belief.mean * x[None], axis=1) + after * jnp.where(there, logs, mean)


def _softmax(logits: Float[Array, " C"], on: Array) -> Float[Array, " C"]:
    """Probabilities of the classes that are on; zeros where none is."""
    return jnp.where(on, jax.nn.softmax(jnp.where(on, logits, -1e9)), 0.0)


def _shares(numbers: Float[Array, " C"]) -> Float[Array, " C"]:
    """Numbers over their sum; zeros where all are 0."""
    total = jnp.sum(numbers)
    return numbers / jnp.where(total > 0.0, total, 1.0)
