"""Methods that draw, or descend: ensembles, particles, stochastic gradients."""

import numpy as np

import filtax as fx
from catalogue.parts import dynamics, linear, linear_of, models, network, relax, walk
from catalogue.row import Row, drifting, named
from catalogue.streams import H, R, X, classes, counts, flat, matrix, net, pair, y
from filtax.posteriors import Gradient

ROWS = {
    "enkf": Row(drifting("EnKF(size=20, inflation=1.01)+C-ACI", linear(0.25), walk), 0.01, flat, X, y, 1),
    "etkf-tracker": Row(
        drifting("ETKF(size=16)+C-LSSM", models.linear(noise=R), dynamics),
        0.1,
        {"mean": np.zeros(4), "cov": 1.0},
        H,
        pair,
        2,
    ),
    "enkf-labels": Row(
        drifting("EnKF(size=20)+C-OU", linear_of(models.categorical()), relax), 0.9, matrix, X, classes, 3
    ),
    "etkf-network": Row(
        drifting("ETKF(size=30)+C-ACI", models.nonlinear(network, noise=0.1), walk), 1e-3, {"params": net}, X, pair, 4
    ),
    "gradient": Row(
        lambda rate: fx.method("C-Static", model=linear(0.25), posterior=Gradient(rate, memory=3, inner=2)),
        0.1,
        flat,
        X,
        y,
    ),
    "particles": Row(drifting("PF(size=60)+C-ACI", linear(0.25), walk), 0.05, flat, X, y, 5),
    "particles-counts": Row(
        drifting("PF(size=60, shrink=0.95)+C-OU", linear_of(models.poisson()), relax), 0.9, flat, X, counts, 6
    ),
    "particles-auxiliary": Row(named("APF(size=60)+C-Static", linear), 0.25, flat, X, y, 7),
    "particles-labels": Row(
        drifting("PF(size=60)+C-OU", linear_of(models.categorical()), relax), 0.9, matrix, X, classes, 8
    ),
    "particles-marginalised": Row(
        drifting("WoLF-Power(beta=0.2)+RBPF(size=60, drawn=2)+C-LSSM", models.linear(noise=R), dynamics),
        0.1,
        {"mean": np.zeros(4), "cov": 1.0},
        H * np.array([1.0, 1.0, 0.0, 0.0]),
        pair,
        9,
    ),
}
