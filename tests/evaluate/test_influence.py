"""The posterior influence: the quadratic of the Kalman filter, the bound and the limit of WoLF, in numpy."""

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.models import linear

rng = np.random.default_rng(2)
D, O = 3, 2
H = rng.normal(size=(O, D))
P = np.array([[1.0, 0.2, 0.0], [0.2, 0.8, -0.1], [0.0, -0.1, 1.5]])
R = np.array([[0.5, 0.2], [0.2, 1.0]])
m, y = rng.normal(size=D), rng.normal(size=O)
FORMS = ["root", "covariance", "precision"]


def gaussian_kl(mp, Cp, mq, Cq):
    gap = mq - mp
    ratio = np.linalg.slogdet(Cq)[1] - np.linalg.slogdet(Cp)[1]
    return 0.5 * (np.trace(np.linalg.solve(Cq, Cp)) + gap @ np.linalg.solve(Cq, gap) - len(mp) + ratio)


def posterior(y, w):
    """Bayes with noise R/w², by the information form."""
    C = np.linalg.inv(np.linalg.inv(P) + w**2 * H.T @ np.linalg.inv(R) @ H)
    return m + w**2 * C @ H.T @ np.linalg.inv(R) @ (y - H @ m), C


def contaminations(*sizes):
    return np.array([y + size * np.array([0.6, -0.8]) for size in sizes])


@pytest.mark.x64
@pytest.mark.parametrize("form", ["root", *(pytest.param(form, marks=pytest.mark.nightly) for form in FORMS[1:])])
def test_the_kalman_filter_has_a_quadratic_influence(form):
    """E24: half of [K dy]' C^-1 [K dy], without end."""
    kf = fx.method(f"LG(form={form})+C-Static", model=linear(noise=R))
    state = kf.init(mean=m, cov=P)
    far = contaminations(0.5, 3.0, -40.0, 1e6, 1e30)
    S = H @ P @ H.T + R
    K = P @ H.T @ np.linalg.inv(S)
    C = P - K @ S @ K.T
    want = [0.5 * (K @ dy) @ np.linalg.solve(C, K @ dy) for dy in far - y]
    np.testing.assert_allclose(fx.posterior_influence(kf, state, H, y, far), want, rtol=1e-9)


@pytest.mark.x64
@pytest.mark.parametrize(
    "name", ["IMQ", "TMD", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("MD", "Huber"))]
)
def test_wolf_has_a_bounded_influence(name):
    """KL(corrupt ‖ clean) of two dense posteriors (E25), at every size of error; its limit for a vanishing trust."""
    weigh = {
        "IMQ": lambda e: (1 + e @ e / 4.0) ** -0.5,
        "MD": lambda e: (1 + e @ np.linalg.solve(R, e) / 4.0) ** -0.5,
        "TMD": lambda e: float(e @ np.linalg.solve(R, e) <= 4.0),
        "Huber": lambda e: min(1.0, (2.0 / np.sqrt(e @ np.linalg.solve(R, e))) ** 0.5),
    }[name]
    wolf = fx.method(f"WoLF-{name}(c=2)+C-Static", model=linear(noise=R))
    state = wolf.init(mean=m, cov=P)
    far = contaminations(0.1, 1.0, 3.0, -10.0, 1e3)
    clean = posterior(y, weigh(y - H @ m))
    want = [gaussian_kl(*posterior(each, weigh(each - H @ m)), *clean) for each in far]
    grid = np.concatenate([far, contaminations(*np.logspace(-3, 30, 200)), [[np.inf, 0.0]]])
    got = fx.posterior_influence(wolf, state, H, y, grid)
    np.testing.assert_allclose(got[:5], want, rtol=1e-9, atol=1e-12)
    wide = got[5:-1]
    assert float(wide.max()) <= 1.001 * float(wide[:-1].max())
    if name == "Huber":  # its pull stays c, in the direction of the error
        u = np.array([0.6, -0.8])
        shift = P @ H.T @ np.linalg.solve(R, u) * 2.0 / np.sqrt(u @ np.linalg.solve(R, u))
        np.testing.assert_allclose(wide[-1], gaussian_kl(m + shift, P, *clean), rtol=1e-6)
    else:
        np.testing.assert_allclose(wide[-1], gaussian_kl(m, P, *clean), rtol=1e-6)
        np.testing.assert_allclose(got[-1], gaussian_kl(m, P, *clean), rtol=1e-9)


@pytest.mark.x64
def test_the_grid_keeps_its_shape_and_the_clean_datum_has_no_influence():
    kf = fx.method("LG+C-ACI(q=0.1)", model=linear(noise=1.0))
    state = kf.init(mean=np.zeros(2), cov=1.0)
    grid = np.linspace(-3.0, 3.0, 6).reshape(2, 3)
    got = fx.posterior_influence(kf, state, np.ones(2), 0.5, grid)
    assert got.shape == (2, 3)
    one_by_one = [[fx.posterior_influence(kf, state, np.ones(2), 0.5, each) for each in row] for row in grid]
    np.testing.assert_allclose(got, one_by_one, rtol=1e-12)
    assert abs(float(fx.posterior_influence(kf, state, np.ones(2), 0.5, 0.5))) < 1e-12
    assert np.isnan(fx.posterior_influence(kf, state, np.ones(2), 0.5, np.array([1e200, np.inf]))).all()


@pytest.mark.x64
def test_counts_have_one_too():
    """A Beta belief: a one instead of a zero, against numerical integration."""
    import scipy.stats

    coin = fx.method("Cj+C-Static", model=fx.models.bernoulli())
    state = coin.init(mean=0.4, cov=0.02)
    a = 0.4 * (0.24 / 0.02 - 1.0)
    b = 0.6 * (0.24 / 0.02 - 1.0)
    p, q = scipy.stats.beta(a + 1, b), scipy.stats.beta(a, b + 1)
    grid = np.linspace(1e-6, 1 - 1e-6, 200_001)
    want = np.trapezoid(p.pdf(grid) * (p.logpdf(grid) - q.logpdf(grid)), grid)
    np.testing.assert_allclose(fx.posterior_influence(coin, state, None, 0.0, 1.0), want, rtol=1e-6)


def test_refusals():
    kf = fx.method("LG+C-Static", model=linear(noise=1.0))
    state = kf.init(mean=jnp.zeros(2), cov=1.0)
    with pytest.raises(ValueError, match=r"y_contaminated has shape \(2,\) but y has shape \(3,\)"):
        fx.posterior_influence(kf, state, np.ones(2), np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match=r"posterior_influence: the state is a tuple; unpack it"):
        fx.posterior_influence(kf, kf.step(state, np.ones(2), 1.0), np.ones(2), 1.0, 2.0)
    ogd = fx.method("OGD(rate=0.1)+C-Static", model=linear(noise=1.0))
    with pytest.raises(ValueError, match=r"kl of a Point: it has no spread"):
        fx.posterior_influence(ogd, ogd.init(mean=jnp.zeros(2)), np.ones(2), 1.0, 2.0)
