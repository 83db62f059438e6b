"""The Gaussian held as a square root, against conditioning of the dense joint and moments of affine maps in numpy.

Forty parameters are beyond the size at which the root is downdated instead of reduced.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import SquareRoot
from filtax.beliefs.square_root import root_of
from moments import conditioned, drifted, mixed, normal, same, sampled, spd
from oracles import Moments, log_normal

pytestmark = pytest.mark.x64
condition = jax.jit(lambda belief, J, B, r: belief.condition(J, B, r))
drift = jax.jit(lambda belief, F=None, b=None, noise=None: belief.drift(F, b, noise))
mix = jax.jit(lambda belief, initial, keep: belief.mix(initial, keep))
sizes = pytest.mark.parametrize(("D", "O"), [(1, 1), (2, 5), (5, 2), (40, 2)])


def problem(D, O=1, seed=0):
    return normal(seed, D), spd(seed + 1, D), normal(seed + 2, O, D), normal(seed + 3, O, O), normal(seed + 4, O)


def start(mean, cov):
    return SquareRoot.start(jnp.asarray(mean), jnp.asarray(cov))


@sizes
def test_conditioning(D, O):
    """Belief, evidence and determinant; the covariance may be singular, and the datum may say nothing."""
    mean, cov, J, B, r = problem(D, O)
    singular = cov - np.outer(cov[0], cov[0]) / cov[0, 0]  # the first parameter is certain
    for P in (cov, singular):
        done, want = condition(start(mean, P), J, B, r), conditioned(mean, P, J, B, r)
        same(done.belief, want, rtol=1e-9)
        S = np.eye(O) + B @ J @ P @ J.T @ B.T
        np.testing.assert_allclose(done.log_det, np.linalg.slogdet(S)[1], rtol=1e-9, atol=1e-14)
        whole = -0.5 * (done.innovation @ done.innovation + done.log_det + O * np.log(2 * np.pi))
        np.testing.assert_allclose(whole, log_normal(r, S), rtol=1e-9)
        assert bool(done.ok)
    before = start(mean, cov)
    nothing = condition(before, J, np.zeros_like(B), np.zeros(O))
    jax.tree.map(np.testing.assert_array_equal, nothing.belief, before)
    np.testing.assert_allclose(before.spread(jnp.asarray(J)), J @ cov @ J.T, rtol=1e-9, atol=1e-12)


@sizes
def test_what_is_certain_stays(D, O):
    mean, _, J, B, r = problem(D, O)
    done = condition(start(mean, np.zeros(D)), J, B, r)
    same(done.belief, Moments(mean, np.zeros((D, D)), 0.0))
    assert float(done.log_det) == 0.0
    np.testing.assert_array_equal(done.innovation, r)


@pytest.mark.parametrize(("D", "O"), [(2, 5), (40, 2)])
@pytest.mark.parametrize(("far", "r"), [(1e160, 1.0), (np.nan, 1.0), (1.0, np.inf), (1.0, np.nan)])
def test_a_datum_that_overflows_is_not_taken(D, O, far, r):
    before = start(np.ones(D), np.ones(D))
    done = condition(before, np.full((O, D), far), np.eye(O), np.full(O, r))
    assert not bool(done.ok)
    np.testing.assert_array_equal(done.belief.mean, before.mean)
    assert np.isfinite(done.belief.root).all()
    if r == 1.0:
        np.testing.assert_array_equal(done.belief.root, before.root)


def test_drift():
    """Each way to give F and the noise; none of them at all, and noise of zero, change nothing."""
    D, (mean, cov, *_) = 3, problem(3)
    belief, b = start(mean, cov), normal(9, D)
    for F in (0.7, normal(7, D), normal(8, D, D)):
        same(drift(belief, jnp.asarray(F)), drifted(mean, cov, F))
    for root in (0.3, np.abs(normal(7, D)), normal(8, D, D)):
        Q = root**2 if np.ndim(root) < 2 else root @ root.T
        same(drift(belief, None, b, jnp.asarray(root)), drifted(mean, cov, None, b, Q))
    F = normal(10, D, D)
    same(drift(belief, F, b, root), drifted(mean, cov, F, b, root @ root.T))
    for q in (0.0, 0.3, np.arange(D) + 0.5):
        same(belief.add(jnp.asarray(q)), drifted(mean, cov, Q=q))
    jax.tree.map(np.testing.assert_array_equal, drift(belief), belief)
    same(drift(start(mean, 0 * cov), F, b, root), drifted(mean, 0 * cov, F, b, root @ root.T))
    one = [part[:1, :1] if part.ndim == 2 else part[:1] for part in (mean, cov, F, b, root)]
    same(drift(start(*one[:2]), *one[2:]), drifted(*one[:4], one[4] ** 2))


@pytest.mark.parametrize("keep", [0.0, 0.3, 1.0, [0.0, 0.9, 1.0]])
def test_mixing_with_the_initial_belief(keep):
    (mean, cov, *_), (mean0, cov0, *_) = problem(3), problem(3, seed=20)
    got = mix(start(mean, cov), start(mean0, cov0), jnp.asarray(keep))
    same(got, mixed(mean, cov, mean0, cov0, keep))


def test_a_drift_that_overflows_is_not_taken():
    belief = start(np.array([1.0, 2.0]), np.ones(2))
    wide = drift(belief, jnp.array([np.inf, 1.0]), None, jnp.asarray(1.0))
    np.testing.assert_array_equal(wide.root, belief.root)
    np.testing.assert_array_equal(wide.mean, [1.0, 2.0])
    moved = drift(belief, None, jnp.array([np.inf, 1.0]))
    np.testing.assert_array_equal(moved.mean, [1.0, 3.0])


def test_roots_of_what_a_user_may_give():
    """Variances, a full covariance, a singular one in very different units; and the same under jit."""
    unit = np.array([1e-6, 1.0, 1e6])
    for cov in (np.diag([4.0, 0.0, 9.0]), spd(0, 3), np.outer(unit, unit), np.zeros((3, 3))):
        scale = np.outer(np.sqrt(np.diag(cov)), np.sqrt(np.diag(cov)))
        for root in (root_of(jnp.asarray(cov)), jax.jit(SquareRoot.start)(jnp.zeros(3), jnp.asarray(cov)).root):
            assert (np.abs(np.asarray(root) @ np.asarray(root).T - cov) <= 1e-14 * scale).all()
    np.testing.assert_array_equal(root_of(jnp.array([4.0, 0.0])), np.diag([2.0, 0.0]))


def test_samples():
    mean, cov, *_ = problem(3)
    belief = start(mean, cov)
    sampled(np.asarray(belief.sample(jax.random.key(0), (20_000,))), mean, cov)
    shapes = [jax.eval_shape(lambda key, s=s: belief.sample(key, s), jax.random.key(0)).shape for s in ((), (2, 5))]
    assert shapes == [(3,), (2, 5, 3)]
