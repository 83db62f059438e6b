"""(M.1) Labels, counts, iterated and conjugate updates: one Newton step, and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import filtax as fx
from drive import FORMS, close, in_turn
from generators import covariance
from oracles import Moments, logistic_newton, newton_step, poisson_newton, softmax_newton

pytestmark = pytest.mark.x64
seeds = st.integers(0, 2**32 - 1)
units_of_theta = st.sampled_from([0.0, 2.0, 6.0])


@jax.jit
def once(kf, state, x, y):
    state, info = kf.step(state, x, y)
    belief = kf.belief(state)
    return belief.mean, belief.cov, info.log_evidence, info.ok


def prior(seed, D, units, size=1.0):
    """A belief in units of its own, and features that give natural parameters of order `size`."""
    rng = np.random.default_rng(seed)
    U = 10.0 ** rng.uniform(-units, units, size=D)
    P = covariance(rng, D, 100.0) * np.outer(U, U)
    return rng, U, rng.normal(size=D) * U, (P + P.T) / 2, size * rng.normal(size=D) / U


def check_step(kf, m, P, x, y, want: Moments, U):
    state = kf.init(mean=jnp.asarray(m), cov=jnp.asarray(P))
    mean, cov, log_evidence, ok = once(kf, state, jnp.asarray(x), jnp.asarray(y))
    close(mean, want.mean, U, floor=1.0)
    close(cov, want.cov, np.outer(U, U))
    assert bool(ok)
    assert np.isfinite(log_evidence)


@pytest.mark.parametrize(("form", "D"), in_turn(FORMS, [(5,), (1,)]))
@given(seed=seeds, units=units_of_theta, label=st.sampled_from([0.0, 1.0]))
def test_logistic_update_is_one_newton_step(form, D, seed, units, label):
    """34: mean and inverse Hessian of the log posterior, with the variance p(1-p) used once, not inverted."""
    _, U, m, P, x = prior(seed, D, units)
    kf = fx.method(f"LG(form={form})+C-Static", model=fx.models.linear(likelihood=fx.models.bernoulli()))
    x_ = x / np.sqrt(D)
    check_step(kf, m, P, x_, label, in_units(logistic_newton, m, P, x_, label, U), U)


def in_units(step, m, P, x, y, U):
    """Newton's step in comfortable units (the oracle inverts matrices), then in those of the belief."""
    want = step(m / U, P / np.outer(U, U), x * U, y)
    return Moments(want.mean * U, want.cov * np.outer(U, U), np.nan)


@pytest.mark.parametrize(("form", "D"), in_turn(FORMS, [(5,), (1,)]))
@given(seed=seeds, units=units_of_theta, count=st.integers(0, 30))
def test_poisson_update_is_one_newton_step(form, D, seed, units, count):
    """66: log link, rate as the variance."""
    _, U, m, P, x = prior(seed, D, units)
    kf = fx.method(f"LG(form={form})+C-Static", model=fx.models.linear(likelihood=fx.models.poisson()))
    x_ = x / np.sqrt(D)
    check_step(kf, m, P, x_, float(count), in_units(poisson_newton, m, P, x_, float(count), U), U)


def mean_space_step(m, P, J, label, pick):
    """The extended filter on class indicators: H = ∂p/∂theta and the (singular) R, by `pick`."""
    p = scipy.special.softmax(J @ m)
    R = np.diag(p) - np.outer(p, p)
    H, gap = R @ J, np.eye(len(p))[label] - p
    if pick == "pseudo-inverse":
        R_inv = np.linalg.pinv(R, rcond=1e-10)
    else:
        H, gap, R_inv = H[:-1], gap[:-1], np.linalg.inv(R[:-1, :-1])
    return newton_step(m, P, H.T @ R_inv @ gap, H.T @ R_inv @ H)


@pytest.mark.parametrize(("form", "M", "O"), in_turn(FORMS, [(2, 5), (1, 2)]))
@given(seed=seeds, data=st.data())
def test_softmax_update_never_inverts_its_singular_variance(form, M, O, seed, data):
    """35, 36: the same step by pseudo-inverse, by dropping the last class, and as JᵀRJ (one Newton step)."""
    label = data.draw(st.integers(0, O - 1))
    _, U, m, P, _ = prior(seed, M * O, 0.0)
    x = np.random.default_rng(seed + 1).normal(size=M)
    J = np.kron(x[None, :], np.eye(O))
    kf = fx.method(f"LG(form={form})+C-Static", model=fx.models.linear(likelihood=fx.models.categorical()))
    for want in (
        softmax_newton(m, P, J, label),
        mean_space_step(m, P, J, label, "pseudo-inverse"),
        mean_space_step(m, P, J, label, "drop last"),
    ):
        check_step(kf, m, P, x, label, want, U)
    R = np.asarray(kf.predict(kf.init(mean=jnp.asarray(m), cov=jnp.asarray(P)), jnp.asarray(x), plugin=True).cov)
    p = scipy.special.softmax(J @ m)
    close(R, np.diag(p) - np.outer(p, p))
    assert np.linalg.matrix_rank(R, tol=1e-12) == O - 1


def affine(theta, x):
    return x[:, :-1] @ theta + x[:, -1]


@pytest.mark.parametrize(("form", "D", "O"), in_turn(FORMS, [(2, 5), (5, 2)]))
@given(seed=seeds, offset=st.booleans())
def test_extended_and_iterated_filters_are_kalman_for_affine_predictors(form, D, O, seed, offset):
    """62: relinearising cannot change what is linear already; an offset of h must not be lost or counted twice."""
    rng, U, m, P, _ = prior(seed, D, 2.0)
    H, R, y = rng.normal(size=(O, D)) / U, covariance(rng, O, 100.0), rng.normal(size=O)
    b = rng.normal(size=O) * offset
    arguments = jnp.asarray(m), jnp.asarray(P)
    linear = fx.method(f"LG(form={form})+C-Static", model=fx.models.linear(noise=jnp.asarray(R)))
    want = once(linear, linear.init(*arguments), jnp.asarray(H), jnp.asarray(y - b))
    x = jnp.asarray(np.column_stack([H, b]))
    for name in (f"LG(form={form})", f"IEKF(iterations=2, form={form})", f"IEKF(iterations=5, form={form})"):
        kf = fx.method(f"{name}+C-Static", model=fx.models.nonlinear(affine, noise=jnp.asarray(R)))
        mean, cov, log_evidence, ok = once(kf, kf.init(*arguments), x, jnp.asarray(y))
        close(mean, want[0], U, floor=1.0)
        close(cov, want[1], np.outer(U, U))
        close(log_evidence, want[2], floor=O)
        assert bool(ok)


@jax.jit
def learn(kf, state, Y):
    state, infos = kf.scan(state, None, Y, keep=("log_evidence",))
    return kf.belief(state).mean, kf.belief(state).var, infos.log_evidence


positive = st.floats(-2, 3, allow_subnormal=False).map(lambda power: 10.0**power)


@given(a=positive, b=positive, outcomes=st.lists(st.sampled_from([0.0, 1.0]), min_size=12, max_size=12))
def test_beta_evidence_is_a_ratio_of_beta_functions(a, b, outcomes):
    """47: the forecasts of all outcomes multiply to B(a + ones, b + zeros) / B(a, b)."""
    kf = fx.method("Cj+C-Static", model=fx.models.bernoulli())
    total = a + b
    state = kf.init(mean=jnp.array([a / total]), cov=jnp.array([a * b / total**2 / (total + 1)]))
    mean, var, log_evidence = learn(kf, state, jnp.array(outcomes))
    ones = sum(outcomes)
    want = scipy.stats.beta(a + ones, b + 12 - ones)
    close(log_evidence.sum(), scipy.special.betaln(a + ones, b + 12 - ones) - scipy.special.betaln(a, b), floor=12)
    close(mean[0], want.mean())
    close(var[0], want.var())


@given(a=positive, b=positive, counts=st.lists(st.integers(0, 50), min_size=12, max_size=12))
def test_gamma_evidence_is_a_ratio_of_gamma_functions(a, b, counts):
    """The counterpart of 47 for counts; the first forecast is scipy's negative binomial."""
    kf = fx.method("Cj+C-Static", model=fx.models.poisson())
    state = kf.init(mean=jnp.array([a / b]), cov=jnp.array([a / b**2]))
    mean, var, log_evidence = learn(kf, state, jnp.array(counts, float))
    n, total = len(counts), sum(counts)
    gammaln = scipy.special.gammaln
    closed = gammaln(a + total) - gammaln(a) + a * np.log(b) - (a + total) * np.log(b + n)
    close(log_evidence.sum(), closed - gammaln(np.array(counts) + 1.0).sum(), floor=n + total)
    close(log_evidence[0], scipy.stats.nbinom(a, b / (1 + b)).logpmf(counts[0]), floor=1 + counts[0])
    close(mean[0], (a + total) / (b + n))
    close(var[0], (a + total) / (b + n) ** 2)
