"""The Gaussian held as its precision, against conditioning of the dense joint and moments of affine maps in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import Precision
from moments import conditioned, drifted, mixed, normal, same, sampled, spd
from oracles import Moments, log_normal

pytestmark = pytest.mark.x64
condition = jax.jit(lambda belief, J, B, r: belief.condition(J, B, r))
drift = jax.jit(lambda belief, F=None, b=None, noise=None: belief.drift(F, b, noise))
mix = jax.jit(lambda belief, initial, keep: belief.mix(initial, keep))
sizes = pytest.mark.parametrize(("D", "O"), [(1, 1), (2, 5), (5, 2)])


def problem(D, O=1, seed=0):
    return normal(seed, D), spd(seed + 1, D), normal(seed + 2, O, D), normal(seed + 3, O, O), normal(seed + 4, O)


def start(mean, cov):
    return Precision.start(jnp.asarray(mean), jnp.asarray(cov))


@sizes
def test_conditioning(D, O):
    """Belief, evidence and determinant, also of a vague prior; and the datum may say nothing."""
    mean, cov, J, B, r = problem(D, O)
    for P in (cov, 1e3 * cov):
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


@pytest.mark.parametrize(("far", "r"), [(1e160, 1.0), (np.nan, 1.0), (1.0, np.inf), (1.0, np.nan)])
def test_a_datum_that_overflows_is_not_taken(far, r):
    D, O = 2, 5
    before = start(np.ones(D), np.ones(D))
    done = condition(before, np.full((O, D), far), np.eye(O), np.full(O, r))
    assert not bool(done.ok)
    np.testing.assert_array_equal(done.belief.mean, before.mean)
    assert np.isfinite(done.belief.precision).all()
    if r == 1.0:
        np.testing.assert_array_equal(done.belief.precision, before.precision)


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
    same(drift(belief), Moments(mean, cov, 0.0))
    one = [part[:1, :1] if part.ndim == 2 else part[:1] for part in (mean, cov, F, b, root)]
    same(drift(start(*one[:2]), *one[2:]), drifted(*one[:4], one[4] ** 2))


@pytest.mark.parametrize("keep", [0.0, 0.3, 1.0, [0.0, 0.9, 1.0]])
def test_mixing_with_the_initial_belief(keep):
    (mean, cov, *_), (mean0, cov0, *_) = problem(3), problem(3, seed=20)
    got = mix(start(mean, cov), start(mean0, cov0), jnp.asarray(keep))
    same(got, mixed(mean, cov, mean0, cov0, keep))


def test_a_drift_that_overflows_is_not_taken():
    belief = start(np.array([1.0, 2.0]), np.ones(2))
    wide = drift(belief, jnp.array([np.inf, 1.0]))
    np.testing.assert_array_equal(wide.precision, belief.precision)
    np.testing.assert_array_equal(wide.mean, [1.0, 2.0])
    lost = drift(belief, jnp.array([0.0, 1.0]))  # no precision holds what becomes certain
    jax.tree.map(np.testing.assert_array_equal, lost, belief)
    moved = drift(belief, None, jnp.array([np.inf, 1.0]))
    np.testing.assert_array_equal(moved.mean, [1.0, 3.0])


def test_start():
    """Variances or a full covariance; what is certain has no precision, and comes out as infinity or NaN."""
    np.testing.assert_array_equal(start(np.zeros(2), np.array([4.0, 0.5])).precision, np.diag([0.25, 2.0]))
    np.testing.assert_allclose(start(np.zeros(3), spd(0, 3)).precision, np.linalg.inv(spd(0, 3)), rtol=1e-12)
    assert not np.isfinite(start(np.zeros(2), np.array([1.0, 0.0])).precision).all()


def test_samples():
    mean, cov, *_ = problem(3)
    belief = start(mean, cov)
    sampled(np.asarray(belief.sample(jax.random.key(0), (20_000,))), mean, cov)
    shapes = [jax.eval_shape(lambda key, s=s: belief.sample(key, s), jax.random.key(0)).shape for s in ((), (2, 5))]
    assert shapes == [(3,), (2, 5, 3)]
