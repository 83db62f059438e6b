"""Models, drifts and auxiliary variables that many rows share."""

import jax.numpy as jnp
import numpy as np

import filtax as fx
from catalogue.streams import F, basis

models, priors = fx.models, fx.priors
linear = lambda noise: models.linear(noise=noise)
linear_of = lambda likelihood: models.linear(likelihood=likelihood)
walk = priors.additive_inflation
relax = priors.ornstein_uhlenbeck
runs = lambda keep: lambda hazard: fx.auxiliary.run_length(hazard, keep=keep)
LENGTHS = fx.auxiliary.hazards.from_lengths([0.05, 0.1, 0.15, 0.2, 0.1])
TURNS = fx.auxiliary.experts(2, transition=[[0.9, 0.1], [0.2, 0.8]])


def walk_of(q):
    return priors.linear_dynamics(F=0.9, Q=q)


def dynamics(q):
    return priors.linear_dynamics(F, b=0.01 * np.ones(4), Q=q * jnp.diag(jnp.array([0.0, 1.0, 1.0, 2.0])))


def log_cosh(eta, y):
    return 3.0 * jnp.sum(jnp.logaddexp(y - eta, eta - y))


def network(params, x):
    return jnp.tanh(x @ params["inner"]) @ params["outer"]


def rate(theta, x):
    return theta[3] * jnp.tanh(theta[:3] @ x)


def split(model, params):
    """A subspace of the inner layer, the outer one free."""
    return models.subspace(model, basis[:12, :2], params, last="outer")


def whole(model, params):
    """All of the inner layer, the outer one a block of its own."""
    return models.subspace(model, None, params, last="outer")


deep_labels = models.nonlinear(network, likelihood=models.categorical())
