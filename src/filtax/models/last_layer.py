"""(M.1) Where the last layer of a network lies in the flat vector of its parameters.

A pytree is flattened in order, so the leaves of any of its branches are neighbours: a layer is a range (start, stop).

The rule, when the layer is not named: a wrapper with a single entry is opened; of a sequence of layers the last one
that holds arrays is taken; of a dictionary the entry whose name is a common word and the highest number ("Dense_0",
"Dense_1"), for the order of a dictionary says nothing. Everything else is refused: name the layer instead.
"""

import re
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

__all__ = ["last_layer_range"]

_NUMBERED = re.compile(r"(.*?)(\d+)")


def last_layer_range(params: PyTree, last: Any = True) -> tuple[int, int]:
    """Find the last layer of a network.

    Args:
        params: Parameters of the network, a pytree; or all of them as one vector (D,).
        last: True to find it by the rule above; or its place: a key, an index, a field name, or a tuple of these from
            the outside in, such as ("params", "head"); of a vector, how many numbers at its end.

    Returns:
        (start, stop): the layer is `theta[start:stop]` of the flat vector that filters move.

    >>> import jax
    >>> from filtax.models import mlp
    >>> last_layer_range(mlp((3, 20, 2)).init(jax.random.key(0)))  # 3 * 20 + 20 before it
    (80, 122)
    >>> last_layer_range({"body": np.ones(5), "head": np.ones(2)}, last="head")
    (5, 7)
    """
    if last is False or last is None:  # False would be read as the first of a list
        raise ValueError(f"last layer: last={last} names no layer; give True to find it, or its place.")
    leaves, structure = jax.tree.flatten(params)
    ends = np.cumsum([0] + [int(np.size(leaf)) for leaf in leaves])
    total = int(ends[-1])
    if structure == jax.tree.structure(0):
        return _tail(leaves[0], last)
    numbered = jax.tree.unflatten(structure, list(range(len(leaves))))
    path = () if last is True else last if isinstance(last, tuple) else (last,)
    layer = _found(numbered) if last is True else _named(numbered, path)
    inside = jax.tree.leaves(layer)
    start, stop = (int(ends[inside[0]]), int(ends[inside[-1] + 1])) if inside else (0, 0)
    if start == stop:
        raise ValueError(f"last layer: the branch {_show(path)} holds no parameters; name the one that does.")
    if stop - start == total:
        raise ValueError(
            "last layer: it would be all of the network, which leaves no hidden layers; use the model as it is, or "
            'name a branch, such as last="head".'
        )
    return start, stop


def _tail(vector: Any, last: Any) -> tuple[int, int]:
    size = int(np.size(vector))
    if isinstance(last, bool) or not isinstance(last, int | np.integer) or not 0 < last < size:
        raise ValueError(
            f"last layer: it cannot be found in a flat vector of {size} parameters; give last=L, the count of those at "
            "its end, or the parameters as a pytree."
        )
    return size - int(last), size


def _found(branch: Any) -> Any:
    """Apply the rule."""
    while True:
        entries = _entries(branch)
        if entries is None:
            raise ValueError(
                f"last layer: it cannot be found in parameters of type {type(branch).__name__}; name it, "
                'such as last="head" or last=("layers", -1).'
            )
        full = {key: entry for key, entry in entries.items() if jax.tree.leaves(entry)}
        if len(full) != 1:
            break
        branch = next(iter(full.values()))
    if not full or not isinstance(branch, dict):
        return full[max(full)] if full else ()
    parts = {key: _NUMBERED.fullmatch(str(key)) for key in full}
    if any(part is None for part in parts.values()) or len({part[1] for part in parts.values() if part}) != 1:
        raise ValueError(
            f"last layer: it cannot be found among {_keys(full)}, since a dictionary has no order; name it, "
            f"such as last={list(full)[-1]!r}."
        )
    return full[max(full, key=lambda key: int(parts[key][2]))]  # type: ignore[index]


def _entries(branch: Any) -> dict[Any, Any] | None:
    if isinstance(branch, dict):
        return branch
    return dict(enumerate(branch)) if isinstance(branch, tuple | list) else None


def _named(branch: Any, path: tuple) -> Any:
    for key in path:
        try:
            is_field = isinstance(key, str) and not isinstance(branch, dict)
            branch = getattr(branch, key) if is_field else branch[key]
        except (KeyError, IndexError, AttributeError, TypeError):
            entries = _entries(branch)
            known = f"it has {_keys(entries)}" if entries is not None else f"it is a {type(branch).__name__}"
            raise ValueError(f"last layer: there is no {key!r} on the path {_show(path)}; {known}.") from None
    return branch


def _keys(entries: dict) -> str:
    return ", ".join(repr(key) for key in entries)


def _show(path: tuple) -> str:
    return repr(path[0] if len(path) == 1 else path)
