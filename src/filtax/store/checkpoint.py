"""Generations of a state in a folder: arrays in safetensors, and a JSON manifest without which they do not count.

`000012.safetensors` is written first, `000012.json` after it; the second rename is the moment at which a generation
exists. The manifest holds the SHA-256 of the arrays and of itself, the format, the digest of the configuration and the
position in the source. The generation before is kept. Nothing that is read here is ever run.
"""

import hashlib
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from jaxtyping import PyTree

from filtax.store.digest import canonical, digest
from filtax.store.errors import Damaged, Foreign, Missing
from filtax.store.locking import lock
from filtax.store.tensors import packed, unpacked
from filtax.store.writing import PARTIAL, write_whole

__all__ = ["FORMAT", "KEPT", "generations", "load", "save"]

FORMAT, KEPT = 1, 2
LARGEST_MANIFEST = 1 << 24
FIELDS = {"arrays", "bytes", "config", "digest", "format", "generation", "layout", "note", "sha256", "source"}


def save(
    folder: Any, state: PyTree, *, config: Any = None, source: Any = None, note: Any = None, held: bool = False
) -> int:
    """Write a state as the next generation of a folder.

    Args:
        folder: Where; made if it is not there.
        state: Any pytree of arrays, random keys and numbers, such as the state of a method.
        config: What the state belongs to, as JSON; only its digest is stored.
        source: Position in the source, as JSON: what a resumed run must know to neither skip nor repeat a row.
        note: Anything else, as JSON.
        held: Whether the caller holds the `lock` of the folder already.

    Returns:
        The number of the generation. When it is returned the generation is on disk.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save(folder, {"mean": np.array([0.5, -np.inf])}, source={"row": 7})
    ...     state, manifest = load(folder, {"mean": np.zeros(2)})
    >>> state["mean"].tolist(), manifest["source"]
    ([0.5, -inf], {'row': 7})
    """
    folder = Path(folder)
    content, entries = packed(state)
    manifest = {
        "arrays": entries,
        "bytes": len(content),
        "config": digest(config),
        "format": FORMAT,
        "layout": _layout(state),
        "note": note,
        "sha256": hashlib.sha256(content).hexdigest(),
        "source": source,
    }
    canonical(manifest)  # refused before anything is touched
    with nullcontext() if held else lock(folder):
        folder.mkdir(parents=True, exist_ok=True)
        number = max(generations(folder), default=0) + 1
        manifest["generation"] = number
        manifest["digest"] = digest(manifest)
        write_whole(_arrays(folder, number), content)
        write_whole(_manifest(folder, number), canonical(manifest))
        _clear(folder, number)
    return number


def load(folder: Any, like: PyTree, *, config: Any = None) -> tuple[PyTree, dict]:
    """Read the newest generation that is sound.

    Args:
        folder: As for `save`.
        like: A state of the same kind, such as a fresh one; it gives the structure, kinds, dtypes and shapes. A method
            that remembers data learns their shape from the first: give `method.step(fresh, x, y)[0]`, of any x and y.
            Or a function that makes one of the manifest, where its `note` says what is needed.
        config: As for `save`; a checkpoint of another one is refused.

    Returns:
        The state, bit for bit, and the manifest with `source`, `note` and `generation`; `skipped` says in a sentence
        each why newer generations were passed over.

    Raises:
        Damaged: No generation is sound.
        Foreign: It belongs to another configuration or kind of state, or to a newer version.
        Missing: There is none.

    >>> load("no/such/folder", {})
    Traceback (most recent call last):
    filtax.store.errors.Missing: no/such/folder holds no checkpoint; ...
    """
    folder = Path(folder)
    found = sorted(generations(folder), reverse=True)
    if not found:
        raise Missing(f"{folder} holds no checkpoint; start without resuming, or name the folder of a run.")
    skipped: list[str] = []
    for number in found:
        try:
            manifest = _read_manifest(folder, number)
            wanted = like(manifest) if callable(like) else like
            _check_kin(manifest, wanted, config)
            state = unpacked(_read_arrays(folder, number, manifest), manifest["arrays"], wanted)
        except Foreign as problem:
            raise Foreign(f"{_manifest(folder, number)}: {problem}.") from None
        except Damaged as problem:
            skipped.append(f"{_manifest(folder, number)}: {problem}.")
            continue
        return state, {**manifest, "skipped": skipped}
    raise Damaged(f"{skipped[0][:-1]}, and no older checkpoint is sound; start anew in another folder.")


def generations(folder: Any) -> list[int]:
    """Numbers of the generations of a folder, sound or not, oldest first.

    >>> generations("no/such/folder")
    []
    """
    folder = Path(folder)
    stems = [file.stem for file in folder.glob("*.json")] if folder.is_dir() else []
    return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdigit())


def _arrays(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.safetensors"


def _manifest(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.json"


def _read(path: Path, most: int) -> bytes:
    try:
        if path.stat().st_size > most:
            raise Damaged(f"it is larger than the {most} bytes that were expected")
        return path.read_bytes()
    except FileNotFoundError:
        raise Damaged(f"{path.name} is missing") from None


def _read_manifest(folder: Path, number: int) -> dict:
    """A manifest whose every byte is as it was written."""
    text = _read(_manifest(folder, number), LARGEST_MANIFEST)
    try:
        manifest = json.loads(text)
        sound = isinstance(manifest, dict) and canonical(manifest) == text
    except (ValueError, RecursionError):
        raise Damaged("it was cut short or changed on disk") from None
    if not sound:
        raise Damaged("it was cut short or changed on disk")
    told = manifest.pop("digest", None)
    if told != digest(manifest):
        raise Damaged("its checksum does not agree: it was changed on disk")
    if manifest.get("format") != FORMAT:
        raise Foreign(
            f"it has format {manifest.get('format')!r:.40} but this version reads {FORMAT}; use the one that wrote it"
        )
    if manifest.keys() | {"digest"} != FIELDS or manifest["generation"] != number:
        raise Damaged("it is not a manifest of this generation")
    return manifest


def _read_arrays(folder: Path, number: int, manifest: dict) -> bytes:
    content = _read(_arrays(folder, number), manifest["bytes"])
    if len(content) != manifest["bytes"]:
        raise Damaged(f"{_arrays(folder, number).name} was cut short")
    if hashlib.sha256(content).hexdigest() != manifest["sha256"]:
        raise Damaged(f"the checksum of {_arrays(folder, number).name} does not agree: it was changed on disk")
    return content


def _check_kin(manifest: dict, like: PyTree, config: Any) -> None:
    if manifest["config"] != digest(config):
        raise Foreign("it was written under another configuration; resume with the one it began with, or start anew")
    if manifest["layout"] != _layout(like):
        raise Foreign("its parameters are arranged in another way; resume with the model it began with, or start anew")


def _layout(state: Any) -> list | None:
    """Shapes of the parameters, where a flat vector stands for a pytree of them: they are no leaves of a state."""
    layout = getattr(state, "layout", None)
    return None if layout is None else [list(shape) for shape in layout.shapes]


def _clear(folder: Path, newest: int) -> None:
    """Remove what is older than the generation before, and what was never finished. Failing to is no loss."""
    for file in [*folder.glob("*.json"), *folder.glob("*.safetensors"), *folder.glob(f"*{PARTIAL}")]:
        number = file.name.split(".")[0]
        if number.isascii() and number.isdigit() and (file.suffix == PARTIAL or int(number) <= newest - KEPT):
            try:
                file.unlink()
            except OSError:
                continue
