"""A pytree of arrays as safetensors bytes, and back, bit for bit.

Each leaf has a name, its path in the tree, and an entry that says what it is. Most are stored as they are; a random key
as its words, a number of Python as an array without axes, and a dtype that the format does not know as bytes.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from filtax.store.errors import Damaged, Foreign

__all__ = ["packed", "unpacked"]

PLAIN = {"bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64"}
PLAIN |= {"uint8", "uint16", "uint32", "uint64"}
PYTHON = {bool: np.bool_, int: np.int64, float: np.float64}


def packed(tree: PyTree) -> tuple[bytes, dict[str, dict]]:
    """The leaves of a tree as one safetensors file, and what each of them is.

    >>> content, entries = packed({"a": jnp.zeros(2, jnp.int32), "b": 3})
    >>> entries["['b']"]
    {'kind': 'int', 'dtype': 'int64', 'shape': []}
    """
    from safetensors.numpy import save

    entries, arrays = {}, {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = jax.tree_util.keystr(path) or "."
        kind, array = _as_numpy(name, leaf)
        entries[name] = {"kind": kind, "dtype": str(array.dtype), "shape": list(array.shape)}
        arrays[name] = _as_stored(array)
    return save(arrays), entries


def unpacked(content: bytes, entries: dict[str, dict], like: PyTree) -> PyTree:
    """A tree of the structure of `like` with the leaves that are stored.

    >>> content, entries = packed({"a": np.arange(3)})
    >>> unpacked(content, entries, {"a": np.zeros(3, int)})["a"].tolist()
    [0, 1, 2]
    """
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


def _as_stored(array: np.ndarray) -> np.ndarray:
    array = np.ascontiguousarray(array).reshape(array.shape)  # the former would give a number an axis
    if str(array.dtype) in PLAIN:
        return array
    return np.frombuffer(array.tobytes(), np.uint8)


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
    if not _fits(name, shape, model.shape):
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


def _fits(name: str, stored: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether shapes agree; a bank of hypotheses may have grown by doubling since it began."""
    if stored == wanted or not name.startswith(".hypotheses"):
        return stored == wanted
    if len(stored) != len(wanted) or stored[1:] != wanted[1:] or stored[0] <= wanted[0] or wanted[0] == 0:
        return False
    times = stored[0] // wanted[0]
    return stored[0] % wanted[0] == 0 and times & (times - 1) == 0
