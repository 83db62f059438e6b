"""What cannot be written, in one sentence: what was needed, what there was, what to do."""

import errno
import os
import resource
from pathlib import Path

from filtax.store.errors import Unwritten

__all__ = ["advice", "unwritten"]

_FULL = (errno.ENOSPC, errno.EDQUOT)
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


def advice(problem: OSError, path: Path | str, needed: int | str | None = None) -> str:
    """What to do about it; with the bytes that were needed and those that are free, where there is too little room.

    Args:
        problem: What went wrong.
        path: File or folder, there or not.
        needed: Bytes that were to be written, or about how many, where that is known.

    >>> advice(OSError(errno.EROFS, "read-only"), "x")
    'the disk is read-only: name a folder on another one, or have it mounted for writing'
    """
    if problem.errno == errno.EFBIG and needed is not None:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        allowed = "its file system takes no more" if limit == resource.RLIM_INFINITY else f"a file may have {limit}"
        return f"{needed} bytes are needed and {allowed}; {_ADVICE[errno.EFBIG]}"
    if problem.errno not in _FULL:
        return _ADVICE.get(problem.errno or 0, "mend that, or name another folder")
    wanted = "" if needed is None else f"{needed} bytes are needed and "
    free = _free(Path(path))
    there = "the quota allows no more" if problem.errno == errno.EDQUOT else f"{free} bytes are free"
    return f"{wanted}{there}; make room, or name a folder on another disk"


def unwritten(path: Path | str, problem: OSError, needed: int | str | None = None, after: str = "") -> OSError:
    """The same error, of the same kind, with a sentence for the user.

    Args:
        path: What could not be written.
        problem: Why.
        needed: Bytes that were to be written, where that is known.
        after: What else there is to say: what is left, how to go on.

    >>> unwritten("a", OSError(errno.EIO, "Input/output error"), after="the run can be resumed").strerror
    'a could not be written (Input/output error): the disk has failed: check it, ...; the run can be resumed'
    """
    reason = problem.strerror or str(problem)
    sentence = f"{path} could not be written ({reason}): {advice(problem, path, needed)}"
    kind = Unwritten if problem.errno == errno.ENOENT else OSError  # which would make of it a file that is not there
    return kind(problem.errno, f"{sentence}; {after}" if after else sentence)


def _free(path: Path) -> int | str:
    """Bytes that are free for us where a file is to be."""
    folder = path if path.is_dir() else path.parent
    try:
        disk = os.statvfs(folder)
    except OSError:
        return "few"
    return disk.f_bavail * disk.f_frsize
