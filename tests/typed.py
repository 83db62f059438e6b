"""How annotations are checked in tests: by beartype, with jaxtyping's shapes, for little.

jaxtyping's own decorator makes two functions for each of ours when it is imported, binds every call to a signature, and
looks at the arguments before the call and again after it: a quarter of the time of the tests went there. Here a check
is made when it is first needed, and looks once at each argument and at the result, in one context of axis names a call;
a function that tells of no arrays needs no context either.
"""

import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

import equinox
import jaxtyping
from beartype import BeartypeConf, beartype

_axes = jaxtyping.jaxtyped("context")
_beartype = beartype(conf=BeartypeConf(violation_type=jaxtyping.TypeCheckError))


def install(*packages: str) -> None:
    """Check every function in modules of these packages that are imported from now on."""
    jaxtyping.install_import_hook(packages, "beartype.beartype")
    plain = jaxtyping.jaxtyped  # the hook writes it above each function, with a keyword alone
    jaxtyping.jaxtyped = lambda *given, **keywords: plain(*given, **keywords) if given else checked


def checked(what: Any) -> Any:
    """Check calls of a function, or of an `equinox.Module`; registered dataclasses hold placeholders, too."""
    if not inspect.isclass(what):
        return _function(what)
    if issubclass(what, equinox.Module) and not hasattr(what.__init__, "__wrapped__"):
        what.__init__ = _function(what.__init__)
    return what


def _function(f: types.FunctionType) -> Callable[..., Any]:
    if not f.__annotations__:
        return f
    check = functools.cache(lambda: _check(f))

    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        if jaxtyping.config.jaxtyping_disable:
            return f(*args, **kwargs)
        looking, at_arrays = check()
        if not at_arrays:
            return looking(*args, **kwargs)
        with _axes:
            return looking(*args, **kwargs)

    return wrapped


def _check(f: types.FunctionType) -> tuple[Callable[..., Any], bool]:
    """A twin of the function that beartype looks at, and whether it looks at arrays."""
    hints = {name: _known(hint, f.__globals__) for name, hint in f.__annotations__.items()}
    hints = {name: hint for name, hint in hints.items() if hint is not Any}
    if not hints:
        return f, False
    twin = types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    twin.__kwdefaults__, twin.__qualname__, twin.__module__ = f.__kwdefaults__, f.__qualname__, f.__module__
    twin.__annotations__ = hints
    return _beartype(twin), any(_holds_arrays(hint) for hint in hints.values())


def _known(hint: Any, names: dict[str, Any]) -> Any:
    """An annotation whose names are looked up; a name that only type checkers know, and any tree, is anything."""
    try:
        holder = types.SimpleNamespace(__annotations__={"it": hint})
        hint = typing.get_type_hints(holder, names, include_extras=True)["it"]
    except NameError:
        return Any
    return Any if hint is jaxtyping.PyTree else hint


def _holds_arrays(hint: Any) -> bool:
    return type(hint).__module__.startswith("jaxtyping") or any(map(_holds_arrays, typing.get_args(hint)))
