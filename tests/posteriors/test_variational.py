"""(A.1) Variational Gaussian filters, against minimisation of the divergence by scipy and posteriors on a grid."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats

import filtax as fx
from filtax.beliefs import SquareRoot
from filtax.posteriors._gaussian_expectations import PseudoDatum
from filtax.posteriors._variational import DampingState
from oracles import exact_update, poisson_newton

pytestmark = pytest.mark.x64
models = fx.models
EXACT = dict(rtol=1e-10, atol=1e-12)

LOG_LIKELIHOOD = {  # of y given the natural parameter, up to what does not depend on it
    "bernoulli": lambda eta, y: -np.logaddexp(0.0, (1.0 - 2.0 * y) * eta),
    "poisson": lambda eta, y: y * eta - np.exp(np.minimum(eta, 500.0)),
}
PRIOR = np.array([[2.0, 0.6], [0.6, 1.0]])
X2 = np.array([1.0, -0.5])


def nearest_gaussian(family, m, P, x, y):
    """Minimise KL(q || likelihood x prior) over means and Cholesky factors, averages on a grid over both parameters."""
    z, w = np.polynomial.hermite_e.hermegauss(50)
    nodes, weights = np.stack(np.meshgrid(z, z), -1).reshape(-1, 2), np.outer(w, w).ravel() / w.sum() ** 2
    inverse = np.linalg.inv(P)

    def unpack(free):
        return free[:2], np.array([[np.exp(free[2]), 0.0], [free[3], np.exp(free[4])]])

    def objective(free):
        mean, L = unpack(free)
        fit = weights @ LOG_LIKELIHOOD[family]((mean + nodes @ L.T) @ x, y)
        apart = (mean - m) @ inverse @ (mean - m) + np.trace(inverse @ L @ L.T) - 2 * (free[2] + free[4])
        return 0.5 * apart - fit

    L0 = np.linalg.cholesky(P)
    start = [*m, np.log(L0[0, 0]), L0[1, 0], np.log(L0[1, 1])]
    best = scipy.optimize.minimize(objective, start, method="BFGS", options={"gtol": 1e-9})
    mean, L = unpack(best.x)
    return mean, L @ L.T


def one_step(name, likelihood, m, P, x, y, key=None):
    method = fx.method(name, model=models.linear(likelihood=likelihood))
    state, info = method.step(method.init(mean=jnp.asarray(m), cov=jnp.asarray(P), key=key), x, y)
    return method.belief(state), info


@pytest.mark.parametrize(
    ("family", "m", "y"),
    [
        ("bernoulli", [0.0, 0.0], 1.0),
        ("bernoulli", [-3.0, 1.0], 1.0),
        ("poisson", [0.5, 0.0], 4.0),
        ("poisson", [1.0, 0.0], 0.0),
    ],
)
def test_finds_the_nearest_gaussian(family, m, y):
    """eq:rvga-target-gauss, with scipy and a grid over both parameters; 12 iterations reach the fixed point."""
    belief, _ = one_step("RVGA(iterations=12)+C-Static", getattr(models, family)(), m, PRIOR, X2, y)
    mean, cov = nearest_gaussian(family, np.array(m), PRIOR, X2, y)
    np.testing.assert_allclose(belief.mean, mean, atol=2e-5)
    np.testing.assert_allclose(belief.cov, cov, atol=2e-5)


@pytest.mark.parametrize(
    "name", ["RVGA(iterations={})", "RVGA(iterations={}, samples=4)", "RVGA(iterations={}, form=covariance)"]
)
@pytest.mark.parametrize("iterations", [1, 2, 5])
def test_linear_gaussian_is_the_kalman_filter(name, iterations):
    """Where the printed iteration of the mean diverges (errata E6), any number of iterations is exact."""
    rng = np.random.default_rng(0)
    H, R, y = 2.0 * rng.normal(size=(2, 3)), np.array([[1.0, 0.3], [0.3, 0.5]]), np.array([1.0, -2.0])
    P, m = 4.0 * np.eye(3), np.array([0.5, 0.0, -1.0])
    assert max(abs(np.linalg.eigvals(P @ H.T @ np.linalg.solve(R, H)))) > 10.0
    method = fx.method(name.format(iterations) + "+C-Static", model=models.linear(noise=R))
    state, info = method.step(method.init(mean=jnp.asarray(m), cov=4.0, key=jax.random.key(1)), H, y)
    want = exact_update(m, P, H, R, y)
    np.testing.assert_allclose(method.belief(state).mean, want.mean, **EXACT)
    np.testing.assert_allclose(method.belief(state).cov, want.cov, **EXACT)
    S = H @ P @ H.T + R
    np.testing.assert_allclose(info.log_evidence, scipy.stats.multivariate_normal(H @ m, S).logpdf(y), **EXACT)


def test_the_printed_iteration_diverges_where_ours_converges():
    """E6 for labels too: mu <- m + P E[score] is thrown about, the preconditioned iteration settles."""
    m, v, y = 0.0, 100.0, 1.0
    z, w = np.polynomial.hermite_e.hermegauss(200)
    w = w / w.sum()
    score = lambda a, s: w @ (y - scipy.special.expit(a + s * z))
    curvature = lambda a, s: w @ (scipy.special.expit(a + s * z) * scipy.special.expit(-a - s * z))
    printed, s = m, np.sqrt(v)
    for _ in range(30):
        printed, s = m + v * score(printed, s), (1 / v + curvature(printed, s)) ** -0.5
    assert abs(printed - (m + v * score(printed, s))) > 1.0
    belief, _ = one_step("RVGA(iterations=30)+C-Static", models.bernoulli(), [m], v, np.ones(1), y)
    a, s = float(belief.mean[0]), float(jnp.sqrt(belief.var[0]))
    np.testing.assert_allclose(a, m + v * score(a, s), atol=1e-3)
    np.testing.assert_allclose(s**-2, 1 / v + curvature(a, s), rtol=1e-4)


@pytest.mark.parametrize(("y", "cov"), [(100.0, 1.0), (1000.0, 0.1), (0.0, 10.0)])
def test_counts_far_from_the_forecast_do_not_overshoot(y, cov):
    """The extended filter throws the log rate far beyond log y; the fixed point is where scipy finds it."""
    z, w = np.polynomial.hermite_e.hermegauss(100)
    w = w / w.sum()

    def gaps(free):
        a, v = free[0], np.exp(free[1])
        rate = np.exp(np.minimum(a + np.sqrt(v) * z, 300.0))
        return [a - cov * (y - w @ rate), np.log(v) + np.log(1 / cov + w @ rate)]

    found = scipy.optimize.root(gaps, [np.log(y + 0.1), np.log(1 / (y + 1 / cov))], method="hybr")
    assert found.success
    belief, _ = one_step("RVGA(iterations=16)+C-Static", models.poisson(), [0.0], cov, np.ones(1), y)
    np.testing.assert_allclose(belief.mean[0], found.x[0], atol=3e-3)
    np.testing.assert_allclose(belief.var[0], np.exp(found.x[1]), rtol=1e-2)
    few, _ = one_step("RVGA+C-Static", models.poisson(), [0.0], cov, np.ones(1), y)
    newton = poisson_newton(np.zeros(1), cov * np.eye(1), np.ones(1), y).mean[0]
    if y > 0.0:
        assert newton > 3.0 * np.log(y)
        assert abs(few.mean[0] - found.x[0]) < 0.01


@pytest.mark.parametrize(("turned", "shortened"), [(0.0, False), (-0.4, False), (-0.6, True), (-50.0, True)])
def test_a_step_is_shortened_where_the_slope_has_turned(turned, shortened):
    """The slope of the objective after the step, as a share of that before it, in dense numpy; second of two steps."""
    rng = np.random.default_rng(2)
    m, J = rng.normal(size=2), rng.normal(size=(1, 2))
    prior = SquareRoot.start(jnp.asarray(m), jnp.asarray(PRIOR))
    old = SquareRoot(prior.mean + jnp.asarray(PRIOR @ J[0]) * 0.3, prior.root)
    pull = np.linalg.solve(PRIOR, np.asarray(old.mean) - m)
    site = PseudoDatum(jnp.asarray(J), jnp.asarray([[1.5]]), jnp.asarray([4.0]))
    new = prior.condition(site.jacobian, site.whitener, site.residual).belief
    move = np.asarray(new.mean - old.mean)
    before = move @ (1.5 * J[0] * (4.0 - 1.5 * J[0] @ (old.mean - m)) - pull)
    full = np.linalg.solve(PRIOR, np.asarray(new.mean) - m)
    residual = (turned * before + move @ full) / (J[0] @ move)
    ahead = PseudoDatum(jnp.asarray(J), jnp.eye(1), jnp.asarray([residual]))
    state = eqx.tree_at(lambda s: s.pull, DampingState.start(prior.mean, jnp.eye(1)), jnp.asarray(pull))
    got, after = state.damped_step(prior, old, new, site, ahead)
    beta = abs(J[0] @ move)
    np.testing.assert_allclose(got.mean, old.mean + (np.log1p(beta) / beta if shortened else 1.0) * move, rtol=1e-12)
    np.testing.assert_allclose(after.pull, np.linalg.solve(PRIOR, np.asarray(got.mean) - m), rtol=1e-10)
    np.testing.assert_array_equal(got.root, new.root)


def logistic_stream(seed, T):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, 2))
    return X, (rng.random(T) < scipy.special.expit(X @ np.array([1.5, -1.0]))).astype(float)


def projection(m, P, x, y):
    """One label of R-VGA in plain numpy: scipy solves the two equations of the projection, in eta = x theta."""
    z, w = np.polynomial.hermite_e.hermegauss(100)
    w, a, s = w / w.sum(), x @ m, x @ P @ x

    def averages(free):
        p = scipy.special.expit(free[0] + np.exp(0.5 * free[1]) * z)
        return w @ (y - p), w @ (p * (1.0 - p))

    def gaps(free):
        score, curvature = averages(free)
        return [free[0] - a - s * score, free[1] + np.log(1.0 / s + curvature)]

    score, curvature = averages(scipy.optimize.root(gaps, [a, np.log(s)], tol=1e-13).x)
    return m + P @ x * score, P - np.outer(P @ x, P @ x) * curvature / (1.0 + curvature * s)


def grid_posterior(X, Y, v):
    grid = np.linspace(-6.0, 6.0, 201)
    theta = np.stack(np.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 2)
    log_p = -0.5 * (theta**2).sum(1) / v
    for x, y in zip(X, Y, strict=True):
        log_p = log_p + LOG_LIKELIHOOD["bernoulli"](theta @ x, y)
    p = scipy.special.softmax(log_p)
    return p @ theta, np.sqrt(p @ (theta - p @ theta) ** 2)


@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (4, 5))])
def test_a_stream_of_labels(seed):
    """60 labels: the exact recursion of projections, nearer to the true posterior than the extended filter is."""
    X, Y = logistic_stream(seed, 60)
    ends = {}
    for name in ("RVGA(iterations=12)", "RVGA", "LG"):
        method = fx.method(name + "+C-Static", model=models.linear(likelihood=models.bernoulli()))
        ends[name] = method.belief(method.scan(method.init(mean=np.zeros(2), cov=1.0), X, Y)[0])
    m, P = np.zeros(2), np.eye(2)
    for x, y in zip(X, Y, strict=True):
        m, P = projection(m, P, x, y)
    np.testing.assert_allclose(ends["RVGA(iterations=12)"].mean, m, atol=1e-6)
    np.testing.assert_allclose(ends["RVGA(iterations=12)"].cov, P, atol=1e-6)
    np.testing.assert_allclose(ends["RVGA"].mean, m, atol=1e-3)
    mean, sd = grid_posterior(X, Y, 1.0)
    off = {name: np.max(np.abs(belief.mean - mean) / sd) for name, belief in ends.items()}
    assert off["RVGA"] < min(
        0.3, 0.5 * off["LG"]
    )  # the projection itself is that far off: errors of 60 projections add
    assert np.all(np.abs(np.sqrt(ends["RVGA"].var) / sd - 1.0) < 0.2)


def test_several_outputs_meet_the_two_equations():
    """Softmax regression: at the belief found, averages on a dense grid give back its mean and precision."""
    m, P, label = np.array([0.5, 0.0, -1.0]), np.diag([1.0, 2.0, 0.5]), 2
    method = fx.method("RVGA(iterations=8)+C-Static", model=models.categorical())
    belief = method.belief(method.step(method.init(mean=m, cov=P), None, float(label))[0])
    z, w = np.polynomial.hermite_e.hermegauss(20)
    nodes = np.stack(np.meshgrid(z, z, z), -1).reshape(-1, 3)
    weights = np.einsum("i,j,k->ijk", w, w, w).ravel() / w.sum() ** 3
    p = scipy.special.softmax(np.asarray(belief.mean) + nodes @ np.linalg.cholesky(belief.cov).T, axis=1)
    score = np.eye(3)[label] - weights @ p
    curvature = np.diag(weights @ p) - (p.T * weights) @ p
    np.testing.assert_allclose(belief.mean, m + P @ score, atol=4e-3)  # as exact as the rule of 128 points is
    np.testing.assert_allclose(np.linalg.inv(belief.cov), np.linalg.inv(P) + curvature, atol=4e-3)


def small_net(theta, x):
    return jnp.stack([theta[0] * jnp.tanh(theta[1] * x[0]), theta[2] * x[1]])


def test_samples_are_averaged_one_by_one():
    """BONG with samples, in plain numpy with the same draws: mean of JᵀCJ, mean of the score, one step."""
    S, R, key = 6, np.diag([0.5, 2.0]), jax.random.key(4)
    m, P, x, y = np.array([0.5, 1.0, -1.0]), np.diag([0.3, 0.2, 1.0]), np.array([0.7, -1.2]), np.array([1.0, 0.5])
    method = fx.method(f"BONG(samples={S})+C-Static", model=models.nonlinear(small_net, noise=R))
    state = method.init(mean=m, cov=P, key=key)
    belief = method.belief(method.step(state, x, y)[0])
    drawn = np.asarray(method.belief(state).sample(jax.random.split(jax.random.fold_in(key, 0), 1)[0], (S // 2,)))
    precision, score = np.linalg.inv(P), np.zeros(3)
    for a, b, c in np.concatenate([drawn, 2 * m - drawn]):
        bent = np.tanh(b * x[0])
        J = np.array([[bent, a * x[0] * (1 - bent**2), 0.0], [0.0, 0.0, x[1]]])
        precision = precision + J.T @ np.linalg.inv(R) @ J / S
        score = score + J.T @ np.linalg.inv(R) @ (y - np.array([a * bent, c * x[1]])) / S
    np.testing.assert_allclose(belief.cov, np.linalg.inv(precision), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(belief.mean, m + np.linalg.solve(precision, score), rtol=1e-9, atol=1e-12)


def test_samples_find_what_the_rule_finds():
    """The same fixed point by 4000 samples of the parameters, to their own error."""
    key = jax.random.key(0)
    exact, _ = one_step("RVGA(iterations=6)+C-Static", models.bernoulli(), [-2.0, 1.0], PRIOR, X2, 1.0)
    drawn, _ = one_step(
        "RVGA(iterations=6, samples=4000)+C-Static", models.bernoulli(), [-2.0, 1.0], PRIOR, X2, 1.0, key
    )
    np.testing.assert_allclose(drawn.mean, exact.mean, atol=0.02)
    np.testing.assert_allclose(drawn.cov, exact.cov, atol=0.02)


def test_one_explicit_step_at_the_mean_is_the_extended_filter():
    """BONG with a linearised likelihood and LG are one method; so are BONG and one full step of BLR."""
    X, Y = logistic_stream(5, 20)
    ends = {}
    for name in ("LG", "BONG(expectation=linearised)", "BONG", "BLR(iterations=1, step=1.0)"):
        method = fx.method(name + "+C-ACI(q=0.01)", model=models.linear(likelihood=models.bernoulli()))
        ends[name] = method.belief(method.scan(method.init(mean=np.zeros(2), cov=1.0), X, Y)[0])
    a, b, c, d = ends.values()
    np.testing.assert_allclose(a.cov, b.cov, **EXACT)
    np.testing.assert_allclose(a.mean, b.mean, **EXACT)
    np.testing.assert_allclose(c.cov, d.cov, **EXACT)
    np.testing.assert_allclose(c.mean, d.mean, **EXACT)
    assert np.max(np.abs(a.mean - c.mean)) > 1e-3


def test_natural_gradient_steps_reach_the_same_fixed_point():
    """BLR and RVGA minimise the same divergence; BLR needs more steps and a length for them."""
    want, _ = one_step("RVGA(iterations=12)+C-Static", models.poisson(), [0.5, 0.0], PRIOR, X2, 4.0)
    got, _ = one_step("BLR(iterations=12, step=0.75)+C-Static", models.poisson(), [0.5, 0.0], PRIOR, X2, 4.0)
    np.testing.assert_allclose(got.mean, want.mean, atol=1e-4)
    np.testing.assert_allclose(got.cov, want.cov, atol=1e-4)
    short, _ = one_step(
        "BLR(iterations=1, step=0.25)+C-Static", models.linear(noise=1.0).likelihood, [0.0], 1.0, np.ones(1), 4.0
    )
    np.testing.assert_allclose(1.0 / short.var, 1.25)  # a quarter of the datum's information, and of its score
    np.testing.assert_allclose(short.mean, 0.8)
