"""The cache of compiled programs: where it is, who may write to it, and how a damaged file of it is replaced."""

import os
import stat
from pathlib import Path

from jax._src.lru_cache import LRUCache

__all__ = ["MendingCache", "is_private", "make_private", "private_folder", "usual_cache"]


class MendingCache(LRUCache):
    """The files of JAX's cache. JAX writes an entry that it could not read, and by itself keeps a damaged file."""

    def put(self, key: str, value: bytes) -> None:
        """Write an entry, in place of a file that could not be read."""
        (Path(self._path) / f"{key}-cache").unlink(missing_ok=True)
        super().put(key, value)


def usual_cache() -> Path:
    """The folder `filtax` in the user's cache.

    Raises:
        RuntimeError: if the user has no home.

    >>> usual_cache().name
    'filtax'
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "filtax"


def is_private(path: Path) -> bool:
    """Whether this user owns a file or folder, and nobody else may write to it; not true of a link.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     is_private(Path(folder))
    True
    """
    told = path.lstat()
    return told.st_uid == os.getuid() and not told.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not path.is_symlink()


def make_private(folder: Path) -> None:
    """Make a folder, and those above it, that nobody else may look into, whatever the umask allows.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as above:
    ...     make_private(Path(above) / "one" / "two")
    ...     is_private(Path(above) / "one")
    True
    """
    for each in (*reversed(folder.parents), folder):
        each.mkdir(mode=0o700, exist_ok=True)


def private_folder(folder: Path | None = None) -> Path | None:
    """Make a folder, `jax` in the usual cache if not told; return it, or None if it is not this user's to write alone.

    >>> private_folder(Path("/dev/null/below")) is None  # no folder can be made there
    True
    """
    try:
        folder = folder or usual_cache() / "jax"
        make_private(folder)
    except (OSError, RuntimeError):  # not allowed, or nobody's home
        return None
    return folder if is_private(folder.resolve()) and os.access(folder, os.W_OK) else None
