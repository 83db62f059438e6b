"""What a method remembers between data (`State`) and what it tells about one datum (`Info`)."""

from functools import cache
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from filtax.layout import Layout
from filtax.module import Module
from filtax.protocols import Hypotheses

__all__ = ["INFO", "CollapseWarning", "ConditioningWarning", "Info", "State", "usual"]


class CollapseWarning(UserWarning):
    """The members of an ensemble are far closer to each other than to the truth: what the belief says is too sure."""


class ConditioningWarning(UserWarning):
    """The numbers of a stream span more than its dtype can hold: the belief is finite, but its mean may be far off."""


class State(Module):
    """Everything `step` needs: a pytree of arrays that can be stored, vmapped and compared.

    Attributes:
        bank: Hypotheses with their beliefs and weights, C slots.
        initial: The belief before any datum, which resets and relaxing priors return to.
        t: Ticks so far.
        began: Tick at which the stream began, or began anew at the last known change.
        refused: Rows so far that were not taken (`ok` False).
        conditioning_ratio: Largest ratio so far of the variance of what was not known to that of the noise.
        key: Random key of methods that sample at each datum; None where the belief carries its own.
        layout: How theta lies in a parameter pytree, None for a flat vector.

    >>> import jax.numpy as jnp, filtax as fx
    >>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    >>> int(kf.init(mean=jnp.zeros(2), cov=1.0).t)
    0
    """

    __slots__ = ("_parts",)  # see filtax.passage; no field, so it is no part of the state

    hypotheses: Hypotheses
    initial: PyTree
    t: Int[Array, ""]
    began: Int[Array, ""]
    refused: Int[Array, ""]
    conditioning_ratio: Float[Array, ""]
    key: Key[Array, ""] | None = None
    layout: Layout | None = None

    def after(
        self, hypotheses: Hypotheses, t: Array, began: Array, refused: Array, conditioning_ratio: Array
    ) -> "State":
        """The state some ticks later; what does not change is handed on, not copied.

        The fields are set without the constructor, whose checks cost more than a tick of a small filter.
        """
        later = object.__new__(State)
        vars(later).update(
            vars(self), hypotheses=hypotheses, t=t, began=began, refused=refused, conditioning_ratio=conditioning_ratio
        )
        return later

    def __getstate__(self) -> dict:
        """What is pickled and copied: the fields."""
        return dict(vars(self))


class Info(Module):
    """What one datum showed; under `scan` with a leading axis T, and None for what was not kept.

    Attributes:
        mean, var: The forecast made before y, in the shape of the model's output.
        log_evidence: Log predictive density of y; exactly 0 when y is missing, -inf when it was too far off to be
            taken.
        residual: y minus the forecast; NaN where y is missing.
        trust: How far y was believed, in [0, 1]; 1 without a robust model.
        change_probability: Probability that the process changed at this datum.
        runlength: Most probable number of data since the last change.
        ok: False when the row was refused; the belief then knows nothing of it.
        belief_mean, belief_var, belief_cov: The belief after y, when `scan(keep=...)` names them.
        log_weight: Log weights of the hypotheses after y, likewise.

    >>> Info().mean is None
    True
    """

    mean: Float[Array, "*O"] | None = None
    var: Float[Array, "*O"] | None = None
    log_evidence: Float[Array, "*T"] | None = None
    residual: Float[Array, "*O"] | None = None
    trust: Float[Array, "*T"] | None = None
    change_probability: Float[Array, "*T"] | None = None
    runlength: Int[Array, "*T"] | None = None
    ok: Bool[Array, "*T"] | None = None
    belief_mean: Float[Array, "*T D"] | None = None
    belief_var: Float[Array, "*T D"] | None = None
    belief_cov: Float[Array, "*T D D"] | None = None
    log_weight: Float[Array, "*T C"] | None = None


INFO = ("mean", "var", "log_evidence", "residual", "trust", "change_probability", "runlength", "ok")


@cache
def usual(dtype: Any) -> dict[str, Array]:
    """What a method reports that doubts no datum and suspects no change; it need not be computed at every tick.

    >>> usual(np.dtype("float32"))["trust"].item()
    1.0
    """
    with jax.ensure_compile_time_eval():
        return jax.device_put({"trust": np.ones((), dtype), "change_probability": np.zeros((), dtype)})
