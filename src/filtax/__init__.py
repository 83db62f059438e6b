"""filtax: Bayesian filters that learn from a stream. Adaptive, robust, scalable.

Names are loaded when they are first used, so that the command line answers before JAX has been imported.

>>> import jax.numpy as jnp, filtax as fx
>>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=0.25))
>>> state = kf.init(mean=jnp.zeros(1), cov=1.0)
>>> state, info = kf.step(state, jnp.ones(1), 1.0)
>>> round(kf.belief(state).mean.item(), 2)
0.8
"""

from typing import TYPE_CHECKING

from filtax.gathering import on_demand

if TYPE_CHECKING:
    from filtax import (
        auxiliary,
        bandits,
        beliefs,
        distributions,
        estimators,
        evaluate,
        forecasting,
        methods,
        models,
        posteriors,
        priors,
        protocols,
        report,
        segmentation,
        sources,
        store,
        streams,
        weighting,
    )
    from filtax._xla import tune_xla
    from filtax.beliefs import kl
    from filtax.bone import Bone
    from filtax.compiled import compile
    from filtax.estimators import Classifier, Fleet, Regressor, Segmenter
    from filtax.influence import posterior_influence
    from filtax.methods._parse import method
    from filtax.search import Log, Uniform, Whole, tune
    from filtax.sharding import shard
    from filtax.smoothing import ewma
    from filtax.state import CollapseWarning, ConditioningWarning, Info, State
    from filtax.training import warmup

__all__ = [
    "Bone",
    "Classifier",
    "CollapseWarning",
    "ConditioningWarning",
    "Fleet",
    "Info",
    "Log",
    "Regressor",
    "Segmenter",
    "State",
    "Uniform",
    "Whole",
    "auxiliary",
    "bandits",
    "beliefs",
    "compile",
    "distributions",
    "estimators",
    "evaluate",
    "ewma",
    "forecasting",
    "kl",
    "method",
    "methods",
    "models",
    "posterior_influence",
    "posteriors",
    "priors",
    "protocols",
    "report",
    "segmentation",
    "shard",
    "sources",
    "store",
    "streams",
    "tune",
    "tune_xla",
    "warmup",
    "weighting",
]

on_demand(
    __name__,
    _xla="tune_xla",
    beliefs="kl",
    bone="Bone",
    compiled="compile",
    estimators="Classifier Fleet Regressor Segmenter",
    influence="posterior_influence",
    search="Log Uniform Whole tune",
    sharding="shard",
    smoothing="ewma",
    **{"methods._parse": "method"},
    state="CollapseWarning ConditioningWarning Info State",
    training="warmup",
)
