"""Sets, methods and hyper-parameters of the corrupted tables, and what was printed of them."""

from filtax.search import Log
from thesis.online_methods import SPACES as NARROW

__all__ = [
    "DIVERGED",
    "ENOUGH",
    "HIDDEN",
    "ITERATIONS",
    "LAST",
    "LAWS",
    "METHODS",
    "ORDERS",
    "PUBLISHED",
    "PUBLISHED_TIMES",
    "READ_EKF",
    "SETS",
    "SPACES",
    "STORED",
    "WIDEST",
    "WOLF",
]

SETS = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")
METHODS = ("EKF", "EKF-B", "EKF-IW", "OGD", "WoLF-IMQ", "WoLF-TMD")
WOLF = METHODS[4:]
LAWS = {"text": "uniform", "published": "sign"}
HIDDEN, WIDEST, LAST = 20, 17, "median so far"
ITERATIONS = 4
ORDERS, ENOUGH = 8, 1000  # orders of the warm-up rows that a setting is judged by, as long as they have so few rows
SPACES = {  # the published runs had p <= 1, where the error of the warm-up rows still falls
    name: {**space, "p": Log(1e-3, 100.0)} if "p" in space else space for name, space in NARROW.items()
}
STORED = {  # tuned by the published runs on kin8nm
    "EKF": {"p": 0.05676},
    "EKF-B": {"p": 1.0, "a": 5.0, "b": 3.992},
    "EKF-IW": {"p": 0.1217, "degrees": 0.2125},
    "OGD": {"rate": 0.01183},
    "WoLF-IMQ": {"p": 1.0, "c": 5.693},
    "WoLF-TMD": {"p": 1.0, "c": 8.058},
}
PUBLISHED = {  # mean RMedSE over 99 runs, in the order of SETS
    "EKF": (1.640, 1.726, 1.604, 0.741, 0.579, 0.567, 0.498, 0.976, 1.450),
    "EKF-B": (0.0728, 0.0915, 0.0469, 0.0899, 0.1073, 0.0487, 0.1908, 0.1080, 0.1284),
    "EKF-IW": (0.0643, 0.0888, 0.0433, 0.0912, 0.1703, None, None, 0.606, 0.0429),
    "OGD": (0.862, 0.666, 0.746, 0.410, 0.380, 0.389, 0.329, 0.546, 0.998),
    "WoLF-IMQ": (0.0720, 0.0895, 0.0484, 0.0970, 0.1070, 0.0487, 0.1962, 0.1080, 0.1192),
    "WoLF-TMD": (0.0699, 0.0894, 0.0429, 0.0885, 0.1028, 0.0485, 0.1913, 0.1060, 0.1198),
}
DIVERGED = {("power", "EKF-IW"): "7 of 99 runs diverge", ("protein", "EKF-IW"): "3 of 99 runs diverge"}
PUBLISHED_TIMES = {  # of a step, over OGD's, in the order of SETS; of the EKF only that it is about WoLF-IMQ's
    "EKF-B": (15.8, 21.4, 11.1, 14.0, 21.6, 20.9, 12.1, 23.5, 6.1),
    "EKF-IW": (2.5, 2.7, 9.6, 16.2, 8.9, 8.9, 10.7, 3.5, 3.4),
    "OGD": (1.0,) * 9,
    "WoLF-IMQ": (1.43, 1.64, 1.66, 1.70, 2.28, 1.48, 1.71, 1.93, 0.74),
    "WoLF-TMD": (1.49, 1.66, 1.71, 1.70, 2.29, 1.49, 1.71, 1.95, 0.75),
}
READ_EKF = {"kin8nm": STORED["EKF"], "protein": {"p": 0.02448}}  # the two sets whose stored numbers are known
