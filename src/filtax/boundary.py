"""The border between the user and the compiled core: checks of values and names, once, each with a sentence."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from filtax import checks
from filtax.layout import Layout, flatten
from filtax.state import INFO, CollapseWarning, ConditioningWarning, State

__all__ = [
    "arrays",
    "check_ahead",
    "check_extras",
    "check_kept",
    "check_key",
    "check_rows",
    "check_start",
    "check_state",
    "datum",
    "warn_of_collapse",
    "warn_of_conditioning",
]

KEPT = (*INFO, "belief_mean", "belief_var", "belief_cov", "log_weight")
_COLLAPSED = {
    "Ensemble": "the ensemble has collapsed: its members agree on forecasts that are wrong. Use more members than "
    "parameters, inflation=1.05",
    "Particles": "the particles have collapsed: nearly all are copies of one. Use more of them, shrink=0.98",
    "Marginalised": "the particles have collapsed: nearly all the weight is on one. Use more of them",
}


VERBS = ("step", "scan", "predict", "forecast", "belief")  # of a method, that map over states


def arrays(**values: Any) -> list[Any]:
    """Turn what a user gives into arrays; what already is one passes untouched.

    >>> arrays(x=[1, 2], mask=None)[0].dtype
    dtype('int64')
    """
    return [value if value is None else checks.numeric(name, value) for name, value in values.items()]


def datum(x: Any, y: Any, mask: Any, dt: Any, changed: Any) -> list[Any]:
    """Turn one row into arrays.

    >>> [part is None for part in datum([1.0], 2.0, None, None, None)]
    [False, False, True, True, True]
    """
    if y is None:
        raise ValueError("step: y is None; give a number, or NaN where it is missing.")
    if mask is None and dt is None and changed is None:
        if checks.is_plain(x) and checks.is_plain(y):
            return [x, y, None, None, None]  # as nearly always: there is nothing to turn
        return [*arrays(x=x, y=_one_kind(y)), None, None, None]
    row = arrays(x=x, y=_one_kind(y), mask=mask, dt=dt, changed=changed)
    check_extras(*row[2:], rank=0)
    return row


def _one_kind(y: Any) -> Any:
    """The same program for 1, 1.0 and `jnp.asarray(1.0)`, whose dtype JAX takes for a suggestion."""
    if type(y) is int and y.bit_length() < 1000:
        return float(y)
    return np.asarray(y) if getattr(y, "weak_type", False) and checks.is_concrete(y) else y


def check_state(verb: str, state: Any, method: Any = None, stacked: bool = False) -> None:
    """Refuse what is no state, such as a pair that was not unpacked, or one that another kind of method made.

    Many states in one, as `jax.vmap` stacks them, are refused unless they may be `stacked`.
    """
    if not isinstance(state, State):
        hint = "unpack it: state, info = ..." if isinstance(state, tuple) else "begin with state = method.init(...)"
        raise ValueError(f"{verb}: the state is a {type(state).__name__}; {hint}.")
    if state.hypotheses.log_weight.ndim != 1 and not stacked:
        many, mapped = " x ".join(map(str, state.hypotheses.log_weight.shape[:-1])), verb in VERBS
        call = "lambda state: method.belief(state).mean" if verb == "belief" else f"method.{verb}"
        hint = f"map over them: jax.vmap({call})(states{'' if verb == 'belief' else ', ...'})"
        one = "give one of them: jax.tree.map(lambda leaf: leaf[0], states)"
        raise ValueError(f"{verb}: the state holds {many} states, as jax.vmap stacks them; {hint if mapped else one}.")
    if method is None:
        return
    families = method.posterior.families
    if families and not isinstance(state.initial, families):
        wanted = " or ".join(dict.fromkeys(family.__name__ for family in families))
        raise ValueError(
            f"{verb}: the state holds a {type(state.initial).__name__} belief but {method.name} works on {wanted}; "
            "begin with state = method.init(...) of this method."
        )
    slots, wanted = state.hypotheses.log_weight.shape[-1], method.auxiliary.slots
    if slots != wanted and method.auxiliary.slots_needed(0) is None:
        raise ValueError(
            f"{verb}: the state has {slots} hypotheses but {method.name} keeps {wanted}; begin with state = "
            "method.init(...) of this method."
        )


def check_extras(mask: Any, dt: Any, changed: Any, rank: int) -> None:
    """Check what may come with a row (rank 0) or with many (rank 1)."""
    for shown, flags in (("mask", mask), ("changed", changed)):
        if flags is not None and flags.dtype.kind != "b":
            raise ValueError(f"{shown} must hold True and False, got {flags.dtype}; write {shown} != 0.")
    for shown, value in (("dt", dt), ("changed", changed)):
        if value is not None and value.ndim != rank:
            wanted = "one value for each row" if rank else "a single value"
            give = "give shape (T,)" if rank else "give one of them, or many rows to scan"
            raise ValueError(f"{shown} must be {wanted}, got shape {value.shape}; {give}.")
    if dt is not None:
        checks.positive("dt", dt, zero=True, hint="It is the length of a tick of time.")


def check_start(method: Any, mean: Any, cov: Any, params: PyTree) -> tuple[Array, Any, Layout | None]:
    """Check the initial belief, flatten it, and settle the dtype; a posterior of blocks has a covariance for each."""
    mean, layout = _location(method.model.predictor, mean, params)
    blocks = method.posterior.block_covariances(cov, mean) if isinstance(cov, tuple) else None
    cov = _covariance(cov, mean) if blocks is None else blocks
    method.posterior.check_start(mean, cov)
    return mean, jnp.broadcast_to(cov, mean.shape) if blocks is None and cov.ndim == 0 else cov, layout


def _location(predictor: Any, mean: Any, params: PyTree) -> tuple[Array, Layout | None]:
    """The prior mean, flat."""
    if hasattr(predictor, "begin"):
        mean = _coordinates(predictor, mean, params)
    if (mean is None) == (params is None):
        given = "neither" if mean is None else "both"
        raise ValueError(f"init: give mean=... (a vector) or params=... (a pytree), got {given}.")
    layout = None
    if params is not None:
        mean, layout = flatten(params)
    mean = checks.placed(arrays(mean=mean)[0])
    call, several = ("init(mean=...)", "a vector (D,)") if layout is None else ("init(params=...)", "arrays")
    checks.finite(call, mean)
    floating = jnp.issubdtype(mean.dtype, jnp.floating)
    mean = jax.lax.convert_element_type(mean, mean.dtype if floating else jnp.result_type(float))
    mean = mean[None] if mean.ndim == 0 else mean
    if mean.size == 0:
        raise ValueError(f"{call} is empty, got shape {mean.shape}; give {several} with a number for each parameter.")
    if mean.ndim != 1:
        raise ValueError(
            f"init(mean=...) must be a vector (D,), got shape {mean.shape}; give a matrix or a pytree as params=."
        )
    return mean, layout


def _covariance(cov: Any, mean: Array) -> Array:
    """The prior covariance in the dtype of the mean: a variance, (D,) of them or (D, D)."""
    if cov is None:
        raise ValueError(
            "init: cov is None; give a variance, (D,) variances or a (D, D) matrix, or leave it out for 1."
        )
    cov = checks.placed(arrays(cov=cov)[0])
    checks.covariance_like(
        "init(cov=...)", cov, singular=True, hint="A variance of 0 is that of a number that is known."
    )
    if cov.ndim and cov.shape[0] != mean.size:
        raise ValueError(
            f"init: mean has D = {mean.size} parameters but cov has shape {cov.shape}; give a variance, (D,) or (D, D)."
        )
    cov = cov.astype(mean.dtype)
    checks.finite(f"init(cov=...) as {mean.dtype}", cov)
    return cov


def _coordinates(predictor: Any, mean: Any, params: PyTree) -> Any:
    """Where a filter starts that moves along the directions of a subspace: at its offset, if nothing is given."""
    start = predictor.begin()
    if params is not None:
        raise ValueError(
            "init(params=...): this model knows its parameters already, as its offset; leave params out, or give "
            f"mean=... of shape ({start.size},), the coordinates."
        )
    if mean is not None and np.shape(mean) != start.shape:
        raise ValueError(
            f"init(mean=...) has shape {np.shape(mean)} but the model has {start.size} coordinates; give "
            f"({start.size},), or leave it out to start at the offset."
        )
    return start if mean is None else mean


def check_key(method: Any, key: Any) -> tuple[Array, ...]:
    """Refuse a missing key where something is drawn; return what `start` needs of it: nothing if the state keeps it.

    >>> import filtax as fx
    >>> check_key(fx.method("LG+C-Static", model=fx.models.linear(noise=1.0)), None)
    ()
    """
    draws = method.posterior.draws
    drawing = [part for part in (method.posterior, method.weighting) if part.needs_key]
    drawing = [method.posterior, *drawing] if draws else drawing
    if not drawing and key is None:
        return ()
    if key is None:
        raise ValueError(f"init: {drawing[0].name} draws at random; give key=jax.random.key(0).")
    if not (isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()):
        raise ValueError(f"init(key=...) must be a single random key, got {key!r:.60}; give key=jax.random.key(0).")
    return (key,) if draws else ()


def check_rows(keep: Sequence[str], X: Any, Y: Any, mask: Any, dt: Any, changed: Any) -> tuple[str, ...]:
    """Check that rows pair up and that what is to be kept exists."""
    if not isinstance(keep, Iterable):
        raise ValueError(f"scan(keep={keep!r:.40}) must name fields, such as ('mean', 'log_evidence'), or be ().")
    keep = (keep,) if isinstance(keep, str) else tuple(keep)
    for name in keep:
        if name not in KEPT:
            raise ValueError(f"scan(keep={name!r:.40}): no such field. {checks.nearest(str(name), KEPT)}")
    if Y is None or Y.ndim == 0:
        raise ValueError("scan: Y has no rows; give arrays with a leading axis T, or use step for a single datum.")
    if not (mask is None and dt is None and changed is None):
        check_extras(mask, dt, changed, rank=1)
    for shown, rows in (("X", X), ("mask", mask), ("dt", dt), ("changed", changed)):
        if rows is not None and (rows.ndim == 0 or rows.shape[0] != Y.shape[0]):
            count = "no" if rows.ndim == 0 else rows.shape[0]
            raise ValueError(
                f"scan: {shown} has {count} rows but Y has {Y.shape[0]}; row t of each must belong together."
            )
    return keep


def check_kept(keep: tuple[str, ...], method: Any) -> None:
    """Refuse to keep the weights of a bank that grows: there is one more of them at each row."""
    if "log_weight" in keep and method.auxiliary.slots_needed(0) is not None:
        name = method.auxiliary.name
        raise ValueError(
            f"scan(keep=log_weight): {name}[inf] has more hypotheses at every row; give {name}[K], which has K."
        )


def check_ahead(X: Any, dt: Any) -> None:
    """Check the rows of a forecast."""
    if X is None or X.ndim == 0 or len(X) == 0:
        raise ValueError("forecast: X_future has no rows; give H rows of x, of any numbers where the model uses none.")
    check_extras(None, dt, None, rank=1)
    if dt is not None and len(dt) != len(X):
        raise ValueError(
            f"forecast: dt has {len(dt)} rows but X_future has {len(X)}; row h of each must belong together."
        )


def warn_of_conditioning(state: State) -> None:
    """Warn when unknown and noise differed by more than the dtype can resolve in one update."""
    conditioning_ratio = checks.concrete(state.conditioning_ratio)
    if conditioning_ratio is None:
        return
    dtype = state.initial.mean.dtype
    worst, eps = float(np.sqrt(np.max(conditioning_ratio))), float(jnp.finfo(dtype).eps)
    if worst > (eps**-0.5 if state.initial.squared else 0.1 / eps):
        warnings.warn(
            f"a datum was {worst:.1g} times more precise than the belief it met, more than {dtype} resolves: the mean "
            "may be far off. Use float64, form=root, scale the features, or start from a smaller cov.",
            ConditioningWarning,
            stacklevel=3,
        )


def warn_of_collapse(state: State) -> None:
    """Warn when the members of an ensemble agree on forecasts that are wrong, or particles are copies of one."""
    collapsed = state.hypotheses.belief.collapsed
    if collapsed is None or not checks.is_concrete(collapsed):
        return
    if np.any(state.initial.collapsed):  # it was certain from the start
        return
    if not np.any(np.asarray(collapsed) & (np.asarray(state.hypotheses.log_weight) > np.log(0.5))):
        return
    warnings.warn(
        f"{_COLLAPSED[type(state.hypotheses.belief).__name__]}, or a prior that moves, such as ACI.",
        CollapseWarning,
        stacklevel=3,
    )
