"""Files that are there as a whole or not at all: written aside, flushed, renamed, and the folder flushed."""

import os
from pathlib import Path

from filtax.store.room import unwritten

__all__ = ["PARTIAL", "drop", "flush_folder", "opened_itself", "write_whole"]

PARTIAL = ".partial"  # a name that ends so was never finished


def write_whole(path: Path, content: bytes) -> None:
    """Put a file in place in one step; after a crash there is the old one, or none, or the new one.

    Args:
        path: Where; what is there is replaced.
        content: What.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "a", b"new")
    ...     [file.name for file in Path(folder).iterdir()]
    ['a']
    """
    aside = path.with_name(path.name + PARTIAL)
    try:
        drop(aside)
        file = opened_itself(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(file, left) :]
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(aside, path)
        flush_folder(path.parent)
    except OSError as problem:
        drop(aside)
        raise unwritten(path, problem, len(content), "what was there before is intact") from problem


def opened_itself(path: Path | str, flags: int) -> int:
    """Open a file, and not the one that a symbolic link in its place names; for `open(..., opener=...)`, too.

    >>> file = opened_itself(os.devnull, os.O_WRONLY)
    >>> os.close(file)
    """
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


def flush_folder(folder: Path) -> None:
    """Make renames in a folder survive a loss of power.

    >>> flush_folder(Path("."))
    """
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def drop(path: Path) -> None:
    """Remove a file that was never finished, if it is there and that is possible.

    >>> drop(Path("no/such/file"))
    """
    try:
        path.unlink()
    except OSError:
        pass
