"""Numeric bars: problems on which textbook covariance updates lose their digits, their sign or everything.

The reference is the same data in float64 (a batch solution, or exact fractions); `z` is the largest distance between
two means in posterior standard deviations. A square root is positive semidefinite by construction, so there the
question is whether what is stored stays finite; the product re-formed in float32 may show an eigenvalue of -ε.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import batch_regression, exact_update

import filtax as fx

SEEDS = [1, 2, 3, 4]
SHORT = 10_000
LONG = 100_000


def case(name: str, seed: int, T: int, dtype: str):
    """Features, targets, noise variance and prior variance of the static regressions A to D."""
    rng = np.random.default_rng(seed)
    if name == "A":
        X, noise, prior = rng.normal(size=(T, 10)), 1e-4, 1e6
    elif name == "B":
        X, noise, prior = np.vander(rng.uniform(-1, 1, size=T), 8, increasing=True), 1e-2, 1e4
    elif name == "C":
        x = rng.normal(size=T)
        X, noise, prior = np.stack([x, x + 1e-4 * rng.normal(size=T)], axis=1), 1e-6, 1e8
    else:
        X, noise, prior = np.stack([np.ones(T), np.ones(T), rng.normal(size=T)], axis=1), 1e-2, 1e4
    theta = rng.normal(size=X.shape[1])
    X = X.astype(dtype)
    y = (X.astype("float64") @ theta + np.sqrt(noise) * rng.normal(size=T)).astype(dtype)
    return X, y, float(np.asarray(noise, dtype)), prior


def learn(name, seed, T, dtype, method="LG+C-Static"):
    """Run one case; return the method, its last state, z, and the ratio of its variances to the true ones."""
    X, y, noise, prior = case(name, seed, T, dtype)
    kf = fx.method(method, model=fx.models.linear(noise=noise))
    state = kf.init(mean=jnp.zeros(X.shape[1], dtype), cov=prior)
    state, infos = kf.scan(state, jnp.asarray(X), jnp.asarray(y), keep=("ok", "belief_var"))
    assert np.asarray(infos.ok).all()
    assert np.isfinite(infos.belief_var).all()
    assert (np.asarray(infos.belief_var) > 0).all()
    belief = kf.belief(state)
    assert belief.mean.dtype == belief.cov.dtype == dtype
    want = batch_regression(X, y, np.zeros(X.shape[1]), prior * np.eye(X.shape[1]), noise)
    sd = np.sqrt(np.diag(want.cov))
    z = np.max(np.abs(np.asarray(belief.mean, "float64") - want.mean) / sd)
    return kf, state, z, np.asarray(infos.belief_var[-1], "float64") / np.diag(want.cov)


BARS = [(name, "float32", seed) for name in "ABD" for seed in SEEDS]
BARS += [(name, "float64", seed) for name in "ABCD" for seed in SEEDS]


def check_bar(name, dtype, seed, T):
    _, _, z, ratio = learn(name, seed, T, dtype)
    assert z <= (0.2 if dtype == "float32" else 1e-5)
    assert np.abs(ratio - 1).max() <= (0.05 if dtype == "float32" else 1e-5)


@pytest.mark.parametrize(("name", "dtype", "seed"), BARS)
def test_static_regression_stays_accurate(name, dtype, seed):
    """5.1, A to D: z ≤ 0.2 and variances within 5 % in float32, z ≤ 1e-5 in float64, finite at every step."""
    check_bar(name, dtype, seed, SHORT)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "dtype", "seed"), BARS)
def test_static_regression_stays_accurate_for_long(name, dtype, seed):
    check_bar(name, dtype, seed, LONG)


@pytest.mark.parametrize("seed", SEEDS)
def test_nearly_equal_features_in_float32_stay_finite_and_warn(seed):
    """5.1, C: no digits are promised, but the belief stays a belief, and says that it cannot be trusted."""
    kf, state, _, _ = learn("C", seed, SHORT, "float32")
    with pytest.warns(fx.ConditioningWarning):
        kf.check(state)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS)
def test_nearly_equal_features_in_float32_stay_finite_for_long(seed):
    kf, state, _, _ = learn("C", seed, LONG, "float32")
    with pytest.warns(fx.ConditioningWarning):
        kf.check(state)


@pytest.mark.parametrize(("name", "dtype"), [("A", "float32"), ("A", "float64"), ("C", "float64")])
def test_sound_beliefs_do_not_warn(name, dtype):
    kf, state, _, _ = learn(name, 1, 1000, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kf.check(state)


ILL = [("float32", delta, 1e-3) for delta in (1e-3, 1e-4, 1e-5)]
ILL += [("float64", delta, 1e-6) for delta in (1e-3, 1e-6, 1e-8, 1e-9, 1e-10)]


@pytest.mark.parametrize(("dtype", "delta", "bar"), ILL)
def test_ill_conditioned_update(dtype, delta, bar):
    """5.2: H = [[1,1,1],[1,1,1+δ]], R = δ²I, P = I, against exact fractions of the same floats."""
    H = np.array([[1, 1, 1], [1, 1, 1 + delta]], dtype)
    R, y = np.asarray(delta**2 * np.eye(2), dtype), np.array([1, 2], dtype)
    kf = fx.method("LG(form=root)+C-Static", model=fx.models.linear(noise=jnp.asarray(R)))
    state, info = kf.step(kf.init(mean=jnp.zeros(3, dtype), cov=1.0), jnp.asarray(H), jnp.asarray(y))
    want = exact_update(np.zeros(3), np.eye(3), H, R, y)
    root = np.asarray(kf.belief(state).root, "float64")
    assert info.ok
    assert np.linalg.norm(root @ root.T - want.cov) <= bar * np.linalg.norm(want.cov)


@pytest.mark.parametrize("power", [-15, -8, 8, 15])
def test_units_do_not_matter_in_float32(power):
    """5.5: (y, H, R) → (cy, cH, c²R) with c = 10^power: squares of the data are near the ends of the exponent."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    beliefs = []
    for c in (1.0, 10.0**power):
        kf = fx.method("LG+C-ACI(q=0.01)", model=fx.models.linear(noise=float(np.float32(c) ** 2 * np.float32(0.1))))
        state = kf.init(mean=jnp.zeros(3, "float32"), cov=1.0)
        state, infos = kf.scan(state, jnp.asarray(c * X, "float32"), jnp.asarray(c * y, "float32"))
        assert np.asarray(infos.ok).all()
        beliefs.append(kf.belief(state))
    one, other = beliefs
    np.testing.assert_allclose(other.mean, one.mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(other.cov, one.cov, rtol=1e-5, atol=1e-6)
