"""The framework on one page: a method is a value made of five choices.

    Bone(model, auxiliary, prior, posterior, weighting)     M.1  M.2  M.3  A.1  A.2

Its verbs: `init` a state, `step` by one datum, `scan` many, `predict` the next y, `forecast` several, look at the
`belief`.
All are pure, and each compiles once for a shape.

Thesis: chapter 3, algo:bone-step.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax import boundary, compatibility
from filtax.beliefs import collapse
from filtax.growth import furnished, in_growing_banks, roomy
from filtax.module import Module
from filtax.protocols import Bank
from filtax.spelling import spell
from filtax.state import INFO, Info, State
from filtax.tick import admit, conform, fresh_bank, look_ahead, tick

__all__ = ["Bone", "advance"]


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
        compatibility.check_parts(self)

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
        mean, cov, layout = boundary.check_start(self, mean, cov, params)
        seed = boundary.check_key(self, key)
        initial = self.posterior.start(mean, cov, self.prior.drift.moves, *seed)
        compatibility.check_support(self, initial)
        zero = jnp.zeros((), jnp.int32)
        key = None if seed and not getattr(self.weighting, "needs_key", False) else key  # the belief carries it
        return State(fresh_bank(self, initial), initial, zero, zero, zero, jnp.zeros((), mean.dtype), key, layout)

    def step(
        self, state: State, x: Any, y: Any, *, mask: Any = None, dt: Any = None, changed: Any = None
    ) -> tuple[State, Info]:
        """Let one tick of time pass and condition on one datum.

        Args:
            state: From `init` or the last `step`.
            x: Features (D,), the matrix H_t (O, D), or whatever the model takes.
            y: Scalar or (O,); NaN where missing.
            mask: Of the shape of y, True where observed.
            dt: Length of the tick, 1 if left out.
            changed: True tells of a known change: the belief starts anew from the initial one.

        Returns:
            The new state, and what the datum showed.
        """
        boundary.check_state("step", state, self)
        x, y, mask, dt, changed = boundary.datum(x, y, mask, dt, changed)
        state = roomy(self, furnished(self, state, x, y))
        carry, info = _step(self, state, x, y, mask, dt, changed)
        return state.after(*carry), info

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
            keep: Fields of `Info` to store; also "belief_mean", "belief_var", "belief_cov", "log_weight". What is
                not named is not computed.
            mask: Of the shape of Y, True where observed.
            dt: (T,) lengths of the ticks.
            changed: (T,) known changes.
            complete: Promise that every number is finite and possible. The checks are then left out, and vmapped
                streams of a linear model share one covariance. A broken promise shows in `ok` and is not undone.

        Returns:
            The last state, and the kept fields with a leading axis T.
        """
        boundary.check_state("scan", state, self)
        X, Y, mask, dt, changed = boundary.arrays(X=X, Y=Y, mask=mask, dt=dt, changed=changed)
        keep = boundary.check_rows(keep, X, Y, mask, dt, changed)
        boundary.check_kept(keep, self)
        if complete and mask is not None:
            raise ValueError("scan(complete=True, mask=...): a complete stream has no mask; leave one of them out.")
        if Y.shape[0]:
            state = furnished(self, state, None if X is None else X[0], Y[0])
        return in_growing_banks(
            self, state, (X, Y, mask, dt, changed), partial(_scan, self, keep=keep, complete=complete)
        )

    def predict(self, state: State, x: Any, *, dt: Any = None, plugin: bool = False) -> PyTree:
        """Forecast the next y; changes nothing.

        Args:
            state: The state to look from.
            x: As for `step`.
            dt: Length of the coming tick.
            plugin: Forecast at the mean of the parameters instead of averaging over them.

        Returns:
            A distribution: `.mean`, `.var`, `.cov`, `.interval(0.9)`, `.sample(key)`, `.log_prob(y)`, `.cdf(y)`.
        """
        boundary.check_state("predict", state, self)
        x, dt = boundary.arrays(x=x, dt=dt)
        boundary.check_extras(None, dt, None, rank=0)
        return _predict(self, state, x, dt, plugin=plugin)

    def forecast(self, state: State, X_future: Any, *, dt: Any = None) -> PyTree:
        """Forecast H steps ahead without seeing any y: uncertainty grows as the prior lets it.

        Args:
            state: The state to look from.
            X_future: (H, ...) rows of x.
            dt: (H,) lengths of the ticks.

        Returns:
            A distribution with a leading axis H.
        """
        boundary.check_state("forecast", state, self)
        X_future, dt = boundary.arrays(X_future=X_future, dt=dt)
        boundary.check_ahead(X_future, dt)
        return _forecast(self, state, X_future, dt)

    def belief(self, state: State) -> PyTree:
        """The belief about theta, hypotheses averaged: `.mean` (D,), `.cov` (D, D), `.var`, `.sample(key)`.

        Warns when the stream's numbers span more than the dtype can hold, and when an ensemble has collapsed.
        """
        boundary.warn_of_strain(state)
        boundary.warn_of_collapse(state)
        return collapse(state.bank.belief, state.bank.log_weight)


@jax.jit
def _step(
    method: Bone, state: State, x: Array | None, y: Array, mask: Array | None, dt: Array | None, changed: Array | None
) -> tuple[tuple, Info]:
    method = conform(method, state)
    return advance(method, state, _carry(state), x, y, mask, dt, changed, complete=False)


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
    method = conform(method, state)

    # With one slot its axis stays outside of the loop: XLA then updates a large belief in place.
    slots = state.bank.log_weight.size
    narrow = lambda bank: jax.tree.map(lambda leaf: leaf[0], bank) if slots == 1 else bank  # noqa: E731
    widen = lambda bank: jax.tree.map(lambda leaf: leaf[None], bank) if slots == 1 else bank  # noqa: E731

    def body(carry: tuple, row: tuple) -> tuple[tuple, Info]:
        (bank, *rest), info = advance(method, state, (widen(carry[0]), *carry[1:]), *row, complete=complete)
        return (narrow(bank), *rest), Info(**{name: _kept(name, bank, info) for name in keep})

    bank, *rest = _carry(state)
    (bank, *rest), infos = jax.lax.scan(body, (narrow(bank), *rest), (X, Y, mask, dt, changed))
    return (widen(bank), *rest), infos


@partial(jax.jit, static_argnames=("plugin",))
def _predict(method: Bone, state: State, x: Array | None, dt: Array | None, *, plugin: bool) -> PyTree:
    method = conform(method, state)
    return look_ahead(method, state.bank, state.initial, _typed(x, state), _time(dt, state), plugin)


@jax.jit
def _forecast(method: Bone, state: State, X: Array, dt: Array | None) -> PyTree:
    method = conform(method, state)
    outputs = method.model.outputs(state.initial.mean, _typed(X[0], state))
    unseen = jnp.full(method.model.likelihood.width(outputs), jnp.nan)
    state = furnished(method, state, X[0], unseen)

    def body(carry: tuple, row: tuple) -> tuple[tuple, PyTree]:
        bank, t = carry
        gap = _time(row[1], state)
        datum = admit(method, state.initial, row[0], unseen, None, False)
        outcome = tick(method, bank, state.initial, t, datum, gap, state.key, t + 1)
        # the forecast is asked of x as it was given: where it is NaN, so is the forecast
        return (outcome.bank, t + 1), look_ahead(method, bank, state.initial, _typed(row[0], state), gap, False)

    return jax.lax.scan(body, (state.bank, state.t), (X, dt))[1]


def advance(
    method: Bone,
    state: State,
    carry: tuple,
    x: Array | None,
    y: Array,
    mask: Array | None,
    dt: Array | None,
    changed: Array | None,
    *,
    complete: bool,
) -> tuple[tuple, Info]:
    """Do one row. What does not change (`initial`, `key`) stays outside of the carry, which would hold it twice."""
    bank, t, began, refused, strain = carry
    if changed is not None:
        anew = fresh_bank(method, state.initial, bank.log_weight.size, like=bank)
        bank = jax.tree.map(lambda new, old: jnp.where(changed, new, old), anew, bank)
        began = jnp.where(changed, t, began)
    datum = admit(method, state.initial, x, y, mask, complete)
    outcome = tick(method, bank, state.initial, t, datum, _time(dt, state), state.key, t + 1 - began)
    info, ok = outcome.info, outcome.ok
    strain = jnp.maximum(strain, jnp.nan_to_num(outcome.strain, nan=0.0))
    return (outcome.bank, t + 1, began, refused + (~ok).astype(refused.dtype), strain), info


def _carry(state: State) -> tuple:
    return state.bank, state.t, state.began, state.refused, state.strain


def _typed(x: Array | None, state: State) -> Array | None:
    return x if x is None or not jnp.issubdtype(x.dtype, jnp.floating) else x.astype(state.initial.mean.dtype)


def _time(dt: Array | None, state: State) -> Array | None:
    return None if dt is None else dt.astype(state.initial.mean.dtype)


def _kept(name: str, bank: Bank, info: Info) -> Array:
    if name == "log_weight":
        return bank.log_weight
    if not name.startswith("belief_"):
        return getattr(info, name)
    return getattr(collapse(bank.belief, bank.log_weight), name.removeprefix("belief_"))
