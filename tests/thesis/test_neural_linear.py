import jax
import numpy as np
import pytest

import filtax as fx
from thesis.neural_linear import neural_linear


@pytest.mark.nightly
def test_neural_linear_learns_features():
    """Retrained every 60 data it ends right about more labels than with the features that it began with."""
    net, key = fx.models.mlp((2, 6, 2), "tanh"), jax.random.key(0)
    model = fx.models.nonlinear(net.apply, likelihood=fx.models.categorical())
    X = np.random.default_rng(5).normal(size=(240, 2)).astype("float32")
    Y, start = (X[:, 0] * X[:, 1] > 0).astype("float32"), net.init(key, "float32")
    params, state, info = neural_linear(model, start, X, Y, key=key, every=60, memory=120, optimiser=0.03, epochs=40)
    head = fx.method("LG+C-Static", model=fx.models.last_layer(model, start))
    _, fixed = head.scan(head.init(), X, Y, keep=("mean",))
    learned, kept = (np.mean(np.asarray(mean).argmax(1)[120:] == Y[120:]) for mean in (info.mean, fixed.mean))
    assert info.mean.shape == (240, 2)
    assert learned > max(0.8, kept)
    assert int(state.t) == 120 + 60
    assert jax.tree.structure(params) == jax.tree.structure(start)
