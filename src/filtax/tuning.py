"""Process-wide switches that a user may turn; importing filtax turns none."""

import os
from pathlib import Path

import jax
from jax._src import xla_bridge

__all__ = ["cache_compilations", "tune_xla"]

SMALL_LOOP = "xla_cpu_small_while_loop_byte_threshold=4194304"


def tune_xla() -> None:
    """Set JAX up for small filters on a CPU; call it before anything is computed. Results do not change.

    Loops of some size are compiled whole. A scan over a small filter is so without it; this does the same for robust
    filters that iterate, and for many streams. And calls run in the thread that makes them: handing a single event to
    another thread and back costs more than the event.

    It is an opt-in because both are settings of the whole process, and the first is undocumented by XLA, so that a
    later version may drop it.

    >>> import subprocess, sys
    >>> done = subprocess.run([sys.executable, "-c", "import filtax; filtax.tune_xla()"])
    >>> done.returncode
    0
    """
    if xla_bridge.backends_are_initialized():
        raise RuntimeError(
            "tune_xla() was called after JAX had begun to compute; call it first, right after the imports."
        )
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" in flags:
        if SMALL_LOOP not in flags:
            raise RuntimeError(f"tune_xla(): XLA_FLAGS already sets xla_backend_extra_options; add {SMALL_LOOP} to it.")
        return
    os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_extra_options={SMALL_LOOP}".strip()


def cache_compilations(folder: Path | None = None) -> Path | None:
    """Keep compiled programs on disk, so that a new process starts without compiling; the command line does this.

    Args:
        folder: Where to keep them; `filtax/jax` in the user's cache if left out.

    Returns:
        The folder, or None where it cannot be written: then nothing is kept, and nothing fails.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = cache_compilations(Path(folder)) == Path(folder)
    ...     jax.config.update("jax_compilation_cache_dir", None)
    >>> kept
    True
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        if folder is None:
            folder = (base if base.is_absolute() else Path.home() / ".cache") / "filtax" / "jax"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # not allowed, or nobody's home
        return None
    if not os.access(folder, os.W_OK):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return folder
