"""What the experiments on two moons share: the network, how it is filtered, and the rolling accuracy.

Thesis: sec:exponential-family-ekf (errata E8).
"""

from typing import Any

import numpy as np

__all__ = ["WINDOW", "learner", "mixed", "moons_model", "rolling"]

WINDOW = 50
EPSILON = 1e-4  # that the mixed form adds to the variance of a label, in the public code


def moons_model() -> tuple[Any, Any]:
    """The network 2-5-5-5-1 with leaky ReLU, 81 parameters, and the model of labels by its log odds.

    >>> moons_model()[0].size
    81
    """
    from filtax import models

    net = models.mlp((2, 5, 5, 5, 1), activation="leaky_relu")
    return net, models.nonlinear(net.apply, likelihood=models.bernoulli())


def rolling(right: np.ndarray) -> np.ndarray:
    """Share of labels foreseen in the last 50, (..., T - 49).

    >>> rolling(np.ones((2, 60))).shape
    (2, 11)
    """
    total = np.cumsum(np.concatenate([np.zeros((*right.shape[:-1], 1)), right], axis=-1), axis=-1)
    return (total[..., WINDOW:] - total[..., :-WINDOW]) / WINDOW


def learner(name: str) -> Any:
    """A function of keys of first weights, a prior variance and a stream to forecasts (N, T) and signs of failure."""
    import jax
    import jax.numpy as jnp

    from filtax.grammar import method

    net, model = moons_model()
    filter_ = method(name, model=model)

    def one(key: Any, variance: Any, X: Any, y: Any) -> Any:
        state = filter_.init(params=net.init(key), cov=variance)
        state, infos = filter_.scan(state, X, y, keep=("mean", "log_evidence", "ok"))
        log_evidence, ok = jnp.asarray(infos.log_evidence), jnp.asarray(infos.ok)
        return infos.mean, jnp.mean(log_evidence), jnp.all(ok), filter_.belief(state).cov

    several = jax.jit(jax.vmap(one, in_axes=(0, None, None, None)))

    def run(keys: Any, variance: float, stream: Any) -> dict[str, np.ndarray]:
        parts = several(keys, jnp.asarray(variance), stream.X, stream.y)
        return dict(zip(("forecast", "evidence", "ok", "cov"), map(np.asarray, parts), strict=True))

    return run


def mixed() -> Any:
    """The mixed form in single precision, as `learner` gives it; the walk's variance comes last.

    J of the log odds with the variance p(1 - p) + epsilon of the label, residual y - p, and P in Joseph's form.
    """
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    net, _ = moons_model()

    def one(key: Any, variance: Any, X: Any, y: Any, q: Any) -> Any:
        theta, restore = ravel_pytree(net.init(key, jnp.float32))

        def step(carry: tuple, row: tuple) -> tuple:
            (m, P), (x, y) = carry, row
            eta, J = jax.value_and_grad(lambda m: net.apply(restore(m), x))(m)
            p = jax.nn.sigmoid(eta)
            P, R = P + q * jnp.eye(m.size, dtype=P.dtype), p * (1 - p) + jnp.float32(EPSILON)
            K = P @ J / (J @ P @ J + R)
            A = jnp.eye(m.size, dtype=P.dtype) - jnp.outer(K, J)
            return (m + K * (y - p), A @ P @ A.T + R * jnp.outer(K, K)), p

        (_, P), forecasts = jax.lax.scan(step, (theta, variance * jnp.eye(theta.size, dtype=theta.dtype)), (X, y))
        return forecasts, P

    several = jax.jit(jax.vmap(one, in_axes=(0, None, None, None, None)))

    def run(keys: Any, variance: float, stream: Any, q: float = 0.0) -> dict[str, np.ndarray]:
        X, y = (jnp.asarray(part, jnp.float32) for part in (stream.X, stream.y))
        forecast, cov = (np.asarray(part) for part in several(keys, jnp.float32(variance), X, y, jnp.float32(q)))
        finite = np.isfinite(forecast).all(axis=1) & np.isfinite(cov).all(axis=(1, 2))
        return {"forecast": forecast, "ok": np.asarray(finite), "cov": cov}

    return run
