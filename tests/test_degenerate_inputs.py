"""Saturated links, extreme units and degenerate problems: finite and positive semidefinite, or refused by name."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx

# auto is the square root for these sizes
FORMS = ["auto", "covariance", pytest.param("precision", marks=pytest.mark.nightly)]
BOTH = pytest.mark.parametrize("dtype", ["float32", "float64"])


def classifier(likelihood, name="LG+C-Static"):
    return fx.method(name, model=fx.models.linear(likelihood=likelihood))


@BOTH
@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize("logit", [-1e4, 17.0, 1e4])
def test_log_odds_of_any_size_have_a_finite_evidence_and_the_right_gradient(logit, label, dtype):
    """5.5: p(1-p) is exactly 0 from 17 (float32) or 40 (float64) on; log p and its gradient (y - p) x are not."""
    kf = classifier(fx.models.bernoulli())
    x = jnp.array([1.0, -2.0], dtype)

    def log_evidence(mean):
        return kf.predict(kf.init(mean=mean, cov=jnp.zeros(2, dtype)), x).log_prob(label)

    mean = jnp.array([0.2 * logit, -0.4 * logit], dtype)
    value, gradient = jax.value_and_grad(log_evidence)(mean)
    eta = float(np.float64(mean[0]) - 2 * np.float64(mean[1])) * (1.0 if label else -1.0)
    rtol, eps = (1e-5 if dtype == "float32" else 1e-10), np.finfo(dtype).eps
    np.testing.assert_allclose(
        value, -np.logaddexp(0.0, -eta), rtol=rtol, atol=2 * eps
    )  # p itself to 2ε when p is near 1
    score = np.exp(-np.logaddexp(0.0, eta)) * (1.0 if label else -1.0)
    np.testing.assert_allclose(gradient, score * np.array([1.0, -2.0]), rtol=rtol, atol=1e-37)


@BOTH
@pytest.mark.parametrize("cov", [0.0, 1.0])
@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize("logit", [-1e4, -50.0, 50.0, 1e4])
def test_saturated_labels_leave_a_sound_belief(logit, label, cov, dtype):
    """The score (y - p) x survives where the information p(1-p) x xT has vanished: a surprise moves the mean by P x."""
    kf = classifier(fx.models.bernoulli())
    state, info = kf.step(kf.init(mean=jnp.array([logit, 0.0], dtype), cov=cov), jnp.array([1.0, 0.0], dtype), label)
    belief = kf.belief(state)
    assert bool(info.ok)
    assert np.isfinite(info.log_evidence)
    np.testing.assert_allclose(
        belief.mean, [logit + cov * (label - (logit > 0)), 0.0], rtol=1e-5, atol=1e-5 * abs(logit)
    )
    np.testing.assert_allclose(belief.cov, cov * np.eye(2), rtol=1e-5, atol=1e-30)


@BOTH
@pytest.mark.parametrize(
    ("log_rate", "count"), [(-1e4, 0), (-1e4, 3), (-50, 2), (5, 0), (20, 10**6), (60, 7), (1e4, 1)]
)
def test_log_rates_of_any_size_leave_a_sound_belief(log_rate, count, dtype):
    """5.5: a rate of exp(1e4) cannot be represented: the row is taken or refused, but nothing becomes NaN.

    A count of such a rate is so precise that the belief may warn; that is right, and not the question here.
    """
    kf = classifier(fx.models.poisson())
    start = kf.init(mean=jnp.array([log_rate, 0.0], dtype), cov=0.5)
    state, info = kf.step(start, jnp.array([1.0, 0.0], dtype), count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fx.ConditioningWarning)
        belief = kf.belief(state)
    assert np.isfinite(belief.mean).all()
    assert np.isfinite(belief.root).all()
    assert not np.isnan(info.log_evidence)
    if not info.ok:
        assert info.log_evidence == -np.inf
        np.testing.assert_array_equal(belief.mean, kf.belief(start).mean)


@pytest.mark.x64
@pytest.mark.parametrize("T", [100, 500])
def test_one_pass_logistic_regression_is_nearly_calibrated(T):
    """5.5: 100 replicates, D = 5: NEES/D ≤ 2.2 and 95 % intervals that cover at least 83 %.

    With the variance inverted where it should multiply, the same numbers are above 300 and below 10 %.
    """
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(100, 5))
    X = rng.normal(size=(100, T, 5))
    y = (rng.random((100, T)) < 1 / (1 + np.exp(-np.einsum("ntd,nd->nt", X, theta)))).astype(float)
    kf = classifier(fx.models.bernoulli())

    def learn(X, y):
        state, _ = kf.scan(kf.init(mean=jnp.zeros(5), cov=1.0), X, y, keep=())
        return kf.belief(state).mean, kf.belief(state).cov

    mean, cov = map(np.asarray, jax.vmap(learn)(jnp.asarray(X), jnp.asarray(y)))
    error = theta - mean
    nees = np.einsum("nd,nd->n", error, np.linalg.solve(cov, error[..., None])[..., 0]) / 5
    covered = np.abs(error) < 1.96 * np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
    assert nees.mean() <= 2.2
    assert covered.mean() >= 0.83


@pytest.mark.parametrize("name", ["LG+C-Static", "LG+C-ACI(q=0.01)", "LG(form=covariance)+C-ACI(q=0.01)"])
@pytest.mark.parametrize("power", [-15, -8, 8, 15])
def test_units_do_not_matter_in_float32(power, name):
    """5.5: (y, H, R) → (cy, cH, c²R) with c = 10^power: squares of the data reach the ends of the exponent."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2, 3)), rng.normal(size=(40, 2))
    beliefs = []
    for c in (1.0, 10.0**power):
        kf = fx.method(name, model=fx.models.linear(noise=0.1 * c**2))
        state = kf.init(mean=jnp.zeros(3, "float32"), cov=1.0)
        state, infos = kf.scan(state, jnp.asarray(c * X, "float32"), jnp.asarray(c * y, "float32"))
        assert np.asarray(infos.ok).all()
        beliefs.append(kf.belief(state))
    one, other = beliefs
    sd = np.sqrt(np.diag(one.cov))
    np.testing.assert_allclose(other.mean / sd, one.mean / sd, rtol=0, atol=2e-5)
    np.testing.assert_allclose(other.cov / np.outer(sd, sd), one.cov / np.outer(sd, sd), rtol=0, atol=2e-5)


@pytest.mark.parametrize("noise", [0.0, [1.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, -1.0]], -1.0, np.nan])
def test_singular_noise_is_refused_by_name(noise):
    with pytest.raises(ValueError, match="noise"):
        fx.models.linear(noise=noise)


def problem(kind, dtype):
    """x, y, prior covariance of a degenerate problem; T rows."""
    rng = np.random.default_rng(1)
    X, y, cov = rng.normal(size=(30, 2, 3)), rng.normal(size=(30, 2)), np.eye(3)
    if kind == "more outputs than parameters":
        X, y = rng.normal(size=(30, 5, 3)), rng.normal(size=(30, 5))
    elif kind == "no prior variance":
        cov = np.zeros((3, 3))
    elif kind == "rank-one prior":
        cov = np.ones((3, 3))
    elif kind == "constant feature":
        X[..., 0] = 1.0
    elif kind == "duplicate feature":
        X[..., 1] = X[..., 0]
    elif kind == "zero feature":
        X[..., 1] = 0.0
    elif kind == "zero rows":
        X[:] = 0.0
    elif kind == "constant target":
        y[:] = 3.0
    elif kind == "far target":
        y[10] = 1e30
    elif kind == "missing and bad numbers":
        y[3], y[5, 1], y[7, 0], X[9, 0, 0], X[11, 1, 2] = np.nan, np.nan, np.inf, np.nan, -np.inf
    return jnp.asarray(X, dtype), jnp.asarray(y, dtype), jnp.asarray(cov, dtype)


KINDS = ["more outputs than parameters", "no prior variance", "rank-one prior", "constant feature", "duplicate feature"]
KINDS += ["zero feature", "zero rows", "constant target", "far target", "missing and bad numbers"]


@BOTH
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "prior", [pytest.param("Static", marks=pytest.mark.x64), "ACI(q=0.001)"]
)  # ACI is Static and more
@pytest.mark.parametrize("kind", KINDS)
def test_degenerate_problems_stay_finite_and_semidefinite(kind, prior, form, dtype):
    X, y, cov = problem(kind, dtype)
    kf = fx.method(f"LG(form={form})+C-{prior}", model=fx.models.linear(noise=0.1))
    if form == "precision" and kind in ("no prior variance", "rank-one prior"):
        with pytest.raises(ValueError, match="cov"):
            kf.init(mean=jnp.ones(3, dtype), cov=cov)
        return
    state, infos = kf.scan(kf.init(mean=jnp.ones(3, dtype), cov=cov), X, y)
    belief = kf.belief(state)
    mean, P = np.asarray(belief.mean, "float64"), np.asarray(belief.cov, "float64")
    assert np.isfinite(mean).all()
    assert np.isfinite(P).all()
    assert np.linalg.eigvalsh(P).min() >= -4 * np.finfo(dtype).eps * np.abs(P).max()
    assert not np.isnan(infos.log_evidence).any()
    assert (np.asarray(infos.var) >= np.asarray(0.1, dtype)).all()
    if kind == "no prior variance" and prior == "Static":
        np.testing.assert_array_equal(mean, 1.0)
        np.testing.assert_array_equal(P, 0.0)
    refused = {"missing and bad numbers": 3}.get(kind, 0)
    if kind == "far target":
        assert abs(mean).max() > 1e25 or not infos.ok[10]
    else:
        assert int(state.refused) == refused == int(np.sum(~np.asarray(infos.ok)))
