"""States on disk: generations in a folder, arrays in safetensors, and a JSON manifest without which they do not count.

`000012.safetensors` is written first, `000012.json` after it; the second rename is the moment at which a generation
exists. The manifest holds the SHA-256 of the arrays and of itself, the format, the digest of the configuration and the
position in the source. The generation before is kept. Nothing that is read here is ever run.

Each leaf of a state has a name, its path in the tree, and an entry that says what it is. Most are stored as they are; a
random key as its words, a number of Python as an array without axes, a dtype that safetensors does not know as bytes.
"""

import hashlib
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from filtax.io._errors import Damaged, Foreign, Missing
from filtax.io._files import PARTIAL, drop, lock, write_whole

FORMAT, KEPT = 1, 2
PYTHON = {bool: np.bool_, int: np.int64, float: np.float64}


def save(
    folder: str | Path, state: PyTree, *, config: Any = None, source: Any = None, note: Any = None, held: bool = False
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

    Example:
        >>> import tempfile, numpy as np
        >>> from filtax.io import load, save
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = save(folder, {"mean": np.array([0.5, -np.inf])}, source={"row": 7})
        ...     state, manifest = load(folder, {"mean": np.zeros(2)})
        >>> state["mean"].tolist(), manifest["source"]
        ([0.5, -inf], {'row': 7})
    """
    folder = Path(folder)
    content, entries = _packed(state)
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


def load(folder: str | Path, like: PyTree, *, config: Any = None) -> tuple[PyTree, dict]:
    """Read the newest generation that is sound.

    Args:
        folder: As for `save`.
        like: A state of the same kind, such as a fresh one; it gives the structure, kinds, dtypes and shapes. A method
            that remembers data learns their shape from the first: give `method.step(fresh, x, y)[0]`, of any x and y.
            Or a function that makes one of the manifest, where its `note` says what is needed.
        config: As for `save`; a checkpoint of another one is refused.

    Returns:
        The state, bit for bit, and the manifest with `source`, `note` and `generation`; `skipped` says in a sentence
        each why newer generations were skipped.

    Raises:
        Damaged: No generation is sound.
        Foreign: It belongs to another configuration or kind of state, or to a newer version.
        Missing: There is none.

    Example:
        >>> from filtax.io import load
        >>> load("no/such/folder", {})
        Traceback (most recent call last):
        filtax.io._errors.Missing: no/such/folder holds no checkpoint; ...
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
            state = _unpacked(_read_arrays(folder, number, manifest), manifest["arrays"], wanted)
        except Foreign as problem:
            raise Foreign(f"{_manifest(folder, number)}: {problem}.") from None
        except Damaged as problem:
            skipped.append(f"{_manifest(folder, number)}: {problem}.")
            continue
        return state, {**manifest, "skipped": skipped}
    raise Damaged(f"{skipped[0][:-1]}, and no older checkpoint is sound; start again in another folder.")


def generations(folder: str | Path) -> list[int]:
    """Numbers of the generations of a folder, sound or not, oldest first.

    Example:
        >>> from filtax.io import generations
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


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise Damaged(f"{path.name} is missing") from None


def _read_manifest(folder: Path, number: int) -> dict:
    """A manifest whose every byte is as it was written."""
    text = _read(_manifest(folder, number))
    try:
        manifest = json.loads(text)
        sound = isinstance(manifest, dict) and canonical(manifest) == text
    except (ValueError, RecursionError):
        sound, manifest = False, {}
    if not sound:
        raise Damaged("it was cut short or changed on disk")
    if manifest.pop("digest", None) != digest(manifest):
        raise Damaged("its checksum does not agree: it was changed on disk")
    if manifest.get("format") != FORMAT:
        raise Foreign(
            f"it has format {manifest.get('format')!r:.40} but this version reads {FORMAT}; use the one that wrote it"
        )
    if manifest["generation"] != number:
        raise Damaged(f"it is the manifest of generation {manifest['generation']}, and was renamed")
    return manifest


def _read_arrays(folder: Path, number: int, manifest: dict) -> bytes:
    content = _read(_arrays(folder, number))
    if hashlib.sha256(content).hexdigest() != manifest["sha256"]:
        raise Damaged(f"the checksum of {_arrays(folder, number).name} does not agree: it was changed on disk")
    return content


def _check_kin(manifest: dict, like: PyTree, config: Any) -> None:
    if manifest["config"] != digest(config):
        raise Foreign("it was written under another configuration; resume with the one it began with, or start again")
    if manifest["layout"] != _layout(like):
        raise Foreign("its parameters are arranged in another way; resume with the model it began with, or start again")


def _layout(state: Any) -> list | None:
    """Shapes of the parameters, where a flat vector stands for a pytree of them: they are no leaves of a state."""
    layout = getattr(state, "layout", None)
    return None if layout is None else [list(shape) for shape in layout.shapes]


def _clear(folder: Path, newest: int) -> None:
    """Remove what is older than the generation before, and what was never finished. Failing to is no loss."""
    for file in [*folder.glob("*.json"), *folder.glob("*.safetensors"), *folder.glob(f"*{PARTIAL}")]:
        number = file.name.split(".")[0]
        if number.isascii() and number.isdigit() and (file.suffix == PARTIAL or int(number) <= newest - KEPT):
            drop(file)


def canonical(value: Any) -> bytes:
    """Write a value of dicts, lists, texts and numbers as JSON, always in the same way."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise ValueError(
            f"what is stored beside a state must be plain JSON ({problem}); give dicts, lists, texts, finite numbers."
        ) from None
    return text.encode("ascii")


def digest(value: Any) -> str:
    """SHA-256 of a value's canonical JSON, 64 hexadecimal digits; equal for equal values.

    Example:
        >>> from filtax.io import digest
        >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
        True
    """
    return hashlib.sha256(canonical(value)).hexdigest()


def _packed(tree: PyTree) -> tuple[bytes, dict[str, dict]]:
    """The leaves of a tree as one safetensors file, and what each of them is."""
    from safetensors.numpy import save

    entries, arrays = {}, {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = jax.tree_util.keystr(path) or "."
        kind, array = _as_numpy(name, leaf)
        entries[name] = {"kind": kind, "dtype": str(array.dtype), "shape": list(array.shape)}
        array = np.ascontiguousarray(array).reshape(array.shape)  # the former would give a number an axis
        arrays[name] = array if array.dtype.kind in "biuf" else np.frombuffer(array.tobytes(), np.uint8)
    return save(arrays), entries


def _unpacked(content: bytes, entries: dict[str, dict], like: PyTree) -> PyTree:
    """A tree of the structure of `like` with the leaves that are stored."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(content)
    except (SafetensorError, ValueError, KeyError) as problem:
        raise Damaged(f"the arrays cannot be read ({problem})") from None
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [jax.tree_util.keystr(path) or "." for path, _ in leaves]
    _check_names(names, entries)
    if set(arrays) != set(entries):
        raise Damaged("the arrays are not those that the manifest names")
    restored = [
        _restored(name, arrays[name], entries[name], leaf) for name, (_, leaf) in zip(names, leaves, strict=True)
    ]
    return jax.tree_util.tree_unflatten(structure, restored)


def _as_numpy(name: str, leaf: Any) -> tuple[str, np.ndarray]:
    """What a leaf is, and its numbers."""
    if type(leaf) in PYTHON:
        if type(leaf) is int and not -(2**63) <= leaf < 2**63:
            raise ValueError(
                f"{name} is {leaf!r:.40}, which no 64-bit number holds; store it as a text beside the state."
            )
        return type(leaf).__name__, np.asarray(leaf, PYTHON[type(leaf)])
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return f"key:{jax.random.key_impl(leaf)}", np.asarray(jax.random.key_data(leaf))
    if not isinstance(leaf, jax.Array | np.ndarray | np.generic) or leaf.dtype.kind in "OSUMm":
        raise ValueError(f"{name} is a {type(leaf).__name__}, not an array of numbers; keep it outside of the state.")
    return "array", np.asarray(leaf)


def _check_names(names: list[str], entries: dict[str, dict]) -> None:
    if set(names) == set(entries):
        return
    only = sorted(set(entries) - set(names)) or sorted(set(names) - set(entries))
    raise Foreign(
        f"it holds another kind of state: {only[0]} is on one side only; give a state of the same method, and of one "
        "that remembers data a state that has seen a datum; or it is of another version of filtax, which reads it"
    )


def _restored(name: str, stored: np.ndarray, entry: dict, like: Any) -> Any:
    """One leaf, of the kind that `like` has; what is another kind, dtype or shape is refused."""
    kind, model = _as_numpy(name, like)
    if (entry["kind"], entry["dtype"]) != (kind, str(model.dtype)):
        given, wanted = (f"{kind} of {dtype}" for kind, dtype in ((entry["kind"], entry["dtype"]), (kind, model.dtype)))
        raise Foreign(f"{name} is stored as {given}, but {wanted} was expected")
    shape = tuple(entry["shape"])
    if shape != model.shape and not (name.startswith(".hypotheses") and _has_grown(shape, model.shape)):
        raise Foreign(f"{name} is stored with shape {shape}, but {model.shape} was expected")
    array = stored
    if str(stored.dtype) != entry["dtype"]:
        array = np.frombuffer(stored.tobytes(), model.dtype)
    if array.size != int(np.prod(shape)):
        raise Damaged(f"{name} does not hold the numbers that the manifest says")
    array = array.reshape(shape)
    if kind.startswith("key:"):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=kind.removeprefix("key:"))
    if kind != "array":
        return array.item()
    if not isinstance(like, jax.Array):
        return array.copy() if isinstance(like, np.ndarray) else array[()]
    restored = jnp.asarray(array)
    if restored.dtype != model.dtype:  # JAX would drop half of the bits
        raise Foreign(f"{name} holds {model.dtype}, which JAX has switched off; set jax_enable_x64 first")
    return restored


def _has_grown(stored: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether a bank of hypotheses has more places than when it began."""
    return len(stored) == len(wanted) > 0 and stored[1:] == wanted[1:] and stored[0] > wanted[0] > 0
