"""Random problems that find faults: units far from one, correlated, degenerate, with data missing.

A problem is drawn in comfortable units and then expressed in others: theta becomes U theta and y becomes c y, with U
and c log-uniform over many decades. The answer only changes its units, so a formula that hides an absolute constant
shows. Condition numbers stay where float64 can give ten correct digits; what lies beyond is in `test_numeric_bars.py`.
"""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

# (D, O): every size, and more outputs than parameters once
SHAPES = [
    pytest.param(1, 1, marks=pytest.mark.nightly),
    (2, 5),
    (5, 2),
    pytest.param(20, 1, marks=pytest.mark.nightly),
]
LARGE = (40, 2)  # beyond the size at which the square root is downdated instead of reduced
FEATURES = ["plain", "constant", "duplicate", "zero column", "zero row"]
PROCESS = ["none", "rank one", "full"]


class System(NamedTuple):
    """A linear system over T steps, in the order that the oracles take it, and the units it is expressed in."""

    m0: np.ndarray
    P0: np.ndarray
    F: np.ndarray
    b: np.ndarray
    Q: np.ndarray
    H: np.ndarray
    R: np.ndarray
    y: np.ndarray
    units: np.ndarray
    unit_y: float

    @property
    def parts(self):
        return tuple(self)[:8]


def covariance(rng: np.random.Generator, size: int, condition: float) -> np.ndarray:
    """A random rotation of log-spaced variances with geometric mean one."""
    rotation = np.linalg.qr(rng.normal(size=(size, size)))[0]
    half = 0.5 * np.log10(condition) if size > 1 else 0.0
    root = rotation * np.sqrt(np.logspace(-half, half, size))
    return root @ root.T


def features(rng: np.random.Generator, kind: str, T: int, O: int, D: int) -> np.ndarray:
    """Observation matrices (T, O, D), degenerate in one of the ways that data are."""
    H = rng.normal(size=(T, O, D))
    if kind == "constant":
        H[..., 0] = 1.0
    elif kind == "duplicate":
        H[..., -1] = H[..., 0]
    elif kind == "zero column":
        H[..., 0] = 0.0
    elif kind == "zero row":
        H[:, 0] = 0.0
    return H


def transition(rng: np.random.Generator, D: int, invertible: bool) -> np.ndarray:
    """Any matrix, near singular ones included; or a rotation that stretches by a factor of two at most."""
    F = rng.normal(size=(D, D)) / np.sqrt(D)
    return np.linalg.qr(F)[0] * 2.0 ** rng.uniform(-1, 1, size=D) if invertible else F


def build(
    seed, D, O, T, *, kind, process, condition, noise, units, unit_y, missing, drifting, diagonal, invertible
) -> System:
    """The system that the drawn knobs describe; everything random comes from the seed."""
    rng = np.random.default_rng(seed)
    spread = {"none": lambda: np.zeros((D, D)), "rank one": lambda: (v := rng.normal(size=(D, 1))) @ v.T}
    spread["full"] = lambda: covariance(rng, D, condition)
    R = noise * np.array([covariance(rng, O, condition) for _ in range(T)])
    if diagonal:
        R = R * np.eye(O)
    F = np.array([transition(rng, D, invertible) if drifting else np.eye(D) for _ in range(T)])
    b = rng.normal(size=(T, D)) if drifting else np.zeros((T, D))
    Q = 0.3 * np.array([spread[process]() for _ in range(T)])
    H, P0, y = features(rng, kind, T, O, D), covariance(rng, D, condition), 2 * rng.normal(size=(T, O))
    y[rng.random((T, O)) < missing] = np.nan
    U = 10.0 ** rng.uniform(-units, units, size=D)
    m0, F, Q = rng.normal(size=D) * U, F * U[:, None] / U, Q * np.outer(U, U)
    return System(m0, P0 * np.outer(U, U), F, b * U, Q, unit_y * H / U, unit_y**2 * R, unit_y * y, U, unit_y)


@st.composite
def systems(draw, D: int, O: int, T: int = 3, *, missing=0.0, drifting=True, diagonal=False, form="root"):
    """Systems of one shape (so that one compilation serves all of them).

    A precision matrix does not exist once a singular F has met no process noise, and loses its digits near there: for
    that form the transitions are invertible.
    """
    return build(
        draw(st.integers(0, 2**32 - 1)),
        D,
        O,
        T,
        kind=draw(st.sampled_from(FEATURES)),
        process=draw(st.sampled_from(PROCESS)) if drifting else "none",
        condition=10.0 ** draw(st.floats(0, 3, allow_subnormal=False)),
        noise=10.0 ** draw(st.floats(-2, 2, allow_subnormal=False)),
        units=draw(st.sampled_from([0.0, 2.0, 6.0])),
        unit_y=10.0 ** draw(st.floats(-6, 6, allow_subnormal=False)),
        missing=missing,
        drifting=drifting,
        diagonal=diagonal,
        invertible=form == "precision",
    )
