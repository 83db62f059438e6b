"""Hints to XLA's compiler for CPUs, and the cache of what it compiled. They change no result, only speed.

XLA merges cheap operations into each of their readers and so repeats them: `no_inline` stops that. XLA compiles a loop
of few bytes into one kernel, which is 4-15 times faster for a filter of a few parameters: `tune_xla` raises the number
of bytes. XLA itself checks which loops qualify, so the option cannot make a program fail. FILTAX_XLA=0 switches both
hints off.
"""

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import jax
from jax._src import compilation_cache, xla_bridge
from jax.experimental.xla_metadata import set_xla_metadata

from filtax._cache import MendingCache, private_folder

__all__ = ["cache_compilations", "no_inline", "tune_if_possible", "tune_xla"]

OPTION = "xla_cpu_small_while_loop_byte_threshold=4194304"  # bytes that the body of a loop touches


def no_inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute the arrays that a function returns once on a CPU, however many operations read them.

    Use it for small results only: of a large one it costs a pass over memory.

    >>> no_inline(lambda a: 2.0 * a)(jax.numpy.ones(3)).tolist()
    [2.0, 2.0, 2.0]
    """
    called = jax.jit(function)

    @wraps(function)
    def run(*args: Any) -> Any:
        if jax.default_backend() != "cpu" or os.environ.get("FILTAX_XLA") == "0":
            return function(*args)
        with set_xla_metadata(inlineable="false"):
            return called(*args)

    return run


def tune_xla() -> None:
    """Compile small loops as one kernel, and run calls in the thread that makes them. Call it before JAX computes.

    Both are settings of the whole process, and the first is undocumented by XLA, so importing filtax changes neither.
    The command line and the estimators call this function; JAX programs that use filtax should call it first.

    >>> import subprocess, sys
    >>> subprocess.run([sys.executable, "-c", "import filtax; filtax.tune_xla()"]).returncode
    0
    """
    if problem := tune_if_possible():
        raise RuntimeError(f"tune_xla() {problem}")


def tune_if_possible() -> str | None:
    """Do what of `tune_xla` can be done, and return what could not."""
    if os.environ.get("FILTAX_XLA") == "0":
        return None
    if xla_bridge.backends_are_initialized():
        return "was called after JAX had begun to compute; call it first, right after the imports."
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_extra_options={OPTION}".strip()
    elif OPTION.split("=")[0] not in flags:
        return f"finds that XLA_FLAGS already sets xla_backend_extra_options; add {OPTION} to it."
    return None


def cache_compilations(folder: Path | None = None) -> Path | None:
    """Keep compiled programs on disk; return where, `filtax/jax` in the user's cache if not told, or None if nowhere.

    They are native code that is run, so that a folder which another user may write to is not used.

    >>> cache_compilations(Path("/dev/null/below")) is None  # no folder can be made there, and nothing fails
    True
    """
    folder = private_folder(folder)
    if folder is None:
        return None
    compilation_cache.LRUCache = MendingCache  # pyright: ignore[reportPrivateImportUsage]
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return folder
