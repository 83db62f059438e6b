"""filtax: Bayesian filters that learn from a stream. Adaptive, robust, scalable.

Names are loaded when they are first used, so that the command line answers before JAX has been imported.

>>> import jax.numpy as jnp, filtax as fx
>>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=0.25))
>>> state = kf.init(mean=jnp.zeros(1), cov=1.0)
>>> state, info = kf.step(state, jnp.ones(1), 1.0)
>>> round(kf.belief(state).mean.item(), 2)
0.8
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from filtax import (
        auxiliary,
        bandits,
        beliefs,
        datasets,
        distributions,
        estimators,
        evaluate,
        forecasting,
        io,
        methods,
        models,
        monitoring,
        posteriors,
        priors,
        protocols,
        report,
        segmentation,
        synthetic,
        weighting,
    )
    from filtax._online import online
    from filtax._xla import tune_xla
    from filtax.beliefs import kl
    from filtax.bone import Bone
    from filtax.estimators import Classifier, Fleet, Regressor, Segmenter
    from filtax.evaluate._influence import posterior_influence
    from filtax.methods._ewma import ewma
    from filtax.methods._parse import method
    from filtax.models._pretrain import warmup
    from filtax.state import CollapseWarning, ConditioningWarning, Info, State, shard
    from filtax.tuning import Log, Uniform, Whole, tune

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
    "datasets",
    "distributions",
    "estimators",
    "evaluate",
    "ewma",
    "forecasting",
    "io",
    "kl",
    "method",
    "methods",
    "models",
    "monitoring",
    "online",
    "posterior_influence",
    "posteriors",
    "priors",
    "protocols",
    "report",
    "segmentation",
    "shard",
    "synthetic",
    "tune",
    "tune_xla",
    "warmup",
    "weighting",
]


def _lazy(package: str, names: Sequence[str], **homes: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose public names are loaded when they are first used (SPEC 1).

    Args:
        package: Its `__name__`.
        names: Its `__all__`; what has no home below is a module itself.
        homes: For each private module the names that live in it.
    """
    of = {name: home for home, found in homes.items() for name in found.split()}

    def load(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"{package} has no {name!r}; it has {', '.join(names)}.")
        module = import_module(f"{package}.{of.get(name, name)}")
        value = getattr(module, name) if name in of else module
        vars(import_module(package))[name] = value
        return value

    return load, lambda: list(names)


_load, __dir__ = _lazy(
    __name__,
    __all__,
    **{"evaluate._influence": "posterior_influence", "methods._ewma": "ewma", "methods._parse": "method"},
    **{"models._pretrain": "warmup"},
    _online="online",
    _xla="tune_xla",
    beliefs="kl",
    bone="Bone",
    estimators="Classifier Fleet Regressor Segmenter",
    state="CollapseWarning ConditioningWarning Info State shard",
    tuning="Log Uniform Whole tune",
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("filtax")
    return _load(name)
