"""Linear state-space dynamics against F P F' + Q in numpy, with F and Q as numbers, vectors, matrices, functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from filtax.beliefs import Covariance, SquareRoot
from filtax.priors import linear_dynamics
from filtax.priors._dynamics import noise_root
from moments import drifted, normal, same, spd

pytestmark = pytest.mark.x64
MEAN, COV = normal(0, 2), spd(1, 2)
F, B, Q = normal(2, 2, 2), normal(3, 2), spd(4, 2)
RANK_ONE = np.outer([1.0, 2.0], [1.0, 2.0])
SPRING = np.array([[0.0, 1.0], [-1.0, -0.3]])


def move(dynamics, dt=None, form=SquareRoot):
    return dynamics(
        form.start(jnp.asarray(MEAN), jnp.asarray(COV)), None, None, None if dt is None else jnp.asarray(dt)
    )


@pytest.mark.parametrize("form", [SquareRoot, Covariance])
@pytest.mark.parametrize(
    ("transition", "offset", "noise"),
    [
        (F, B, Q),
        (F, None, RANK_ONE),
        (0.5, B, 0.3),
        ([0.5, 2.0], None, [0.0, 0.3]),
        (None, B, None),
        (None, None, 0.0),
    ],
)
def test_every_way_to_give_the_matrices(transition, offset, noise, form):
    """What is omitted is the identity, and nothing."""
    dynamics = linear_dynamics(transition, offset, noise)
    same(move(dynamics, form=form), drifted(MEAN, COV, transition, offset, noise))
    assert (dynamics.name, dynamics.needs, dynamics.moves) == ("LSSM", ("affine",), True)


@pytest.mark.parametrize("form", [SquareRoot, Covariance])
def test_functions_of_the_time_gap(form):
    """A damped spring: over a gap the transition is the matrix exponential, and without one the gap is one."""
    flow = lambda dt: jax.scipy.linalg.expm(jnp.asarray(SPRING) * dt)
    dynamics = linear_dynamics(F=flow, Q=lambda dt: jnp.asarray(Q) * dt)
    for dt in (None, 0.5):
        gap = 1.0 if dt is None else dt
        same(move(dynamics, dt, form), drifted(MEAN, COV, scipy.linalg.expm(SPRING * gap), None, Q * gap))
    half = linear_dynamics(F=lambda dt: 0.5**dt)
    same(move(half, 2.0, form), drifted(MEAN, COV, 0.25))


@pytest.mark.parametrize("parts", [dict(F=F, Q=lambda dt: dt), dict(F=lambda dt: dt, Q=0.1), dict(b=B)])
def test_a_constant_matrix_refuses_a_time_gap(parts):
    with pytest.raises(ValueError, match="does not know what another time step does"):
        move(linear_dynamics(**parts), 0.5)


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        (dict(F=np.ones((2, 3))), r"a square matrix, got shape \(2, 3\)"),
        (dict(F=np.ones((1, 2, 2))), "got shape"),
        (dict(F=np.nan), r"linear_dynamics\(F=...\) must be finite"),
        (dict(b=[0.0, np.inf]), r"linear_dynamics\(b=...\) must be finite"),
        (dict(Q=-1.0), r"linear_dynamics\(Q=...\) must be finite and at least 0"),
        (dict(Q=[[1.0, 2.0], [2.0, 1.0]]), "positive semidefinite"),
        (dict(Q=[[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
    ],
)
def test_refusals(parts, match):
    with pytest.raises(ValueError, match=match):
        linear_dynamics(**parts)


def test_noise_roots():
    """Singular, in very different units, traced; variances element by element."""
    unit = np.array([1e-6, 1.0, 0.0, 1e6])
    for noise in (np.outer(unit, unit), np.diag(unit), np.zeros((2, 2)), Q):
        scale = np.sqrt(np.outer(np.diag(noise), np.diag(noise)))
        for root in map(np.asarray, (noise_root(noise), jax.jit(noise_root)(jnp.asarray(noise)))):
            assert (np.abs(root @ root.T - noise) <= 1e-14 * scale).all()
    np.testing.assert_allclose(noise_root(np.array([4.0, 0.0])), [2.0, 0.0])
    np.testing.assert_allclose(noise_root(9), 3.0)
    assert noise_root(jnp.eye(2, dtype="float32")).dtype == "float32"


def test_gradient_with_respect_to_the_noise():
    """d trace / dq of a belief that gains q on each parameter is D."""
    grown = lambda q: jnp.trace(move(linear_dynamics(Q=q * jnp.eye(2)), form=Covariance).cov)
    np.testing.assert_allclose(jax.jit(jax.grad(grown))(0.3), 2.0, rtol=1e-9)
