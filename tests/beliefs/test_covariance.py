"""The Gaussian held as its covariance, against conditioning of the dense joint and moments of affine maps in numpy.

Twenty parameters are beyond the size up to which the diagonal is reached by a mask.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import Covariance
from moments import conditioned, drifted, mixed, normal, same, sampled, spd
from oracles import Moments, log_normal

pytestmark = pytest.mark.x64
condition = jax.jit(lambda belief, J, B, r: belief.condition(J, B, r))
drift = jax.jit(lambda belief, F=None, b=None, noise=None: belief.drift(F, b, noise))
mix = jax.jit(lambda belief, initial, keep: belief.mix(initial, keep))
sizes = pytest.mark.parametrize(("D", "O"), [(1, 1), (2, 5), (5, 2), (20, 2)])


def problem(D, O=1, seed=0):
    return normal(seed, D), spd(seed + 1, D), normal(seed + 2, O, D), normal(seed + 3, O, O), normal(seed + 4, O)


def start(mean, cov):
    return Covariance.start(jnp.asarray(mean), jnp.asarray(cov))


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


@pytest.mark.parametrize(("D", "O"), [(2, 5), (20, 2)])
@pytest.mark.parametrize(("far", "r"), [(1e160, 1.0), (np.nan, 1.0), (1.0, np.inf), (1.0, np.nan)])
def test_a_datum_that_overflows_is_not_taken(D, O, far, r):
    before = start(np.ones(D), np.ones(D))
    done = condition(before, np.full((O, D), far), np.eye(O), np.full(O, r))
    assert not bool(done.ok)
    np.testing.assert_array_equal(done.belief.mean, before.mean)
    assert np.isfinite(done.belief.cov).all()
    if r == 1.0:
        np.testing.assert_array_equal(done.belief.cov, before.cov)


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
    same(start(np.zeros(20), spd(0, 20)).add(jnp.arange(20.0)), drifted(np.zeros(20), spd(0, 20), Q=np.arange(20.0)))
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
    wide = drift(belief, jnp.array([np.inf, 1.0]), None, jnp.eye(2))
    np.testing.assert_array_equal(wide.cov, belief.cov)
    np.testing.assert_array_equal(wide.mean, [1.0, 2.0])
    for D in (2, 20):
        added = start(np.zeros(D), np.ones(D)).add(jnp.full(D, 1.0).at[0].set(np.inf))
        np.testing.assert_array_equal(added.cov, np.diag(np.r_[1.0, np.full(D - 1, 2.0)]))
    moved = drift(belief, None, jnp.array([np.inf, 1.0]))
    np.testing.assert_array_equal(moved.mean, [1.0, 3.0])


def test_start():
    np.testing.assert_array_equal(start(np.zeros(2), np.array([4.0, 0.0])).cov, np.diag([4.0, 0.0]))
    np.testing.assert_array_equal(start(np.zeros(2), spd(0, 2)).cov, spd(0, 2))


def precise(D, O, seed):
    """Four times the same datum, 1e5 times more precise than its belief, in float32; and the exact variances."""
    mean, cov, J, B, r = (np.asarray(part, "float32") for part in problem(D, O, seed))
    belief = start(mean, cov)
    for _ in range(4):
        belief = condition(belief, J, np.float32(1e5) * B, np.float32(1e5) * r).belief
    wide = [part.astype("float64") for part in (mean, cov, J, 2e5 * B, r)]
    return belief, np.diag(conditioned(*wide).cov)


@pytest.mark.parametrize("D", [2, 20])
def test_what_is_seen_keeps_the_variance_that_exact_arithmetic_promises(D):
    """Σ - U Uᵀ alone is zero or negative for some of these: the first parameter is seen with a noise of 1e-18."""
    for seed in range(12):
        mean, cov, *_ = problem(D, 1, seed)
        known = condition(start(mean, cov), np.eye(1, D), 1e9 * np.eye(1), np.zeros(1)).belief
        assert float(known.var[0]) >= 0.99e-18
    for J in (np.eye(1, 2), np.eye(2)):
        spread = Covariance(jnp.zeros(2), jnp.diag(jnp.array([-1e-9, 1.0]))).spread(jnp.asarray(J))
        np.testing.assert_array_equal(np.diag(spread), [0.0, 1.0][: len(J)])


@pytest.mark.parametrize("D", [2, 20])
def test_rounding_leaves_no_negative_variance(D):
    for seed in range(12):
        belief, _ = precise(D, 1, seed)
        assert belief.cov.dtype == "float32"
        assert (np.asarray(belief.var) > 0.0).all()


@pytest.mark.parametrize(("D", "O"), [(2, 5), (20, 2)])
def test_several_precise_outputs_leave_a_sound_belief(D, O):
    """Refused or taken, no variance becomes NaN, and none that the data do not determine falls to zero."""
    for seed in range(8):
        belief, want = precise(D, O, seed)
        assert np.isfinite(belief.cov).all()
        assert (np.asarray(belief.var) >= 0.5 * want).all()


def test_samples():
    mean, cov, *_ = problem(3)
    belief = start(mean, cov)
    sampled(np.asarray(belief.sample(jax.random.key(0), (20_000,))), mean, cov)
    shapes = [jax.eval_shape(lambda key, s=s: belief.sample(key, s), jax.random.key(0)).shape for s in ((), (2, 5))]
    assert shapes == [(3,), (2, 5, 3)]
