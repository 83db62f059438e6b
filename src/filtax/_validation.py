"""Checks between the user and the compiled core: what was given, what was expected, what to do, in one sentence.

First values, then the arguments of the verbs of `Bone`. Values that are being traced (under `jit`, `vmap`, `grad`)
cannot be looked at and pass; shapes are always checked.
"""

import difflib
import warnings
from collections.abc import Iterable
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from filtax.ravel import Layout, flatten
from filtax.state import INFO, CollapseWarning, ConditioningWarning, State

MOST = 10_000_000  # of what may be asked for by number, such as hypotheses or particles: more fit into no memory
REPEATS = 10_000  # of an iteration for each datum: it has converged long before, or never will
FLAGS, ROWS = ("mask", "changed"), ("x", "y", "X", "Y", "X_future")  # arguments of True and False; of data
RANKS = {"q": 1, "rate": 1, "shrink": 1, "b": 1, "F": 2, "root": 2}  # of the arrays that dynamics may hold, at most
LONG = np.dtype(np.longdouble).char
ARRAYS = (np.ndarray, np.generic, jax.Array)
NUMBERS = "fiubV"  # kinds of dtype; V: the short floats that numpy does not know


def is_concrete(value: Any) -> bool:
    """Say whether the numbers of `value` can be looked at now."""
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))


def concrete(value: Any) -> np.ndarray | None:
    """Return `value` as float64 numbers, or None while it is traced."""
    if not is_concrete(value):
        return None
    numbers = np.asarray(value)
    if numbers.dtype.kind in "OSUMmc":  # numpy would read a text as a number, and drop an imaginary part
        raise TypeError(f"{numbers.dtype} holds no real numbers")
    return numbers.astype("float64")


def _numbers(call: str, value: Any, flags: bool = False) -> np.ndarray | None:
    """The numbers of a setting, None while it is traced; True and False are none unless they are allowed."""
    wanted = f"{call} must be a number or an array of numbers"
    try:
        numbers = concrete(value)
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}, got {_brief(value)}.") from None
    dtype = _dtype(value)
    if numbers is not None and (np.ma.is_masked(value) or dtype.char == LONG):
        raise ValueError(f"{call} has masked entries or is a long double, got {_brief(value)}; give float64 numbers.")
    if not flags and dtype == np.bool_:
        raise ValueError(f"{wanted}, got {_brief(value)}; write 1.0 where True means one.")
    return numbers


def _dtype(value: Any) -> Any:
    return value.dtype if isinstance(value, ARRAYS) else np.asarray(value).dtype if is_concrete(value) else None


def numeric(name: str, value: Any) -> Any:
    """Turn what a user gives into an array; what already is one passes untouched. Refuse what holds no real numbers.

    What is masked counts as missing, NaN, in data, and is refused elsewhere. Long doubles become doubles.
    """
    if isinstance(value, ARRAYS):
        array = value
    elif hasattr(value, "iloc") and value.ndim == 2:
        array = _table(name, value)
    else:
        try:
            array = np.asarray(value) if is_concrete(value) else jnp.asarray(value)
        except (ValueError, TypeError):
            array = np.asarray(None)
    if array.dtype.kind not in NUMBERS:
        wanted, give = "numbers", "a number, a list of numbers or an array"
        if name in FLAGS:
            wanted, give = "True and False", "one of them, or an array of them"
        missing = ", NaN for what is missing" if name in ROWS else ""
        raise ValueError(f"{name} must hold {wanted}, got {_brief(value)}; give {give}{missing}.")
    if array.dtype.char == LONG:
        array = array.astype(np.float64)
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if not np.ma.is_masked(array):
        return array.data
    if name not in ROWS:
        raise ValueError(f"{name} has masked entries, and none may be missing there; fill them first: a.filled(...).")
    return np.ma.filled(array.astype(array.dtype if array.dtype.kind == "f" else np.float64), np.nan)


def _table(name: str, value: Any) -> np.ndarray:
    """The columns of a table side by side, yes and no as 1 and 0; of several kinds, it would be an array of objects."""
    columns = [np.asarray(value.iloc[:, at]) for at in range(value.shape[1])]
    for title, column in zip(value.columns, columns, strict=True):
        if column.dtype.kind not in NUMBERS:
            raise ValueError(
                f"{name} must hold numbers, but its column {title!r} holds {column.dtype}; leave it out, or make "
                "numbers of it (missing ones are NaN)."
            )
    return np.column_stack(columns) if columns else np.asarray(value)


def flag(call: str, value: Any) -> None:
    """Refuse what is neither True nor False: a word such as "no" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{call} must be True or False, got {value!r:.40}.")


def one_or_more(call: str, value: Any) -> None:
    """Refuse an array that holds nothing."""
    if 0 in np.shape(value):
        raise ValueError(f"{call} holds no number, got shape {np.shape(value)}; give a number, or one for each.")


def key(call: str, value: Any, *, older: bool = True) -> None:
    """Refuse what is no random key, or more than one; keys of the `older` kind, two whole numbers, pass if they may."""
    dtype, shape = (value.dtype, value.shape) if isinstance(value, ARRAYS) else (None, None)
    single = shape == () and isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    if not (single or (older and dtype == np.uint32 and len(shape or ()) == 1)):
        given = f"{value!r:.60}" if shape is None else f"{dtype} of shape {shape}"
        raise ValueError(f"{call} must be a single random key, got {given}; give jax.random.key(0).")


def returned(call: str, value: Any) -> jax.Array:
    """What a function of the user's has returned, as an array; refused if it holds no numbers."""
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError):
        raise ValueError(f"{call} returned {value!r:.60}; it must return a number or an array of numbers.") from None


def placed(value: Any) -> jax.Array:
    """Numbers as an array of JAX; those of numpy are put there, as `jnp.asarray` loads a program for each new shape."""
    return jax.device_put(value) if isinstance(value, np.ndarray | np.generic) else jnp.asarray(value)


def floats(value: Any) -> jax.Array:
    """Numbers as an array of floats; what is one passes as it is."""
    array = placed(value)
    return array if jnp.issubdtype(array.dtype, jnp.inexact) else array.astype(jnp.result_type(float))


def finite(call: str, value: Any, *, flags: bool = False) -> None:
    """Refuse a NaN or an infinity, and True and False unless `flags` are allowed, as among features."""
    numbers = _numbers(call, value, flags)
    if numbers is not None and not np.all(np.isfinite(numbers)):
        raise ValueError(f"{call} must be finite, got {_show(numbers)}; replace NaN and infinity first.")


def positive(call: str, value: Any, *, zero: bool = False, hint: str = "") -> None:
    """Refuse numbers below zero (and zero itself unless allowed), NaN and infinity."""
    numbers = _numbers(call, value)
    if numbers is None:
        return
    if not (np.all(np.isfinite(numbers)) and np.all(numbers >= 0.0) and (zero or np.all(numbers > 0.0))):
        wanted = "at least 0" if zero else "above 0"
        raise ValueError(f"{call} must be finite and {wanted}, got {_show(numbers)}. {hint}".rstrip())


def share(call: str, value: Any, *, flags: bool = False, hint: str = "") -> None:
    """Refuse numbers outside [0, 1], and True and False unless `flags` are allowed, as among probabilities."""
    numbers = _numbers(call, value, flags)
    if numbers is not None and not (np.all(numbers >= 0.0) and np.all(numbers <= 1.0)):
        raise ValueError(f"{call} must lie in [0, 1], got {_show(numbers)}. {hint}".rstrip())


def whole(call: str, value: Any, *, least: int = 0, most: int = MOST, hint: str = "") -> None:
    """Refuse what is not a whole number of at least `least` and at most `most`."""
    number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (number and least <= value <= most):
        bound = f"at most {most}" if number and value > most else f"at least {least}"
        raise ValueError(f"{call} must be a whole number of {bound}, got {value!r:.40}. {hint}".rstrip())


def covariance_like(call: str, value: Any, *, singular: bool, hint: str = "") -> None:
    """Check a variance, a vector of variances or a covariance matrix; `singular` allows zero variance."""
    numbers = _numbers(call, value)
    shape = np.shape(value)
    if len(shape) > 2 or (len(shape) == 2 and shape[0] != shape[1]):
        raise ValueError(f"{call} must be a variance, a vector of variances or a square matrix, got shape {shape}.")
    one_or_more(call, value)
    if len(shape) < 2:
        return positive(call, value, zero=singular, hint=hint)
    if numbers is None:
        return None
    finite(call, numbers)
    unit = np.sqrt(np.abs(np.diag(numbers)))
    unit = np.where(unit > 0.0, unit, 1.0)
    scaled = numbers / unit[:, None] / unit  # what is tiny in one unit may be large in another
    if not np.allclose(scaled, scaled.T, rtol=0.0, atol=1e-5 * np.abs(scaled).max()):
        raise ValueError(
            f"{call} must be symmetric; entries differ by up to {np.abs(numbers - numbers.T).max():.3g}. If that is "
            "rounding, give 0.5 * (A + A.T)."
        )
    lowest = np.linalg.eigvalsh(0.5 * (scaled + scaled.T))[0]
    eps = float(np.finfo("float64" if np.asarray(value).dtype == np.float64 else "float32").eps)
    # what may be singular may be so by rounding; what must not be needs more than rounding can make up
    if lowest < -1000 * len(numbers) * eps or (not singular and lowest <= 64 * len(numbers) * eps):
        wanted = "positive semidefinite" if singular else "positive definite"
        raise ValueError(
            f"{call} must be {wanted}, but in units of its variances its smallest eigenvalue is {lowest:.3g}; give a "
            f"covariance A @ A.T, or variances. {hint}".rstrip()
        )


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest the known name closest to `name`, as a sentence, or list them all."""
    known = list(known)
    close = difflib.get_close_matches(name.lower(), [k.lower() for k in known], 1)
    match = [k for k in known if close and k.lower() == close[0]]
    return f'Did you mean "{match[0]}"?' if match else f"Known: {', '.join(known)}."


def _show(numbers: np.ndarray) -> str:
    if numbers.size <= 4:
        return str(numbers.tolist())
    bad = numbers[~np.isfinite(numbers)]
    return (
        f"an array of shape {numbers.shape} with {'non-finite entries' if bad.size else f'minimum {numbers.min():.3g}'}"
    )


def _brief(value: Any) -> str:
    """What was given, on one line: an array by its kind and shape, anything else by its first letters."""
    if shape := getattr(value, "shape", None):
        return f"{value.dtype if isinstance(value, ARRAYS) else type(value).__name__} of shape {shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


KEPT = (*INFO, "belief_mean", "belief_var", "belief_cov", "log_weight")
_COLLAPSED = {
    "Ensemble": "the ensemble has collapsed: its members agree on forecasts that are wrong. Use more members than "
    "parameters, inflation=1.05",
    "Particles": "the particles have collapsed: nearly all are copies of one. Use more of them, shrink=0.98",
    "Marginalised": "the particles have collapsed: nearly all the weight is on one. Use more of them",
}


VERBS = ("step", "scan", "predict", "forecast", "belief")  # of a method, that map over states


def arrays(**values: Any) -> list[Any]:
    """Turn what a user gives into arrays; what already is one passes untouched."""
    return [value if value is None else numeric(name, value) for name, value in values.items()]


def datum(x: Any, y: Any, mask: Any, dt: Any, changed: Any, belief: PyTree) -> tuple[Any, ...]:
    """Turn one row into arrays; y = 1, 1.0 and `jnp.asarray(1.0)`, a suggested dtype to JAX, share one program."""
    if type(y) is float or (type(y) is int and y.bit_length() < 1000):
        y = np.float64(y)
    elif y is None:
        raise ValueError("step: y is None; give a number, or NaN where it is missing.")
    elif isinstance(y, jax.Array) and y.weak_type and not isinstance(y, jax.core.Tracer):
        y = np.asarray(y)
    x, y = None if x is None else numeric("x", x), numeric("y", y)
    if not (mask is None and dt is None and changed is None):
        mask, dt, changed = arrays(mask=mask, dt=dt, changed=changed)
        check_extras(mask, dt, changed, rank=0, verb="step", belief=belief)
    return x, y, mask, dt, changed


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
    if slots != wanted and not method.auxiliary.grows:
        raise ValueError(
            f"{verb}: the state has {slots} hypotheses but {method.name} keeps {wanted}; begin with state = "
            "method.init(...) of this method."
        )


def check_extras(mask: Any, dt: Any, changed: Any, rank: int, verb: str = "", belief: PyTree = None) -> None:
    """Check what may come with a row (rank 0) or with many (rank 1), and that the dtype of a belief holds dt."""
    for shown, flags in (("mask", mask), ("changed", changed)):
        if flags is not None and flags.dtype.kind != "b":
            raise ValueError(f"{shown} must hold True and False, got {flags.dtype}; write {shown} != 0.")
    for shown, value in (("dt", dt), ("changed", changed)):
        if value is not None and value.ndim != rank:
            wanted = "one value for each row" if rank else "a single value"
            give = "give shape (T,)" if rank else "give one of them, or many rows to scan"
            raise ValueError(f"{shown} must be {wanted}, got shape {value.shape}; {give}.")
    if dt is not None:
        positive("dt", dt, zero=True, hint="It is the length of a time step.")
        if belief is not None:
            _check_fit(f"{verb}(dt=...)", dt, belief.mean.dtype)


def check_start(method: Any, mean: Any, cov: Any, params: PyTree) -> tuple[Array, Any, Layout | None]:
    """Check the initial belief, flatten it, and settle the dtype; a posterior of blocks has a covariance for each."""
    start = method.model.predictor.begin()
    if start is not None:
        mean = _coordinates(start, mean, params)
    if (mean is None) == (params is None):
        given = "neither" if mean is None else "both"
        raise ValueError(f"init: give mean=... (a vector) or params=... (a pytree), got {given}.")
    if params is None:
        mean, layout, call, several = numeric("mean", mean), None, "init(mean=...)", "a vector (D,)"
    else:
        (mean, layout), call, several = flatten(params), "init(params=...)", "arrays"
    finite(call, mean)
    mean = floats(mean)
    mean = mean[None] if mean.ndim == 0 else mean
    if mean.size == 0:
        raise ValueError(f"{call} is empty, got shape {mean.shape}; give {several} with a number for each parameter.")
    if mean.ndim != 1:
        raise ValueError(
            f"init(mean=...) must be a vector (D,), got shape {mean.shape}; give a matrix or a pytree as params=."
        )
    blocks = method.posterior.block_covariances(cov, mean) if isinstance(cov, tuple) else None
    cov = _covariance(cov, mean) if blocks is None else blocks
    method.posterior.check_start(mean, cov)
    return mean, cov, layout


def _covariance(cov: Any, mean: Array) -> Array:
    """The prior covariance in the dtype of the mean: (D,) variances or (D, D)."""
    if cov is None:
        raise ValueError(
            "init: cov is None; give a variance, (D,) variances or a (D, D) matrix, or leave it out for 1."
        )
    cov = placed(numeric("cov", cov))
    covariance_like("init(cov=...)", cov, singular=True, hint="A variance of 0 is that of a number that is known.")
    if cov.ndim and cov.shape[0] != mean.size:
        raise ValueError(
            f"init: mean has D = {mean.size} parameters but cov has shape {cov.shape}; give a variance, (D,) or (D, D)."
        )
    cov = cov.astype(mean.dtype)
    finite(f"init(cov=...) as {mean.dtype}", cov)
    return cov if cov.ndim else jnp.broadcast_to(cov, mean.shape)


def _coordinates(start: Array, mean: Any, params: PyTree) -> Any:
    """Where a filter starts that moves along the directions of a subspace: at its offset, if nothing is given."""
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


def check_key(method: Any, given: Any) -> tuple[Array, ...]:
    """Refuse a missing key where something is drawn; return what `start` needs of it: nothing if the state keeps it."""
    draws = method.posterior.draws
    drawing = [part for part in (method.posterior, method.weighting) if part.needs_key]
    drawing = [method.posterior, *drawing] if draws else drawing
    if not drawing and given is None:
        return ()
    if given is None:
        raise ValueError(f"init: {drawing[0].name} draws at random; give key=jax.random.key(0).")
    key("init(key=...)", given, older=False)
    return (given,) if draws else ()


def check_rows(verb: str, shown: str, rows: Any, hint: str, least: int = 0, **others: Any) -> None:
    """Refuse what has no rows, or fewer than `least`, and other arrays that have not as many."""
    if rows is None or rows.ndim == 0 or len(rows) < least:
        raise ValueError(f"{verb}: {shown} has no rows; {hint}.")
    for name, other in others.items():
        if other is not None and (other.ndim == 0 or len(other) != len(rows)):
            count = len(other) if other.ndim else "no"
            raise ValueError(
                f"{verb}: {name} has {count} rows but {shown} has {len(rows)}; row t of each must belong together."
            )


def check_kept(keep: Any, method: Any) -> tuple[str, ...]:
    """Names of the fields to keep; not the weights of a bank that grows: there is one more of them at each row."""
    if not isinstance(keep, Iterable):
        raise ValueError(f"scan(keep={keep!r:.40}) must name fields, such as ('mean', 'log_evidence'), or be ().")
    keep = (keep,) if isinstance(keep, str) else tuple(keep)
    for name in keep:
        if name not in KEPT:
            raise ValueError(f"scan(keep={name!r:.40}): no such field. {nearest(str(name), KEPT)}")
    if "log_weight" in keep and method.auxiliary.grows:
        name = method.auxiliary.name
        raise ValueError(
            f"scan(keep=log_weight): {name}[inf] has more hypotheses at every row; give {name}[K], which has K."
        )
    return keep


def warn_of_conditioning(state: State) -> None:
    """Warn when unknown and noise differed by more than the dtype can resolve in one update."""
    conditioning_ratio = concrete(state.conditioning_ratio)
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
    if collapsed is None or not is_concrete(collapsed):
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


def check_sizes(method: Any, belief: PyTree) -> None:
    """Refuse dynamics whose numbers do not fit the number of parameters."""
    for dynamics, part, experts in method.prior.dynamics.by_part(belief):
        D = part.mean.size
        for name, value in vars(dynamics).items():
            rank, shape = RANKS.get(name, 0), np.shape(value)[experts:] if name in RANKS and value is not None else ()
            if len(shape) > rank or shape not in ((), (1,), (D,), (D, D)):
                shown, fits = "Q" if name == "root" else name, f"({D},)" if rank == 1 else f"({D},) or ({D}, {D})"
                raise ValueError(
                    f"{dynamics.name}({shown}=...) has shape {shape} but the belief has D = {D} parameters; give a "
                    f"number or {fits}."
                )


def check_numbers(method: Any, dtype: Any) -> None:
    """Refuse settings of a method that the dtype of its beliefs does not hold."""
    for path, value in jax.tree_util.tree_leaves_with_path(method):
        wider = _dtype(value) != dtype and jnp.issubdtype(_dtype(value), jnp.floating)
        if wider or isinstance(value, int | float):
            _check_fit(f"init: {method.name}: {jax.tree_util.keystr(path).lstrip('.')}", value, dtype)


def _check_fit(call: str, value: Any, dtype: Any) -> None:
    """Refuse finite numbers that would be infinite in this dtype."""
    numbers, most = concrete(value), float(jnp.finfo(dtype).max)
    size = 0.0 if numbers is None else np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)
    if size > most:
        raise ValueError(
            f"{call} is too large for {dtype}, got {size:.3g}; give at most {most:.2g}, or init(mean=...) of a wider "
            "dtype."
        )
