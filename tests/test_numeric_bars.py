"""Numeric bars: problems on which textbook covariance updates lose their digits, their sign or everything.

The reference is the same data in float64 (a batch solution, or exact fractions); `z` is the largest distance between
two means in posterior standard deviations. A square root is positive semidefinite by construction, so there the
question is whether what is stored stays finite; the product re-formed in float32 may show an eigenvalue of -ε.
"""

from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from oracles import batch_regression, exact_update

SEEDS = [1, 2, 3, 4]
SHORT, LONG = 10_000, 100_000


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


def learn(name, seed, T, dtype):
    """Run one case; return the method, its last state, z, and the ratio of its variances to the true ones."""
    X, y, noise, prior = case(name, seed, T, dtype)
    D = X.shape[1]
    kf = fx.method("LG+C-Static", model=fx.models.linear(noise=noise))
    state = kf.init(mean=jnp.zeros(D, dtype), cov=prior)
    state, infos = kf.scan(state, jnp.asarray(X), jnp.asarray(y), keep=("ok", "belief_mean", "belief_var"))
    mean, var = np.asarray(infos.belief_mean), np.asarray(infos.belief_var)
    assert mean.dtype == var.dtype == dtype
    assert np.asarray(infos.ok).all()
    assert np.isfinite(mean).all()
    assert np.isfinite(var).all()
    assert (var > 0).all()
    want = batch_regression(X, y, np.zeros(D), prior * np.eye(D), noise)
    z = np.max(np.abs(mean[-1].astype("float64") - want.mean) / np.sqrt(np.diag(want.cov)))
    return kf, state, z, var[-1].astype("float64") / np.diag(want.cov)


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


@pytest.mark.parametrize("seed", SEEDS)
def test_roundings_of_a_settled_mean_do_not_add_up(seed):
    """A, float32: z grows with T, to 0.3 at 1e5 data, unless each rounding is handed on to the next step.

    Seen here, compiled in haste as the tests are: up to 0.0065. Compiled as usual: up to 0.0038, and 0.0096 to 0.045
    without handing it on.
    """
    assert learn("A", seed, SHORT, "float32")[2] <= 0.008


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "dtype", "seed"), BARS)
def test_static_regression_stays_accurate_for_long(name, dtype, seed):
    check_bar(name, dtype, seed, LONG)


def check_warned(seed, T):
    kf, state, _, _ = learn("C", seed, T, "float32")
    with pytest.warns(fx.ConditioningWarning, match="float64"):
        belief = kf.belief(state)
    assert np.isfinite(belief.root).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_nearly_equal_features_in_float32_stay_finite_and_warn(seed):
    """5.1, C: no digits are promised, but the belief stays a belief, and says that it cannot be trusted."""
    check_warned(seed, SHORT)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS)
def test_nearly_equal_features_in_float32_stay_finite_and_warn_for_long(seed):
    check_warned(seed, LONG)


@pytest.mark.parametrize(("name", "dtype"), [("A", "float32"), ("B", "float32"), ("A", "float64"), ("C", "float64")])
def test_sound_beliefs_do_not_warn(name, dtype):
    """Warnings are errors here."""
    kf, state, _, _ = learn(name, 1, 1000, dtype)
    assert np.isfinite(kf.belief(state).cov).all()


@pytest.mark.parametrize(("prior", "warned"), [(1e3, False), (1e8, True)])
def test_a_covariance_warns_of_what_its_half_of_the_digits_does_not_resolve(prior, warned):
    """Of 1e9 and of 1e4 times the noise: a root resolves both in float32, the square of one only the second."""
    X, y = np.random.default_rng(0).normal(size=(20, 3)).astype("float32"), np.ones(20, "float32")
    for form in ("root", "covariance"):
        kf = fx.method(f"LG(form={form})+C-ACI(q=1e-6)", model=fx.models.linear(noise=0.1))
        state, _ = kf.scan(kf.init(mean=jnp.zeros(3, "float32"), cov=prior), X, y, keep=())
        expected = pytest.warns(fx.ConditioningWarning) if warned and form == "covariance" else nullcontext()
        with expected:
            kf.belief(state)


ILL = [("float32", delta, 1e-3) for delta in (1e-3, 1e-4, 1e-5)]
ILL += [("float64", delta, 1e-6) for delta in (1e-3, 1e-6, 1e-8, 1e-9, 1e-10)]


@pytest.mark.parametrize("name", ["LG", "LG(form=root)"])
@pytest.mark.parametrize(("dtype", "delta", "bar"), ILL)
def test_ill_conditioned_update(dtype, delta, bar, name):
    """5.2: H = [[1,1,1],[1,1,1+δ]], R = δ²I, P = I, against exact fractions of the same floats."""
    H = np.array([[1, 1, 1], [1, 1, 1 + delta]], dtype)
    R, y = np.asarray(delta**2 * np.eye(2), dtype), np.array([1, 2], dtype)
    kf = fx.method(f"{name}+C-Static", model=fx.models.linear(noise=jnp.asarray(R)))
    state, info = kf.step(kf.init(mean=jnp.zeros(3, dtype), cov=1.0), jnp.asarray(H), jnp.asarray(y))
    want = exact_update(np.zeros(3), np.eye(3), H, R, y)
    root = np.asarray(kf.belief(state).root, "float64")
    assert info.ok
    assert np.linalg.norm(root @ root.T - want.cov) <= bar * np.linalg.norm(want.cov)


LONG_NETWORK = pytest.param(1e-2, 1.0, 20_000, 0.05, marks=pytest.mark.nightly)  # milder than the next
NETWORK = [LONG_NETWORK, (1e-4, 100.0, 5_000, 0.05), (1e-6, 100.0, 5_000, np.inf)]


def flip(T, noise, seed):
    """5.3: the start of a ReLU network of 61 parameters, and a noisy curve whose sign flips half-way; in float32."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(T, 1)).astype("float32")
    sign = np.where(np.arange(T) < T // 2, 1.0, -1.0)
    y = (sign * np.tanh(x[:, 0]) + np.sqrt(noise) * rng.normal(size=T)).astype("float32")
    hidden, output = fx.models.mlp((1, 20, 1)).init(jax.random.key(seed), "float32")
    bias = rng.normal(size=20).astype("float32")
    return (
        ({"bias": bias, "weight": 2 * hidden["weight"]}, {"bias": output["bias"], "weight": 2 * output["weight"]}),
        x,
        y,
    )


def relearn(noise, prior, T, dtype):
    """Squared error and trace of the last covariance for each of the seeds, without process noise."""
    kf = fx.method("LG+C-Static", model=fx.models.nonlinear(fx.models.mlp((1, 20, 1)).apply, noise=noise))
    rows = jax.tree.map(
        lambda *leaves: jnp.asarray(np.stack(leaves), dtype), *(flip(T, noise, seed) for seed in range(8))
    )

    def run(params, x, y):
        return kf.scan(kf.init(params=params, cov=prior), x, y, keep=("mean", "var", "ok", "belief_var"))[1]

    infos = jax.tree.map(np.asarray, jax.vmap(run)(*rows))
    assert infos.ok.all()
    assert np.isfinite(infos.belief_var).all()
    assert (infos.belief_var >= 0).all()
    assert (infos.var >= np.asarray(noise, dtype)).all()
    error = infos.mean.astype("float64") - np.asarray(rows[2], "float64")
    return np.mean(error**2, axis=1), infos.belief_var[:, -1].astype("float64").sum(axis=1)


@pytest.mark.x64
@pytest.mark.parametrize(("noise", "prior", "T", "bar"), NETWORK)
def test_network_in_float32_follows_float64(noise, prior, T, bar):
    """5.3: S ≥ R, no negative variance, at most 1.5 times the squared error of float64, tr P within 5 % in two rows.

    Single runs are chaotic: in float64 a start that differs by 1e-7 can end elsewhere, as a unit dies or not. So the
    median of eight seeds is compared.
    """
    want_error, want_trace = relearn(noise, prior, T, "float64")
    error, trace = relearn(noise, prior, T, "float32")
    assert np.median(error / want_error) <= 1.5
    assert abs(np.median(trace / want_trace) - 1) <= bar
