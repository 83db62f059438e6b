"""The border between the user and the compiled core: checks of values and names, once, each with a sentence."""

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from filtax import checks
from filtax.layout import Layout, flatten
from filtax.state import INFO, ConditioningWarning, State

__all__ = [
    "arrays",
    "check_ahead",
    "check_extras",
    "check_parts",
    "check_rows",
    "check_start",
    "check_state",
    "check_support",
    "datum",
    "require_key",
    "spell",
    "warn_of_strain",
]

KEPT = (*INFO, "belief_mean", "belief_var", "belief_cov")
PARTS = {"model": "likelihood", "auxiliary": "expand", "prior": "drift", "posterior": "update", "weighting": "__call__"}
RANKS = {"q": 1, "rate": 1, "shrink": 1, "b": 1, "F": 2, "root": 2}  # of the arrays that a drift may hold, at most


def arrays(**values: Any) -> list[Any]:
    """Turn what a user gives into arrays; what already is one passes untouched.

    >>> arrays(x=[1, 2], mask=None)[0].dtype
    dtype('int64')
    """
    return [value if value is None else _array(name, value) for name, value in values.items()]


def _array(name: str, value: Any) -> Any:
    array = value
    if not isinstance(array, np.ndarray | np.generic | jax.Array):
        try:
            array = np.asarray(value)
        except (ValueError, TypeError):
            array = np.asarray(None)
    if array.dtype.kind not in "fiubV":  # V: the short floats that numpy does not know
        raise ValueError(f"{name} must hold numbers, got {value!r:.80}; give a number, a list of numbers or an array.")
    return array


def datum(x: Any, y: Any, mask: Any, dt: Any, changed: Any) -> list[Any]:
    """Turn one row into arrays.

    >>> [part is None for part in datum([1.0], 2.0, None, None, None)]
    [False, False, True, True, True]
    """
    if y is None:
        raise ValueError("step: y is None; give a number, or NaN where it is missing.")
    row = arrays(x=x, y=y, mask=mask, dt=dt, changed=changed)
    if not (mask is None and dt is None and changed is None):
        check_extras(*row[2:], rank=0)
    return row


def check_state(verb: str, state: Any) -> None:
    """Refuse what is no state; a pair that was not unpacked is the likely slip."""
    if not isinstance(state, State):
        hint = "unpack it: state, info = ..." if isinstance(state, tuple) else "begin with state = method.init(...)"
        raise ValueError(f"{verb}: the state is a {type(state).__name__}; {hint}.")


def check_extras(mask: Any, dt: Any, changed: Any, rank: int) -> None:
    """Check what may come with a row (rank 0) or with many (rank 1)."""
    for shown, flags in (("mask", mask), ("changed", changed)):
        if flags is not None and flags.dtype.kind != "b":
            raise ValueError(f"{shown} must hold True and False, got {flags.dtype}; write {shown}.astype(bool).")
    for shown, value in (("dt", dt), ("changed", changed)):
        if value is not None and value.ndim != rank:
            wanted = "one value for each row" if rank else "a single value"
            raise ValueError(f"{shown} must be {wanted}, got shape {value.shape}.")
    if dt is not None:
        checks.positive("dt", dt, zero=True, hint="It is the length of a tick of time.")


def require_key(method: Any, key: Any) -> None:
    """Refuse to start without a key what draws samples."""
    if key is None and getattr(method.posterior, "needs_key", False):
        name = method.posterior.name
        raise ValueError(f"init: {name} draws samples and has no key; give init(..., key=jax.random.key(0)).")


def check_parts(method: Any) -> None:
    """Refuse parts that cannot work together."""
    for role, verb in PARTS.items():
        part = getattr(method, role)
        if not hasattr(part, verb):
            raise ValueError(
                f"Bone({role}=...) got {part!r:.40}, which has no `{verb}`; a method needs all five parts, see "
                "filtax.method for ready ones."
            )
    model, posterior = method.model, method.posterior
    if not hasattr(method.prior.drift, "needs"):
        raise ValueError(
            f"method(prior=...) must come from filtax.priors, such as static(), got {method.prior.drift!r:.40}."
        )
    if getattr(posterior, "needs_covariance", False) and not hasattr(model.likelihood, "covariance"):
        raise ValueError(
            f"{posterior.name}: the noise variance can only be learned under Gaussian noise, not "
            f"{type(model.likelihood).__name__}; give the model noise=1.0."
        )
    for operation in method.prior.drift.needs:
        for family in posterior.families:
            if not hasattr(family, operation):
                raise ValueError(
                    f"{posterior.name}+...-{method.prior.drift.name}: a {family.__name__} belief cannot drift that way "
                    f"(no `{operation}`); use Static or OU."
                )


def check_support(method: Any, belief: PyTree) -> None:
    """Refuse a prior whose numbers do not fit the number of parameters."""
    D = belief.mean.size
    drift = method.prior.drift
    for name, rank in RANKS.items():
        value = getattr(drift, name, None)
        shape = () if value is None else np.shape(value)
        if len(shape) > rank or shape not in ((), (1,), (D,), (D, D)):
            shown, fits = "Q" if name == "root" else name, f"({D},)" if rank == 1 else f"({D},) or ({D}, {D})"
            raise ValueError(
                f"{drift.name}({shown}=...) has shape {shape} but the belief has D = {D} parameters; "
                f"give a number or {fits}."
            )


def check_start(method: Any, mean: Any, cov: Any, params: PyTree) -> tuple[Array, Array, Layout | None]:
    """Check the initial belief, flatten it, and settle the dtype."""
    if (mean is None) == (params is None):
        given = "neither" if mean is None else "both"
        raise ValueError(f"init: give mean=... (a vector) or params=... (a pytree), got {given}.")
    layout = None
    if params is not None:
        mean, layout = flatten(params)
    mean = jnp.asarray(arrays(mean=mean)[0])
    floating = jnp.issubdtype(mean.dtype, jnp.floating)
    mean = jax.lax.convert_element_type(mean, mean.dtype if floating else jnp.result_type(float))
    mean = mean[None] if mean.ndim == 0 else mean
    if mean.ndim != 1 or mean.size == 0:
        raise ValueError(
            f"init(mean=...) must be a vector (D,), got shape {mean.shape}; give a matrix or a pytree as params=."
        )
    checks.finite("init(mean=...)" if layout is None else "init(params=...)", mean)
    cov = jnp.asarray(arrays(cov=cov)[0])
    checks.covariance_like("init(cov=...)", cov, singular=True)
    if cov.ndim and cov.shape[0] != mean.size:
        raise ValueError(
            f"init: mean has D = {mean.size} parameters but cov has shape {cov.shape}; give a variance, (D,) or (D, D)."
        )
    cov = cov.astype(mean.dtype)
    checks.finite(f"init(cov=...) as {mean.dtype}", cov)
    check = getattr(method.posterior, "check_start", None)
    if check is not None:
        check(mean, cov)
    return mean, jnp.broadcast_to(cov, mean.shape) if cov.ndim == 0 else cov, layout


def check_rows(keep: Sequence[str], X: Any, Y: Any, mask: Any, dt: Any, changed: Any) -> tuple[str, ...]:
    """Check that rows pair up and that what is to be kept exists."""
    keep = (keep,) if isinstance(keep, str) else tuple(keep)
    for name in keep:
        if name not in KEPT:
            raise ValueError(f"scan(keep={name!r}): no such field. {checks.nearest(name, KEPT)}")
    if Y is None or Y.ndim == 0:
        raise ValueError("scan: Y has no rows; give arrays with a leading axis T, or use step for a single datum.")
    check_extras(mask, dt, changed, rank=1)
    for shown, rows in (("X", X), ("mask", mask), ("dt", dt), ("changed", changed)):
        if rows is not None and (rows.ndim == 0 or rows.shape[0] != Y.shape[0]):
            count = "no" if rows.ndim == 0 else rows.shape[0]
            raise ValueError(
                f"scan: {shown} has {count} rows but Y has {Y.shape[0]}; row t of each must belong together."
            )
    return keep


def check_ahead(X: Any, dt: Any) -> None:
    """Check the rows of a forecast."""
    if X is None or X.ndim == 0 or len(X) == 0:
        raise ValueError("forecast: X_future has no rows; give H rows of x, of any numbers where the model uses none.")
    check_extras(None, dt, None, rank=1)
    if dt is not None and len(dt) != len(X):
        raise ValueError(
            f"forecast: dt has {len(dt)} rows but X_future has {len(X)}; row h of each must belong together."
        )


def warn_of_strain(state: State) -> None:
    """Warn when unknown and noise differed by more than the dtype can resolve in one update."""
    strain = checks.concrete(state.strain)
    if strain is None:
        return
    dtype = state.initial.mean.dtype
    worst = float(np.sqrt(np.max(strain)))
    if worst > 0.1 / float(jnp.finfo(dtype).eps):
        warnings.warn(
            f"a datum was {worst:.1g} times more precise than the belief it met, more than {dtype} resolves: the mean "
            "may be far off. Use float64, scale the features, or start from a smaller cov.",
            ConditioningWarning,
            stacklevel=3,
        )


def spell(method: Any) -> str:
    """Spell a method's name in the grammar `POSTERIOR+AUX-PRIOR`."""
    return f"{_spell(method.posterior)}+{_spell(method.auxiliary)}-{_spell(method.prior.drift)}"


def _spell(part: Any) -> str:
    """Name of a part, with the settings that differ from its defaults and fit into a name."""
    settings = []
    for name, default in part.shown.items():
        value = getattr(part, name)
        if isinstance(value, str | int | float) and value != default:
            settings.append(f"{name}={value}")
    return part.name + (f"({', '.join(settings)})" if settings else "")
