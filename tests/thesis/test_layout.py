"""What the experiments stand on: public names of filtax alone; and each file keeps to the rules of the package."""

import ast
import inspect
import pkgutil
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import filtax
import thesis

FILES = sorted(Path(thesis.__file__).parent.glob("*.py"))


def is_public(dotted: str) -> bool:
    """Whether a name is in `__all__` of filtax, or of a package that is itself in `__all__` of filtax."""
    _, *parts = dotted.split(".")
    place: object = filtax
    for part in parts:
        if part not in (place.__all__ if isinstance(place, ModuleType) else dir(place)):
            return False
        place = getattr(place, part)
    return True


def names_of_filtax(tree: ast.AST) -> set[str]:
    """Every name of filtax that a file imports, and every one that it reaches by dots from a module of filtax."""
    bound, used = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "filtax":
                    bound[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else "filtax"
                    used.add(alias.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "filtax":
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                used.add(f"{node.module}.{alias.name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            chain = ast.unparse(node).split("(")[0].split(".")
            if chain[0] in bound and inspect.ismodule(pkgutil.resolve_name(bound[chain[0]])):
                used.add(".".join([bound[chain[0]], *chain[1:]]))
    return used


def test_the_experiments_use_public_names_of_filtax_alone():
    used = {path.name: names_of_filtax(ast.parse(path.read_text())) for path in FILES}
    assert not {(file, name) for file, names in used.items() for name in names if not is_public(name)}
    assert sum(map(len, used.values())) > 50


@pytest.mark.parametrize(
    "line",
    [
        "from filtax.report.figure import COLOURS",
        "import filtax.linalg",
        "import filtax as fx\nfx.linalg.matmul(1, 2)",
        "from filtax import priors\npriors.reset.restart_at",
        "from filtax.models._linear import Linear",
    ],
)
def test_a_private_name_is_seen(line):
    assert not all(map(is_public, names_of_filtax(ast.parse(line))))


def test_the_source_distribution_holds_the_experiments_and_the_wheel_does_not():
    built = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]
    assert "thesis" in built["sdist"]["include"]
    assert built["wheel"]["packages"] == ["src/filtax"]
