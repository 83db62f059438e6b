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

import numpy as np
from jaxtyping import PyTree

from filtax import boundary, checks, compatibility, programs
from filtax.beliefs import collapse
from filtax.growth import furnished, in_growing_steps, roomy
from filtax.methods._format import spell
from filtax.module import Module
from filtax.passage import remembered, seen, take_apart
from filtax.state import INFO, Info, State
from filtax.tick import laid_by, new_hypotheses

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

    __slots__ = ("_arrays",)  # see filtax.passage; no field, so it is no part of the method

    model: Any
    auxiliary: Any
    prior: Any
    posterior: Any
    weighting: Any

    def __check_init__(self) -> None:
        compatibility.check_parts(self)

    def __getstate__(self) -> dict:
        """What is pickled and copied: the five parts."""
        return dict(vars(self))

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
        compatibility.check_numbers(self, mean.dtype)
        seed = boundary.check_key(self, key)
        initial = laid_by(self.posterior.start(mean, cov, self.prior.dynamics.moves, *seed))
        compatibility.check_support(self, initial)
        zero, calm = checks.placed(np.zeros((), np.int32)), checks.placed(np.zeros((), mean.dtype))
        key = None if seed and not self.weighting.needs_key else key  # the belief carries it
        return State(new_hypotheses(self, initial), initial, zero, zero, zero, calm, key, layout)

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
        parts = remembered(self, state)
        if parts is None:
            self._check("step", state)
        x, y, mask, dt, changed = boundary.datum(x, y, mask, dt, changed)
        compatibility.check_gap("step", dt, state.initial)
        if parts is None:
            state = roomy(self, furnished(self, state, x, y))
            parts = take_apart(self, state)
        moved, values = programs.step(*parts, x, y, mask, dt, changed)
        passage, _, moving, fixed = parts
        return passage.later(state, moving, fixed, moved), passage.told(values)

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
        parts = remembered(self, state)  # if it has some, what it holds fits this method, and its data
        if parts is None:
            self._check("scan", state)
        X, Y, mask, dt, changed = boundary.arrays(X=X, Y=Y, mask=mask, dt=dt, changed=changed)
        keep = boundary.check_rows(keep, X, Y, mask, dt, changed)
        compatibility.check_gap("scan", dt, state.initial)
        boundary.check_kept(keep, self)
        checks.flag("scan(complete=...)", complete)
        if complete and mask is not None:
            raise ValueError("scan(complete=True, mask=...): a complete stream has no mask; leave one of them out.")
        if parts is not None:
            return self._rows(keep, complete, parts, state, X, Y, mask, dt, changed)
        if Y.shape[0]:
            state = furnished(self, state, None if X is None else X[0], Y[0])
        return in_growing_steps(self, state, (X, Y, mask, dt, changed), partial(self._rows, keep, complete, None))

    def _rows(self, keep: tuple[str, ...], complete: bool, parts: Any, state: State, *rows: Any) -> tuple[State, Info]:
        parts = parts or take_apart(self, state)
        moved, infos = programs.scan(*parts, *rows, keep=keep, complete=complete)
        return parts[0].later(state, *parts[2:], moved), seen(infos)

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
        self._check("predict", state)
        x, dt = boundary.arrays(x=x, dt=dt)
        boundary.check_extras(None, dt, None, rank=0)
        compatibility.check_gap("predict", dt, state.initial)
        checks.flag("predict(plugin=...)", plugin)
        return programs.predict(self, roomy(self, state), x, dt, plugin=plugin)

    def forecast(self, state: State, X_future: Any, *, dt: Any = None) -> PyTree:
        """Forecast H steps ahead without seeing any y: uncertainty grows as the prior lets it.

        Args:
            state: The state to look from.
            X_future: (H, ...) rows of x.
            dt: (H,) lengths of the ticks.

        Returns:
            A distribution with a leading axis H.
        """
        self._check("forecast", state)
        X_future, dt = boundary.arrays(X_future=X_future, dt=dt)
        boundary.check_ahead(X_future, dt)
        compatibility.check_gap("forecast", dt, state.initial)
        return programs.forecast(self, roomy(self, state, X_future.shape[0]), X_future, dt)

    def belief(self, state: State) -> PyTree:
        """The belief about theta, hypotheses averaged: `.mean` (D,), `.cov` (D, D), `.var`, `.sample(key)`.

        Warns when the stream's numbers span more than the dtype can hold, and when an ensemble has collapsed.
        """
        boundary.check_state("belief", state)
        boundary.warn_of_conditioning(state)
        boundary.warn_of_collapse(state)
        return collapse(state.hypotheses.belief, state.hypotheses.log_weight)

    def _check(self, verb: str, state: Any) -> None:
        """Refuse what is no state of this method, or has not as many parameters as its prior."""
        boundary.check_state(verb, state, self)
        compatibility.check_support(self, state.initial)
