"""The framework on one page: a method is a value made of five choices.

    Bone(model, auxiliary, prior, posterior, weighting)     M.1  M.2  M.3  A.1  A.2

Its verbs: `init` a state, `step` by one datum, `scan` many, `predict` the next y, `forecast` several, look at the
`belief`.
All are pure, and each compiles once for a shape.

Thesis: chapter 3, algo:bone-step.
"""

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, PyTree

from filtax import _validation as checks
from filtax._parts import check_parts, spell
from filtax._step import cast_and_bind, cast_features, filter_step, look_ahead, scan_over
from filtax.beliefs import collapse
from filtax.protocols import Module, with_fields
from filtax.state import (
    INFO,
    MOST_SLOTS,
    Info,
    State,
    certain,
    check_slots,
    start_hypotheses,
    stores_data,
    with_memory,
    with_slots,
)

__all__ = ["Bone"]


class Bone(Module):
    """One online learner, named by its five parts; build it by name with `filtax.method`.

    Attributes:
        model: (M.1) how y depends on theta and x.
        auxiliary: (M.2) what else is unknown.
        prior: (M.3) how theta moves between data.
        posterior: (A.1) how a belief absorbs a datum.
        weighting: (A.2) how hypotheses are weighed.

    >>> import filtax as fx
    >>> fx.method("LG+C-ACI(q=0.1)", model=fx.models.linear(noise=1.0)).name
    'LG+C-ACI(q=0.1)'
    """

    model: Any
    auxiliary: Any
    prior: Any
    posterior: Any
    weighting: Any

    def __check_init__(self) -> None:
        check_parts(self)

    @property
    def name(self) -> str:
        """The method's name in the grammar of `filtax.method`."""
        return spell(self)

    def init(self, mean: Any = None, cov: Any = 1.0, *, params: PyTree = None, key: Any = None) -> State:
        """Start from a belief about the parameters.

        Args:
            mean: Prior mean (D,); its dtype is that of everything the method computes. In a subspace none is needed.
            cov: Prior covariance: a variance, (D,) variances, or (D, D); for PULSE also a tuple of one for each block.
            params: Instead of `mean`, a pytree of arrays, such as the initial weights of a network.
            key: Random key, such as `jax.random.key(0)`; needed by methods that draw (EnKF, ETKF, PF, APF, RBPF).

        Returns:
            The state before any datum (t = 0).
        """
        mean, cov, layout = checks.check_start(self, mean, cov, params)
        checks.check_numbers(self, mean.dtype)
        seed = checks.check_key(self, key)
        initial = self.posterior.start(mean, cov, self.prior.dynamics.moves, *seed).compress()
        checks.check_sizes(self, initial)
        zero, calm = checks.placed(np.zeros((), np.int32)), checks.placed(np.zeros((), mean.dtype))
        key = None if seed and not self.weighting.needs_key else key  # the belief carries it
        return State(start_hypotheses(self, initial), initial, zero, zero, zero, calm, key, layout)

    def step(
        self, state: State, x: Any, y: Any, *, mask: Any = None, dt: Any = None, changed: Any = None
    ) -> tuple[State, Info]:
        """Let one time step pass and condition on one datum.

        Args:
            state: From `init` or the last `step`.
            x: Features (D,), the matrix H_t (O, D), or whatever the model takes.
            y: Scalar or (O,); NaN where missing.
            mask: Of the shape of y, True where observed.
            dt: Length of the step, 1 by default.
            changed: True says that the process has changed: the belief is reset to the initial one.

        Returns:
            The new state, and what the datum showed.
        """
        checks.check_state("step", state)
        x, y, mask, dt, changed = checks.datum(x, y, mask, dt, changed, state.initial)
        state = with_memory(self, state, x, y) if stores_data(self) else state
        state = self._with_slots(state) if self.auxiliary.grows else state
        hypotheses, fields, values = _step(self, state, x, y, mask, dt, changed)
        state = with_fields(state, hypotheses=with_fields(state.hypotheses, **hypotheses), **fields)
        return state, with_fields(certain(state.initial.mean.dtype), **values)

    def scan(
        self,
        state: State,
        X: Any,
        Y: Any,
        keep: Sequence[str] = INFO,
        *,
        mask: Any = None,
        dt: Any = None,
        changed: Any = None,
        complete: bool = False,
    ) -> tuple[State, Info]:
        """Do `step` for every row, in one compiled loop.

        Args:
            state: From `init`, `step` or an earlier `scan`.
            X: Rows of x, (T, ...).
            Y: Rows of y, (T,) or (T, O).
            keep: Fields of `Info` to store; also "belief_mean", "belief_var", "belief_cov", "log_weight". Fields
                not named are not computed.
            mask: Of the shape of Y, True where observed.
            dt: (T,) lengths of the steps.
            changed: (T,) known changes.
            complete: Promise that every number is finite and possible. The checks are then omitted, and vmapped
                streams of a linear model share one covariance. A broken promise shows in `ok` and is not undone.

        Returns:
            The last state, and the kept fields with a leading axis T.
        """
        checks.check_state("scan", state, self)
        X, Y, mask, dt, changed = checks.arrays(X=X, Y=Y, mask=mask, dt=dt, changed=changed)
        keep = checks.check_kept(keep, self)
        hint = "give arrays with a leading axis T, or use step for a single datum"
        checks.check_extras(mask, dt, changed, rank=1, verb="scan", belief=state.initial)
        checks.check_rows("scan", "Y", Y, hint, X=X, mask=mask, dt=dt, changed=changed)
        checks.flag("scan(complete=...)", complete)
        if complete and mask is not None:
            raise ValueError("scan(complete=True, mask=...): a complete stream has no mask; leave one of them out.")
        if len(Y):
            state = with_memory(self, state, None if X is None else X[0], Y[0])
        scan = partial(_scan, self, keep=keep, complete=complete)
        carry, info = self._in_pieces(state, (X, Y, mask, dt, changed), scan)
        return state.after(*carry), info

    def predict(self, state: State, x: Any, *, dt: Any = None, plugin: bool = False) -> PyTree:
        """Forecast the next y; changes nothing.

        Args:
            state: The state to look from.
            x: As for `step`.
            dt: Length of the coming step.
            plugin: Forecast at the mean of the parameters instead of averaging over them.

        Returns:
            A distribution: `.mean`, `.var`, `.cov`, `.interval(0.9)`, `.sample(key)`, `.log_prob(y)`, `.cdf(y)`.
        """
        checks.check_state("predict", state, self)
        x, dt = checks.arrays(x=x, dt=dt)
        checks.check_extras(None, dt, None, rank=0, verb="predict", belief=state.initial)
        checks.flag("predict(plugin=...)", plugin)
        return _predict(self, self._with_slots(state), x, dt, plugin=plugin)

    def forecast(self, state: State, X_future: Any, *, dt: Any = None) -> PyTree:
        """Forecast H steps ahead without seeing any y: uncertainty grows as the prior lets it.

        Args:
            state: The state to look from.
            X_future: (H, ...) rows of x.
            dt: (H,) lengths of the steps.

        Returns:
            A distribution with a leading axis H.
        """
        checks.check_state("forecast", state, self)
        X_future, dt = checks.arrays(X_future=X_future, dt=dt)
        hint = "give H rows of x, of any numbers where the model uses none"
        checks.check_extras(None, dt, None, rank=1, verb="forecast", belief=state.initial)
        checks.check_rows("forecast", "X_future", X_future, hint, least=1, dt=dt)
        return _forecast(self, self._with_slots(state, X_future.shape[0]), X_future, dt)

    def belief(self, state: State) -> PyTree:
        """The belief about theta, hypotheses averaged: `.mean` (D,), `.cov` (D, D), `.var`, `.sample(key)`.

        Warns when the stream's numbers span more than the dtype can hold, and when an ensemble has collapsed.
        """
        checks.check_state("belief", state)
        checks.warn_of_conditioning(state)
        checks.warn_of_collapse(state)
        return collapse(state.hypotheses.belief, state.hypotheses.log_weight)

    def _age(self, state: State) -> int | None:
        """Steps so far; None if C is fixed, or t is traced (a full bank then drops its least probable slot)."""
        if not self.auxiliary.grows:
            return None
        t = checks.concrete(state.t - state.began)
        return None if t is None else int(t.max())

    def _with_slots(self, state: State, ahead: int = 1) -> State:
        """Room for `ahead` more steps; if that exceeds MOST_SLOTS, for one."""
        steps = self._age(state)
        if steps is None:
            return state
        wanted = self.auxiliary.slots_needed(steps + ahead - 1)
        return with_slots(self, state, wanted if wanted <= MOST_SLOTS else self.auxiliary.slots_needed(steps))

    def _in_pieces(self, state: State, rows: tuple, scan: Any) -> tuple[tuple, Info]:
        """Scan the rows in pieces of constant C, one compiled call each."""
        length, steps = rows[1].shape[0], self._age(state)
        if steps is None or length == 0:
            return scan(state, *rows)
        check_slots(self, self.auxiliary.slots_needed(steps + length - 1))  # before anything is learned
        infos, done = [], 0
        while done < length:
            state = with_slots(self, state, self.auxiliary.slots_needed(steps + done))
            end, slots = done + 1, state.hypotheses.log_weight.shape[-1]
            while end < length and self.auxiliary.slots_needed(steps + end) <= slots:
                end += 1
            carry, info = scan(state, *jax.tree.map(lambda leaf, at=slice(done, end): leaf[at], rows))
            state, done = state.after(*carry), end
            infos.append(info)
        return state.carry, infos[0] if len(infos) == 1 else jax.tree.map(lambda *parts: jnp.concatenate(parts), *infos)


@jax.jit
def _step(
    method: Bone, state: State, x: Array | None, y: Array, mask: Array | None, dt: Array | None, changed: Array | None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    method = _ready("step", method, state)
    after, info, _ = filter_step(method, state, x, y, mask, dt, changed)
    values = {name: value for name, value in vars(info).items() if isinstance(value, Tracer)}
    return _changes(state.hypotheses, after.hypotheses), _changes(state, after), values


def _changes(before: Any, after: Any) -> dict[str, Any]:
    """Fields that a step has changed; only these are returned, as each output is a copy."""
    return {
        name: value for name, value in vars(after).items() if name != "hypotheses" and value is not vars(before)[name]
    }


@partial(jax.jit, static_argnames=("keep", "complete"))
def _scan(
    method: Bone,
    state: State,
    X: Array | None,
    Y: Array,
    mask: Array | None,
    dt: Array | None,
    changed: Array | None,
    *,
    keep: tuple[str, ...],
    complete: bool,
) -> tuple[tuple, Info]:
    method = _ready("scan", method, state)
    single = state.hypotheses.log_weight.size == 1

    def body(carry: tuple, row: tuple) -> tuple[tuple, Info]:
        before = state.after(_widen(carry[0]) if single else carry[0], *carry[1:])
        after, info, _ = filter_step(method, before, *row, complete=complete)
        hypotheses, *counters = after.carry
        kept = Info(**{name: _kept(name, hypotheses, info) for name in keep})
        return (_narrow(hypotheses, before.hypotheses, carry[0]) if single else hypotheses, *counters), kept

    # a single hypothesis is carried without its axis: XLA then updates a large belief in place
    hypotheses, *counters = state.carry
    start = (jax.tree.map(lambda leaf: leaf[0], hypotheses) if single else hypotheses, *counters)
    (hypotheses, *counters), infos = scan_over(body, start, (X, Y, mask, dt, changed))
    return (_widen(hypotheses) if single else hypotheses, *counters), infos


def _widen(hypotheses: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[None], hypotheses)


def _narrow(after: PyTree, before: PyTree, carried: PyTree) -> PyTree:
    """Without the axis of one hypothesis; what a step did not touch is what was carried, so that no copy is made."""
    return jax.tree.map(lambda new, old, held: held if new is old else new[0], after, before, carried)


def _kept(name: str, hypotheses: Any, info: Info) -> Array:
    if name == "log_weight":
        return hypotheses.log_weight
    if name.startswith("belief_"):
        return attrgetter(name.removeprefix("belief_"))(collapse(hypotheses.belief, hypotheses.log_weight))
    return vars(info)[name]


@partial(jax.jit, static_argnames=("plugin",))
def _predict(method: Bone, state: State, x: Array | None, dt: Array | None, *, plugin: bool) -> PyTree:
    return look_ahead(_ready("predict", method, state), state.hypotheses, state.initial, x, dt, plugin)


@jax.jit
def _forecast(method: Bone, state: State, X: Array, dt: Array | None) -> PyTree:
    method = _ready("forecast", method, state)
    outputs = method.model.outputs(state.initial.mean, cast_features(X[0], state.initial.mean.dtype))
    unseen = jnp.full(method.model.likelihood.width(outputs), jnp.nan)
    state = with_memory(method, state, X[0], unseen)

    def body(carry: tuple, row: tuple) -> tuple[tuple, PyTree]:
        x, dt = row
        now = state.after(*carry)
        after, _, _ = filter_step(method, now, x, unseen, dt=dt)
        # x is used as it was given: where it is NaN, so is the forecast
        return after.carry, look_ahead(method, now.hypotheses, state.initial, x, dt)

    return jax.lax.scan(body, state.carry, (X, dt))[1]


def _ready(verb: str, method: Bone, state: State) -> Bone:
    """The method for this state; what does not fit is refused here, once for each compilation."""
    checks.check_state(verb, state, method)
    checks.check_sizes(method, state.initial)
    return cast_and_bind(method, state)
