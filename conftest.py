"""How every test runs, the examples in docstrings included: strict promotion, checked shapes, fixed seeds.

FILTAX_X64=0 switches 64-bit numbers off and leaves out what needs them: tests marked `x64`, and cases of a test whose
parameter is a 64-bit type.
"""

import os

import jax
import jaxtyping
import matplotlib as mpl
import numpy as np
from hypothesis import HealthCheck, settings

X64 = os.environ.get("FILTAX_X64", "1") != "0"
WIDE = ("float64", np.float64, jax.numpy.float64, np.dtype("float64"))

jax.config.update("jax_enable_x64", X64)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
mpl.use("Agg")

# Here, because shapes are checked only in modules that are imported after this line.
jaxtyping.install_import_hook("filtax", "beartype.beartype")

# Compilation makes the first example slow, hence no deadline; the everyday budget draws the same examples each time.
settings.register_profile(
    "everyday", max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("nightly", parent=settings.get_profile("everyday"), max_examples=500, derandomize=False)
settings.load_profile("everyday")


def _needs_x64(item):
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    wide = any(isinstance(value, str | type | np.dtype) and value in WIDE for value in parameters)
    return wide or item.get_closest_marker("x64") is not None


def pytest_collection_modifyitems(config, items):
    if X64:
        return
    left_out = [item for item in items if _needs_x64(item)]
    items[:] = [item for item in items if not _needs_x64(item)]
    config.hook.pytest_deselected(items=left_out)
