"""A small stream whose relation walks at random, with gaps, and the filter that knows it."""

import jax
import jax.numpy as jnp
import numpy as np

import filtax as fx

T, D, NOISE, WALK = 40, 2, 0.3, 0.05
TOL = 1e-9 if jax.config.jax_enable_x64 else 2e-4


def stream(seed=0, missing=0.2):
    rng = np.random.default_rng(seed)
    theta = np.cumsum(rng.normal(scale=np.sqrt(WALK), size=(T, D)), axis=0)
    x = rng.normal(size=(T, D))
    y = np.sum(theta * x, axis=1) + rng.normal(scale=np.sqrt(NOISE), size=T)
    y[rng.uniform(size=T) < missing] = np.nan
    return x, y, rng.uniform(0.5, 2.0, size=T)


def walker():
    method = fx.method(f"LG+C-ACI(q={WALK})", model=fx.models.linear(noise=NOISE))
    return method, method.init(mean=jnp.zeros(D), cov=2.0)
