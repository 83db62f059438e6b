"""Files that are there as a whole or not at all, one writer at a time, and a sentence for what cannot be written.

A file is written aside, flushed and renamed, and then its folder is flushed. A lock is the kernel's: it is gone with
the process that held it, however that ended.
"""

import errno
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filtax.io._errors import Busy, Unwritten

LOCK = "lock"  # name of the file that is locked in a folder
PARTIAL = ".partial"  # a name that ends so was never finished

_ADVICE = {
    errno.EFBIG: "raise the limit on the size of a file (ulimit -f), or name another folder",
    errno.EROFS: "the disk is read-only: name a folder on another one, or have it mounted for writing",
    errno.EACCES: "name a folder that you may write to, or have its permissions changed",
    errno.EPERM: "name a folder that you may write to, or have its permissions changed",
    errno.EIO: "the disk has failed: check it, and name a folder on another one",
    errno.ENOTDIR: "a part of its path is a file: name another folder",
    errno.EISDIR: "there is a folder of that name: name another file",
    errno.EEXIST: "there is a file of that name: name another folder",
    errno.EMFILE: "too many files are open: raise the limit (ulimit -n)",
    errno.ENOENT: "its folder is not there and cannot be made: name another folder",
    errno.ELOOP: "it is a symbolic link, and what it names may be somebody else's: remove the link",
    errno.ENAMETOOLONG: "its name is too long: name a shorter one",
}


@contextmanager
def lock(folder: str | Path) -> Iterator[Path]:
    """Hold a folder of checkpoints against a second writer, for as long as the block runs.

    Args:
        folder: Made if it is not there.

    Returns:
        The folder; hand it to `save(..., held=True)`.

    Example:
        >>> import tempfile
        >>> from filtax.io import lock
        >>> with tempfile.TemporaryDirectory() as folder, lock(folder):
        ...     with lock(folder):
        ...         pass
        Traceback (most recent call last):
        filtax.io._errors.Busy: ...
    """
    import fcntl  # not on every system, and needed by writers alone

    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open_no_link(folder / LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as problem:
        raise unwritten(folder, problem) from problem
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, 200, 0).decode("ascii", "replace").strip() or "another process"
            raise Busy(
                f"{folder} is being written by {holder}; wait until it has ended, or use another folder."
            ) from None
        if not (os.pread(file, 8, 0) or b"process ").startswith(b"process "):
            raise ValueError(f"{folder / LOCK} is no lock of filtax; remove it, or name another folder.")
        os.ftruncate(file, 0)
        os.pwrite(file, f"process {os.getpid()} on {socket.gethostname()}".encode("ascii", "replace"), 0)
        yield folder
    finally:
        os.close(file)


def write_whole(path: Path, content: bytes) -> None:
    """Put a file in place in one step; after a crash there is the old one, or none, or the new one."""
    aside = path.with_name(path.name + PARTIAL)
    try:
        drop(aside)
        file = open_no_link(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
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


def open_no_link(path: Path | str, flags: int) -> int:
    """Open a file, and not the one that a symbolic link in its place names; for `open(..., opener=...)`, too."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


def flush_folder(folder: Path) -> None:
    """Make renames in a folder survive a loss of power."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def drop(path: Path) -> None:
    """Remove a file that was never finished, if it is there and that is possible."""
    with suppress(OSError):
        path.unlink()


def unwritten(path: Path | str, problem: OSError, needed: int | str | None = None, after: str = "") -> OSError:
    """The same error with a sentence for the user: what could not be written, why, what to do, and `after`."""
    reason = problem.strerror or str(problem)
    sentence = f"{path} could not be written ({reason}): {advice(problem, path, needed)}"
    kind = Unwritten if problem.errno == errno.ENOENT else OSError  # which would make of it a file that is not there
    return kind(problem.errno, f"{sentence}; {after}" if after else sentence)


def advice(problem: OSError, path: Path | str, needed: int | str | None = None) -> str:
    """What to do about a problem with a file; with the bytes needed and free where there is too little room."""
    if problem.errno == errno.EFBIG and needed is not None:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        allowed = "its file system takes no more" if limit == resource.RLIM_INFINITY else f"a file may have {limit}"
        return f"{needed} bytes are needed and {allowed}; {_ADVICE[errno.EFBIG]}"
    if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
        return _ADVICE.get(problem.errno or 0, "mend that, or name another folder")
    wanted = "" if needed is None else f"{needed} bytes are needed and "
    there = "the quota allows no more" if problem.errno == errno.EDQUOT else f"{_free(Path(path))} bytes are free"
    return f"{wanted}{there}; make room, or name a folder on another disk"


def _free(path: Path) -> int | str:
    """Bytes that are free for us where a file is to be."""
    try:
        disk = os.statvfs(path if path.is_dir() else path.parent)
    except OSError:
        return "few"
    return disk.f_bavail * disk.f_frsize
