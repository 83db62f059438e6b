"""Every history of changes, one by one: the oracle of all auxiliary variables that speak of changes.

Plain numpy, dense, and as slow as 2^T: for each of them the filter is run from the start.
"""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.special


class Paths(NamedTuple):
    """For each of the 2^T histories: whether each datum was a change, log joint, and belief after the last datum."""

    changes: np.ndarray
    log_joint: np.ndarray
    mean: np.ndarray
    cov: np.ndarray

    @property
    def log_evidence(self) -> float:
        return float(scipy.special.logsumexp(self.log_joint))

    @property
    def probability(self) -> np.ndarray:
        return np.exp(self.log_joint - self.log_evidence)

    @property
    def runlength(self) -> np.ndarray:
        """Data since the last change, that one not counted; all of them when there was none."""
        T = self.changes.shape[1]
        return np.array([T if not row.any() else int(np.argmax(row[::-1])) for row in self.changes])

    def mean_of(self, x: np.ndarray) -> float:
        """Posterior mean of x'theta."""
        return float(self.probability @ (self.mean @ x))


def enumerate_paths(
    X: np.ndarray,
    Y: np.ndarray,
    noise: float,
    hazard: Callable[[int, int, int], float],
    change: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None,
    q: float = 0.0,
) -> Paths:
    """Run linear regression with prior N(0, I) along every history.

    Args:
        X: (T, D) rows of features.
        Y: (T,) data, NaN where missing.
        noise: variance of y.
        hazard: (run length, changes so far, steps so far) to the probability of a change at the next datum.
        change: belief before a change to belief after; a fresh prior if omitted.
        q: variance that each parameter gains at a step without a change.
    """
    T, D = X.shape
    fresh = lambda m, P: (np.zeros(D), np.eye(D))
    change = change or fresh
    found = []
    for path in product((False, True), repeat=T):
        m, P, r, c, total = np.zeros(D), np.eye(D), 0, 0, 0.0
        for t, (x, y, changed) in enumerate(zip(X, Y, path, strict=True)):
            h = hazard(r, c, t)
            with np.errstate(divide="ignore"):
                total += np.log(h if changed else 1.0 - h)
            r, c = (0, c + 1) if changed else (r + 1, c)
            m, P = change(m, P) if changed else (m, P + q * np.eye(D))
            if not np.isnan(y):
                s = x @ P @ x + noise
                total += -0.5 * ((y - x @ m) ** 2 / s + np.log(2 * np.pi * s))
                gain = P @ x / s
                m, P = m + gain * (y - x @ m), P - np.outer(gain, gain) * s
        found.append((path, total, m, P))
    changes, joint, mean, cov = zip(*found, strict=True)
    return Paths(np.array(changes), np.array(joint), np.array(mean), np.array(cov))
