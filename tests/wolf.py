"""What the tests of WoLF share: a short stream with a gap and a gross error, and every trust in plain numpy."""

import numpy as np
import pytest

from filtax.models import huber, imq, mahalanobis, tempered, threshold

FORMS = ["root", "covariance", "precision"]
rng = np.random.default_rng(5)
T, D, O = 7, 3, 2
H = rng.normal(size=(T, O, D))
R = np.array([[1.0, 0.4], [0.4, 0.5]])
Q = 0.05
Y = rng.normal(size=(T, O))
Y[3] += 25.0  # one gross error
Y[5, 1] = np.nan
NOISE = 0.3
X = rng.normal(size=(8, 2))
y_line = X @ np.array([1.0, -1.0]) + 0.5 * rng.normal(size=8)

of_distance = {
    "imq": (imq, lambda e, R, c: (1.0 + e @ e / c**2) ** -0.5),
    "mahalanobis": (mahalanobis, lambda e, R, c: (1.0 + e @ np.linalg.inv(R) @ e / c**2) ** -0.5),
    "threshold": (threshold, lambda e, R, c: float(e @ np.linalg.inv(R) @ e <= c**2)),
    "huber": (huber, lambda e, R, c: np.sqrt(min(1.0, c / np.sqrt(e @ np.linalg.inv(R) @ e)))),
    "tempered": (tempered, lambda e, R, c: c),
}


def sparse(names, trusts):
    """Every trust, and every name, at least once a day; all pairs at night."""
    rank = {name: i for i, name in enumerate(names)}
    return [
        pytest.param(n, t, marks=() if j % len(rank) == i or i % len(trusts) == j else pytest.mark.nightly)
        for n, i in rank.items()
        for j, t in enumerate(trusts)
    ]
