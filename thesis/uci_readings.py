"""The corrupted tables as published: what was printed, the rows of the runs, their start, and the rounding of theirs.

Thesis: subsec:uci-corrupted. The covariance of a filter that does not drift is carried over as F P F', F = I. On a
matrix unit that rounds its factors to 8 bits (bfloat16, the default of the machines that the thesis names) this is not
P: what one datum takes off is less than half of the last bit after some thousand rows, P stops to shrink, and the
filter learns on. In effect that is a drift which the text does not have.
"""

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from filtax.models import mlp
from filtax.protocols import Dynamics
from thesis.experiment import Table
from thesis.online_methods import build, learner
from thesis.statistics import of_mean

SETS = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")
METHODS = ("EKF", "EKF-B", "EKF-IW", "OGD", "WoLF-IMQ", "WoLF-TMD")
WOLF = METHODS[4:]
HIDDEN, ITERATIONS = 20, 4
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
SEED = 314  # of the published start, and of their run 0
TRIED = (1.0, 2.0, 4.0)  # thresholds, on run 0
_HALF = 0.87962566103423978  # standard deviation of a normal that is cut off at 2


class Rounded(Dynamics):
    """The parameters do not move, but the covariance is rounded to the 8 bits of bfloat16."""

    name = "Static"

    def __call__(self, belief: Any, initial: Any, aux: Any, dt: Any) -> Any:
        """Round the covariance."""
        return type(belief).start(belief.mean, jax.lax.reduce_precision(belief.cov, exponent_bits=8, mantissa_bits=7))


def published_rows(X: np.ndarray, y: np.ndarray, run: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and corrupted targets of a run: the file's first tenth is omitted, the rest shuffled and scaled.

    Minima and maxima are those of the first rows of what is evaluated, as many as were omitted. A tenth of the
    targets is -50 or 50. A column without range is 0.
    """
    first, rng = len(y) // 10, np.random.RandomState(SEED + run)
    table = np.column_stack([X, y])[first:]
    table = table[rng.permutation(len(table))]
    low, high = table[:first].min(axis=0), table[:first].max(axis=0)
    table = (table - low) / np.where(high > low, high - low, 1.0)
    outliers = np.flatnonzero(rng.choice(2, size=len(table), p=[0.9, 0.1]))
    table[outliers, -1] = 50.0 * rng.choice([-1, 1], size=len(outliers))
    return table[:, :-1], table[:, -1]


def published_start(features: int) -> tuple[dict[str, Any], ...]:
    """The network that Flax draws from key 314: a key for each layer by the hash of its name."""
    layers = []
    with jax.threefry_partitionable(False):  # as JAX drew then
        for i, shape in enumerate(((features, HIDDEN), (HIDDEN, 1))):
            number = int.from_bytes(hashlib.sha1(f"Dense_{i}\x01".encode(), usedforsecurity=False).digest()[:4], "big")
            key = jax.random.fold_in(jax.random.PRNGKey(SEED), np.uint32(number))
            weight = jax.random.truncated_normal(key, -2.0, 2.0, shape) / (_HALF * np.sqrt(shape[0]))
            layers.append({"bias": jnp.zeros(shape[1]), "weight": weight})
    return tuple(layers)


def readings(name: str, X: np.ndarray, y: np.ndarray, *, trials: int) -> dict[str, dict[str, Any]]:
    """RMedSE of the published runs 1, 2, ..., with the covariance as it is and rounded.

    WoLF has p = 1, the end of the published range, and the best c of three on run 0, which is omitted, as there. Of
    the EKF two p are known, those of kin8nm and protein.
    """
    runs = [published_rows(X, y, run) for run in range(trials + 1)]
    h, start = mlp((X.shape[1], HIDDEN, 1)).apply, published_start(X.shape[1])
    found: dict[str, dict[str, Any]] = {method: {} for method in (*WOLF, *(["EKF"] if name in READ_EKF else []))}
    for method in found:
        for how, drift in (("as it is", 0.0), ("rounded", Rounded())):
            made = partial(_made, method, h, drift)
            errors = partial(_errors, learner(made, in_turn=True), start)
            best = READ_EKF.get(name, {})
            if method in WOLF:
                tried = [{"p": 1.0, "c": c} for c in TRIED]
                best = tried[int(np.argmin(errors(tried, runs[:1] * len(tried))))]
            found[method][how] = {"at": best, "rmedse": errors([best] * trials, runs[1:])}
    return found


def _made(method: str, h: Any, drift: Any, at: Any) -> Any:
    return build(method, h, at, drift=drift, iterations=ITERATIONS, inner=1)


def _errors(learn: Any, start: Any, at: list[Any], on: list[Any]) -> list[float]:
    """RMedSE of each run, from one start."""
    starts = jax.tree.map(lambda leaf: np.stack([leaf] * len(on)), start)
    seen = np.stack([y for _, y in on])
    mean, _ = learn(at, starts, np.stack([X for X, _ in on]), seen)
    return np.sqrt(np.nan_to_num(np.median((seen - mean) ** 2, axis=1), nan=np.inf)).tolist()


def reading_table(read: Mapping[str, Any]) -> Table:
    """What was printed, and what its setting gives with the covariance as it is and rounded."""
    rows = []
    for name, methods in read.items():
        for method, hows in methods.items():
            trials = [np.array(hows[how]["rmedse"]) for how in ("as it is", "rounded")]
            ours = [cell for of in trials for cell in (round(float(np.mean(of)), 4), of_mean(of))]
            rows.append((name, method, PUBLISHED[method][SETS.index(name)], *ours))
    ours = ("covariance as it is", "as it is, 95 %", "rounded to 8 bits", "rounded, 95 %")
    columns = ("set", "method", "published", *ours)
    return Table("Mean RMedSE on the published rows, from the published start, p <= 1", columns, rows, ("published",))
