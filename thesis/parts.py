"""Parts of a long run, kept as they are done: a run that was interrupted goes on after the last of them.

A part is one file, which has its name only once it is whole, and sums by which damage is seen. It belongs to the digest
of its result: what another setting, range or seed left behind is not used.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

__all__ = ["Shelf", "keep", "keeping"]


@dataclass
class Shelf:
    """Where parts are kept; `saved` are the seconds that those found there once took.

    >>> Shelf(Path("parts"), "0123").saved
    0.0
    """

    folder: Path
    digest: str
    saved: float = 0.0
    names: set[str] = field(default_factory=set)

    def path(self, name: str) -> Path:
        """The file of a part."""
        return self.folder / f"{hashlib.sha256(f'{self.digest} {name}'.encode()).hexdigest()[:24]}.npz"


_SHELF: ContextVar[Shelf | None] = ContextVar("shelf", default=None)


@contextmanager
def keeping(folder: Path, digest: str) -> Iterator[Shelf]:
    """What `keep` computes inside is kept in a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):
    ...         with keeping(Path(folder), "0123"):
    ...             keep("squares", lambda: print("computed") or [1, 4, 9])
    computed
    [1, 4, 9]
    [1, 4, 9]
    """
    token = _SHELF.set(shelf := Shelf(Path(folder), digest))
    try:
        yield shelf
    finally:
        _SHELF.reset(token)


def keep(name: str, compute: Callable[[], Any]) -> Any:
    """A part of a run: taken from where the run keeps its parts, or else computed and kept there.

    Args:
        name: Of the part; once in a run.
        compute: Gives words, numbers, arrays, and lists and dictionaries of them. Where nothing is kept, it is called.

    Returns:
        What it gives, with lists for tuples and arrays of numpy: the same, whether computed or found.

    >>> keep("means", lambda: {"a": (1.0, np.float32(2.0)), "b": np.ones(2)})
    {'a': [1.0, 2.0], 'b': array([1., 1.])}
    """
    shelf = _SHELF.get()
    if shelf is None:
        return _plain(compute(), [])[1]
    if name in shelf.names:
        raise ValueError(f"keep({name!r}) was called before in this run; a part has a name of its own.")
    shelf.names.add(name)
    found = _read(shelf.path(name))
    if found is not None:
        value, seconds = found
        shelf.saved += seconds
        return value
    began, saved = time.perf_counter(), shelf.saved
    tree, value = _plain(compute(), arrays := [])
    seconds = time.perf_counter() - began + shelf.saved - saved  # parts within it may have been found
    _write(shelf.path(name), {"tree": tree, "seconds": seconds}, arrays)
    return value


def _plain(value: Any, arrays: list[np.ndarray]) -> tuple[Any, Any]:
    """A value as JSON holds it, its arrays set aside and counted; and as it is handed on."""
    if isinstance(value, dict):
        if odd := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"a part of a run has the key {odd[0]!r}; name it in words.")
        pairs = {key: _plain(one, arrays) for key, one in value.items()}
        return {"of": {key: tree for key, (tree, _) in pairs.items()}}, {key: one for key, (_, one) in pairs.items()}
    if isinstance(value, list | tuple):
        pairs = [_plain(one, arrays) for one in value]
        return [tree for tree, _ in pairs], [one for _, one in pairs]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value, value
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise TypeError(f"a part of a run holds {type(value).__name__}, which no file keeps; make it numbers or words.")
    arrays.append(array)
    return {"array": len(arrays) - 1}, array


def _whole(tree: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(tree, list):
        return [_whole(one, arrays) for one in tree]
    if isinstance(tree, dict):
        if "array" in tree:
            return arrays[tree["array"]]
        return {key: _whole(one, arrays) for key, one in tree["of"].items()}
    return tree


def _write(path: Path, content: dict[str, Any], arrays: list[np.ndarray]) -> None:
    """The file has its name only when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    with part.open("wb") as file:
        np.savez(file, np.array(json.dumps(content)), *arrays)
    os.replace(part, path)


def _read(path: Path) -> tuple[Any, float] | None:
    """A part and its seconds; what is not there or damaged is computed again."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            first, *arrays = (file[f"arr_{i}"] for i in range(len(file.files)))
        content = json.loads(first.item())
        return _whole(content["tree"], arrays), float(content["seconds"])
    except (OSError, EOFError, ValueError, KeyError, IndexError, TypeError, BadZipFile):
        return None
