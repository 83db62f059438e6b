"""Filters whose parameters stay, walk, relax or follow dynamics; with unknown noise; conjugate pairs."""

import jax.numpy as jnp
import numpy as np

from catalogue.parts import dynamics, linear, linear_of, models, network, relax, walk
from catalogue.row import Row, drifting, named
from catalogue.streams import H, R, X, classes, counts, deep, flat, label, matrix, net, pair, wide, y

ROWS = {
    "regression": Row(named("LG+C-Static", linear), 0.25, flat, X, y),
    "covariance-ACI": Row(drifting("LG(form=covariance)+C-ACI", linear(0.25), walk), 0.01, flat, X, y),
    "precision-OU": Row(drifting("LG(form=precision)+C-OU", linear(0.25), relax), 0.9, flat, X, y),
    "tracker": Row(
        drifting("LG+C-LSSM", models.linear(noise=R), dynamics), 0.1, {"mean": np.zeros(4), "cov": 1.0}, H, pair
    ),
    "tracker-covariance": Row(
        drifting("LG(form=covariance)+C-LSSM", models.linear(noise=R), dynamics),
        0.1,
        {"mean": np.zeros(4), "cov": 1.0},
        H,
        pair,
    ),
    "two-outputs": Row(
        named("LG+C-SP(shrink=0.9, q=0.1)", lambda v: linear(v * jnp.asarray(R))), 1.0, wide, X[:, :2], pair
    ),
    "noise-of-x": Row(drifting("LG+C-ACI", linear(lambda x: 0.1 + x[0] ** 2), walk), 0.01, flat, X, y),
    "logistic": Row(drifting("LG+C-ACI", linear_of(models.bernoulli()), walk), 0.01, flat, X, label),
    "softmax": Row(drifting("LG+C-OU", linear_of(models.categorical()), relax), 0.9, matrix, X, classes),
    "poisson": Row(drifting("LG+C-ACI", linear_of(models.poisson()), walk), 0.01, flat, X, counts),
    "network": Row(
        drifting("LG(form=covariance)+C-ACI", models.nonlinear(network, noise=0.1), walk),
        1e-3,
        {"params": net},
        X,
        pair,
    ),
    "network-iterated": Row(
        drifting("IEKF(iterations=3)+C-ACI", models.nonlinear(network, noise=0.1), walk), 1e-3, {"params": net}, X, pair
    ),
    "network-labels": Row(
        drifting("LG+C-OU", models.nonlinear(network, likelihood=models.categorical()), relax),
        0.95,
        {"params": deep},
        X,
        classes,
    ),
    "unknown-noise": Row(named("NIG+C-Static", linear), 1.0, flat, X, y),
    "unknown-noise-OU": Row(
        drifting("NIG(shape=2, rate=1)+C-OU", linear(np.asarray(R)), relax), 0.9, wide, X[:, :2], pair
    ),
    "coin": Row(drifting("Cj+C-OU", models.bernoulli(), relax), 0.9, {"mean": 0.5, "cov": 0.05}, None, label),
    "count": Row(drifting("Cj+C-OU", models.poisson(), relax), 0.9, {"mean": 2.0, "cov": 1.0}, None, counts),
}
