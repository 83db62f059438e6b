"""Which experiments there are. One line for each; its module is imported when it is asked for."""

from difflib import get_close_matches
from importlib import import_module

from thesis.experiment import Experiment

__all__ = ["expected_seconds", "find", "names"]

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
# Seconds of the quick and the full size, measured once on two busy cores; by them the time left is told. Fashion-MNIST
# at the full size was run on an accelerator only: its 7200 are a guess.
SECONDS = {
    "ridge": (1, 1),
    "rvga-logistic": (16, 28),
    "rvga-moons": (21, 483),
    "q-inflation": (16, 52),
    "expfam-moons": (39, 142),
    "catalogue": (29, 38),
    "electricity": (34, 83),
    "periodic-drift": (50, 252),
    "drift-jumps": (55, 210),
    "bernoulli-bandit": (47, 248),
    "segments": (17, 22),
    "wolf-intro": (20, 16),
    "tracking": (43, 70),
    "uci-corrupted": (27, 1552),
    "mlp-1d": (38, 70),
    "heavy-tail": (22, 64),
    "ewma": (0.2, 0.2),
    "fashion-mnist": (34, 7200),
    "continual": (33, 1683),
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
    return import_module(f"thesis.{MODULES[name]}").EXPERIMENT


def expected_seconds(name: str, size: str) -> float:
    """What an experiment may take on two cores; another machine differs.

    >>> expected_seconds("ridge", "quick")
    1.0
    """
    return float(SECONDS[name][size == "full"])
