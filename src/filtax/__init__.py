"""filtax: Bayesian filters that learn from a stream. Adaptive, robust, scalable.

>>> import jax.numpy as jnp, filtax as fx
>>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=0.25))
>>> state = kf.init(mean=jnp.zeros(1), cov=1.0)
>>> state, info = kf.step(state, jnp.ones(1), 1.0)
>>> round(kf.belief(state).mean.item(), 2)
0.8
"""

from filtax import beliefs, distributions, models, priors
from filtax.beliefs import kl
from filtax.bone import Bone
from filtax.compiled import compile
from filtax.methods import method
from filtax.state import ConditioningWarning, Info, State
from filtax.tuning import tune_xla

__all__ = [
    "Bone",
    "ConditioningWarning",
    "Info",
    "State",
    "beliefs",
    "compile",
    "distributions",
    "kl",
    "method",
    "models",
    "priors",
    "tune_xla",
]
