"""The public surface: every `__all__` is complete and sorted, every name in it is documented and shown at work."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import filtax

PACKAGES = ["filtax"] + [
    f"filtax.{info.name}" for info in pkgutil.iter_modules(filtax.__path__) if info.ispkg and info.name[0] != "_"
]
PUBLIC = [(package, name) for package in PACKAGES for name in importlib.import_module(package).__all__]


def in_order(names):
    """Constants, then classes, then functions and modules; each by the alphabet, as the linter sorts them."""
    return sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


def public_definitions(module: ModuleType) -> set[str]:
    """What a file itself defines: functions and classes whose names have no underscore in front."""
    nodes = ast.parse(Path(module.__file__).read_text()).body
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {name for name in names if not name.startswith("_")}


def public_imports(module: ModuleType) -> set[str]:
    """What a package gathers from its own modules, by imports that type checkers alone see; not what gathers it."""
    nodes = ast.parse(Path(module.__file__).read_text()).body
    nodes += [inner for node in nodes if isinstance(node, ast.If) for inner in node.body]
    own = [node for node in nodes if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "filtax"]
    names = {alias.asname or alias.name for node in own for alias in node.names}
    shared = set() if module is filtax else set(filtax.__all__)
    return {name for name in names - shared if not name.startswith("_")}


def is_protocol(thing: object) -> bool:
    return getattr(thing, "_is_protocol", False)


def each(entries):
    """One test of all entries, which names those that break it: a test for each would take longer than the checks."""

    def make(check):
        def whole():
            broken = {}
            for entry in entries:
                try:
                    check(*(entry if isinstance(entry, tuple) else (entry,)))
                except AssertionError as problem:
                    broken[str(entry)] = str(problem)
            assert not broken

        whole.__name__, whole.__doc__ = check.__name__, check.__doc__
        return whole

    return make


@each(PACKAGES)
def test_all_is_complete_and_sorted(name):
    module = importlib.import_module(name)
    assert set(module.__all__) >= public_definitions(module) | public_imports(module)
    assert module.__all__ == in_order(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)


@each(PUBLIC)
def test_public_names_are_documented(package, name):
    thing = getattr(importlib.import_module(package), name)
    if callable(thing) or isinstance(thing, ModuleType):
        assert inspect.getdoc(thing)
    if inspect.isclass(thing):
        fields = inspect.get_annotations(thing)  # described in the class docstring
        members = {key: value for key, value in vars(thing).items() if not key.startswith("_") and key not in fields}
        methods = {key for key, value in members.items() if inspect.isroutine(value) or isinstance(value, property)}
        assert not {key for key in methods if not inspect.getdoc(getattr(thing, key))}


@each(PUBLIC)
def test_public_names_are_shown_at_work(package, name):
    """A function or class has an example, run by the doctests; a class may show it in one of its methods."""
    thing = getattr(importlib.import_module(package), name)
    if not callable(thing) or is_protocol(thing) or (inspect.isclass(thing) and issubclass(thing, Exception)):
        return  # a protocol does nothing, and an exception is shown where it is raised
    texts = [inspect.getdoc(thing) or ""]
    if inspect.isclass(thing):
        texts += [inspect.getdoc(member) or "" for member in vars(thing).values()]
    assert any(">>>" in text for text in texts)
