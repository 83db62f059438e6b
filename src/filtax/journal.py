"""The file that keeps a search: one line of JSON for each step, the last of which may have been cut off.

A process that is killed while it writes leaves half a line, or its line without the end. That step is done again;
whatever else is wrong with the file is refused.
"""

import json
import warnings
from pathlib import Path
from typing import Any

__all__ = ["mend"]


def mend(journal: Path | str, lock: Any) -> None:
    r"""Drop the last line of a journal if it was cut off, with a warning; refuse one that is damaged otherwise.

    Args:
        journal: The file; one that is not there is left so.
        lock: With `acquire()` and `release()`: held while the file is changed, so that no half line of another process
            that is just being written is dropped.

    >>> import tempfile, threading
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     path = Path(folder) / "search.log"
    ...     _ = path.write_text('{"op_code": 0, "worker_id": "a"}\n{"op_co')
    ...     mend(path, threading.Lock())
    ...     path.read_text(), len(said)
    ('{"op_code": 0, "worker_id": "a"}\n', 1)
    """
    path = Path(journal)
    if not path.exists():
        return
    if not path.is_file():
        raise ValueError(f"tune(journal={str(journal)!r}) is no file; name one that the search can be kept in.")
    if not _whole(path.read_bytes()):
        lock.acquire()
        try:
            _drop(path)
        finally:
            lock.release()
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not _is_step(line):
            raise ValueError(
                f"tune(journal={str(journal)!r}) is damaged: line {number} is no step of a search; remove the line, or "
                "choose another file."
            )


def _whole(content: bytes) -> bool:
    return not content or content.endswith(b"\n")


def _drop(path: Path) -> None:
    """Cut the file after its last whole line; in place, for another process may hold it open."""
    content = path.read_bytes()
    if _whole(content):
        return
    end = content.rfind(b"\n") + 1
    with path.open("r+b") as file:
        file.truncate(end)
    number = content.count(b"\n") + 1
    words = f"line {number}, the last, was cut off and is dropped; the search goes on from the one before."
    warnings.warn(f"tune(journal={str(path)!r}): {words}", stacklevel=5)


def _is_step(line: bytes) -> bool:
    try:
        step = json.loads(line)
    except ValueError:  # no JSON, or no text
        return False
    return isinstance(step, dict) and isinstance(step.get("op_code"), int) and isinstance(step.get("worker_id"), str)
