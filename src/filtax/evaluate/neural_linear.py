"""The neural-linear baseline: Bayes in the last layer, the hidden layers retrained now and then on a buffer.

What PULSE is an alternative to. At each `every` data the whole network is trained on the last `memory` of them; the
features have then changed, so the last layer begins anew from N(0, cov) and is conditioned once on the same buffer.

Cost: a step of the last layer for each datum, and `epochs` passes over the buffer at each retraining. While the buffer
fills, each new size compiles anew. Thesis: sec:PULSE.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from filtax import checks
from filtax.grammar import method
from filtax.models import last_layer
from filtax.state import INFO, Info, State
from filtax.training import warmup

__all__ = ["neural_linear"]


def neural_linear(
    model: Any,
    params: PyTree,
    X: Any,
    Y: Any,
    *,
    key: Any,
    name: str = "LG+C-Static",
    every: int = 100,
    memory: int = 1000,
    cov: Any = 1.0,
    optimiser: Any = None,
    epochs: int = 10,
    batch: int = 32,
    last: Any = True,
    keep: Any = INFO,
) -> tuple[PyTree, State, Info]:
    """Predict and learn a stream with a last layer that is filtered and hidden layers that are retrained.

    Args:
        model: A model of a network, such as `nonlinear(net.apply, noise=0.1)`.
        params: Parameters to begin with; the last layer starts from its own.
        X: (T, ...) inputs.
        Y: (T,) or (T, O) outputs.
        key: A JAX random key, for the training.
        name: How the last layer is filtered.
        every: Data between two trainings.
        memory: Data in the buffer.
        cov: Prior covariance of the last layer.
        optimiser: As for `filtax.warmup`; so are `epochs` and `batch`.
        epochs: Passes over the buffer.
        batch: Data in one step.
        last: Where the last layer is; found if left out.
        keep: Fields of `Info` to store.

    Returns:
        The parameters of the network in the end, the state of its last layer, and what each datum showed before it was
        learned.

    >>> import filtax as fx
    >>> net, X = fx.models.mlp((1, 4, 1)), np.linspace(-1, 1, 20)[:, None]
    >>> model = fx.models.nonlinear(net.apply, noise=0.1)
    >>> key = jax.random.key(0)
    >>> _, state, info = neural_linear(model, net.init(key), X, X[:, 0] ** 2, key=key, every=10, epochs=1)
    >>> info.mean.shape, int(state.t)
    ((20,), 20)
    """
    checks.whole("neural_linear(every=...)", every, least=1)
    checks.whole("neural_linear(memory=...)", memory, least=1)
    checks.key("neural_linear(key=...)", key)
    X, Y = np.asarray(X), np.asarray(Y)
    if len(Y) == 0 or len(X) != len(Y):
        raise ValueError(f"neural_linear: X has {len(X)} rows and Y has {len(Y)}; give the same number, at least one.")
    head = method(name, model=last_layer(model, params, last))
    state, infos = head.init(cov=cov), []
    for begin in range(0, len(Y), every):
        if begin:
            seen = slice(max(0, begin - memory), begin)
            params = head.model.predictor.lift(head.belief(state).mean)
            turn = jax.random.fold_in(key, begin)
            params = warmup(model, params, X[seen], Y[seen], optimiser, epochs, batch, skip=epochs, key=turn).params
            head = method(name, model=last_layer(model, params, last))
            fresh = head.init(mean=jnp.zeros_like(head.model.predictor.last), cov=cov)
            state, _ = head.scan(fresh, X[seen], Y[seen], keep=())
        state, info = head.scan(state, X[begin : begin + every], Y[begin : begin + every], keep=keep)
        infos.append(info)
    whole = jax.tree.map(lambda *rows: jnp.concatenate(rows), *infos)
    return head.model.predictor.lift(head.belief(state).mean), state, whole
