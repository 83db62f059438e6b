"""The bounds of `bound.c` as Python functions; numba stands in where there is no C compiler."""

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable

import numpy as np

from benchmarks.harness import OUT, ROOT, machine

FLAGS = ["-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-shared", "-fPIC"]


def library() -> tuple[str, object]:
    """("C", compiled library), or ("numba", module), or ("none", None)."""
    compiler = os.environ.get("CC") or next((c for c in ("gcc", "cc", "clang") if shutil.which(c)), None)
    if compiler:
        try:
            return "C", ctypes.CDLL(str(build(compiler)))
        except (subprocess.CalledProcessError, FileNotFoundError, OSError):
            pass  # a compiler that cannot do this is as good as none
    try:
        from benchmarks import bound_numba
    except ImportError:
        return "none", None
    return "numba", bound_numba


def build(compiler: str):
    """Compile `bound.c` into out/, once for each text, compiler and processor."""
    source = ROOT / "benchmarks" / "bound.c"
    OUT.mkdir(exist_ok=True)
    mark = hashlib.sha256(source.read_bytes() + f"{compiler} {machine()['cpu']}".encode()).hexdigest()[:12]
    target = OUT / f"bound-{mark}.so"
    if not target.exists():
        flags = [f for f in FLAGS if "gcc" in compiler or not f.startswith("-mprefer")]
        fresh = target.with_suffix(f".{os.getpid()}")  # then renamed: another process may want it at the same time
        subprocess.run([compiler, *flags, "-o", fresh, source, "-lpthread", "-lm"], check=True, capture_output=True)
        fresh.rename(target)
    return target


def pointer(array: np.ndarray | None) -> ctypes.c_void_p | None:
    return None if array is None else array.ctypes.data_as(ctypes.c_void_p)


def kalman(problem, Y: np.ndarray, full: bool) -> tuple[str, Callable[[], tuple] | None]:
    """A call that filters all trials: (means,), or (means, covs, loglik) when `full`.

    Args:
        problem: F, Q, H, R, m0, P0 as float32 arrays, in this order.
        Y: (trials, steps, 2) measurements.
        full: whether covariances and the log likelihood are written too.
    """
    kind, lib = library()
    if lib is None:
        return kind, None
    n, steps, _ = Y.shape
    means = np.zeros((n, steps, 4), np.float32)
    covs, loglik = (np.zeros((n, steps, 4, 4), np.float32), np.zeros(n, np.float32)) if full else (None, None)

    def call() -> tuple:
        if kind == "C":
            arrays = [pointer(a) for a in (*problem, Y, means, covs, loglik)]
            lib.kf(n, steps, int(full), *arrays)
        else:
            lib.kf(*problem, Y, means, covs, loglik)
        return (means, covs, loglik) if full else (means,)

    return kind, call


def traffic(size: int, steps: int) -> tuple[str, Callable[[], object] | None]:
    """A call that reads `size` float32 numbers, then reads and writes them, `steps` times over."""
    kind, lib = library()
    if lib is None:
        return kind, None
    P = np.ones(size, np.float32)
    if kind == "C":
        return kind, lambda: lib.traffic(pointer(P), ctypes.c_long(size), ctypes.c_int(steps))
    return kind, lambda: lib.traffic(P, steps)
