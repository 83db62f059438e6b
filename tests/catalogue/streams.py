"""Small streams to learn from, and what is believed before them: numbers alone."""

import numpy as np

T = 12
_rng = np.random.default_rng(7)
X = _rng.normal(size=(T, 3))
H = _rng.normal(size=(T, 2, 4))
y = X @ np.array([1.0, -2.0, 0.5]) + 0.5 * _rng.normal(size=T)
wrong = np.where(np.arange(T) == 5, 30.0, y)  # one gross error
pair = _rng.normal(size=(T, 2))
label = (y > 0).astype(float)
classes = _rng.integers(0, 3, size=T).astype(float)
counts = _rng.poisson(2.0, size=T).astype(float)
R = np.array([[1.0, 0.3], [0.3, 0.5]])
F = np.array([[1.0, 0.0, 0.1, 0.0], [0.0, 1.0, 0.0, 0.1], [0.0, 0.0, 0.9, 0.0], [0.0, 0.0, 0.0, 0.9]])
net = {"inner": 0.5 * _rng.normal(size=(3, 4)), "outer": 0.5 * _rng.normal(size=(4, 2))}
deep = {"inner": 0.5 * _rng.normal(size=(3, 4)), "outer": 0.5 * _rng.normal(size=(4, 3))}
basis = _rng.normal(size=(24, 3)) / 5.0
flat, wide, matrix = ({"mean": np.zeros(size), "cov": 1.0} for size in (3, 4, 9))
