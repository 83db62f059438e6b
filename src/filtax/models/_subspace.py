r"""(M.1) Subspace: a model whose many parameters move along few directions, $\theta(z) = A z + \theta_*$.

The filter runs on z, with any posterior, prior and weighting. The Jacobian is $Z = H A$. If the last layer is free, the
coordinates are $(z, w)$ and $\theta = (A z + \psi_*, w)$, the model of PULSE; without directions only the last layer is
learned. Z takes the cheaper of d forward derivatives along the columns of A, and O backward passes with a product
(O, D)(D, d). They cost the same near d = 8 O (LeNet-5, 10 outputs, d = 1, 10, 100: 0.3, 1.1, 13.2 ms forward, 7.1, 7.4,
12.5 ms backward).

Directions are random, or the first d right singular vectors of n parameter vectors met in training. An uncentred
decomposition spends its first direction on the parameters themselves, which only scales the network (errata E31);
centred iterates, or differences from the last one, do not.

Axes: D parameters, d directions, O outputs. Cost: memory O(D d) for A; O(n² D) to find it.
Thesis: eq:subspace-params, eq:subspace-ssm, algo:subspace-extended-kalman-filter (errata E30),
eq:hidden-layer-decomposition, eq:subspace-last-layer-ssm, subsec:warm-up-subspace, algo:MAP-SGD.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree

from filtax import _validation as checks
from filtax.linalg import matmul
from filtax.models._model import Linearised, Model, Predicted, Predictor
from filtax.models._networks import last_layer_range
from filtax.models._nonlinear import Function
from filtax.protocols import static
from filtax.ravel import Layout, flatten

FORWARD = 8  # up to this many directions for each output, forward derivatives are cheaper than backward ones
_KINDS = {
    "uncentred": lambda rows: rows,
    "centred": lambda rows: rows - rows.mean(axis=0),
    "differences": lambda rows: rows[:-1] - rows[-1],
}


class Subspace(Predictor):
    """h(theta(z, w), x): the hidden parameters are `hidden` + `basis` z; those of the last layer, at `start`, are free.

    Without a basis the hidden parameters are coordinates themselves, before those of the last layer.
    """

    inner: Any
    basis: Float[Array, "H d"] | None
    hidden: Float[Array, " H"]
    last: Float[Array, " L"]
    start: int = static(default=0)
    layout: Layout | None = None

    @property
    def sizes(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Coordinates of the hidden layers, and of the last layer where it is free."""
        inside = self.hidden.size if self.basis is None else self.basis.shape[1]
        return (inside, self.last.size) if self.last.size else (inside,)

    def begin(self) -> Float[Array, " N"]:
        """Coordinates of the offset, where a filter without a given mean starts."""
        first = self.hidden if self.basis is None else jnp.zeros(self.basis.shape[1], self.hidden.dtype)
        return jnp.concatenate([first, self.last])

    def lift(self, coordinates: Float[Array, " N"]) -> PyTree:
        """Parameters at given coordinates: the pytree of the network, or theta (D,) where there is none."""
        theta = self._theta(*self._split(coordinates))
        return theta if self.layout is None else self.layout.restore(theta)

    def linearise(self, theta: Float[Array, " N"], x: Any, aux: PyTree) -> Linearised:
        """Value at the coordinates `theta`, and derivatives along the directions and in the free layer."""
        hidden, w = self._split(theta)
        full = self._theta(hidden, w)
        if self.basis is not None and isinstance(self.inner, Function):  # h can be differentiated in either direction
            shape = eqx.filter_eval_shape(self.inner.value, full, x, aux)
            if self.basis.shape[1] <= FORWARD * shape.eta.size:
                return self._forward(hidden, w, x, shape.scalar)
        at = self.inner.linearise(full, x, aux)
        stop = self.start + self.last.size
        Z = jnp.concatenate([at.jacobian[:, : self.start], at.jacobian[:, stop:]], axis=1)
        Z = Z if self.basis is None else matmul(Z, self.basis)
        return Linearised(at.eta, jnp.concatenate([Z, at.jacobian[:, self.start : stop]], axis=1), at.scalar)

    def value(self, theta: Float[Array, " N"], x: Any, aux: PyTree) -> Predicted:
        """Value at the coordinates `theta`, by one forward pass."""
        return self.inner.value(self._theta(*self._split(theta)), x, aux)

    def _split(self, coordinates: Array) -> tuple[Array, Array]:
        """Hidden parameters and last layer."""
        inside = coordinates.size - self.last.size
        z, w = coordinates[:inside], coordinates[inside:]
        if self.basis is None:
            return z, w
        return (self.hidden + matmul(self.basis, z[:, None])[:, 0] if inside else self.hidden), w

    def _theta(self, hidden: Array, w: Array) -> Array:
        return jnp.concatenate([hidden[: self.start], w, hidden[self.start :]])

    def _outputs(self, hidden: Array, w: Array, x: Array | None) -> Array:
        """Outputs of h from separate arrays, so that a derivative by one of them does not carry zeros for the other."""
        if self.layout is None:
            return self.inner.value(self._theta(hidden, w), x, None).eta
        leaves, at = [], 0
        for shape in self.layout.shapes:
            size, inside = math.prod(shape), self.start <= at < self.start + self.last.size
            source = w if inside else hidden
            first = at - (self.start if inside else self.last.size * (at >= self.start))
            leaves.append(source[first : first + size].reshape(shape))
            at += size
        eta = self.inner.h(jax.tree.unflatten(self.layout.structure, leaves), x)
        return jnp.asarray(eta).astype(hidden.dtype).reshape(-1)

    def _forward(self, hidden: Array, w: Array, x: Array | None, scalar: bool) -> Linearised:
        """Forward derivatives along the columns of A, and backward passes through the last layer alone."""
        eta, pull = jax.vjp(lambda w: self._outputs(hidden, w, x), w)
        columns = []
        if self.basis is not None and self.basis.shape[1]:
            eta, push = jax.linearize(lambda hidden: self._outputs(hidden, w, x), hidden)
            columns.append(jax.vmap(push, in_axes=1, out_axes=1)(self.basis))
        if w.size:
            columns.append(jax.vmap(lambda row: pull(row)[0])(jnp.eye(eta.size, dtype=eta.dtype)))
        return Linearised(eta, jnp.concatenate(columns, axis=1), scalar)


def subspace(model: Any, basis: Any, offset: PyTree, last: Any = None) -> Model:
    """Learn a model along a few directions of its parameters: one of d coordinates z, or of (z, w).

    `init()` needs no mean and starts at the offset; `model.predictor.lift(z)` returns the parameters at z.

    Args:
        model: Any model from `filtax.models`, robust ones too.
        basis: Directions A, (D, d), such as `directions(...)` finds; with `last`, those of the hidden parameters alone,
            or None to keep all of these.
        offset: Parameters that the directions start from: the pytree of the network, or theta (D,).
        last: Leave the last layer free of the subspace, for PULSE: True finds it, or say where it is, as for
            `last_layer_range`; without it (None, False) none is free.

    >>> import jax, filtax as fx
    >>> net = fx.models.mlp((3, 20, 2))
    >>> params, A = net.init(jax.random.key(0)), fx.models.random_directions(80, 5, key=jax.random.key(1))
    >>> inside = subspace(fx.models.nonlinear(net.apply, noise=0.1), A, params, last=True)
    >>> pulse = fx.method("PULSE+C-Static", model=inside)
    >>> state, _ = pulse.step(pulse.init(cov=(1.0, 0.1)), jnp.ones(3), jnp.ones(2))
    >>> pulse.belief(state).mean.shape, inside.predictor.lift(pulse.belief(state).mean)[1]["weight"].shape
    ((47,), (20, 2))
    """
    if not isinstance(model, Model):
        given = type(model).__name__
        raise ValueError(f"subspace(model=...) must have parameters and x, such as nonlinear(net.apply), got {given}.")
    if isinstance(model.predictor, Subspace):
        raise ValueError("subspace(model=...): this model is one of a subspace already; give the plain one.")
    last = None if last is False else last
    theta, layout = flatten(offset)
    layout = None if jax.tree.structure(offset) == jax.tree.structure(0) else layout
    checks.finite("subspace(offset=...)", theta)
    start, stop = (theta.size, theta.size) if last is None else last_layer_range(offset, last)
    hidden = jnp.concatenate([theta[:start], theta[stop:]])
    if basis is None and last is None:
        raise ValueError("subspace: there is neither a basis nor a last layer; give basis=A, a (D, d) matrix.")
    if basis is not None:
        basis = _checked_basis(basis, hidden, last is not None)
    inner = model.predictor.bind(layout)
    return Model(Subspace(inner, basis, hidden, theta[start:stop], start, layout), model.likelihood)


def last_layer(model: Any, params: PyTree, last: Any = True) -> Model:
    """Learn the last layer of a network alone, PULSE without directions: its hidden layers stay as they are.

    Args:
        model: A model of the network, such as `nonlinear(net.apply, noise=0.1)`.
        params: Parameters of the network; the hidden layers keep theirs, `init()` starts the last one at its own.
        last: Where the last layer is, as for `last_layer_range`; searched for by default.

    >>> import jax, filtax as fx
    >>> net = fx.models.mlp((3, 20, 2))
    >>> head = last_layer(fx.models.nonlinear(net.apply, noise=0.1), net.init(jax.random.key(0)))
    >>> fx.method("LG+C-Static", model=head).init(cov=0.1).initial.mean.shape
    (42,)
    """
    start, stop = last_layer_range(params, last)
    theta = flatten(params)[0]
    return subspace(model, np.zeros((theta.size - (stop - start), 0), theta.dtype), params, last)


def _checked_basis(basis: Any, hidden: Array, partial: bool) -> Array:
    shape = np.shape(basis)
    what = "hidden parameters (all but the last layer)" if partial else "parameters"
    if len(shape) != 2 or shape[0] != hidden.size or (shape[1] == 0 and not partial):
        raise ValueError(
            f"subspace(basis=...) has shape {shape} but there are {hidden.size} {what}; give ({hidden.size}, d), one "
            "column for each direction."
        )
    checks.finite("subspace(basis=...)", basis)
    return jnp.asarray(basis).astype(hidden.dtype)


def directions(iterates: Any, count: int, kind: str = "uncentred") -> Float[Array, "D d"]:
    """Find the directions along which training moved the parameters most: orthonormal columns (D, d), main one first.

    Args:
        iterates: (n, D) parameter vectors, in the order of training, such as `filtax.warmup(...).iterates`.
        count: How many directions d; at most as many as the iterates span.
        kind: "uncentred" as in the thesis; "centred", principal components; "differences" from the last iterate, where
            that is the offset.

    >>> path = np.array([[1.0, 0.0, 5.0], [1.0, 3.0, 5.0], [1.0, 9.0, 5.0]])
    >>> np.abs(directions(path, 1, kind="centred")).round(3).tolist()
    [[0.0], [1.0], [0.0]]
    """
    checks.whole("directions(count=...)", count, least=1)
    if kind not in _KINDS:
        raise ValueError(f"directions(kind={kind!r}): no such kind. {checks.nearest(str(kind), _KINDS)}")
    rows = np.asarray(iterates)
    if rows.ndim != 2:
        raise ValueError(
            f"directions(iterates=...) must be (n, D), one parameter vector a row, got shape {rows.shape}."
        )
    checks.finite("directions(iterates=...)", rows)
    most = min(len(rows) - (kind != "uncentred"), rows.shape[1])
    if count > most:
        raise ValueError(
            f"directions(count={count}): {len(rows)} iterates give at most {most} {kind} directions; ask for fewer, or "
            "store more iterates: more epochs, a smaller stride or skip, each='step'."
        )
    size, V = np.linalg.svd(_KINDS[kind](rows.astype(np.float64)), full_matrices=False)[1:]
    span = int(np.sum(size > max(rows.shape) * np.finfo(np.float64).eps * size[0]))
    if span < count:
        raise ValueError(
            f"directions(count={count}): the iterates span {span} directions only; ask for no more, or train longer."
        )
    return jnp.asarray(V[:count].T, rows.dtype)


def random_directions(size: int, count: int, *, key: Array, dtype: DTypeLike | None = None) -> Float[Array, "D d"]:
    """Draw random directions, columns of length one, which need no training.

    Args:
        size: Number of parameters D.
        count: How many directions d, at most D.
        key: A JAX random key.
        dtype: JAX's default float if not given.

    >>> random_directions(100, 3, key=jax.random.key(0)).shape
    (100, 3)
    """
    checks.whole("random_directions(size=...)", size, least=1)
    checks.whole("random_directions(count=...)", count)
    if count > size:
        raise ValueError(f"random_directions(count={count}): there are only {size} parameters; ask for fewer.")
    checks.key("random_directions(key=...)", key)
    drawn = jax.random.normal(key, (size, count), jnp.result_type(float) if dtype is None else dtype)
    return drawn / jnp.sqrt(jnp.sum(drawn * drawn, axis=0, keepdims=True))
