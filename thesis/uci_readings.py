"""The corrupted tables as the published runs had them: their rows, their start, and the rounding of their machine.

Thesis: subsec:uci-corrupted. The covariance of a filter that does not drift is carried over as F P F', F = I. On a
matrix unit that rounds its factors to 8 bits (bfloat16, the default of the machines that the thesis names) this is not
P: what one datum takes off is less than half of the last bit after some thousand rows, P stops to shrink, and the
filter learns on. In effect that is a drift which the text does not have.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from filtax.module import Module
from thesis.experiment import Table
from thesis.intervals import of_mean
from thesis.online_methods import build, learner
from thesis.uci_settings import HIDDEN, ITERATIONS, PUBLISHED, READ_EKF, SETS, WOLF

__all__ = ["READ", "TRIED", "Rounded", "published_rows", "published_start", "reading_table", "readings"]

READ = SETS
SEED = 314  # of the published start, and of their run 0
TRIED = (1.0, 2.0, 4.0)  # thresholds, on run 0
_HALF = 0.87962566103423978  # standard deviation of a normal that is cut off at 2


class Rounded(Module):
    """The parameters do not move, but the covariance is rounded to the 8 bits of bfloat16.

    >>> Rounded().name
    'Static'
    """

    name = "Static"
    shown = {}  # noqa: RUF012
    needs = ()
    moves = True

    def __call__(self, belief: Any, initial: Any, aux: Any, dt: Any) -> Any:
        """Round the covariance."""
        import jax

        return type(belief).start(belief.mean, jax.lax.reduce_precision(belief.cov, exponent_bits=8, mantissa_bits=7))


def published_rows(X: np.ndarray, y: np.ndarray, run: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and corrupted targets of a run: the file's first tenth is left out, the rest shuffled and scaled.

    Minima and maxima are those of the first rows of what is evaluated, as many as were left out. A tenth of the
    targets is -50 or 50. A column without range is 0.

    >>> X, y = published_rows(np.arange(40.0).reshape(20, 2), np.arange(20.0), 1)
    >>> X.shape, y.shape, X[:2].min().item(), X[:2].max().item()
    ((18, 2), (18,), 0.0, 1.0)
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
    """The network that Flax draws from key 314: a key for each layer by the hash of its name, weights cut off at 2 sd.

    >>> [layer["weight"].shape for layer in published_start(3)]
    [(3, 20), (20, 1)]
    """
    import jax
    import jax.numpy as jnp

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

    WoLF has p = 1, the end of the published range, and the best c of three on run 0, which is left out, as there. Of
    the EKF two p are known, those of kin8nm and protein.
    """
    import jax

    from filtax.models.networks import mlp

    runs = [published_rows(X, y, run) for run in range(trials + 1)]
    h, start = mlp((X.shape[1], HIDDEN, 1)).apply, published_start(X.shape[1])
    found: dict[str, dict[str, Any]] = {method: {} for method in (*WOLF, *(["EKF"] if name in READ_EKF else []))}
    for method in found:
        for how, drift in (("as it is", 0.0), ("rounded", Rounded())):
            make = lambda at, m=method, d=drift: build(m, h, at, drift=d, iterations=ITERATIONS, inner=1)  # noqa: E731
            learn = learner(make, in_turn=True)

            def errors(at: list[Any], on: list[Any], learn: Any = learn) -> list[float]:
                starts = jax.tree.map(lambda leaf: np.stack([leaf] * len(on)), start)
                seen = np.stack([y for _, y in on])
                mean, _ = learn(at, starts, np.stack([X for X, _ in on]), seen)
                return np.sqrt(np.nan_to_num(np.median((seen - mean) ** 2, axis=1), nan=np.inf)).tolist()

            best = READ_EKF.get(name, {})
            if method in WOLF:
                tried = [{"p": 1.0, "c": c} for c in TRIED]
                best = tried[int(np.argmin(errors(tried, runs[:1] * len(tried))))]
            found[method][how] = {"at": best, "rmedse": errors([best] * trials, runs[1:])}
    return found


def reading_table(read: Mapping[str, Any]) -> Table:
    """What was printed, and what its setting gives with the covariance as it is and rounded."""
    rows = []
    for name, methods in read.items():
        for method, hows in methods.items():
            trials = [np.array(hows[how]["rmedse"]) for how in ("as it is", "rounded")]
            ours = [cell for of in trials for cell in (round(float(np.mean(of)), 4), of_mean(of))]
            rows.append((name, method, PUBLISHED[method][SETS.index(name)], *ours))
    columns = (
        "set",
        "method",
        "published",
        "covariance as it is",
        "as it is, 95 %",
        "rounded to 8 bits",
        "rounded, 95 %",
    )
    return Table("Mean RMedSE on the published rows, from the published start, p <= 1", columns, rows, ("published",))
