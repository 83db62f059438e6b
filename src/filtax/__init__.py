"""filtax: Bayesian filters that learn from a stream. Adaptive, robust, scalable.

Names are loaded when they are first used, so that the command line answers before JAX has been imported.

>>> import jax.numpy as jnp, filtax as fx
>>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=0.25))
>>> state = kf.init(mean=jnp.zeros(1), cov=1.0)
>>> state, info = kf.step(state, jnp.ones(1), 1.0)
>>> round(kf.belief(state).mean.item(), 2)
0.8
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from filtax import (
        auxiliary,
        bandits,
        beliefs,
        distributions,
        estimators,
        evaluate,
        methods,
        models,
        priors,
        report,
        segmentation,
        sources,
        store,
        streams,
        weighting,
    )
    from filtax.beliefs import kl
    from filtax.bone import Bone
    from filtax.compiled import compile
    from filtax.estimators import Classifier, Fleet, Regressor, Segmenter
    from filtax.grammar import method
    from filtax.influence import posterior_influence
    from filtax.search import tune
    from filtax.sharding import shard
    from filtax.smoothing import ewma
    from filtax.state import CollapseWarning, ConditioningWarning, Info, State
    from filtax.training import warmup
    from filtax.tuning import tune_xla

__all__ = [
    "Bone",
    "Classifier",
    "CollapseWarning",
    "ConditioningWarning",
    "Fleet",
    "Info",
    "Regressor",
    "Segmenter",
    "State",
    "auxiliary",
    "bandits",
    "beliefs",
    "compile",
    "distributions",
    "estimators",
    "evaluate",
    "ewma",
    "kl",
    "method",
    "methods",
    "models",
    "posterior_influence",
    "priors",
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

_HOME = {
    "Bone": "bone",
    "Classifier": "estimators",
    "Fleet": "estimators",
    "Regressor": "estimators",
    "Segmenter": "estimators",
    "CollapseWarning": "state",
    "ConditioningWarning": "state",
    "Info": "state",
    "State": "state",
    "compile": "compiled",
    "ewma": "smoothing",
    "kl": "beliefs",
    "method": "grammar",
    "posterior_influence": "influence",
    "shard": "sharding",
    "tune": "search",
    "tune_xla": "tuning",
    "warmup": "training",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"filtax has no {name!r}; it has {', '.join(__all__)}.")
    home = import_module(f"filtax.{_HOME.get(name, name)}")
    return getattr(home, name) if name in _HOME else home


def __dir__() -> list[str]:
    return __all__
