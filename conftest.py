"""How every test runs, the examples in docstrings included: strict promotion, checked shapes, fixed seeds.

FILTAX_X64=0 switches 64-bit numbers off and omits what needs them: tests marked `x64`, and cases of a test whose
parameter is a 64-bit type. The numeric core runs both ways every day: its cases of a 32-bit type with 64-bit numbers
off, and with them on by night alone; `test_conformance.py` sees every day that 32 bits stay 32 among wider ones.
Everyday tests compile in haste, as most of their time goes into compiling; with FILTAX_OPTIMISED=1 (`make nightly`)
and with 64-bit numbers off, they run what XLA makes of it for users.
"""

import functools
import gc
import os
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from jax._src.interpreters import mlir

import typed

X64 = os.environ.get("FILTAX_X64", "1") != "0"
OPTIMISED = not X64 or os.environ.get("FILTAX_OPTIMISED", "0") != "0"
WIDE = ("float64", np.float64, jax.numpy.float64, np.dtype("float64"))
NARROW = ("float32", np.float32, jax.numpy.float32, np.dtype("float32"))
CORE = ("tests/test_degenerate_inputs.py", "tests/test_linalg.py", "tests/test_numeric_bars.py")  # as in the Makefile

if not OPTIMISED:  # before anything is compiled: XLA reads this once
    flags = ["--xla_backend_optimization_level=0"]
    flags.append("--xla_cpu_parallel_codegen_split_count=1")  # by default each program is compiled as 32 small ones
    if jax.__version_info__ < (0, 11):  # later ones know no other emitters
        flags.append("--xla_cpu_use_fusion_emitters=false")
    os.environ["XLA_FLAGS"] = " ".join((os.environ.get("XLA_FLAGS", ""), *flags))

# For the workers, which share the processor: each would start as many threads, that wait for each other by spinning.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

jax.config.update("jax_enable_x64", X64)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
os.environ.setdefault("MPLBACKEND", "Agg")

# Only XLA is told where in the code an operation was written, and a seventh of the time went into finding that out.
jax.config.update("jax_traceback_in_locations_limit", 0)
os.environ["JAX_TRACEBACK_IN_LOCATIONS_LIMIT"] = "0"  # for the processes that tests start

# JAX makes a context of MLIR, with all its dialects, for every program: a tenth of the time went into ten thousand.
mlir.make_ir_context = functools.cache(mlir.make_ir_context)

# The next run finds what took long to compile; to write down the rest costs a first run more than it saves the second.
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parent / ".cache" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)

# Here, because shapes are checked only in modules that are imported after this line.
typed.install("filtax", "thesis")

# Compilation makes the first example slow, hence no deadline; the everyday budget draws the same examples each time.
settings.register_profile(
    "everyday", max_examples=10, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("nightly", parent=settings.get_profile("everyday"), max_examples=500, derandomize=False)
settings.load_profile("everyday")


@pytest.hookimpl(trylast=True)  # once the profile is known
def pytest_configure(config):
    """By day no constants of the code as examples: they are those of the modules that a worker has happened to load."""
    if settings.get_current_profile_name() == "everyday":
        providers.is_local_module_file = lambda path: False


# Tracing makes much garbage that no cycle holds, and each collection asks XLA too: a tenth of the time went there.
gc.set_threshold(50_000, 20, 20)

# Linux allows a process some 65,000 memory maps. To forget programs takes half a minute: rather late than often.
MAPS, MOST_MAPS, EVERY = Path("/proc/self/maps"), 45_000, 5


def _memory_maps():
    return MAPS.read_bytes().count(b"\n") if MAPS.exists() else 0


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Forget compiled programs before they use up the memory maps of the process: XLA would end it without a word."""
    item.config.stash[_DONE] = done = item.config.stash.get(_DONE, 0) + 1
    if done % EVERY == 0 and _memory_maps() > MOST_MAPS:
        jax.clear_caches()
        mlir.make_ir_context.cache_clear()
        gc.collect()


_DONE = pytest.StashKey[int]()


def _is_given(item, types):
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return any(isinstance(value, str | type | np.dtype) and value in types for value in parameters)


def _needs_x64(item):
    return _is_given(item, WIDE) or item.get_closest_marker("x64") is not None


def _runs_without_x64(item):
    return item.nodeid.startswith(CORE) and not _needs_x64(item) and _is_given(item, NARROW)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    listed = Path(__file__).parent / "tests" / "nightly.txt"
    night = {line for line in listed.read_text().splitlines() if not line.startswith("#")}
    for item in items:
        if item.nodeid in night or (X64 and _runs_without_x64(item)):
            item.add_marker("nightly")
    if X64:
        return
    omitted = [item for item in items if _needs_x64(item)]
    items[:] = [item for item in items if not _needs_x64(item)]
    config.hook.pytest_deselected(items=omitted)
