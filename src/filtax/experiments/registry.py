"""Which experiments there are. One line for each; its module is imported when it is asked for."""

from difflib import get_close_matches
from importlib import import_module

from filtax.experiments.experiment import Experiment

__all__ = ["find", "names"]

MODULES = {
    "ridge": "ridge",
    "rvga-logistic": "rvga_logistic",
    "rvga-moons": "rvga_moons",
    "q-inflation": "q_inflation",
    "expfam-moons": "expfam_moons",
    "catalogue": "catalogue",
    "electricity": "electricity",
    "periodic-drift": "periodic_drift",
    "drift-jumps": "drift_jumps",
    "bernoulli-bandit": "bernoulli_bandit",
    "segments": "segments",
    "wolf-intro": "wolf_intro",
    "tracking": "tracking",
    "uci-corrupted": "uci_corrupted",
    "mlp-1d": "mlp_1d",
    "heavy-tail": "heavy_tail",
    "ewma": "ewma",
    "fashion-mnist": "fashion_mnist",
    "continual": "continual",
}


def names() -> tuple[str, ...]:
    """Names of all experiments, in the order of the thesis.

    >>> names()[0]
    'ridge'
    """
    return tuple(MODULES)


def find(name: str) -> Experiment:
    """The experiment of a name.

    >>> find("rigde")
    Traceback (most recent call last):
    ValueError: there is no experiment 'rigde'; did you mean ridge?
    """
    if name not in MODULES:
        near = get_close_matches(name, MODULES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(MODULES)}."
        raise ValueError(f"there is no experiment {name!r}; {hint}")
    return import_module(f"filtax.experiments.{MODULES[name]}").EXPERIMENT
