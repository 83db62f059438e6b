"""What the dense forms of a Gaussian share, against conditioning of the dense joint and affine maps in numpy.

Forty parameters are beyond the sizes at which the covariance and the root change their algorithm.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import Covariance, Pending, Precision, SquareRoot
from moments import conditioned, drifted, mixed, normal, problem, same, sampled
from oracles import Moments, log_normal

pytestmark = pytest.mark.x64
HELD = {SquareRoot: "root", Covariance: "cov", Pending: "cov", Precision: "precision"}
LARGE = {SquareRoot: (40, 2), Covariance: (40, 2), Pending: (20, 2), Precision: (5, 2)}
condition = jax.jit(lambda belief, J, B, r: belief.condition(J, B, r))
affine = jax.jit(lambda belief, F=None, b=None, noise=None: belief.affine(F, b, noise))
mix = jax.jit(lambda belief, initial, keep: belief.mix(initial, keep))
every_form = pytest.mark.parametrize("family", HELD)
every_size = pytest.mark.parametrize(
    ("family", "D", "O"),
    [(family, *size) for family in HELD for size in dict.fromkeys([(1, 1), (2, 5), (5, 2), LARGE[family]])],
)


def start(family, mean, cov):
    return family.start(jnp.asarray(mean), jnp.asarray(cov))


@every_size
def test_conditioning(family, D, O):
    """Belief, evidence and determinant; the prior may be singular, a precision vague, and a datum may say nothing."""
    mean, cov, J, B, r = problem(D, O)
    singular = cov - np.outer(cov[0], cov[0]) / cov[0, 0]  # the first parameter is certain
    for P in (cov, 1e3 * cov if family is Precision else singular):
        done, want = condition(start(family, mean, P), J, B, r), conditioned(mean, P, J, B, r)
        same(done.belief, want, rtol=1e-9)
        S = np.eye(O) + B @ J @ P @ J.T @ B.T
        np.testing.assert_allclose(done.log_det, np.linalg.slogdet(S)[1], rtol=1e-9, atol=1e-14)
        whole = -0.5 * (done.innovation @ done.innovation + done.log_det + O * np.log(2 * np.pi))
        np.testing.assert_allclose(whole, log_normal(r, S), rtol=1e-9)
        assert bool(done.ok)
    before = start(family, mean, cov)
    nothing = condition(before, J, np.zeros_like(B), np.zeros(O))
    jax.tree.map(np.testing.assert_array_equal, nothing.belief, before)
    np.testing.assert_allclose(before.project_cov(jnp.asarray(J)), J @ cov @ J.T, rtol=1e-9, atol=1e-12)


@every_size
def test_what_is_certain_stays(family, D, O):
    if family is Precision:
        return  # it cannot hold what is certain, and is refused at init
    mean, _, J, B, r = problem(D, O)
    done = condition(start(family, mean, np.zeros(D)), J, B, r)
    same(done.belief, Moments(mean, np.zeros((D, D)), 0.0))
    assert float(done.log_det) == 0.0
    np.testing.assert_array_equal(done.innovation, r)


@pytest.mark.parametrize(("family", "D", "O"), [(family, *size) for family in HELD for size in ((2, 5), LARGE[family])])
@pytest.mark.parametrize(("far", "r"), [(1e160, 1.0), (np.nan, 1.0), (1.0, np.inf), (1.0, np.nan)])
def test_a_datum_that_overflows_is_not_taken(family, D, O, far, r):
    before = start(family, np.ones(D), np.ones(D))
    done = condition(before, np.full((O, D), far), np.eye(O), np.full(O, r))
    assert not bool(done.ok)
    np.testing.assert_array_equal(done.belief.mean, before.mean)
    assert np.isfinite(getattr(done.belief, HELD[family])).all()
    if r == 1.0:
        np.testing.assert_array_equal(getattr(done.belief, HELD[family]), getattr(before, HELD[family]))


@every_form
def test_drift(family):
    """Each way to give F and the noise; none of them at all, and noise of zero, change nothing."""
    D, (mean, cov, *_) = 3, problem(3)
    belief, b = start(family, mean, cov), normal(9, D)
    for F in (0.7, normal(7, D), normal(8, D, D)):
        same(affine(belief, jnp.asarray(F)), drifted(mean, cov, F))
    for root in (0.3, np.abs(normal(7, D)), normal(8, D, D)):
        Q = root**2 if np.ndim(root) < 2 else root @ root.T
        same(affine(belief, None, b, jnp.asarray(root)), drifted(mean, cov, None, b, Q))
    F = normal(10, D, D)
    same(affine(belief, F, b, root), drifted(mean, cov, F, b, root @ root.T))
    for q in (0.0, 0.3, np.arange(D) + 0.5):
        same(belief.add(jnp.asarray(q)), drifted(mean, cov, Q=q))
    same(affine(belief), Moments(mean, cov, 0.0))
    one = [part[:1, :1] if part.ndim == 2 else part[:1] for part in (mean, cov, F, b, root)]
    same(affine(start(family, *one[:2]), *one[2:]), drifted(*one[:4], one[4] ** 2))
    if family is not Precision:
        jax.tree.map(np.testing.assert_array_equal, affine(belief), belief)
        same(affine(start(family, mean, 0 * cov), F, b, root), drifted(mean, 0 * cov, F, b, root @ root.T))


@every_form
@pytest.mark.parametrize("keep", [0.0, 0.3, 1.0, [0.0, 0.9, 1.0]])
def test_mixing_with_the_initial_belief(family, keep):
    (mean, cov, *_), (mean0, cov0, *_) = problem(3), problem(3, seed=20)
    got = mix(start(family, mean, cov), start(family, mean0, cov0), jnp.asarray(keep))
    same(got, mixed(mean, cov, mean0, cov0, keep))


@every_form
def test_a_drift_that_overflows_is_not_taken(family):
    belief = start(family, np.array([1.0, 2.0]), np.ones(2))
    wide = affine(belief, jnp.array([np.inf, 1.0]), None, jnp.eye(2))
    np.testing.assert_array_equal(getattr(wide, HELD[family]), getattr(belief, HELD[family]))
    np.testing.assert_array_equal(wide.mean, [1.0, 2.0])
    np.testing.assert_array_equal(affine(belief, None, jnp.array([np.inf, 1.0])).mean, [1.0, 3.0])


@every_form
def test_widening(family):
    mean, cov, *_ = problem(3)
    same(start(family, mean, cov).inflate(jnp.asarray(2.5)), Moments(mean, 2.5 * cov, 0.0))


@every_form
def test_samples(family):
    mean, cov, *_ = problem(3)
    belief = start(family, mean, cov)
    sampled(np.asarray(belief.sample(jax.random.key(0), (20_000,))), mean, cov)
    shapes = [jax.eval_shape(lambda key, s=s: belief.sample(key, s), jax.random.key(0)).shape for s in ((), (2, 5))]
    assert shapes == [(3,), (2, 5, 3)]
