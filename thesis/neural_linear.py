"""The neural-linear baseline, what PULSE is an alternative to: Bayes in the last layer, hidden layers retrained.

At each `every` data the whole network is trained on the last `memory` of them; the features have then changed, so the
last layer restarts from N(0, cov) and is conditioned once on the same buffer. A training of `epochs` passes over the
buffer comes on top of a step of the last layer for each datum. Thesis: sec:PULSE.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from filtax import Info, State, method, warmup
from filtax.models import last_layer


def neural_linear(
    model: Any,
    params: Any,
    X: np.ndarray,
    Y: np.ndarray,
    *,
    key: Any,
    every: int = 100,
    memory: int = 1000,
    cov: Any = 1.0,
    optimiser: Any = None,
    epochs: int = 10,
) -> tuple[Any, State, Info]:
    """Predict and learn a stream with a last layer that is filtered and hidden layers that are retrained.

    Args:
        model: A model of a network, such as `nonlinear(net.apply, noise=0.1)`.
        params: Parameters to begin with; the last layer starts from its own.
        X: (T, ...) inputs.
        Y: (T,) or (T, O) outputs.
        key: A JAX random key, for the training.
        every: Data between two trainings.
        memory: Data in the buffer.
        cov: Prior covariance of the last layer.
        optimiser: As for `filtax.warmup`; so is `epochs`.
        epochs: Passes over the buffer.

    Returns:
        The parameters in the end, the state of the last layer, and forecasts made before each datum was learned.
    """
    head = method("LG+C-Static", model=last_layer(model, params, True))
    state, infos = head.init(cov=cov), []
    for begin in range(0, len(Y), every):
        if begin:
            seen = slice(max(0, begin - memory), begin)
            params, turn = head.model.predictor.lift(head.belief(state).mean), jax.random.fold_in(key, begin)
            params = warmup(model, params, X[seen], Y[seen], optimiser, epochs, 32, skip=epochs, key=turn).params
            head = method("LG+C-Static", model=last_layer(model, params, True))
            fresh = head.init(mean=jnp.zeros_like(head.model.predictor.last), cov=cov)
            state, _ = head.scan(fresh, X[seen], Y[seen], keep=())
        state, info = head.scan(state, X[begin : begin + every], Y[begin : begin + every], keep=("mean",))
        infos.append(info)
    whole = jax.tree.map(lambda *rows: jnp.concatenate(rows), *infos)
    return head.model.predictor.lift(head.belief(state).mean), state, whole
