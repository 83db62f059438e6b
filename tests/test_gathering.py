"""Names are loaded when they are used, a module never stands in the place of its function, and little is loaded."""

import gc
import subprocess
import sys

import pytest

import filtax as fx
from filtax import gathering
from filtax.gathering import Parts


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
    assert of("weighting") == {"weighting._exact"}
    assert not of("beliefs") & {"beliefs._low_rank", "beliefs._particles", "beliefs._conjugate"}
    assert not of("models") & {"models._networks", "models._exponential_family", "models._subspace"}


def test_garbage_is_looked_for_as_before_and_not_while_a_name_is_loaded():
    assert run("""
import gc, filtax, sys
runs = []
gc.callbacks.append(lambda phase, info: runs.append(info["generation"]))
filtax.method
print(len(runs) == 0, gc.isenabled())
gc.disable()
filtax.Regressor
print(gc.isenabled())
gc.enable()
try:
    sys.modules["filtax.sharding"] = None  # cannot be loaded
    filtax.shard
except ImportError:
    print(gc.isenabled())
""") == ["True", "True", "False", "True"]


def test_garbage_is_looked_for_again_when_the_last_thread_has_loaded():
    with gathering._quiet:
        with gathering._quiet:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_unknown_name_is_refused_with_those_that_there_are():
    with pytest.raises(AttributeError, match=r"filtax.weighting has no 'exact_'; it has Bounded, Diverse,"):
        fx.weighting.exact_  # noqa: B018
    assert dir(fx.weighting) == sorted(fx.weighting.__all__)


def test_a_table_looks_its_names_up():
    table = Parts(fx.priors, {"OU": "ornstein_uhlenbeck"})
    more = table | {"OU": "empirical_ou", "none": lambda: None}
    assert table["OU"] is fx.priors.ornstein_uhlenbeck
    assert (more["OU"], more["none"](), len(more), len(table)) == (fx.priors.empirical_ou, None, 2, 1)
    with pytest.raises(KeyError):
        table["SP"]
