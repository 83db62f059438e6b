"""OB, IW and ST against their published equations in plain numpy; their limits, and what gross outliers do.

OB: Wang et al. (2018). IW: Agamennoni et al. (2012). ST: the scale mixture of Piché et al. (2012).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import digamma

import filtax as fx
from filtax.models import linear

rng = np.random.default_rng(5)
D, O = 3, 2
H = rng.normal(size=(O, D))
P = np.array([[1.0, 0.2, 0.0], [0.2, 0.8, -0.1], [0.0, -0.1, 1.5]])
R = np.array([[0.5, 0.2], [0.2, 1.0]])
m = rng.normal(size=D)
good = H @ m + np.array([0.4, -0.3])
u = np.array([0.6, -0.8])
exact = dict(rtol=1e-10, atol=1e-12)


def bayes(y, H, noise):
    """The Kalman update with a given noise covariance, in the information form."""
    C = np.linalg.inv(np.linalg.inv(P) + H.T @ np.linalg.inv(noise) @ H)
    return m + C @ H.T @ np.linalg.solve(noise, y - H @ m), C


def agamennoni(y, iterations, s=3.0, H=H, R=R):
    """Noise from the expected outer product of the residual, state from the noise; and the mean precision."""
    mean, C = bayes(y, H, R)
    before = y - H @ m
    e = before * (before @ np.linalg.solve(R, y - H @ mean)) / (before @ np.linalg.solve(R, before))
    for _ in range(iterations):
        noise = (s * R + np.outer(e, e) + H @ C @ H.T) / (s + 1.0)
        mean, C = bayes(y, H, noise)
        e = y - H @ mean
    return mean, C, np.trace(np.linalg.solve(noise, R)) / len(R), noise


def scale_mixture(y, H, R, revised, iterations):
    """A factor of the precision from the expected square of the residual, from 1 on; state from the factor."""
    w = 1.0
    for _ in range(iterations):
        mean, C = bayes(y, H, R / max(w, 1e-200))
        second = np.outer(y - H @ mean, y - H @ mean) + H @ C @ H.T
        w = revised(w, np.trace(second @ np.linalg.inv(R)))
    return (*bayes(y, H, R / max(w, 1e-200)), w, R / max(w, 1e-200))


def student(y, iterations, nu=3.0, H=H, R=R):
    return scale_mixture(y, H, R, lambda _, square: (nu + len(R)) / (nu + square), iterations)


def wang(y, iterations, a=2.0, b=0.5, H=H, R=R):
    """q(theta), q(pi), q(z) in turn, from z = 1."""

    def revised(z, square):
        e, f = a + z, b + 1.0 - z
        good = np.exp(digamma(e) - digamma(e + f) - 0.5 * square)
        return good / (good + np.exp(digamma(f) - digamma(e + f)))

    return scale_mixture(y, H, R, revised, iterations)


METHODS = {"IW": ("degrees=3", agamennoni), "ST": ("degrees=3", student), "OB": ("a=2, b=0.5, tolerance=0", wang)}
each = pytest.mark.parametrize("name", list(METHODS))
heavy = pytest.mark.parametrize("name", ["IW", "ST"])


def named(name, more=""):
    return f"{name}({METHODS[name][0]}{more})+C-Static"


def step(name, y, H=H, R=R):
    method = fx.method(name, model=linear(noise=R))
    state, info = method.step(method.init(mean=m, cov=P), H, y)
    return method.belief(state), info


def agree(belief, info, want):
    np.testing.assert_allclose(info.trust, want[2], **exact)
    np.testing.assert_allclose(belief.mean, want[0], **exact)
    np.testing.assert_allclose(belief.cov, want[1], **exact)


def unchanged(before, after):
    jax.tree.map(np.testing.assert_array_equal, before.hypotheses.belief, after.hypotheses.belief)


@pytest.mark.x64
@each
@pytest.mark.parametrize("form", ["root", "covariance", pytest.param("precision", marks=pytest.mark.nightly)])
def test_they_solve_the_published_equations(name, form):
    for y in (good, good + 2.0 * u, good + 3.5 * u, good - 7.0, good + 1e3 * u):
        agree(*step(named(name, f", iterations=3, form={form}"), y), METHODS[name][1](y, 3))
    agree(*step(named(name, ", iterations=1"), good + 3.0 * u), METHODS[name][1](good + 3.0 * u, 1))


@pytest.mark.x64
@heavy
def test_the_forecast_and_its_evidence_are_plain(name):
    y = good + 3.0 * u
    (_, info), (_, plain) = step(f"{name}+C-Static", y), step("LG+C-Static", y)
    np.testing.assert_allclose(info.log_evidence, plain.log_evidence, rtol=1e-10)
    np.testing.assert_allclose(info.var, plain.var, rtol=1e-12)


@pytest.mark.x64
@pytest.mark.parametrize("limit", ["IW(degrees=1e12)", "ST(degrees=1e12)", "OB(a=1e60)", "OB(b=1e-9)"])
def test_without_outliers_in_the_prior_they_are_the_kalman_filter(limit):
    Y = np.stack([good, good + 3.0, good - 6.0])
    ends = []
    for text in (f"{limit}+C-ACI(q=0.1)", "LG+C-ACI(q=0.1)"):
        method = fx.method(text, model=linear(noise=R))
        end, infos = method.scan(method.init(mean=m, cov=P), np.stack([H] * 3), Y)
        ends.append((method.belief(end), infos))
    (belief, infos), (kalman, plain) = ends
    np.testing.assert_allclose(belief.mean, kalman.mean, atol=1e-8)
    np.testing.assert_allclose(belief.cov, kalman.cov, atol=1e-8)
    np.testing.assert_allclose(infos.trust, 1.0, atol=1e-8)
    np.testing.assert_allclose(infos.log_evidence, plain.log_evidence, rtol=1e-6)


@pytest.mark.x64
@each
def test_an_outlier_has_a_bounded_influence(name):
    """At every size up to the largest numbers; in the end OB and ST keep nothing of it, IW what is orthogonal to it."""
    method = fx.method({"OB": "OB"}.get(name, f"{name}(degrees=4)") + "+C-Static", model=linear(noise=R))
    state = method.init(mean=m, cov=P)
    far = good + np.concatenate([np.linspace(0.1, 60.0, 300), np.logspace(2, 300, 150)])[:, None] * u
    influence = np.asarray(fx.posterior_influence(method, state, H, good, far))
    assert np.all(np.isfinite(influence))
    assert influence.max() < 150.0
    np.testing.assert_allclose(influence[-1], influence[-100], rtol=1e-6)
    after, info = method.step(state, H, far[-1])
    belief = method.belief(after)
    assert bool(info.ok)
    np.testing.assert_allclose(belief.mean, m, atol=1e-9)
    if name == "IW":
        G = np.array([0.8, 0.6]) @ H  # orthogonal to the error: what that combination of outputs says is kept
        assert G @ belief.cov @ G < 0.9 * (G @ P @ G)
    else:
        assert float(info.trust) == 0.0
        unchanged(state, after)


@pytest.mark.x64
def test_a_datum_below_the_tolerance_is_dropped():
    """The belief stays bit for bit; above the tolerance the same weight counts."""
    y = good + 5.0 * u
    z = wang(y, 4)[2]
    for tolerance, left in ((2.0 * z, 0.0), (0.5 * z, z)):
        belief, info = step(f"OB(a=2, b=0.5, tolerance={tolerance})+C-Static", y)
        np.testing.assert_allclose(info.trust, left, rtol=1e-9)
        assert (np.array(belief.mean) == m).all() == (left == 0.0)


@pytest.mark.x64
@each
def test_a_missing_output_is_an_output_that_is_not_there(name):
    y = np.array([np.nan, good[1] - 4.0])
    agree(*step(named(name), y), METHODS[name][1](y[1:], 4, H=H[1:], R=R[1:, 1:]))


@pytest.mark.x64
@heavy
def test_hypotheses_are_weighed_by_the_noise_as_revised_and_an_outlier_is_no_change(name, monkeypatch):
    model = linear(noise=R)
    method = fx.method(f"{name}(degrees=3)+RL[8]-PR(hazard=0.1)", model=model)
    state, _ = method.step(method.init(mean=m, cov=P), H, good)
    y = good + 4.0 * u
    _, info = method.step(state, H, y)

    def score(mean, cov):
        with monkeypatch.context() as prior:
            prior.setitem(globals(), "m", mean)
            prior.setitem(globals(), "P", cov)
            noise = METHODS[name][1](y, 4)[3]
        S = H @ cov @ H.T + noise
        return np.exp(-0.5 * (y - H @ mean) @ np.linalg.solve(S, y - H @ mean)) / np.sqrt(np.linalg.det(S))

    belief = method.belief(state)
    reset, go_on = 0.1 * score(m, P), 0.9 * score(np.asarray(belief.mean), np.asarray(belief.cov))
    np.testing.assert_allclose(info.change_probability, reset / (reset + go_on), rtol=1e-6)
    _, far = method.step(state, H, good + 1e12 * u)
    np.testing.assert_allclose(far.change_probability, 0.1, rtol=0.2)
    first = jax.tree.map(lambda leaf: leaf[0], state.hypotheses.belief)
    update = jax.jit(lambda belief, y: method.posterior.update(belief, model, jnp.asarray(H), y, None, None, None))
    assert np.isfinite(update(first, jnp.asarray(good + 1e200 * u)).log_score)


@pytest.mark.x64
def test_hypotheses_are_weighed_by_the_mixture_with_outliers():
    """The probability of a change after y, from the two densities; far away it is the hazard."""
    method = fx.method("OB(a=3, b=1)+RL[8]-PR(hazard=0.1)", model=linear(noise=1.0))
    state, _ = method.step(method.init(mean=np.zeros(1), cov=1.0), np.ones(1), 2.0)
    belief = method.belief(state)

    def density(y, mean, var):
        return 0.75 * np.exp(-0.5 * (y - mean) ** 2 / var) / np.sqrt(2 * np.pi * var) + 0.25 / np.sqrt(2 * np.pi)

    _, far = method.step(state, np.ones(1), 1e30)
    np.testing.assert_allclose(far.change_probability, 0.1, rtol=1e-9)
    go_on = 0.9 * density(-1.0, float(belief.mean[0]), float(belief.cov[0, 0]) + 1.0)
    reset = 0.1 * density(-1.0, 0.0, 2.0)
    _, near = method.step(state, np.ones(1), -1.0)
    np.testing.assert_allclose(near.change_probability, reset / (reset + go_on), rtol=1e-6)


@pytest.mark.x64
@each
def test_a_network_is_linearised_at_the_prior_mean(name):
    h = lambda theta, x: jnp.stack([jnp.sin(theta @ x), theta[0] * theta[2]])
    x = np.array([0.3, -0.2, 0.5])
    J, value = np.asarray(jax.jacobian(h)(jnp.asarray(m), x)), np.asarray(h(jnp.asarray(m), x))
    y = value + np.array([1.5, -1.0])
    method = fx.method(named(name), model=fx.models.nonlinear(h, noise=R))
    state, info = method.step(method.init(mean=m, cov=P), x, y)
    agree(method.belief(state), info, METHODS[name][1](y - value + J @ m, 4, H=J))


def test_a_nan_of_the_model_is_refused_even_though_it_is_far():
    method = fx.method("OB+C-Static", model=fx.models.nonlinear(lambda theta, x: jnp.log(x) + theta, noise=1.0))
    state = method.init(mean=np.zeros(1, "float32"), cov=1.0)
    after, info = method.step(state, np.float32(-1.0), np.float32(1.0))
    assert not bool(info.ok)
    unchanged(state, after)


@pytest.mark.x64
@each
def test_a_vague_belief_learns_from_its_first_datum(name):
    method = fx.method(f"{name}+C-Static", model=linear(noise=1.0))
    state, _ = method.step(method.init(mean=np.zeros(1), cov=1e8), np.ones(1), 5000.0)
    np.testing.assert_allclose(method.belief(state).mean, 5000.0, rtol=1e-4)
    np.testing.assert_allclose(method.belief(state).cov, 1.0, rtol=0.01)


def test_no_size_of_error_is_believed_more_than_smaller_ones():
    """IW keeps what is orthogonal to the error, the same up to the largest number, as long as the residual is one."""
    method = fx.method("IW+C-Static", model=linear(noise=R))
    state = method.init(mean=np.float32(m), cov=np.float32(P))
    sizes = np.exp2(np.arange(62.0, 127.5, 0.125)).astype("float32")
    step = jax.jit(jax.vmap(lambda size: method.step(state, np.float32(H), size * np.float32(u))))
    after, info = step(sizes)
    assert np.all(info.ok)
    np.testing.assert_allclose(info.trust, np.full(sizes.size, info.trust[0]), rtol=1e-5)
    cov = np.asarray(jax.vmap(lambda end: method.belief(end).cov)(after))
    np.testing.assert_allclose(cov, np.broadcast_to(cov[0], cov.shape), atol=1e-6)


@each
def test_a_residual_too_large_for_a_number_says_nothing(name):
    """3e38 in units of a noise of 1e-3: the datum is a number, its residual is not."""
    method = fx.method(f"{name}+C-Static", model=linear(noise=np.float32(1e-6)))
    state = method.init(mean=np.zeros(1, "float32"), cov=1.0)
    after, info = method.step(state, np.ones(1, "float32"), np.float32(3e38))
    assert (bool(info.ok), float(info.trust), float(info.log_evidence)) == (True, 0.0, -np.inf)
    unchanged(state, after)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("IW(degrees=0)", r"IW\(degrees=...\) must be finite and above 0"),
        ("ST(degrees=-2)", r"ST\(degrees=...\) must be finite and above 0"),
        ("OB(a=0)", r"OB\(a=...\) must be finite and above 0"),
        ("OB(b=-1)", r"OB\(b=...\) must be finite and above 0"),
        ("OB(tolerance=2)", r"must lie in \[0, 1\]"),
        ("IW(iterations=0)", "whole number of at least 1"),
        ("ST(iterations=2.5)", "whole number of at least 1"),
        ("OB(form=cube)", "must be one of"),
    ],
)
def test_what_makes_no_sense_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        fx.method(f"{name}+C-Static", model=linear(noise=1.0))


@each
def test_a_robust_model_and_labels_are_refused(name):
    with pytest.raises(ValueError, match="weighs each datum itself"):
        fx.method(f"WoLF-MD(c=4)+{name}+C-Static", model=linear(noise=1.0))
    with pytest.raises(ValueError, match="only be learned under Gaussian noise"):
        fx.method(f"{name}+C-Static", model=linear(likelihood=fx.models.poisson()))
