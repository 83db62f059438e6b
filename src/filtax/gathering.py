"""Names that are loaded when they are first used: of all parts that there are, a method needs a handful.

To make a class costs a millisecond, and there are more than a hundred of them. A package that gathers names from its
modules says where each one lives, and a table of the grammar by what name its part is known. While one is loaded Python
does not look for garbage, which took a quarter of the time.
"""

import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any

__all__ = ["Parts", "on_demand"]


def on_demand(package: str, **modules: str) -> None:
    """Have a package look its public names up in its modules, each of which is given with the names that live in it.

    A public name that lives in none is a module itself. Type checkers do not see this: they are shown the imports.

    >>> import filtax.priors
    >>> filtax.priors.static.__module__
    'filtax.priors._dynamics'
    """
    gathered = sys.modules[package]
    gathered.__class__ = _Gathered
    vars(gathered)["_homes"] = {name: module for module, names in modules.items() for name in names.split()}


class _Gathered(ModuleType):
    """A package whose names are looked up when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        known = vars(self)
        if name not in known["__all__"]:
            raise AttributeError(f"{self.__name__} has no {name!r}; it has {', '.join(known['__all__'])}.")
        with _quiet:  # all of JAX would be looked through, and there is none
            home = import_module(f"{self.__name__}.{known['_homes'].get(name, name)}")
        known[name] = getattr(home, name) if name in known["_homes"] else home
        return known[name]

    def __setattr__(self, name: str, value: Any) -> None:
        # Python sets each module on its package; a function by the same name goes first
        if not (isinstance(value, ModuleType) and name in vars(self)["_homes"]):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return vars(self)["__all__"]


class _Quiet:
    """A time in which Python does not look for garbage, as long as any thread is within."""

    def __init__(self) -> None:
        self.lock, self.within, self.collects = Lock(), 0, False

    def __enter__(self) -> None:
        with self.lock:
            self.collects = self.collects if self.within else gc.isenabled()
            self.within += 1
            gc.disable()

    def __exit__(self, *_: Any) -> None:
        with self.lock:
            self.within -= 1
            if self.collects and not self.within:
                gc.enable()


_quiet = _Quiet()


class Parts(Mapping[str, Callable[..., Any]]):
    """A table of parts by the words of the grammar; one that is given by its name in a package is loaded from there.

    >>> from filtax import priors
    >>> table = Parts(priors, {"ACI": "additive_inflation"}) | {"LSSM": lambda: None}
    >>> table["ACI"](0.1).q, list(table)
    (0.1, ['ACI', 'LSSM'])
    """

    def __init__(self, package: ModuleType, words: Mapping[str, str | Callable[..., Any]]):
        self._package, self._words = package, words

    def __or__(self, more: Mapping[str, str | Callable[..., Any]]) -> "Parts":
        return Parts(self._package, {**self._words, **more})

    def __getitem__(self, word: str) -> Callable[..., Any]:
        part = self._words[word]
        return getattr(self._package, part) if isinstance(part, str) else part

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    def __len__(self) -> int:
        return len(self._words)
