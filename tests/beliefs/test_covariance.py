"""The Gaussian held as its covariance: the guards. What all forms share is in test_gaussian_forms.

Forty parameters are beyond the size up to which the diagonal is reached by a mask.
"""

from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import Covariance
from filtax.beliefs._covariance import Downdate, downdate
from moments import conditioned, drifted, problem, same, spd

pytestmark = pytest.mark.x64
condition = jax.jit(lambda belief, J, B, r: belief.condition(J, B, r))


def start(mean, cov):
    return Covariance.start(jnp.asarray(mean), jnp.asarray(cov))


def test_noise_that_overflows_is_not_added():
    for D in (2, 40):
        added = start(np.zeros(D), np.ones(D)).add(jnp.full(D, 1.0).at[0].set(np.inf))
        np.testing.assert_array_equal(added.cov, np.diag(np.r_[1.0, np.full(D - 1, 2.0)]))
    same(start(np.zeros(40), spd(0, 40)).add(jnp.arange(40.0)), drifted(np.zeros(40), spd(0, 40), Q=np.arange(40.0)))


def precise(D, O, seed):
    """Four times the same datum, 1e5 times more precise than its belief, in float32; and the exact variances."""
    mean, cov, J, B, r = (np.asarray(part, "float32") for part in problem(D, O, seed))
    belief = start(mean, cov)
    for _ in range(4):
        belief = condition(belief, J, np.float32(1e5) * B, np.float32(1e5) * r).belief
    wide = [part.astype("float64") for part in (mean, cov, J, 2e5 * B, r)]
    return belief, np.diag(conditioned(*wide).cov)


@pytest.mark.parametrize("D", [2, 40])
def test_what_is_seen_keeps_the_variance_that_exact_arithmetic_promises(D):
    """Σ - U Uᵀ alone is zero or negative for some of these: the first parameter is seen with a noise of 1e-18."""
    for seed in range(12):
        mean, cov, *_ = problem(D, 1, seed)
        known = condition(start(mean, cov), np.eye(1, D), 1e9 * np.eye(1), np.zeros(1)).belief
        assert float(known.var[0]) >= 0.99e-18
    for J in (np.eye(1, 2), np.eye(2)):
        spread = Covariance(jnp.zeros(2), jnp.diag(jnp.array([-1e-9, 1.0]))).project_cov(jnp.asarray(J))
        np.testing.assert_array_equal(np.diag(spread), [0.0, 1.0][: len(J)])


@pytest.mark.parametrize("D", [2, 40])
def test_rounding_leaves_no_negative_variance(D):
    for seed in range(12):
        belief, _ = precise(D, 1, seed)
        assert belief.cov.dtype == "float32"
        assert (np.asarray(belief.var) > 0.0).all()


@pytest.mark.parametrize(("D", "O"), [(2, 5), (40, 2)])
def test_several_precise_outputs_leave_a_sound_belief(D, O):
    """Refused or taken, no variance becomes NaN, and none that the data do not determine falls to zero."""
    for seed in range(8):
        belief, want = precise(D, O, seed)
        assert np.isfinite(belief.cov).all()
        assert (np.asarray(belief.var) >= 0.5 * want).all()


SHAPES = {
    "iid": lambda rng, X: X,
    "alike": lambda rng, X: 0.01 * X + 0.99 * rng.normal(size=(len(X), 1)),
    "twins": lambda rng, X: np.concatenate([X[:, :1], X[:, :1] + 1e-4 * X[:, 1:2], X[:, 2:]], axis=1),
    "equal": lambda rng, X: np.concatenate([X[:, :1], X[:, :1], np.full((len(X), 2), 3.0), X[:, 4:]], axis=1),
    "units": lambda rng, X: X * np.logspace(-4, 4, X.shape[1]),
    "bumps": lambda rng, X: np.exp(-50.0 * (rng.uniform(size=(len(X), 1)) - np.linspace(0, 1, X.shape[1])) ** 2),
}


@partial(jax.jit, static_argnames="watched")
def learned(X, Y, mean, cov, noise, watched=True):
    """The last belief of a drifting regression, and the smallest eigenvalue that any belief had, of its trace."""

    def step(belief, row):
        x, y = row
        B = jnp.reshape(1.0 / jnp.sqrt(noise), (1, 1))
        new = belief.add(1e-10 * noise).condition(x[None], B, (B[0, 0] * (y - x @ belief.mean))[None]).belief
        if not watched:
            return new, None
        return new, jnp.linalg.eigvalsh(new.cov.astype("float64"))[0] / jnp.trace(new.cov).astype("float64")

    return jax.lax.scan(step, Covariance.start(mean, cov), (X, Y))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("D", [12, 33])
def test_a_belief_that_cannot_resolve_a_datum_is_wide_and_not_wrong(D, shape):
    """In float32 data of noise 1e-4 meet a variance of 1e6: without the doubt the mean is up to 1e21 deviations off.

    The truth is the same filter in float64, which has eight digits more. A new belief is wide; after a thousand data
    it is near the truth in units of its own deviations, and its forecasts are near those of the truth in units of the
    noise.
    """
    rng = np.random.default_rng(D)
    noise, prior, T = 1e-4, 1e6, 1000
    X = SHAPES[shape](rng, rng.normal(size=(T, D))).astype("float32")
    Y = (X @ rng.normal(size=D) + np.sqrt(noise) * rng.normal(size=T)).astype("float32")
    parts = X, Y, np.zeros(D, "float32"), np.full(D, prior, "float32"), np.float32(noise)
    short, least = learned(*parts)
    true, _ = learned(*(part.astype("float64") for part in parts))
    assert short.cov.dtype == "float32"
    assert np.asarray(least).min() >= -1e-6
    gap = np.asarray(short.mean, "float64") - np.asarray(true.mean)
    assert (np.abs(gap) <= 3.0 * np.sqrt(np.asarray(short.var, "float64"))).all()
    assert np.sqrt(np.mean((X[-200:] @ gap) ** 2)) <= 3.0 * np.sqrt(noise)
    assert (np.asarray(short.var) >= 0.9 * np.asarray(true.var)).all()


def test_equal_features_do_not_run_away_where_a_forecast_is_rounded_a_little():
    """With h of 0.006 instead of its cube root a slightly negative eigenvalue ends at 1e20 in each of these streams."""
    D, T, noise = 160, 3000, 3e-3
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.repeat(rng.normal(size=(T, 1)), D, axis=1).astype("float32")
        Y = (X @ rng.normal(size=D) + np.sqrt(noise) * rng.normal(size=T)).astype("float32")
        short, _ = learned(X, Y, np.zeros(D, "float32"), np.ones(D, "float32"), np.float32(noise), watched=False)
        assert np.abs(short.mean).max() <= 10.0
        value = np.linalg.eigvalsh(np.asarray(short.cov, "float64"))
        assert value[0] >= -1e-6 * value[-1]


@pytest.mark.parametrize("D", [2, 5])
def test_of_many_small_streams_none_runs_away(D):
    """Each datum is 1e14 and more times as precise as the first belief: in float32 one stream in a hundred ran away."""
    rng = np.random.default_rng(0)
    N, T = 500, 300
    X = (1e5 * rng.normal(size=(N, T, D))).astype("float32")
    Y = (np.einsum("ntd,nd->nt", X, rng.normal(size=(N, D))) + 0.01 * rng.normal(size=(N, T))).astype("float32")
    static = np.zeros(D, "float32"), np.full(D, 1e4, "float32"), np.float32(1e-4)
    last, _ = jax.vmap(partial(learned, watched=False), (0, 0, None, None, None))(X, Y, *static)
    value = np.linalg.eigvalsh(np.asarray(last.cov, "float64"))
    assert (value[:, 0] >= -1e-3 * value[:, -1]).all()
    assert np.abs(last.mean).max() <= 1e2


@jax.jit
def learned_together(X, Y, cov, noise):
    """The last belief of many outputs at a time, and whether each datum was taken."""

    def step(belief, row):
        H, y = row
        B = jnp.eye(len(y), dtype=y.dtype) / jnp.sqrt(noise)
        done = belief.add(jnp.asarray(1e-4, y.dtype)).condition(H, B, B @ (y - H @ belief.mean))
        return done.belief, done.ok

    D = X.shape[-1]
    return jax.lax.scan(step, Covariance.start(jnp.zeros(D, X.dtype), jnp.full(D, cov)), (X, Y))


@pytest.mark.parametrize("sizes", ["uneven", "alike"])
def test_many_precise_outputs_are_taken_and_leave_a_sound_belief(sizes):
    """Factored together in float32 their forecast was refused for ever, and the belief ended with eigenvalues < 0."""
    D, O, T, noise, prior = 70, 10, 60, 0.01, np.float32(1e4)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        unit = np.exp(2.0 * rng.normal(size=D)) if sizes == "uneven" else 1.0
        X = (rng.normal(size=(T, O, D)) * unit).astype("float32")
        Y = (X @ rng.normal(size=D) + np.sqrt(noise) * rng.normal(size=(T, O))).astype("float32")
        short, ok = learned_together(X, Y, prior, np.float32(noise))
        true, _ = learned_together(X.astype("float64"), Y.astype("float64"), np.float64(prior), noise)
        assert short.cov.dtype == "float32"
        assert np.asarray(ok).all()
        value = np.linalg.eigvalsh(np.asarray(short.cov, "float64"))
        assert value[0] >= -1e-6 * value[-1]
        gap = np.asarray(short.mean, "float64") - np.asarray(true.mean)
        assert (np.abs(gap) <= 3.0 * np.sqrt(np.asarray(short.var, "float64"))).all()


@pytest.mark.parametrize("O", [2, 5])
def test_one_output_after_the_other_is_all_at_once(O, monkeypatch):
    mean, cov, J, B, r = (jnp.asarray(part) for part in problem(40, O, 3))
    together = start(mean, cov).condition(J, B, r)
    monkeypatch.setattr("filtax.beliefs._covariance.RESOLVED", 0.0)
    apart = start(mean, cov).condition(J, B, r)
    for one, other in zip(jax.tree.leaves(together), jax.tree.leaves(apart), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-13)
    same(apart.belief, conditioned(mean, cov, J, B, r))


def test_what_is_missing_brings_no_doubt():
    """Doubt is for what a cut rounds: without a datum the belief keeps its bits."""
    for D in (2, 40):
        belief = start(np.zeros(D), spd(0, D))
        done = condition(belief, np.ones((1, D)), np.zeros((1, 1)), np.zeros(1)).belief
        np.testing.assert_array_equal(done.cov, belief.cov)


def test_where_the_digits_suffice_no_doubt_is_seen():
    """In float32 a prior a hundred times vaguer than the noise: as float64 has it, from above and from below."""
    rng = np.random.default_rng(0)
    D, T, noise = 200, 400, 0.01
    X = (rng.normal(size=(T, D)) / np.sqrt(D)).astype("float32")
    Y = (X @ rng.normal(size=D) + np.sqrt(noise) * rng.normal(size=T)).astype("float32")
    parts = X, Y, np.zeros(D, "float32"), np.ones(D, "float32"), np.float32(noise)
    short, _ = learned(*parts, watched=False)
    true, _ = learned(*(part.astype("float64") for part in parts), watched=False)
    np.testing.assert_allclose(short.var, true.var, rtol=5e-4)
    gap = np.asarray(short.mean, "float64") - np.asarray(true.mean)
    assert np.max(np.abs(gap) / np.sqrt(true.var)) <= 2e-3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_variance_falls_below_what_a_datum_can_leave(dtype):
    """Σ' >= Σ / (1 + tr S), though rounding takes off more than there was; where it does not, what is left counts."""
    var = jnp.asarray([1.0, 2.0, 8.0], dtype)
    U = jnp.asarray([[1.2], [1.0], [0.5]], dtype)  # the first takes 1.44 off 1
    zero = jnp.zeros((), dtype)
    done = Downdate(jnp.zeros(3, dtype), U, jnp.asarray(4.0, dtype), zero, jnp.zeros(1, dtype), zero, jnp.asarray(True))
    np.testing.assert_allclose(done.var(var), [0.25, 1.0, 7.75], rtol=1e-6)
    doubted = done._replace(doubt=jnp.asarray(0.125, dtype))  # the limit stays: what is given back counts towards it
    np.testing.assert_allclose(doubted.var(var), [0.25, 1.25, 8.75], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_limit_is_that_of_all_outputs_together(dtype):
    """With independent parameters, each seen by an output of its own, in rationals: 1 + 3 + 8 = 12 at most."""
    var, noise = [Fraction(3), Fraction(8)], Fraction(1)
    J, eye = jnp.eye(2, dtype=dtype), jnp.eye(2, dtype=dtype)
    held = jnp.asarray([float(v) for v in var], dtype)
    done = downdate(jnp.zeros(2, dtype), held, J, eye, jnp.ones(2, dtype), jnp.diag(held), jnp.diag(held))
    np.testing.assert_allclose(done.shrinkage, 12.0, rtol=1e-6)
    exact = [float(v * noise / (v + noise)) for v in var]
    np.testing.assert_allclose(done.var(held), exact, rtol=200 * np.finfo(dtype).eps)
    np.testing.assert_allclose(done.mean, [float(v / (v + noise)) for v in var], rtol=1e-6)
    assert bool(done.ok)
