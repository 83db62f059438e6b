"""One writer at a time. The lock is the kernel's: it is gone with the process that held it, however that ended."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filtax.store.errors import Busy
from filtax.store.room import unwritten
from filtax.store.writing import opened_itself

__all__ = ["LOCK", "lock"]

LOCK = "lock"


@contextmanager
def lock(folder: Any) -> Iterator[Path]:
    """Hold a folder of checkpoints against a second writer, for as long as the block runs.

    Args:
        folder: Made if it is not there.

    Returns:
        The folder; hand it to `save(..., held=True)`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, lock(folder):
    ...     with lock(folder):
    ...         pass
    Traceback (most recent call last):
    filtax.store.errors.Busy: ...
    """
    import fcntl  # not on every system, and needed by writers alone

    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = opened_itself(folder / LOCK, os.O_RDWR | os.O_CREAT)
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
        os.ftruncate(file, 0)
        os.pwrite(file, f"process {os.getpid()} on {socket.gethostname()}".encode("ascii", "replace"), 0)
        yield folder
    finally:
        os.close(file)
