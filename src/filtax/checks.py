"""Checks at the boundary: what was given, what was expected, what to do. Kernels below check nothing.

Values that are being traced (under `jit`, `vmap`, `grad`) cannot be looked at and pass; shapes are always checked.
"""

import difflib
from collections.abc import Iterable
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

__all__ = [
    "MOST",
    "NUMBERS",
    "REPEATS",
    "concrete",
    "covariance_like",
    "finite",
    "flag",
    "floats",
    "is_concrete",
    "is_plain",
    "key",
    "nearest",
    "numeric",
    "one_or_more",
    "placed",
    "positive",
    "returned",
    "share",
    "whole",
]

MOST = 10_000_000  # of what may be asked for by number, such as hypotheses or particles: more fit into no memory
REPEATS = 10_000  # of an iteration for each datum: it has converged long before, or never will
FLAGS, ROWS = ("mask", "changed"), ("x", "y", "X", "Y", "X_future")  # arguments of True and False; of data
LONG = np.dtype(np.longdouble).char
NUMBERS = "fiubV"  # kinds of dtype; V: the short floats that numpy does not know


def is_concrete(value: Any) -> bool:
    """Say whether the numbers of `value` can be looked at now.

    >>> is_concrete(1.0)
    True
    """
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))


def concrete(value: Any) -> np.ndarray | None:
    """Return `value` as float64 numbers, or None while it is traced.

    >>> concrete([1, 2]).tolist()
    [1.0, 2.0]
    """
    if not is_concrete(value):
        return None
    numbers = np.asarray(value)
    if numbers.dtype.kind in "OSUMmc":  # numpy would read a text as a number, and drop an imaginary part
        raise TypeError(f"{numbers.dtype} holds no real numbers")
    return numbers.astype("float64")


def _numbers(call: str, value: Any, flags: bool = False) -> np.ndarray | None:
    try:
        numbers = concrete(value)
    except (TypeError, ValueError):
        raise ValueError(f"{call} must be a number or an array of numbers, got {_brief(value)}.") from None
    if numbers is not None and (np.ma.is_masked(value) or _dtype(value).char == LONG):
        raise ValueError(f"{call} has masked entries or is a long double, got {_brief(value)}; give float64 numbers.")
    if not flags and _dtype(value) == np.bool_:
        raise ValueError(
            f"{call} must be a number or an array of numbers, got {_brief(value)}; write 1.0 where True means one."
        )
    return numbers


def _dtype(value: Any) -> Any:
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype if is_concrete(value) else None


def is_plain(value: Any) -> bool:
    """Say whether `value` is an array of numpy, without a mask, whose numbers JAX knows.

    >>> is_plain(np.ones(2)), is_plain(np.ones(2, np.longdouble))
    (True, False)
    """
    return type(value) is np.ndarray and value.dtype.kind in NUMBERS and value.dtype.char != LONG


def numeric(name: str, value: Any) -> Any:
    """Turn what a user gives into an array; what already is one passes untouched. Refuse what holds no real numbers.

    What is masked counts as missing, NaN, in data, and is refused elsewhere. Long doubles become doubles.

    >>> numeric("x", [1, 2]).dtype
    dtype('int64')
    >>> numeric("y", np.ma.array([1, 2], mask=[False, True])).tolist()
    [1.0, nan]
    """
    if is_plain(value):
        return value
    array = value
    if hasattr(value, "columns") and hasattr(value, "iloc"):
        array = _table(name, value)
    elif not isinstance(array, np.ndarray | np.generic | jax.Array):
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
    if isinstance(array, np.ma.MaskedArray):
        array = _unmasked(name, array)
    return array.astype(np.float64) if array.dtype.char == LONG else array


def _unmasked(name: str, array: np.ma.MaskedArray) -> np.ndarray:
    """An array without its mask, NaN where that was; refused where nothing may be missing."""
    if not np.ma.is_masked(array):
        return array.data
    if name not in ROWS:
        raise ValueError(f"{name} has masked entries, and none may be missing there; fill them first: a.filled(...).")
    wide = array.data.astype(array.dtype if array.dtype.kind == "f" else np.float64)
    return np.where(array.mask, np.nan, wide)


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
    """Refuse what is neither True nor False: a word such as "no" would count as true.

    >>> flag("predict(plugin=...)", False)
    """
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{call} must be True or False, got {value!r:.40}.")


def one_or_more(call: str, value: Any) -> None:
    """Refuse an array that holds nothing.

    >>> one_or_more("f(q=...)", 0.1)
    """
    if 0 in np.shape(value):
        raise ValueError(f"{call} holds no number, got shape {np.shape(value)}; give a number, or one for each.")


def key(call: str, value: Any) -> None:
    """Refuse what is no random key, or more than one; keys of the older kind, two whole numbers, pass.

    >>> key("sample(key=...)", jax.random.key(0))
    """
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    single = shape == () and isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    if not (single or (dtype == np.uint32 and len(shape or ()) == 1)):
        given = f"{value!r:.60}" if shape is None else f"{dtype} of shape {shape}"
        raise ValueError(f"{call} must be a single random key, got {given}; give jax.random.key(0).")


def returned(call: str, value: Any) -> jax.Array:
    """What a function of the user's has returned, as an array; refused if it holds no numbers.

    >>> returned("nonlinear: h", [1.0, 2.0]).shape
    (2,)
    """
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError):
        raise ValueError(f"{call} returned {value!r:.60}; it must return a number or an array of numbers.") from None


def placed(value: Any) -> jax.Array:
    """Numbers as an array of JAX. Those of numpy are put there: `jnp.asarray` would load a program for each new shape.

    >>> placed(np.ones(2)).tolist()
    [1.0, 1.0]
    """
    return jax.device_put(value) if isinstance(value, np.ndarray | np.generic) else jnp.asarray(value)


def floats(value: Any) -> jax.Array:
    """Numbers as an array of floats; what is one passes as it is.

    >>> floats([1, 2]).tolist()
    [1.0, 2.0]
    """
    array = placed(value)
    return array if jnp.issubdtype(array.dtype, jnp.inexact) else array.astype(jnp.result_type(float))


def finite(call: str, value: Any, *, flags: bool = False) -> None:
    """Refuse a NaN or an infinity, and True and False unless `flags` are allowed, as among features.

    >>> finite("f(mean=...)", [1.0, 2.0])
    """
    numbers = _numbers(call, value, flags)
    if numbers is not None and not np.all(np.isfinite(numbers)):
        raise ValueError(f"{call} must be finite, got {_show(numbers)}; replace NaN and infinity first.")


def positive(call: str, value: Any, *, zero: bool = False, hint: str = "") -> None:
    """Refuse numbers below zero (and zero itself unless allowed), NaN and infinity.

    >>> positive("f(q=...)", 0.0, zero=True)
    """
    numbers = _numbers(call, value)
    if numbers is None:
        return
    if not (np.all(np.isfinite(numbers)) and np.all(numbers >= 0.0) and (zero or np.all(numbers > 0.0))):
        wanted = "at least 0" if zero else "above 0"
        raise ValueError(f"{call} must be finite and {wanted}, got {_show(numbers)}.{_tail(hint)}")


def share(call: str, value: Any, *, flags: bool = False, hint: str = "") -> None:
    """Refuse numbers outside [0, 1], and True and False unless `flags` are allowed, as among probabilities.

    >>> share("f(hazard=...)", 0.01)
    """
    numbers = _numbers(call, value, flags)
    if numbers is not None and not (np.all(numbers >= 0.0) and np.all(numbers <= 1.0)):
        raise ValueError(f"{call} must lie in [0, 1], got {_show(numbers)}.{_tail(hint)}")


def whole(call: str, value: Any, *, least: int = 0, most: int = MOST, hint: str = "") -> None:
    """Refuse what is not a whole number of at least `least` and at most `most`.

    >>> whole("f(keep=...)", 3, least=1)
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{call} must be a whole number of at least {least}, got {value!r:.40}.{_tail(hint)}")
    if value > most:
        raise ValueError(f"{call} must be a whole number of at most {most}, got {value!r:.40}.{_tail(hint)}")


def covariance_like(call: str, value: Any, *, singular: bool, hint: str = "") -> None:
    """Check a variance, a vector of variances or a covariance matrix; `singular` allows zero variance.

    >>> covariance_like("f(cov=...)", [[2.0, 0.0], [0.0, 1.0]], singular=False)
    """
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
            f"covariance A @ A.T, or variances.{_tail(hint)}"
        )


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest the known name closest to `name`, as a sentence, or list them all.

    >>> nearest("Statik", ["Static", "OU"])
    'Did you mean "Static"?'
    """
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
    shape = getattr(value, "shape", None)
    if shape:
        return f"{getattr(value, 'dtype', type(value).__name__)} of shape {shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _tail(hint: str) -> str:
    return f" {hint}" if hint else ""
