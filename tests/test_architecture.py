"""The layout is the theory: imports point down, files carry their letter, citations exist, nothing grows too large."""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "filtax"
FILES = sorted(SOURCE.rglob("*.py"))
LABELS = set((ROOT / "docs" / "thesis-labels.txt").read_text().split())

# From the ground up. A module may import what stands on an earlier line, and its own package.
LAYERS = [
    {"_kernels", "_lazy", "_xla", "numerics", "protocols", "ravel"},
    {"datasets", "io", "linalg", "state"},
    {"_validation"},
    {"distributions", "synthetic", "tuning"},
    {"beliefs"},
    {"models"},
    {"auxiliary", "priors", "posteriors", "weighting"},
    {"_parts"},
    {"_step"},
    {"bone"},
    {"methods"},
    {"_online", "evaluate", "forecasting", "monitoring", "segmentation"},
    {"bandits", "estimators"},
    {"report"},
    {"pipeline"},
    {"cli"},
    {"__main__"},
]
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}
LETTERS = {"models": "M.1", "auxiliary": "M.2", "priors": "M.3", "posteriors": "A.1", "weighting": "A.2"}
CITATION = re.compile(r"\b((?:eq|eqn|prop|algo|sec|subsec|tab|theorem|lemma|def|remark|ch|experiment):[A-Za-z0-9_-]+)")


def each_file(check):
    """One test of all files, which names those that break it: a test for each would take longer than the checks."""

    def whole():
        broken = {}
        for path in FILES:
            try:
                check(path)
            except AssertionError as problem:
                broken[str(path.relative_to(SOURCE))] = str(problem)
        assert not broken

    whole.__name__, whole.__doc__ = check.__name__, check.__doc__
    return whole


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def room(path: Path) -> str:
    """The part of the package a file belongs to: its folder, or its own name at the top."""
    return layer_of(("filtax", *path.relative_to(SOURCE).with_suffix("").parts))


def layer_of(parts: tuple[str, ...]) -> str:
    """The layer of a module: that of its package, unless it has one of its own."""
    name = ".".join(parts[1:3])
    return name if name in HEIGHT else parts[1]


def imported_rooms(tree: ast.AST, package: tuple[str, ...]) -> set[str]:
    """Parts of filtax that the code imports, at the top or inside a function; `package` resolves relative imports."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join([*base, *([node.module] if node.module else [])])
            names |= {f"{stem}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in names]
    return {layer_of(tuple(part)) for part in parts if part[0] == "filtax" and len(part) > 1}


def broken_imports(room_name: str, imports: set[str]) -> set[str]:
    """Those imports that point up or to a neighbour."""
    return {other for other in imports - {room_name} if HEIGHT.get(other, len(LAYERS)) >= HEIGHT[room_name]}


@each_file
def test_imports_point_down(path):
    if path == SOURCE / "__init__.py":  # the one place that gathers the public names
        return
    package = ("filtax", *path.relative_to(SOURCE).parent.parts)
    imports = imported_rooms(parsed(path), package)
    assert not broken_imports(room(path), imports)


def test_the_import_rule_can_fail():
    tree = ast.parse("from filtax.bone import Bone\nfrom ..priors import drift\nimport filtax.models.linear")
    imports = imported_rooms(tree, ("filtax", "posteriors"))
    assert imports == {"bone", "priors", "models"}
    assert broken_imports("posteriors", imports) == {"bone", "priors"}
    assert broken_imports("methods", imports) == set()


def test_every_module_has_a_layer():
    assert {room(path) for path in FILES} - {"__init__"} <= set(HEIGHT)


@each_file
def test_docstring_opens_with_its_letter(path):
    docstring = ast.get_docstring(parsed(path))
    assert docstring, "a module says what it is for"
    if room(path) in LETTERS:
        assert docstring.startswith(f"({LETTERS[room(path)]}) ")


@each_file
def test_cited_labels_exist(path):
    cited = set(CITATION.findall(path.read_text()))
    assert cited <= LABELS


def test_the_thesis_is_cited():
    cited = {label for path in FILES for label in CITATION.findall(path.read_text())}
    assert {"prop:kf-equations", "sec:exponential-family-ekf"} <= cited


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of code, without the signature and the docstring."""
    first = function.body[1:] if ast.get_docstring(function) else function.body
    return function.end_lineno - first[0].lineno + 1 if first else 0


@each_file
def test_functions_stay_small(path):
    functions = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert not {function.name: body_lines(function) for function in functions if body_lines(function) > 40}


@each_file
def test_nothing_dangerous_or_unfinished(path):
    tree = parsed(path)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not names & {"eval", "exec", "NotImplementedError"}
    assert not modules & {"pickle", "cloudpickle", "dill", "marshal", "shelve"}


def test_filters_need_only_the_core_and_importing_changes_nothing():
    """It must work where the extras are not installed, and leave JAX as it was; the command says what it needs."""
    code = """
import jax, logging, os, sys
sys.modules.update(dict.fromkeys(("beartype", "matplotlib", "optax", "pyarrow", "rich", "typer")))  # cannot be imported
state = lambda: (dict(jax.config.values), list(logging.getLogger().handlers), dict(os.environ))
before = state()
import filtax as fx
public = [getattr(fx, name) for name in fx.__all__]  # names are loaded when they are used
assert before == state()
import numpy as np
X, y = np.ones((9, 2), "f"), np.arange(9.0, dtype="f")
for name in ("LG+C-ACI(q=0.1)", "LG+RL[4]-PR(hazard=0.1)", "LoFi(rank=1)+C-Static"):
    learner = fx.method(name, model=fx.models.linear(noise=1.0))
    learner.scan(learner.init(mean=np.zeros(2, "f")), X, y)
fx.evaluate.prequential(learner, learner.init(mean=np.zeros(2, "f")), X, y)
fx.bandits.Bandit(["a", "b"]).pull(key=jax.random.key(0))
try:
    import filtax.pipeline
except ModuleNotFoundError as missing:
    assert str(missing).endswith("pyarrow, which is not installed; run pip install 'filtax[cli]'.")
else:
    raise AssertionError
from filtax.__main__ import main
main()
"""
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (
        run.stderr == "filtax: the command line needs typer, which is not installed; run pip install 'filtax[cli]'.\n"
    )
    assert (run.returncode, run.stdout) == (1, "")


def test_what_is_left_to_the_night_is_there():
    """A case that was renamed would run every day again, and nobody would see why it is listed."""
    root = Path(__file__).parent
    listed = [line for line in (root / "nightly.txt").read_text().splitlines() if not line.startswith("#")]
    assert listed == sorted(set(listed))
    for line in listed:
        file, _, name = line.partition("::")
        assert f"def {name.partition('[')[0]}(" in (root.parent / file).read_text(), line


def test_what_the_first_pass_leaves_to_the_second_is_asked_there():
    """Cases of 32-bit types in the numeric core run once a day, with x64 off."""
    root = Path(__file__).parents[1]
    core = re.search(r"^CORE = \((.*?)\)", (root / "conftest.py").read_text(), flags=re.MULTILINE)[1]
    asked = re.search(r"^CORE := (.*)$", (root / "Makefile").read_text(), flags=re.MULTILINE)[1].split()
    assert set(re.findall(r"[\w/]+\.py", core)) < set(asked)
