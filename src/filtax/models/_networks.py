"""(M.1) Networks in plain JAX: a multilayer perceptron and LeNet-5, and where the last layer of a network lies.

A network is h(theta, x) and a way to draw its initial parameters; it knows nothing of noise or beliefs. Any other
library serves as well, as long as it gives `apply(params, x)` and a pytree of parameters.

    net = mlp((3, 20, 1), activation="tanh")
    ekf = filtax.method("LG+C-Static", model=filtax.models.nonlinear(net.apply, noise=0.1))
    state = ekf.init(params=net.init(key), cov=0.1)

Layers are adjacent in the flat vector of parameters, in order. Where the last one is not named, a rule finds it: a
wrapper with a single entry is opened; of a sequence the last entry that holds arrays is taken; of a dictionary the
entry whose name is a common word and the highest number ("Dense_0", "Dense_1"), since its order says nothing.
Everything else is refused.

Thesis: sec:experiments-scalability, where LeNet-5 carries one dense layer more (`extra`).
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float, PyTree

from filtax import _validation as checks

_FRAME = 32  # side of the images that LeNet-5 takes
_KERNEL = 5
_NUMBERED = re.compile(r"(.*?)(\d+)")


class Network(eqx.Module):  # no filtax.protocols.Module: bound methods must compare by value
    """A feed-forward network: convolutions with pooling if `filters` is given, then dense layers.

    Every field is static and compared by value, so two networks built alike are equal, and a method that holds
    `net.apply` compiles once for both. Use `mlp` or `lenet5` to make one.

    Attributes:
        shape: Shape of one input; `apply` also takes it flat.
        filters: Channels of each 5 x 5 convolution, each followed by 2 x 2 average pooling; empty for a perceptron.
        sizes: Widths of the dense layers, the flattened input first and the output last.
        activation: Name of a function in `jax.nn`, or any function of an array.

    >>> mlp((3, 20, 1)) == mlp([3, 20, 1])
    True
    """

    shape: tuple[int, ...] = eqx.field(static=True)
    filters: tuple[int, ...] = eqx.field(static=True)
    sizes: tuple[int, ...] = eqx.field(static=True)
    activation: str | Callable[[Array], Array] = eqx.field(static=True)

    @property
    def size(self) -> int:
        """Number of parameters D.

        >>> mlp((3, 20, 1)).size  # 3 * 20 + 20, then 20 * 1 + 1
        101
        """
        return sum(math.prod(weight) + weight[-1] for weight in self._weights)

    def init(self, key: Array, dtype: DTypeLike | None = None) -> PyTree[Float[Array, "..."]]:
        r"""Draw initial parameters: weights $N(0, 1/\text{inputs of the unit})$ (LeCun), biases zero.

        There is one dictionary of `bias` and `weight` for each layer, in order.

        Args:
            key: A JAX random key; equal keys draw equal parameters.
            dtype: A floating dtype; JAX's default if not given. The filter follows it.

        >>> params = mlp((3, 20, 1)).init(jax.random.key(0))
        >>> [layer["weight"].shape for layer in params]
        [(3, 20), (20, 1)]
        """
        dtype = jnp.result_type(float) if dtype is None else jnp.dtype(dtype)
        if not jnp.issubdtype(dtype, jnp.floating):
            raise ValueError(f"Network.init(dtype=...) must be a floating dtype, got {dtype}; use float32 or float64.")
        checks.key("Network.init(key=...)", key)
        keys = jax.random.split(key, len(self._weights))
        return tuple(
            {
                "bias": jnp.zeros(shape[-1], dtype),
                "weight": jax.random.normal(k, shape, dtype) / math.sqrt(math.prod(shape[:-1])),
            }
            for k, shape in zip(keys, self._weights, strict=True)
        )

    # Quoted annotations: a bound method is pickled with its annotations, and these types cannot be pickled.
    def apply(self, params: "PyTree[Float[Array, '...']]", x: "ArrayLike") -> "Float[Array, '*O']":
        """Compute h(theta, x), (O,), or a scalar, (), if there is one output unit; in the dtype of the parameters.

        There is no activation after the last layer.

        Args:
            params: As `init` returns them, at any values.
            x: One input, of the network's `shape` or flat.

        >>> one, two = mlp((3, 20, 1)), mlp((3, 20, 2))
        >>> [net.apply(net.init(jax.random.key(0)), jnp.ones(3)).shape for net in (one, two)]
        [(), (2,)]
        """
        if math.prod(jnp.shape(x)) != math.prod(self.shape):
            raise ValueError(
                f"Network.apply: x has shape {jnp.shape(x)} but the network takes {self.shape}; "
                "give one input at a time, and use `jax.vmap` or `scan` for many."
            )
        activate = vars(jax.nn)[self.activation] if isinstance(self.activation, str) else self.activation
        values = jnp.reshape(jnp.asarray(x, params[0]["weight"].dtype), self.shape)
        depth = len(self.filters)
        if depth:
            values = _frame(values)
        for layer in params[:depth]:
            values = _pool(activate(_convolve(values, layer["weight"]) + layer["bias"][None, None, :]))
        values = jnp.ravel(values)
        for layer in params[depth:-1]:
            values = activate(values @ layer["weight"] + layer["bias"])
        outputs = values @ params[-1]["weight"] + params[-1]["bias"]
        return outputs[0] if self.sizes[-1] == 1 else outputs

    @property
    def _weights(self) -> tuple[tuple[int, ...], ...]:
        channels = (self.shape[-1], *self.filters)
        kernels = tuple((_KERNEL, _KERNEL, *pair) for pair in zip(channels, self.filters, strict=False))
        return kernels + tuple(zip(self.sizes, self.sizes[1:], strict=False))


def mlp(sizes: Sequence[int], activation: str | Callable[[Array], Array] = "relu") -> Network:
    """Build a multilayer perceptron.

    Args:
        sizes: Widths of all layers, the input first and the output last; two of them make a linear model with bias.
        activation: Name of a function in `jax.nn` ("relu", "tanh", "elu", ...), or any function of an array. A name (or
            a function of `jax.nn`, kept as its name) lets the network be pickled.

    >>> net = mlp((1, 2, 1), activation="tanh")
    >>> hidden = {"weight": jnp.array([[1.0, -1.0]]), "bias": jnp.zeros(2)}
    >>> output = {"weight": jnp.array([[1.0], [1.0]]), "bias": jnp.array([0.5])}
    >>> float(net.apply((hidden, output), jnp.array([0.3])))  # the two units cancel
    0.5
    """
    widths = tuple(sizes) if isinstance(sizes, Iterable) else ()
    if len(widths) < 2 or not all(isinstance(n, int | np.integer) and n >= 1 for n in widths):
        raise ValueError(
            f"mlp(sizes=...) must be two or more positive whole widths, from input to output, got {sizes!r:.60}."
        )
    sizes = tuple(int(n) for n in widths)
    return Network(sizes[:1], (), sizes, _checked_activation(activation))


def lenet5(
    classes: int = 10,
    image: tuple[int, int, int] = (28, 28, 1),
    extra: bool = False,
    activation: str | Callable[[Array], Array] = "relu",
) -> Network:
    """Build LeNet-5: two convolutions with average pooling, then dense layers of 120, 84 and `classes` units.

    It sees 32 x 32 pixels. A smaller image is centred on a frame of zeros, so 28 x 28 gets a border of two: the same as
    padding the first convolution. With ten classes and one channel it has 61,706 parameters, with `extra` 62,766.

    Args:
        classes: Number of outputs (logits; there is no softmax here, the likelihood has it).
        image: Height, width and channels; at most 32 x 32.
        extra: Put a dense layer of 20 units before the output, as the thesis does for its last-layer methods.
        activation: As in `mlp`.

    >>> lenet5().size, lenet5(extra=True).size
    (61706, 62766)
    """
    sides = tuple(image) if isinstance(image, tuple | list) else ()
    if len(sides) != 3 or not all(isinstance(n, int) and n >= 1 for n in sides) or max(sides[:2]) > _FRAME:
        raise ValueError(
            f"lenet5(image=...) must be (height, width, channels) of at most 32 x 32 pixels, got {image!r:.60}."
        )
    checks.whole("lenet5(classes=...)", classes, least=1)
    flat = 16 * 5 * 5  # 32 -> 28 -> 14 -> 10 -> 5
    sizes = (flat, 120, 84, 20, classes) if extra else (flat, 120, 84, classes)
    return Network(sides, (6, 16), sizes, _checked_activation(activation))


def _checked_activation(activation: str | Callable[[Array], Array]) -> str | Callable[[Array], Array]:
    """Keep functions of `jax.nn` by name: they cannot be pickled, a name can."""
    if not isinstance(activation, str):
        return next((name for name, value in vars(jax.nn).items() if value is activation), activation)
    if not callable(vars(jax.nn).get(activation)):
        raise ValueError(f'activation "{activation}" is not in `jax.nn`; use "relu", "tanh", "elu" or a function.')
    return activation


def _frame(image: Float[Array, "H W C"]) -> Float[Array, "32 32 C"]:
    spare = [_FRAME - side for side in image.shape[:2]]
    return jnp.pad(image, [(n // 2, n - n // 2) for n in spare] + [(0, 0)])


def _convolve(image: Float[Array, "H W C"], kernel: Float[Array, "5 5 C F"]) -> Float[Array, "h w F"]:
    dims = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(image[None], kernel, (1, 1), "VALID", dimension_numbers=dims)[0]


def _pool(image: Float[Array, "H W F"]) -> Float[Array, "h w F"]:
    height, width, channels = image.shape
    return image.reshape(height // 2, 2, width // 2, 2, channels).mean((1, 3))


def last_layer_range(params: PyTree, last: Any = True) -> tuple[int, int]:
    """Find the range (start, stop) of the last layer of a network in the flat vector of its parameters.

    Args:
        params: Parameters of the network, a pytree; or all of them as one vector (D,).
        last: True to find it by the rule above; or where it is: a key, an index, a field name, or a tuple of these from
            the outside in, such as ("params", "head"); of a vector, how many numbers at its end.

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
