"""Hints to XLA's compiler for CPUs (FILTAX_XLA=0 switches them off), and the cache of what it compiled."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from jax._src import compilation_cache, lru_cache, xla_bridge
from jax.experimental.xla_metadata import set_xla_metadata

OPTION = "xla_cpu_small_while_loop_byte_threshold=4194304"  # bytes that the body of a loop touches


def no_inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute a function once on a CPU, where XLA would do so in each reader; for small arrays, as it costs a pass."""
    called = jax.jit(function)

    def run(*args: Any) -> Any:
        if os.environ.get("FILTAX_XLA") == "0" or jax.default_backend() != "cpu":
            return function(*args)
        with set_xla_metadata(inlineable="false"):
            return called(*args)

    return run


def tune_xla() -> None:
    """Compile small loops as one kernel, and run calls in the thread that makes them; call it before JAX computes.

    Both are settings of the whole process. The command line and the estimators call it; `import filtax` does not.

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


def usual_cache() -> Path:
    """The folder `filtax` in the user's cache."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "filtax"


def is_private(path: Path) -> bool:
    """Whether this user owns a file, or a folder and all in it, and nobody else may write to it; not true of a link."""
    own = all(each.lstat().st_uid == os.getuid() for each in (path, *(path.iterdir() if path.is_dir() else ())))
    return own and not path.lstat().st_mode & 0o022 and not path.is_symlink()


def cache_compilations(folder: Path | None = None) -> Path | None:
    """Keep compiled programs on disk; return where, or None: they are native code, and the folder must be private."""
    try:
        folder = folder or usual_cache() / "jax"
        for each in (*reversed(folder.parents), folder):
            each.mkdir(mode=0o700, exist_ok=True)  # whatever the umask allows
        if not (is_private(folder.resolve()) and os.access(folder, os.W_OK)):
            return None
    except (OSError, RuntimeError):  # not allowed, or no home
        return None
    compilation_cache.LRUCache = _MendingCache  # pyright: ignore[reportPrivateImportUsage]
    jax.config.update("jax_compilation_cache_dir", str(folder))
    for least, value in (("compile_time_secs", 0.0), ("entry_size_bytes", -1)):
        jax.config.update(f"jax_persistent_cache_min_{least}", value)
    return folder


class _MendingCache(lru_cache.LRUCache):
    def put(self, key: str, value: bytes) -> None:
        (Path(self._path) / f"{key}-cache").unlink(missing_ok=True)  # JAX keeps a file that it could not read
        super().put(key, value)
