"""What was found, and where it lies: a folder for each size and seed, and in it one for each experiment.

A quick run does not touch what the full size found, nor one seed what another did. A finding is current as long as its
digest is: that of the setting, of what is searched and held fixed, of the seed and the version.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filtax.experiments.experiment import SIZES, Experiment
from filtax.experiments.registry import find, names

__all__ = ["Finding", "current", "digest_of", "folder_of", "gather"]


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
    """What a result depends on, in 16 letters.

    >>> digest_of(find("ridge"), "quick", 0) == digest_of(find("ridge"), "quick", 1)
    False
    """
    given = [experiment.name, experiment.setting(size), experiment.shared(), seed, version("filtax")]
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:16]


def current(folder: Path, digest: str) -> Finding | None:
    """An earlier finding with this digest; what cannot be read is found again.

    >>> current(Path("nowhere"), "0123") is None
    True
    """
    content = _content(folder)
    return Finding(content, folder) if content.get("digest") == digest else None


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
            finding = current(path.parent, digest_of(find(name), size, seed))
            if finding is not None:
                found.append((-SIZES.index(size), seed, place, finding))
    return [finding for *_, finding in sorted(found, key=lambda row: row[:3])]


def _content(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / "result.json").read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
