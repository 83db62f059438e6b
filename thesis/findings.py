"""What was found, and where it lies: a folder for each size and seed, and in it one for each experiment.

A quick run does not touch what the full size found, nor one seed what another did. A finding is current as long as its
digest is (that of the setting, of what is searched and held fixed, of the seed and the version), and as its files are
there. Its claims are decided anew whenever it is read: a rule may be another by then.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from thesis.experiment import SIZES, Experiment, Result
from thesis.printed import PRINTED
from thesis.reasons import NONE, REASONS
from thesis.registry import find, names
from thesis.verdicts import FAILS

__all__ = ["ENDINGS", "Finding", "current", "decide", "digest_of", "folder_of", "gather", "lost_figures", "stored"]

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
    """What a result depends on, in 16 letters.

    >>> digest_of(find("ridge"), "quick", 0) == digest_of(find("ridge"), "quick", 1)
    False
    """
    given = [experiment.name, experiment.setting(size), experiment.shared(), seed, version("filtax")]
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:16]


def decide(experiment: Experiment, result: Result) -> list[dict[str, Any]]:
    """The claims of an experiment with the verdicts on a result, as `result.json` holds them.

    Each has its text, label and tolerance; the words of the thesis and the form that was tested, None where that is the
    printed one; the verdict, what it rests on, and of what does not hold the reason that was found.

    >>> decide(find("continual"), Result({}))
    []
    """
    said = []
    for claim in experiment.claims:
        verdict = claim.decide(result)
        of = {"number": claim.number, "text": claim.text, "source": claim.source, "tolerance": claim.tolerance}
        form = PRINTED.get(claim.number)
        of |= {"printed": form and form.words, "tested": form and form.tested}
        reason = REASONS.get(claim.number, NONE) if verdict.text == FAILS else None
        said.append(of | {"verdict": verdict.text, "evidence": verdict.evidence, "reason": reason})
    return said


def stored(folder: Path, experiment: Experiment, size: str, seed: int) -> tuple[Finding, Result] | None:
    """An earlier finding with its claims decided anew, and its numbers and arrays; figures may be lost.

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
    """Labels of figures of which a file is not there, or not whole: it may have been cut off as it was written.

    >>> lost_figures(Path("nowhere"), find("ridge"))
    ['fig:recursive-ridge-params-and-rmse']
    """
    there = lambda label: all(_whole(folder / f"{label.removeprefix('fig:')}.{end}", end) for end in ENDINGS)  # noqa: E731
    return [label for label in experiment.figures if not there(label)]


def _whole(path: Path, ending: str) -> bool:
    """Whether a picture has its end: the last chunk of a PNG, the closing tag of an SVG."""
    return path.is_file() and path.read_bytes().rstrip(b"\r\n").endswith(LAST[ending])


def current(folder: Path, experiment: Experiment, size: str, seed: int) -> Finding | None:
    """An earlier finding that is whole, figures and all, with its claims decided anew.

    >>> current(Path("nowhere"), find("ridge"), "quick", 0) is None
    True
    """
    found = stored(folder, experiment, size, seed)
    return None if found is None or lost_figures(folder, experiment) else found[0]


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
            finding = current(path.parent, find(name), size, seed)
            if finding is not None:
                found.append((-SIZES.index(size), seed, place, finding))
    return [finding for *_, finding in sorted(found, key=lambda row: row[:3])]


def _content(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / "result.json").read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
