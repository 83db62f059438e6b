"""The cache of compiled programs; importing filtax does not switch it on."""

import os
from pathlib import Path

import jax

__all__ = ["cache_compilations"]


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
