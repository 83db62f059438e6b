"""(A.1) One rule times one family: every pair against dense numpy, and the pairs that there are not."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import filtax as fx
from filtax.posteriors import Variational
from oracles import exact_update

pytestmark = pytest.mark.x64
models = fx.models
M, V = np.array([0.5, 0.0, -1.0]), np.array([4.0, 2.0, 0.5])
H = 4.0 * np.random.default_rng(0).normal(size=(2, 3))
R, Y = np.array([[1.0, 0.3], [0.3, 0.5]]), np.array([1.0, -2.0])
KEY = jax.random.key(1)
EXACT = dict(rtol=1e-9, atol=1e-11)

DAILY = [Variational(iterations=3), Variational("explicit", 1, samples=4), Variational("natural", 2)]
NIGHTLY = [  # all are exact for a linear-Gaussian model, whatever the number of iterations
    *(Variational(iterations=n, samples=s) for n in (1, 2, 5) for s in (None, 4)),
    *(Variational("explicit", 1, expectation=e) for e in ("quadrature", "linearised")),
    *(Variational("natural", n, samples=s) for n in (1, 4) for s in (None, 4)),
]
FAMILIES = {
    **{form: {"form": form} for form in ("root", "covariance", "precision", "diagonal", "decoupled")},
    **{f"{rank}+{spare}": {"rank": rank, "spare": spare} for rank, spare in ((3, 0), (1, 0), (1, 6), (0, 0))},
}


def after(settings, model, x, y, mean=M, cov=V):
    method = fx.method(settings + "+C-Static", model=model)
    state = method.init(mean=jnp.asarray(mean), cov=jnp.asarray(cov), key=KEY if "samples" in settings else None)
    later, info = method.step(state, x, y)
    assert bool(info.ok)
    return method.belief(later), method.belief(state), state


def cut(precision, factor, rank):
    """Keep `rank` leading directions of a factor (D, N); the squares of the others go to the diagonal."""
    U, s, _ = np.linalg.svd(factor, full_matrices=False)
    kept = U[:, :rank] * s[:rank]
    return np.diag(np.diag(precision) + (factor**2).sum(1) - (kept**2).sum(1)) + kept @ kept.T


def held(family, cov, precision):
    """What a family keeps of a posterior with this covariance, whose precision began diagonal."""
    if family == "diagonal":
        return np.diag(1.0 / np.diag(precision))
    if family == "decoupled":
        return np.diag(np.diag(cov))
    if family in ("1+0", "0+0"):  # without room it is cut after the datum
        rows = np.linalg.solve(np.linalg.cholesky(R), H)
        return np.linalg.inv(cut(np.diag(1.0 / V), rows.T, int(family[0])))
    return cov


@pytest.mark.parametrize(
    ("family", "rules"),
    [(family, DAILY) for family in ("root", "precision", "diagonal", "1+6")]
    + [pytest.param(family, DAILY + NIGHTLY, marks=pytest.mark.nightly) for family in FAMILIES],
)
def test_a_linear_gaussian_model_is_solved_by_every_rule_in_every_family(family, rules):
    """The mean of the Kalman filter, and what a family keeps of its covariance; the printed steps diverge here."""
    assert max(abs(np.linalg.eigvals(V[:, None] * H.T @ np.linalg.solve(R, H)))) > 10.0
    want = exact_update(M, np.diag(V), H, R, Y)
    cov = held(family, want.cov, np.diag(1.0 / V) + H.T @ np.linalg.solve(R, H))
    model, x, y = models.linear(noise=R), jnp.asarray(H), jnp.asarray(Y)
    for rule in rules:
        pair = dataclasses.replace(rule, **FAMILIES[family])
        prior = pair.start(jnp.asarray(M), jnp.asarray(V), has_dynamics=False)
        done = jax.jit(lambda prior, pair=pair: pair.update(prior, model, x, y, None, None, KEY))(prior)
        assert bool(done.ok)
        np.testing.assert_allclose(done.belief.mean, want.mean, err_msg=str(pair), **EXACT)
        np.testing.assert_allclose(done.belief.cov, cov, err_msg=str(pair), **EXACT)


@pytest.mark.parametrize("form", ["root", "diagonal"])
def test_gradient_steps_reach_it_as_they_grow_in_number(form):
    want = exact_update(M, np.diag(V), H, R, Y)
    cov = held(form, want.cov, np.diag(1.0 / V) + H.T @ np.linalg.solve(R, H))
    belief, _, _ = after(f"BBB(iterations=4000, step=0.01, form={form})", models.linear(noise=R), H, Y)
    np.testing.assert_allclose(belief.mean, want.mean, rtol=1e-8)
    np.testing.assert_allclose(belief.cov, cov, rtol=1e-8, atol=1e-12)


def objective(free, m, A, x, y, full):
    """KL(q || prior) minus the expected log likelihood of a label, in the prior's units, on a dense grid."""
    D = len(m)
    F = np.diag(np.exp(free[D : 2 * D]))
    if full:
        F[np.tril_indices(D, -1)] = free[2 * D :]
    mean, root = m + A @ free[:D], A @ F
    z, w = np.polynomial.hermite_e.hermegauss(80)
    eta = x @ mean + np.linalg.norm(x @ root) * z
    fit = w @ -np.logaddexp(0.0, (1.0 - 2.0 * y) * eta) / w.sum()
    P = A @ A.T
    gap = mean - m
    kl = np.trace(np.linalg.solve(P, root @ root.T)) + gap @ np.linalg.solve(P, gap) - D
    kl += np.linalg.slogdet(P)[1] - np.linalg.slogdet(root @ root.T)[1]
    return 0.5 * kl - fit


@pytest.mark.parametrize("form", ["root", "diagonal"])
def test_gradient_steps_descend_the_divergence(form):
    """Three steps beside three of a numerical gradient, prior's term included, from an objective in plain numpy."""
    full = form == "root"
    P = np.array([[2.0, 0.6], [0.6, 1.0]]) if full else np.diag([2.0, 1.0])
    m, x, y, step = np.array([-1.0, 0.5]), np.array([1.0, -0.5]), 1.0, 0.4
    model = models.linear(likelihood=models.bernoulli())
    belief, before, _ = after(f"BBB(iterations=3, step={step}, form={form})", model, x, y, m, P if full else np.diag(P))
    A = np.asarray(before.root) if full else np.sqrt(P)
    free = np.zeros(5 if full else 4)
    for _ in range(3):
        nudge = 1e-6 * np.eye(free.size)
        up, down = ([objective(free + sign * d, m, A, x, y, full) for d in nudge] for sign in (1.0, -1.0))
        free = free - step * (np.array(up) - np.array(down)) / 2e-6
    F = np.diag(np.exp(free[2:4]))
    F[1, 0] = free[4] if full else 0.0
    np.testing.assert_allclose(belief.mean, m + A @ free[:2], atol=1e-7)
    np.testing.assert_allclose(belief.cov, A @ F @ F.T @ A.T, atol=1e-7)
    assert objective(free, m, A, x, y, full) < objective(0.0 * free, m, A, x, y, full) - 0.1


def net(theta, x):
    return jnp.stack([theta[0] * jnp.tanh(theta[1] * x[0]), theta[2] * x[1]])


def sampled_site(draws, m, x, y):
    """Averaged precision, score and rows of the network under draws, derivatives by hand."""
    rows, score, noise = [], np.zeros(3), np.diag([0.5, 2.0])
    for a, b, c in draws:
        bent = np.tanh(b * x[0])
        J = np.array([[bent, a * x[0] * (1 - bent**2), 0.0], [0.0, 0.0, x[1]]])
        rows.append(np.linalg.solve(np.sqrt(noise), J))
        score = score + J.T @ np.linalg.solve(noise, y - np.array([a * bent, c * x[1]]))
    return np.concatenate(rows) / np.sqrt(len(draws)), score / len(draws)


@pytest.mark.nightly
def test_samples_in_the_low_rank_family_take_curvature_of_gauss_and_newton():
    """Two steps of BLR in numpy with the same draws: rows of each are weighed, stacked, and cut after the prior."""
    S, m, v = 4, np.array([0.5, 1.0, -1.0]), np.array([0.3, 0.2, 1.0])
    x, y = np.array([0.7, -1.2]), np.array([1.0, 0.5])
    model = models.nonlinear(net, noise=np.diag([0.5, 2.0]))
    first, before, _ = after(f"BLR(iterations=1, step=0.5, samples={S}, rank=1, spare=0)", model, x, y, m, v)
    second, _, _ = after(f"BLR(iterations=2, step=0.5, samples={S}, rank=1, spare=0)", model, x, y, m, v)
    key = jax.random.split(jax.random.fold_in(KEY, 0), 1)[0]
    information, pull = np.zeros((3, 3)), np.zeros(3)
    for q, got in ((before, first), (first, second)):
        half = np.asarray(q.sample(key, (S // 2,)))
        rows, score = sampled_site(np.concatenate([half, 2 * np.asarray(q.mean) - half]), m, x, y)
        information = 0.5 * information + 0.5 * rows.T @ rows
        pull = 0.5 * pull + 0.5 * (score + rows.T @ rows @ (np.asarray(q.mean) - m))
        value, vector = np.linalg.eigh(information)
        factor = vector * np.sqrt(np.maximum(value, 0.0))
        np.testing.assert_allclose(got.mean, m + np.linalg.solve(np.diag(1.0 / v) + information, pull), rtol=1e-8)
        np.testing.assert_allclose(np.linalg.inv(got.cov), cut(np.diag(1.0 / v), factor, 1), rtol=1e-7, atol=1e-9)


def test_low_rank_finds_the_projection_of_a_label():
    """One label adds one direction, which a factor of one column holds: the two equations of R-VGA are met."""
    rng = np.random.default_rng(3)
    m, v, x = rng.normal(size=6), rng.uniform(0.5, 2.0, size=6), rng.normal(size=6)
    model = models.linear(likelihood=models.bernoulli())
    belief, _, _ = after("RVGA(iterations=12, rank=1)", model, x, 1.0, m, v)
    z, w = np.polynomial.hermite_e.hermegauss(100)
    p = scipy.special.expit(x @ np.asarray(belief.mean) + np.sqrt(x @ np.asarray(belief.cov) @ x) * z)
    w = w / w.sum()
    np.testing.assert_allclose(belief.mean, m + v * x * (w @ (1.0 - p)), atol=1e-8)
    precision = np.diag(1 / v) + np.outer(x, x) * (w @ (p * (1 - p)))
    np.testing.assert_allclose(np.linalg.inv(belief.cov), precision, rtol=1e-8)


BLR = pytest.param("BLR(iterations=2, step=1.0, {})", marks=pytest.mark.nightly)  # by day it solves linear models above


@pytest.mark.parametrize("rule", ["RVGA(iterations=3, {})", "BONG({})", BLR])
def test_a_model_linearised_at_the_mean_is_the_extended_filter(rule):
    """R-VGA of h(m) + J(theta - m), a static model: one step of the extended filter on h itself, in numpy."""
    m, v, x, y = np.array([0.5, 1.0, -1.0]), np.array([0.3, 0.2, 1.0]), np.array([0.7, -1.2]), np.array([1.0, 0.5])
    bent = np.tanh(m[1] * x[0])
    J = np.array([[bent, m[0] * x[0] * (1 - bent**2), 0.0], [0.0, 0.0, x[1]]])
    h = np.array([m[0] * bent, m[2] * x[1]])
    want = exact_update(m, np.diag(v), J, np.diag([0.5, 2.0]), y - h + J @ m)
    flat = models.nonlinear(lambda theta, x: jnp.asarray(h) + jnp.asarray(J) @ (theta - m), noise=np.diag([0.5, 2.0]))
    for average in ("samples=4", "expectation=quadrature"):
        belief, _, _ = after(rule.format(average), flat, x, y, m, v)
        np.testing.assert_allclose(belief.mean, want.mean, **EXACT)
        np.testing.assert_allclose(belief.cov, want.cov, **EXACT)
    bent_too = models.nonlinear(net, noise=np.diag([0.5, 2.0]))
    ekf, _, _ = after("RVGA(iterations=1, expectation=linearised)", bent_too, x, y, m, v)
    np.testing.assert_allclose(ekf.mean, want.mean, **EXACT)
    np.testing.assert_allclose(ekf.cov, want.cov, **EXACT)


def test_steps_that_are_too_long_end_in_a_flag():
    """A plain gradient diverges beyond 2 / (1 + |V|²); what is no number is not taken, and the next datum is."""
    method = fx.method("BBB(iterations=300, step=1.0)+C-Static", model=models.linear(noise=1e-8))
    state, info = method.step(method.init(mean=np.zeros(1), cov=1.0), np.ones(1), 1.0)
    assert not bool(info.ok)
    assert np.isfinite(method.belief(state).mean).all()
    assert np.isfinite(method.belief(state).cov).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("BBB(form=precision)", r"must be one of auto, root, diagonal"),
        ("BBB(rank=2)", "not a setting"),
        ("BBB(step=0)", "above 0"),
        ("BBB(iterations=1.5)", "whole number"),
        ("RVGA(rank=1.5)", "whole number"),
        ("BONG(rank=2, form=root)", r"must be diagonal or spherical"),
        ("BLR(rank=2, spare=-1)", "spare"),
        ("RVGA(spare=2)", "goes with a rank"),
        ("RVGA(form=spherical)", "must be one of"),
    ],
)
def test_pairs_that_there_are_not(settings, message):
    with pytest.raises(ValueError, match=message):
        fx.method(settings + "+C-Static", model=models.linear(noise=1.0))


def test_a_family_without_a_factor_of_its_covariance_is_refused_by_the_gradient_rule():
    with pytest.raises(ValueError, match=r"a low-rank precision has none; use BLR"):
        Variational("gradient", rank=2)
    with pytest.raises(ValueError, match=r"rank=9\) is more than the D = 3 parameters"):
        fx.method("RVGA(rank=9)+C-Static", model=models.linear(noise=R)).init(mean=M, cov=V)
    with pytest.raises(ValueError, match="has correlations"):
        fx.method("RVGA(rank=1)+C-Static", model=models.linear(noise=R)).init(mean=M, cov=np.eye(3) + 0.1)
