r"""(M.1) Warm-up: train a network on data that came before the stream, and remember the way its parameters took.

Mini-batch descent of the negative log-likelihood, in random batches that do not overlap and make up all the data. The
last parameters are the offset $\theta_*$ of a subspace. Those after e = n, n + k, n + 2k, ... epochs are stored, with
`skip` n and `stride` k, and give its directions (`filtax.models.directions`); with n = 0 the first are those it began
with. Training can be taken up where it ended, to the same bits.

Needs optax (`pip install "filtax[nets]"`), unless an optimiser is given.
Thesis: subsec:warm-up-subspace, algo:MAP-SGD (errata E31).
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from filtax import _validation as checks
from filtax.models import Model, directions, last_layer_range
from filtax.protocols import Module
from filtax.ravel import Layout, flatten


class Warm(Module):
    """A trained network and how it got there.

    Attributes:
        params: The parameters in the end, a pytree as they were given.
        iterates: (n, D) flat parameter vectors met in training.
        losses: Mean negative log-likelihood over each epoch.
        optimiser: State of the optimiser, to go on from.
        key: Random key of the whole training.
        steps: Steps done so far, and epochs.
    """

    params: PyTree
    iterates: Float[np.ndarray, "n D"]
    losses: tuple[float, ...]
    optimiser: PyTree
    key: Array
    steps: tuple[int, int] = (0, 0)

    def directions(self, count: int, kind: str = "uncentred", last: Any = None) -> Float[Array, "H d"]:
        """Directions of the iterates, as `filtax.models.directions` finds them.

        Args:
            count: How many.
            kind: "uncentred", "centred" or "differences".
            last: Leave out the last layer: True finds it, or say where it is. For `subspace(..., last=...)`.
        """
        start, stop = (0, 0) if last is None else last_layer_range(self.params, last)
        hidden = np.concatenate([self.iterates[:, :start], self.iterates[:, stop:]], axis=1)
        return directions(hidden, count, kind)


def warmup(
    model: Model,
    params: PyTree,
    X: Any,
    Y: Any,
    optimiser: Any = None,
    epochs: int = 100,
    batch: int = 32,
    skip: int = 0,
    stride: int = 1,
    *,
    key: Any = None,
    each: str = "epoch",
    advance: Callable[[str, int], None] | None = None,
    start: Warm | None = None,
) -> Warm:
    """Train the parameters of a model by mini-batch descent, and store them on the way.

    Args:
        model: What will be filtered afterwards, not yet in a subspace; its likelihood is the loss, without any trust.
        params: Parameters to begin with, a pytree or a vector.
        X: (N, ...) inputs.
        Y: (N,) or (N, O) outputs; NaN where missing.
        optimiser: Of optax, or a learning rate for Adam; 0.001 by default.
        epochs: How many times to go through the data.
        batch: Data in one step; the last batch of an epoch may be smaller.
        skip: Store nothing before this many epochs (or steps).
        stride: Then store the parameters after each so many.
        key: A JAX random key, for the order of the data.
        each: What `skip` and `stride` count: "epoch", as in the thesis, or "step", for many from a short training.
        advance: Called as `advance("warm-up", 1)` after each epoch, as `filtax.report.progress` gives it.
        start: An earlier result to go on from, with the same data and optimiser: `params` and `key` are then its own,
            and may be None.

    >>> import filtax as fx
    >>> net, X = fx.models.mlp((1, 8, 1), "tanh"), np.linspace(-1, 1, 50)[:, None]
    >>> model = fx.models.nonlinear(net.apply, noise=0.1)
    >>> warm = warmup(model, net.init(jax.random.key(0)), X, X[:, 0] ** 2, 0.01, epochs=20, key=jax.random.key(1))
    >>> warm.losses[-1] < warm.losses[0], warm.iterates.shape, warm.directions(2, kind="differences", last=True).shape
    (True, (21, 25), (16, 2))
    """
    if not (start is None or isinstance(start, Warm)):
        raise ValueError(f"warmup(start=...) must be what an earlier warmup returned, got {type(start).__name__}.")
    if model.predictor.begin() is not None:
        raise ValueError("warmup(model=...): this model lives in a subspace, whose offset stays; give the plain one.")
    params = params if start is None else start.params
    theta, layout = flatten(params)
    X, Y = _checked(model, theta, layout, X, Y)
    for name, value, least in (("epochs", epochs, 1), ("batch", batch, 1), ("skip", skip, 0), ("stride", stride, 1)):
        checks.whole(f"warmup({name}=...)", value, least=least)
    if each not in ("epoch", "step"):
        raise ValueError(f"warmup(each={each!r}) must be 'epoch' or 'step'.")
    if start is None and not (isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)):
        raise ValueError("warmup: the order of the data is drawn at random; give key=jax.random.key(0).")
    begin, update = _optimiser(optimiser)
    warm = start or Warm(params, np.zeros((0, theta.size), theta.dtype), (), begin(params), key)
    loss = _Loss(model.predictor.bind(layout), model.likelihood.plain)
    stored, losses = [warm.iterates], []
    if start is None and skip == 0:
        stored.append(np.asarray(theta)[None])
    params, memory, (steps, done) = warm.params, warm.optimiser, warm.steps
    for epoch in range(done, done + epochs):
        order = jax.random.fold_in(warm.key, epoch)
        params, memory, path, value = _epoch(loss, update, min(batch, len(Y)), each, params, memory, X, Y, order)
        losses.append(float(value))
        if not np.isfinite(losses[-1]):
            raise ValueError(f"warmup: the loss is {losses[-1]} in epoch {epoch + 1}; use a smaller learning rate.")
        met = steps + 1 + np.arange(len(path)) if each == "step" else np.array([epoch + 1])
        stored.append(np.asarray(path)[(met >= skip) & ((met - skip) % stride == 0)])
        steps += -(-len(Y) // min(batch, len(Y)))
        if advance is not None:
            advance("warm-up", 1)
    return Warm(params, np.concatenate(stored), (*warm.losses, *losses), memory, warm.key, (steps, done + epochs))


class _Loss(Module):
    """Mean negative log-likelihood of a batch; rows that only fill it up weigh nothing."""

    predictor: Any
    likelihood: Any

    def __call__(self, params: PyTree, X: Array, Y: Array, real: Array) -> Array:
        theta = flatten(params)[0]

        def one(x: Array, y: Array, real: Array) -> Array:
            seen = ~jnp.isnan(y) & real
            eta = Model(self.predictor, None).value(theta, x).eta
            return -self.likelihood.log_likelihood(eta, x, jnp.where(seen, y, 0.0), seen)

        return jnp.sum(jax.vmap(one)(X, Y, real)) / jnp.sum(real.astype(theta.dtype))


@partial(jax.jit, static_argnames=("update", "batch", "each"))
def _epoch(
    loss: _Loss, update: Callable, batch: int, each: str, params: PyTree, memory: PyTree, X: Array, Y: Array, key: Array
) -> tuple[PyTree, PyTree, Array, Array]:
    """Go once through the data in random order; also returns the path of the parameters, or its end alone."""
    N = Y.shape[0]
    count = -(-N // batch)
    order = jnp.pad(jax.random.permutation(key, N), (0, count * batch - N)).reshape(count, batch)
    real = (jnp.arange(count * batch) < N).reshape(count, batch)

    def step(carry: tuple, rows: tuple) -> tuple[tuple, tuple]:
        params, memory = carry
        at, real = rows
        value, slope = jax.value_and_grad(loss)(params, X[at], Y[at], real)
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # an optimiser may need these
            change, memory = update(slope, memory, params)
        params = jax.tree.map(lambda p, c: p + c.astype(p.dtype), params, change)
        path = flatten(params)[0] if each == "step" else None
        return (params, memory), (path, value * jnp.sum(real).astype(value.dtype))

    (params, memory), (path, values) = jax.lax.scan(step, (params, memory), (order, real))
    path = flatten(params)[0][None] if path is None else path
    return params, memory, path, jnp.sum(values) / N


def _checked(model: Model, theta: Array, layout: Layout, X: Any, Y: Any) -> tuple[Array, Array]:
    """The data as arrays that the model can take."""
    X, Y = np.asarray(X), np.asarray(Y)
    if X.ndim == 0 or Y.ndim == 0 or len(Y) == 0 or len(X) != len(Y):
        rows = [0 if rows.ndim == 0 else len(rows) for rows in (X, Y)]
        raise ValueError(
            f"warmup: X has {rows[0]} rows and Y has {rows[1]}; give the same number of each, at least one."
        )
    checks.finite("warmup(params=...)", theta)
    checks.finite("warmup(X=...)", X, flags=True)
    if np.all(np.isnan(checks.numeric("warmup(Y=...)", Y).astype("float64"))):
        raise ValueError(f"warmup(Y=...) holds {Y.size} numbers, all NaN; give at least one that is not missing.")
    X = jnp.asarray(X.astype(theta.dtype) if X.dtype.kind == "f" else X)
    Y = jnp.asarray(Y.reshape(len(Y), -1), theta.dtype)
    outputs = Model(model.predictor.bind(layout), None).outputs(theta, X[0])
    width = model.likelihood.width(outputs)
    kind = type(model.likelihood.plain).__name__.removesuffix("Likelihood").lower()
    if Y.shape[1] != width:
        raise ValueError(
            f"warmup: the network has {outputs} output{'s' * (outputs > 1)}, for which a {kind} likelihood takes "
            f"{width} number{'s' * (width > 1)} a row, but Y has {Y.shape[1]}; make the last layer fit."
        )
    fits = np.asarray(jnp.isnan(Y) | model.likelihood.admits(Y.reshape(-1), outputs).reshape(Y.shape))
    if not fits.all():
        odd = np.asarray(Y)[~fits][0]
        raise ValueError(
            f"warmup: y = {odd:g} is not possible under a {kind} likelihood with {outputs} "
            f"output{'s' * (outputs > 1)}; check the labels, or make the last layer fit."
        )
    return X, Y


def _optimiser(given: Any) -> tuple[Callable, Callable]:
    """What begins and what updates."""
    if given is None or isinstance(given, int | float):
        rate = 1e-3 if given is None else float(given)
        checks.positive("warmup(optimiser=...)", rate, hint="A number is the learning rate of Adam.")
        given = _adam(rate)
    try:
        return given.init, given.update
    except AttributeError:
        raise ValueError(
            f"warmup(optimiser=...) must be a learning rate or an optimiser of optax, such as optax.adam(0.01), got "
            f"{given!r:.40}."
        ) from None


@cache
def _adam(rate: float) -> Any:
    try:
        import optax
    except ImportError:
        raise ImportError('warmup needs optax for Adam; pip install "filtax[nets]", or give an optimiser.') from None
    return optax.adam(rate)
