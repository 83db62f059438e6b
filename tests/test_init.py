"""Names are loaded when they are used, a module never stands in the place of its function, and little is loaded."""

import importlib.metadata
import subprocess
import sys

import pytest

import filtax as fx


def run(code):
    """What a new interpreter prints: here most modules have been loaded long ago."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_a_filter_loads_its_own_parts_only():
    loaded = run("""
import sys, filtax as fx
prior = fx.priors.linear_dynamics(F=1.0, Q=0.1)
fx.method("LG+C-LSSM", model=fx.models.linear(noise=1.0), prior=prior).init(mean=[0.0])
print(*(name.removeprefix("filtax.") for name in sys.modules if name.startswith("filtax.")))
""")
    of = lambda package: {name for name in loaded if name.startswith(f"{package}.")}
    assert of("posteriors") == {"posteriors._extended"}
    assert of("auxiliary") == {"auxiliary._constant"}
    assert of("weighting") == {"weighting._bayes"}
    assert not of("beliefs") & {"beliefs._particles", "beliefs._conjugate"}
    assert not of("models") & {"models._networks", "models._exponential_family", "models._subspace"}


def test_a_module_never_stands_in_the_place_of_what_it_holds():
    """Python sets each module on its package, whatever the order of imports."""
    modules = run("""
import importlib, pkgutil, types, filtax as fx
for found in pkgutil.walk_packages(fx.__path__, "filtax."):
    last = found.name.rpartition(".")[2]  # a library of kernels is found, too, and is no module
    if last != "__main__" and last.isidentifier():
        importlib.import_module(found.name)
for package in (fx, fx.auxiliary, fx.beliefs, fx.distributions, fx.methods, fx.models, fx.posteriors, fx.priors):
    for name in package.__all__:
        if isinstance(getattr(package, name), types.ModuleType):
            print(name)
""")
    assert set(modules) <= {*fx.__all__, "hazards"}
    assert not set(modules) & {"ewma", "method", "online", "shard", "tune", "warmup"}


def test_the_version_is_that_of_the_distribution():
    assert fx.__version__ == importlib.metadata.version("filtax")
    assert fx.posteriors.Extended is not None
    assert fx.protocols.Posterior is not None


def test_an_unknown_name_is_refused_with_those_that_there_are():
    with pytest.raises(AttributeError, match=r"filtax.weighting has no 'exact_'; it has Exact, bounded,"):
        fx.weighting.exact_  # noqa: B018
    assert dir(fx.weighting) == sorted(fx.weighting.__all__)
