"""Hints to XLA's compiler for CPUs. They change no result, only speed; FILTAX_XLA=0 switches them off.

XLA merges cheap operations into each of their readers and so repeats them: `no_inline` stops that. XLA compiles a loop
of few bytes into one kernel, which is 4-15 times faster for a filter of a few parameters: `tune_xla` raises the number
of bytes. XLA itself checks which loops qualify, so the option cannot make a program fail.
"""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
from jax._src import xla_bridge
from jax.experimental.xla_metadata import set_xla_metadata

__all__ = ["no_inline", "tune_if_possible", "tune_xla"]

OPTION = "xla_cpu_small_while_loop_byte_threshold"
THRESHOLD = 4 * 2**20  # bytes that the body of a loop touches


def no_inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute the arrays that a function returns once on a CPU, however many operations read them.

    Use it for small results only: of a large one it costs a pass over memory.

    >>> import jax.numpy as jnp
    >>> no_inline(lambda a: 2.0 * a)(jnp.ones(3)).tolist()
    [2.0, 2.0, 2.0]
    """
    called = jax.jit(function)

    @wraps(function)
    def run(*args: Any) -> Any:
        if jax.default_backend() != "cpu" or _off():
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
    if xla_bridge.backends_are_initialized():
        raise RuntimeError(
            "tune_xla() was called after JAX had begun to compute; call it first, right after the imports."
        )
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" in flags and OPTION not in flags:
        raise RuntimeError(
            f"tune_xla(): XLA_FLAGS already sets xla_backend_extra_options; add {OPTION}={THRESHOLD} to it."
        )
    tune_if_possible()


def tune_if_possible() -> None:
    """Do as `tune_xla`, unless JAX has begun to compute or XLA_FLAGS already chooses such options.

    >>> tune_if_possible()
    """
    if xla_bridge.backends_are_initialized() or _off():
        return
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_extra_options={OPTION}={THRESHOLD}".strip()


def _off() -> bool:
    return os.environ.get("FILTAX_XLA", "1") == "0"
