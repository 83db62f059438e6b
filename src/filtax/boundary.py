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
    for part in (method.prior.drift, method.prior):
        for operation in getattr(part, "needs", ()):
            for family in posterior.families:
                if not hasattr(family, operation):
                    raise ValueError(
                        f"{posterior.name}+...-{part.name}: a {family.__name__} belief cannot move that way "
                        f"(no `{operation}`); use Static, OU or PR."
                    )
    _check_transition(method)


def _check_transition(method: Any) -> None:
    """Refuse a prior that does not suit the auxiliary variable."""
    auxiliary, prior = method.auxiliary, method.prior
    newborns = hasattr(auxiliary, "keep")
    if getattr(prior, "greedy", False) and newborns and auxiliary.keep != 1:
        raise ValueError(
            f"{_spell_auxiliary(auxiliary)}-{prior.name}: {prior.name} decides between going on and starting anew, so "
            f"there is one hypothesis; use {auxiliary.name}[1]-{prior.name}."
        )
    if getattr(prior, "name", "") == "OUPR" and not newborns:
        raise ValueError(f"{auxiliary.name}-OUPR: OUPR needs a hazard; use RL[1]-OUPR(hazard=0.01).")
    if getattr(prior, "of_parent", False) and not hasattr(auxiliary, "merge"):
        raise ValueError(
            f"{auxiliary.name}-{prior.name}: a change must know whom it happened to; use CPL[K] or CPT[K]."
        )
    if newborns and not hasattr(prior, "name"):
        raise ValueError(
            f"{auxiliary.name}-{prior.drift.name}: a new regime needs a prior of its own; use PR, MMPR, OUPR or MCI, "
            f"and give the drift between changes as prior=."
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
    """Spell a name in the grammar `[TRUST+]POSTERIOR+AUX[K]-PRIOR`; the hazard stands with the prior.

    After a trust, LG is not said.
    """
    prior = method.prior if hasattr(method.prior, "name") else method.prior.drift
    transition = f"{_spell_auxiliary(method.auxiliary)}-{_spell(prior, _hazard(method.auxiliary))}"
    parts = [_spell(method.posterior), transition]
    trust = getattr(method.model.likelihood, "trust", None)
    if trust is not None:
        parts = [_spell(trust), *(parts[1:] if parts[0] == "LG" else parts)]
    return "+".join(parts)


def _hazard(auxiliary: Any) -> list[str]:
    rate = getattr(getattr(auxiliary, "hazard", None), "rate", None)
    return [f"hazard={rate}"] if isinstance(rate, int | float) else []


def _spell_auxiliary(auxiliary: Any) -> str:
    name, inner = auxiliary.name, getattr(auxiliary, "inner", None)
    law = getattr(auxiliary, "hazard", None)
    settings = f"(a={law[0]}, b={law[1]})" if isinstance(law, tuple) else ""
    if hasattr(auxiliary, "keep"):
        name += f"[{'inf' if auxiliary.keep is None else auxiliary.keep}]{settings}"
    elif auxiliary.slots > 1:
        name += f"[{auxiliary.slots}]"
    return name if inner is None else f"{name}/{inner.name}[{inner.slots}]"


def _spell(part: Any, first: list[str] | None = None) -> str:
    """Name of a part, with the settings that differ from its defaults and fit into a name."""
    settings = list(first or [])
    for name, default in getattr(part, "shown", {}).items():
        value = getattr(part, name)
        if isinstance(value, str | int | float) and value != default:
            settings.append(f"{name}={value}")
    name = getattr(part, "name", None) or f"WoLF-{type(part).__name__}"  # a trust of the user's own
    return name + (f"({', '.join(settings)})" if settings else "")
