"""IW against Agamennoni et al. (2012) and ST against the scale mixture, in plain numpy; limits, and gross outliers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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


def agamennoni(y, s, iterations, H=H, R=R):
    """Noise from the expected outer product of the residual, state from the noise; the mean precision is told too."""
    mean, C = bayes(y, H, R)
    before = y - H @ m
    e = before * (before @ np.linalg.solve(R, y - H @ mean)) / (before @ np.linalg.solve(R, before))
    for _ in range(iterations):
        noise = (s * R + np.outer(e, e) + H @ C @ H.T) / (s + 1.0)
        mean, C = bayes(y, H, noise)
        e = y - H @ mean
    return mean, C, np.trace(np.linalg.solve(noise, R)) / len(R), noise


def student(y, nu, iterations, H=H, R=R):
    """The factor of the precision from the expected square of the residual, state from the factor."""
    w = 1.0
    for _ in range(iterations):
        mean, C = bayes(y, H, R / w)
        square = (y - H @ mean) @ np.linalg.solve(R, y - H @ mean) + np.trace(np.linalg.solve(R, H @ C @ H.T))
        w = (nu + len(R)) / (nu + square)
    return (*bayes(y, H, R / w), w, R / w)


ORACLES = {"IW": agamennoni, "ST": student}
each = pytest.mark.parametrize("name", list(ORACLES))


def step(name, y, H=H, R=R):
    method = fx.method(name, model=linear(noise=R))
    state, info = method.step(method.init(mean=m, cov=P), H, y)
    return method.belief(state), info


def agree(belief, info, want):
    np.testing.assert_allclose(belief.mean, want[0], **exact)
    np.testing.assert_allclose(belief.cov, want[1], **exact)
    np.testing.assert_allclose(info.trust, want[2], **exact)


@pytest.mark.x64
@each
@pytest.mark.parametrize("form", ["root", "covariance", pytest.param("precision", marks=pytest.mark.nightly)])
def test_they_solve_the_published_equations(name, form):
    for y in (good, good + 2.0 * u, good - 7.0, good + 1e3 * u):
        got = step(f"{name}(degrees=3, iterations=3, form={form})+C-Static", y)
        agree(*got, ORACLES[name](y, 3.0, 3))


@pytest.mark.x64
@each
def test_one_iteration_revises_the_plain_update(name):
    y = good + 3.0 * u
    agree(*step(f"{name}(degrees=3, iterations=1)+C-Static", y), ORACLES[name](y, 3.0, 1))


@pytest.mark.x64
@each
def test_the_forecast_and_its_evidence_are_plain(name):
    y = good + 3.0 * u
    (_, info), (_, plain) = step(f"{name}+C-Static", y), step("LG+C-Static", y)
    np.testing.assert_allclose(info.log_evidence, plain.log_evidence, rtol=1e-10)
    np.testing.assert_allclose(info.var, plain.var, rtol=1e-12)


@pytest.mark.x64
@each
def test_with_many_degrees_of_freedom_they_are_the_kalman_filter(name):
    Y = np.stack([good, good + 3.0, good - 6.0])
    ends = []
    for text in (f"{name}(degrees=1e12)+C-ACI(q=0.1)", "LG+C-ACI(q=0.1)"):
        method = fx.method(text, model=linear(noise=R))
        end, infos = method.scan(method.init(mean=m, cov=P), np.stack([H] * 3), Y)
        ends.append((method.belief(end), infos.trust))
    (belief, trust), (kalman, _) = ends
    np.testing.assert_allclose(belief.mean, kalman.mean, atol=1e-8)
    np.testing.assert_allclose(belief.cov, kalman.cov, atol=1e-8)
    np.testing.assert_allclose(trust, 1.0, atol=1e-8)


@pytest.mark.x64
@each
def test_an_outlier_has_a_bounded_influence(name):
    """At every size up to the largest numbers; in the end ST keeps nothing of it, IW what is orthogonal to it."""
    method = fx.method(f"{name}(degrees=4)+C-Static", model=linear(noise=R))
    state = method.init(mean=m, cov=P)
    far = good + np.concatenate([np.linspace(0.1, 60.0, 300), np.logspace(2, 300, 150)])[:, None] * u
    influence = np.asarray(fx.posterior_influence(method, state, H, good, far))
    assert np.all(np.isfinite(influence))
    assert influence.max() < 50.0
    np.testing.assert_allclose(influence[-1], influence[-100], rtol=1e-6)
    after, info = method.step(state, H, far[-1])
    belief = method.belief(after)
    assert bool(info.ok)
    np.testing.assert_allclose(belief.mean, m, atol=1e-9)
    if name == "ST":
        assert float(info.trust) == 0.0
        for old, new in zip(
            jax.tree.leaves(state.hypotheses.belief), jax.tree.leaves(after.hypotheses.belief), strict=True
        ):
            np.testing.assert_array_equal(old, new)
    else:
        v = np.array([0.8, 0.6])  # orthogonal to the error: what that combination of outputs says is kept
        G = v @ H
        assert G @ belief.cov @ G < 0.9 * (G @ P @ G)


@pytest.mark.x64
@each
def test_a_missing_output_is_an_output_that_is_not_there(name):
    y = np.array([np.nan, good[1] - 4.0])
    agree(*step(f"{name}(degrees=3)+C-Static", y), ORACLES[name](y[1:], 3.0, 4, H[1:], R[1:, 1:]))


@pytest.mark.x64
@each
def test_hypotheses_are_weighed_by_the_noise_as_revised_and_an_outlier_is_no_change(name):
    model = linear(noise=R)
    method = fx.method(f"{name}(degrees=3)+RL[8]-PR(hazard=0.1)", model=model)
    state, _ = method.step(method.init(mean=m, cov=P), H, good)
    y = good + 4.0 * u
    _, info = method.step(state, H, y)

    def score(mean, cov):
        global m, P
        kept = m, P
        m, P = mean, cov
        noise = ORACLES[name](y, 3.0, 4)[3]
        m, P = kept
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
@each
def test_a_network_is_linearised_at_the_prior_mean(name):
    h = lambda theta, x: jnp.stack([jnp.sin(theta @ x), theta[0] * theta[2]])
    x = np.array([0.3, -0.2, 0.5])
    J, value = np.asarray(jax.jacobian(h)(jnp.asarray(m), x)), np.asarray(h(jnp.asarray(m), x))
    y = value + np.array([1.5, -1.0])
    method = fx.method(f"{name}+C-Static", model=fx.models.nonlinear(h, noise=R))
    state, info = method.step(method.init(mean=m, cov=P), x, y)
    agree(method.belief(state), info, ORACLES[name](y - value + J @ m, 4.0, 4, J))


@pytest.mark.x64
@pytest.mark.parametrize("name", ["OB", "IW", "ST"])
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
    step = jax.jit(jax.vmap(lambda size: method.step(state, np.float32(H), size * np.float32([0.6, -0.8]))))
    after, info = step(sizes)
    assert np.all(info.ok)
    np.testing.assert_allclose(info.trust, np.full(sizes.size, info.trust[0]), rtol=1e-5)
    cov = np.asarray(jax.vmap(lambda end: method.belief(end).cov)(after))
    np.testing.assert_allclose(cov, np.broadcast_to(cov[0], cov.shape), atol=1e-6)


@pytest.mark.parametrize("name", ["OB", "IW", "ST"])
def test_a_residual_too_large_for_a_number_says_nothing(name):
    """3e38 in units of a noise of 1e-3: the datum is a number, its residual is not."""
    method = fx.method(f"{name}+C-Static", model=linear(noise=np.float32(1e-6)))
    state = method.init(mean=np.zeros(1, "float32"), cov=1.0)
    after, info = method.step(state, np.ones(1, "float32"), np.float32(3e38))
    assert bool(info.ok)
    assert float(info.trust) == 0.0
    assert float(info.log_evidence) == -np.inf
    for old, new in zip(
        jax.tree.leaves(state.hypotheses.belief), jax.tree.leaves(after.hypotheses.belief), strict=True
    ):
        np.testing.assert_array_equal(old, new)


def test_for_one_output_they_are_one_method():
    for y in (0.5, 9.0):
        a, b = (
            fx.method(f"{name}(degrees=3)+C-Static", model=linear(noise=1.0)).step(
                fx.method("LG+C-Static", model=linear(noise=1.0)).init(mean=np.zeros(1, "float32"), cov=1.0),
                np.ones(1, "float32"),
                np.float32(y),
            )
            for name in ORACLES
        )
        np.testing.assert_allclose(a[0].hypotheses.belief.mean, b[0].hypotheses.belief.mean, rtol=1e-5)
        np.testing.assert_allclose(a[1].trust, b[1].trust, rtol=1e-5)


@each
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("degrees=0", r"\(degrees=...\) must be finite and above 0"),
        ("degrees=-2", r"\(degrees=...\) must be finite and above 0"),
        ("iterations=2.5", "whole number of at least 1"),
        ("iterations=0", "whole number of at least 1"),
        ("form=cube", "must be one of"),
    ],
)
def test_what_makes_no_sense_is_refused(name, settings, message):
    with pytest.raises(ValueError, match=message):
        fx.method(f"{name}({settings})+C-Static", model=linear(noise=1.0))


@each
def test_a_robust_model_and_labels_are_refused(name):
    with pytest.raises(ValueError, match="weighs each datum itself"):
        fx.method(f"WoLF-MD(c=4)+{name}+C-Static", model=linear(noise=1.0))
    with pytest.raises(ValueError, match="only be learned under Gaussian noise"):
        fx.method(f"{name}+C-Static", model=linear(likelihood=fx.models.poisson()))
