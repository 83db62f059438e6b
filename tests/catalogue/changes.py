"""Methods that watch for changes: run lengths, change points, experts, subsets of the data."""

import numpy as np

import filtax as fx
from catalogue.parts import TURNS, linear, linear_of, models, priors, runs, walk
from catalogue.row import Row, drifting, named, watching
from catalogue.streams import X, flat, label, y

ROWS = {
    "line-per-run": Row(
        watching("NIG+RL[3]-PR(hazard=0.1)", models.since_change(1.0, unit=5.0), runs(3)),
        0.1,
        {"mean": np.zeros(5), "cov": 1.0},
        X,
        y,
    ),
    "run-lengths": Row(watching("RL[3]-PR(hazard=0.1)", linear(0.25), runs(3)), 0.1, flat, X, y),
    "run-lengths-labels": Row(
        watching("RL[2]-MMPR(hazard=0.1)", linear_of(models.bernoulli()), runs(2)), 0.1, flat, X, label
    ),
    "relax-or-reset": Row(watching("RL[1]-OUPR(hazard=0.1)", linear(0.25), runs(1)), 0.1, flat, X, y),
    "run-lengths-coin": Row(
        watching("Cj+RL[3]-PR(hazard=0.1)", models.bernoulli(), runs(3)), 0.1, {"mean": 0.5, "cov": 0.05}, None, label
    ),
    "change-times": Row(
        watching("CPT[3]-PR(hazard=0.1)", linear(0.25), lambda h: fx.auxiliary.change_times(h, keep=3)), 0.1, flat, X, y
    ),
    "change-widens": Row(
        watching("CPL[3]-MCI(hazard=0.1)", linear(0.25), lambda h: fx.auxiliary.change_locations(h, keep=3)),
        0.1,
        flat,
        X,
        y,
    ),
    "unknown-hazard": Row(
        watching("RLCC[3]-PR", linear(0.25), lambda a: fx.auxiliary.run_length_count(a, 9.0, keep=3)), 1.0, flat, X, y
    ),
    "switching": Row(
        drifting("ME[2]-ACI", linear(0.25), lambda q: priors.by_expert([walk(q), walk(10.0 * q)]), TURNS),
        0.1,
        flat,
        X,
        y,
    ),
    "most-probable-share": Row(named("CPP-OU", linear), 0.25, flat, X, y),
    "subsets": Row(
        watching("CPL[inf](memory=3)-Sub", linear(0.25), lambda p: fx.auxiliary.membership(belong=p, memory=3)),
        0.6,
        flat,
        X,
        y,
    ),
    "survivors-drawn": Row(
        lambda h: fx.method(
            "RL[3]-PR(hazard=0.1)", model=linear(0.25), auxiliary=runs(3)(h), weighting=fx.weighting.sampled(3)
        ),
        0.1,
        flat,
        X,
        y,
        9,
    ),
    "survivors-diverse": Row(
        lambda h: fx.method(
            "CPL[3]-MCI(hazard=0.1)",
            model=linear(0.25),
            auxiliary=fx.auxiliary.change_locations(h, keep=3),
            weighting=fx.weighting.diverse(3),
        ),
        0.1,
        flat,
        X,
        y,
    ),
}
