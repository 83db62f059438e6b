"""Methods for data that may be wrong: WoLF, outliers that are found out, heavy tails, losses."""

import jax.numpy as jnp

from catalogue.parts import dynamics, linear, linear_of, log_cosh, models, network, relax, runs, walk
from catalogue.row import Row, drifting, named, watching, wolf
from catalogue.streams import H, R, X, classes, counts, flat, matrix, net, pair, wide, wrong

ROWS = {
    "wolf-imq": Row(wolf("C-ACI(q=0.01)", linear(0.25), models.imq), 2.0, flat, X, wrong),
    "wolf-tmd": Row(
        drifting("LG(form=covariance)+C-ACI", models.robust(linear(R), models.threshold(3.0)), walk),
        0.1,
        wide,
        X[:, :2],
        pair,
    ),
    "wolf-huber-precision": Row(
        wolf("LG(form=precision)+C-OU(rate=0.9)", linear(0.25), models.huber), 1.0, flat, X, wrong
    ),
    "wolf-labels": Row(
        wolf("C-OU(rate=0.9)", linear_of(models.categorical()), models.mahalanobis), 1.5, matrix, X, classes
    ),
    "wolf-counts": Row(wolf("C-ACI(q=0.01)", linear_of(models.poisson()), models.mahalanobis), 2.0, flat, X, counts),
    "wolf-unknown-noise": Row(wolf("NIG+C-OU(rate=0.9)", linear(1.0), models.mahalanobis), 2.0, flat, X, wrong),
    "wolf-network": Row(
        wolf("IEKF(iterations=3)+C-ACI(q=0.001)", models.nonlinear(network, noise=0.1), models.imq),
        2.0,
        {"params": net},
        X,
        pair,
    ),
    "outlier-bernoulli": Row(named("OB(b=0.5)+C-ACI(q=0.01)", linear), 0.25, flat, X, wrong),
    "outlier-bernoulli-network": Row(
        drifting("OB(form=covariance)+C-OU", models.nonlinear(network, noise=0.1), relax),
        0.8,  # at 0.95 rounding grows tenfold in 30 rows
        {"params": net},
        X,
        pair,
    ),
    "outlier-bernoulli-runs": Row(watching("OB+RL[2]-PR(hazard=0.1)", linear(0.25), runs(2)), 0.1, flat, X, wrong),
    "inverse-wishart": Row(
        named("IW+C-SP(shrink=0.9, q=0.1)", lambda v: linear(v * jnp.asarray(R))), 1.0, wide, X[:, :2], pair
    ),
    "inverse-wishart-tracker": Row(
        drifting("IW(form=covariance)+C-LSSM", models.linear(noise=R), dynamics), 0.1, wide, H, pair
    ),
    "student": Row(named("ST(form=precision)+C-ACI(q=0.01)", linear), 0.25, flat, X, wrong),
    "loss": Row(drifting("LG+C-ACI", linear_of(models.loss(log_cosh)), walk), 0.1, flat, X, wrong),
}
