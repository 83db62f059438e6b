"""Methods for many parameters or curved models: low rank, diagonal, variational, subspaces."""

import numpy as np

from catalogue.parts import deep_labels, linear, linear_of, models, network, rate, relax, runs, split, walk, whole
from catalogue.row import Row, drifting, named, watching, wolf
from catalogue.streams import X, basis, classes, counts, deep, flat, label, matrix, net, pair, wrong

ROWS = {
    "logistic-variational": Row(drifting("RVGA+C-ACI", linear_of(models.bernoulli()), walk), 0.01, flat, X, label),
    "lofi-network": Row(
        drifting("LoFi(rank=4, spare=4)+C-ACI", models.nonlinear(network, noise=0.1), walk),
        1e-3,
        {"params": net},
        X,
        pair,
    ),
    "lofi-spherical-labels": Row(
        drifting(
            "LoFi(rank=3, form=spherical)+C-OU", models.nonlinear(network, likelihood=models.categorical()), relax
        ),
        0.95,
        {"params": deep},
        X,
        classes,
    ),
    "lofi-wolf-relax-or-reset": Row(
        watching("LoFi(rank=2, spare=3)+RL[1]-OUPR(hazard=0.1)", models.robust(linear(0.25), models.imq(2.0)), runs(1)),
        0.1,
        flat,
        X,
        wrong,
    ),
    "logistic-diagonal": Row(
        drifting("LG(form=diagonal)+C-ACI", linear_of(models.bernoulli()), walk), 0.01, flat, X, label
    ),
    "logistic-explicit": Row(
        drifting("BONG(form=diagonal)+C-OU", linear_of(models.bernoulli()), relax), 0.9, flat, X, label
    ),
    "network-sampled": Row(
        drifting("RVGA(iterations=2, samples=10)+C-ACI", models.nonlinear(network, noise=0.1), walk),
        1e-3,
        {"params": net},
        X,
        pair,
        seed=1,
    ),
    "labels-backprop": Row(
        named("BBB(iterations=2, form=diagonal)+C-OU(rate=0.9)", lambda step: linear_of(models.bernoulli())),
        0.1,
        flat,
        X,
        label,
    ),
    "network-low-rank": Row(
        drifting("RVGA(iterations=2, rank=2, spare=4)+C-ACI", models.nonlinear(network, noise=0.1), walk),
        1e-3,
        {"params": net},
        X,
        pair,
    ),
    "softmax-natural": Row(
        drifting("BLR(iterations=2)+C-OU", linear_of(models.categorical()), relax), 0.9, matrix, X, classes
    ),
    "subspace-labels": Row(
        drifting("LG+C-OU", models.subspace(deep_labels, basis[:, :3], deep), relax),
        0.95,
        {"mean": np.zeros(3), "cov": 0.5},
        X,
        classes,
    ),
    "subspace-runs": Row(
        watching("RL[2]-PR(hazard=0.1)", models.subspace(deep_labels, basis[:, :3], deep), runs(2)),
        0.1,
        {"mean": np.zeros(3), "cov": 0.5},
        X,
        classes,
    ),
    "pulse": Row(
        drifting(
            "PULSE(hidden=covariance, last=covariance)+C-ACI", split(models.nonlinear(network, noise=0.1), net), walk
        ),
        1e-3,
        {"mean": np.append(np.zeros(2), net["outer"]), "cov": (0.5, 1.0)},
        X,
        pair,
    ),
    "pulse-low-rank": Row(
        drifting("PULSE(rank=4, spare=4, marginal=True)+C-ACI", whole(models.nonlinear(network, noise=0.1), net), walk),
        1e-3,
        {"mean": np.concatenate([net["inner"].ravel(), net["outer"].ravel()]), "cov": (0.5, 1.0)},
        X,
        pair,
    ),
    "pulse-relax-or-reset": Row(
        watching("PULSE(hidden=diagonal)+RL[1]-OUPR(hazard=0.1)", split(deep_labels, deep), runs(1)),
        0.1,
        {"mean": np.append(np.zeros(2), deep["outer"]), "cov": 0.5},
        X,
        classes,
    ),
    "pulse-uncoupled-poisson": Row(
        wolf(
            "PULSE(coupled=False)+C-OU(rate=0.9)",
            models.subspace(models.nonlinear(rate, likelihood=models.poisson()), basis[:3, :1], np.ones(4) / 9, last=1),
            models.mahalanobis,
        ),
        2.0,
        {"mean": np.zeros(2), "cov": 0.3},
        X,
        counts,
    ),
}
