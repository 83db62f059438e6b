"""What was found, and where it lies: a folder for each size and seed, and in it one for each experiment.

A quick run does not touch what the full size found, nor one seed what another did. A finding is current as long as its
digest is (that of the setting, of what is searched and held fixed, of the seed and the version), and as its files are
there. Its claims are decided again whenever it is read: a rule may be another by then.

Parts of a long run are kept as they are done: a run that was interrupted goes on after the last of them. A part is one
file, which has its name only once it is whole, and belongs to the digest of its result.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from thesis.experiment import SIZES, Experiment, Result, find, names
from thesis.statistics import FAILS

ENDINGS = ("png", "svg")
LAST = {"png": b"\x00\x00\x00\x00IEND\xaeB`\x82", "svg": b"</svg>"}  # bytes that only a whole file ends with


@dataclass(frozen=True)
class Finding:
    """What `result.json` holds, and where its folder is.

    >>> Finding({"name": "ridge"}, Path("out"))["name"]
    'ridge'
    """

    content: Mapping[str, Any]
    folder: Path

    def __getitem__(self, name: str) -> Any:
        return self.content[name]


def folder_of(out: Path, name: str, size: str, seed: int) -> Path:
    """Where the finding of an experiment lies.

    >>> folder_of(Path("out"), "ridge", "full", 0).as_posix(), folder_of(Path("out"), "ridge", "quick", 3).as_posix()
    ('out/full/ridge', 'out/quick-seed-3/ridge')
    """
    return Path(out) / (f"{size}-seed-{seed}" if seed else size) / name


def digest_of(experiment: Experiment, size: str, seed: int) -> str:
    """What a result depends on, in 16 letters."""
    given = [experiment.name, experiment.setting(size), experiment.shared(), seed, version("filtax")]
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:16]


def decide(experiment: Experiment, result: Result) -> list[dict[str, Any]]:
    """The claims of an experiment with the verdicts on a result, as `result.json` holds them.

    Each has its text, label and tolerance; the words of the thesis and the form that was tested, None where that is the
    printed one; the verdict, what it rests on, and of what does not hold the reason that was found.
    """
    said = []
    for claim in experiment.claims:
        verdict = claim.decide(result)
        of = {part: getattr(claim, part) for part in ("number", "text", "source", "tolerance", "printed", "tested")}
        reason = claim.reason if verdict.text == FAILS else None
        said.append(of | {"verdict": verdict.text, "evidence": verdict.evidence, "reason": reason})
    return said


def stored(folder: Path, experiment: Experiment, size: str, seed: int) -> tuple[Finding, Result] | None:
    """An earlier finding with its claims decided again, and its numbers and arrays; figures may be lost.

    None if there is none with this digest, or if it cannot be read or decided: then it must be found again.

    >>> stored(Path("nowhere"), find("ridge"), "quick", 0) is None
    True
    """
    content = _content(folder)
    if content.get("digest") != digest_of(experiment, size, seed):
        return None
    try:
        with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
            result = Result(content["numbers"], dict(arrays))
        return Finding({**content, "claims": decide(experiment, result)}, folder), result
    except (OSError, EOFError, ValueError, LookupError, TypeError, BadZipFile):
        return None


def lost_figures(folder: Path, experiment: Experiment) -> list[str]:
    """Labels of figures of which a file is not there, or not whole: it may have been cut off as it was written."""
    files = {label: folder / label.removeprefix("fig:") for label in experiment.figures}
    return [label for label, path in files.items() if not all(_whole(Path(f"{path}.{end}"), end) for end in ENDINGS)]


def _whole(path: Path, ending: str) -> bool:
    """Whether a picture has its end: the last chunk of a PNG, the closing tag of an SVG."""
    return path.is_file() and path.read_bytes().rstrip(b"\r\n").endswith(LAST[ending])


def gather(out: Path) -> list[Finding]:
    """What lies in a folder and is current: the full size before the quick one, by seed, in the order of the thesis.

    >>> gather(Path("nowhere"))
    []
    """
    found = []
    for place, name in enumerate(names()):
        for path in Path(out).glob(f"*/{name}/result.json"):
            size, seed = (_content(path.parent).get(part) for part in ("size", "seed"))
            if size not in SIZES or not isinstance(seed, int) or path.parent != folder_of(out, name, size, seed):
                continue
            kept = stored(path.parent, find(name), size, seed)
            if kept is not None and not lost_figures(path.parent, find(name)):
                found.append((-SIZES.index(size), seed, place, kept[0]))
    return [finding for *_, finding in sorted(found, key=lambda row: row[:3])]


def _content(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / "result.json").read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


@dataclass
class Shelf:
    """Where parts are kept; `saved` are the seconds that those found there once took."""

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

    A name stands for one part of a run. `compute` gives words, numbers, arrays, lists and dictionaries; what is
    returned is the same whether computed or found, with lists for tuples and arrays of numpy.

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


def _refilled(tree: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(tree, list):
        return [_refilled(one, arrays) for one in tree]
    if isinstance(tree, dict):
        if "array" in tree:
            return arrays[tree["array"]]
        return {key: _refilled(one, arrays) for key, one in tree["of"].items()}
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
        return _refilled(content["tree"], arrays), float(content["seconds"])
    except (OSError, EOFError, ValueError, KeyError, IndexError, TypeError, BadZipFile):
        return None
