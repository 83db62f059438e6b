"""(M.1) WoLF: dense Bayes with noise R/w² by joint conditioning, scipy's densities, and brute-force integration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import filtax as fx
from filtax.models import gaussian, huber, imq, linear, mahalanobis, nonlinear, robust, tempered, threshold
from filtax.module import Module
from filtax.priors import additive_inflation, static
from oracles import batch_regression, enumerate_segmentations, joint_conditioning, log_normal, newton_step
from test_seams import Reset, RunLength

FORMS = ["root", "covariance", "precision"]
rng = np.random.default_rng(5)
T, D, O = 7, 3, 2
H = rng.normal(size=(T, O, D))
R = np.array([[1.0, 0.4], [0.4, 0.5]])
Q = 0.05
Y = rng.normal(size=(T, O))
Y[3] += 25.0  # one gross error
Y[5, 1] = np.nan

of_distance = {
    "imq": (imq, lambda e, R, c: (1.0 + e @ e / c**2) ** -0.5),
    "mahalanobis": (mahalanobis, lambda e, R, c: (1.0 + e @ np.linalg.inv(R) @ e / c**2) ** -0.5),
    "threshold": (threshold, lambda e, R, c: float(e @ np.linalg.inv(R) @ e <= c**2)),
    "huber": (huber, lambda e, R, c: np.sqrt(min(1.0, c / np.sqrt(e @ np.linalg.inv(R) @ e)))),
    "tempered": (tempered, lambda e, R, c: c),
}


def weighted_bayes(weigh, c):
    """Condition one big joint Gaussian on all data, each with its noise divided by w², itself found one by one."""
    eye, parts = np.eye(D), []
    noise, seen, trusts = np.array([R] * T), Y.copy(), []
    for t in range(T):
        shown = slice(0, t + 1)
        many = lambda matrix, n=t + 1: np.array([matrix] * n)
        upto = seen[shown].copy()
        upto[-1] = np.nan  # the forecast of datum t
        before = joint_conditioning(
            np.zeros(D), eye, many(eye), np.zeros((t + 1, D)), many(Q * eye), H[shown], noise[shown], upto
        )
        there = ~np.isnan(Y[t])
        e = (Y[t] - H[t] @ before.mean)[there]
        w = weigh(e, R[np.ix_(there, there)], c)
        trusts.append(w)
        noise[t], seen[t] = (R / w**2, Y[t]) if w > 0.0 else (R, np.nan)
        parts.append(
            joint_conditioning(
                np.zeros(D), eye, many(eye), np.zeros((t + 1, D)), many(Q * eye), H[shown], noise[shown], seen[shown]
            )
        )
    return parts, trusts


def sparse(names, trusts):
    """Every trust, and every name, at least once a day; all pairs at night."""
    rank = {name: i for i, name in enumerate(names)}
    return [
        pytest.param(n, t, marks=() if j % len(rank) == i or i % len(trusts) == j else pytest.mark.nightly)
        for n, i in rank.items()
        for j, t in enumerate(trusts)
    ]


@pytest.mark.x64
@pytest.mark.parametrize(("form", "trust"), sparse(FORMS, list(of_distance)))
def test_update_is_bayes_with_the_noise_divided(trust, form):
    """prop:weighted-kf against joint conditioning: two correlated outputs, one gap, one gross error, dynamics."""
    make, weigh = of_distance[trust]
    c = 0.6 if trust == "tempered" else 2.0
    wolf = fx.method(f"LG(form={form})+C-ACI(q={Q})", model=robust(linear(noise=R), trust=make(c)))
    _, infos = wolf.scan(wolf.init(mean=np.zeros(D), cov=1.0), H, Y, keep=("trust", "ok", "belief_mean", "belief_cov"))
    parts, trusts = weighted_bayes(weigh, c)
    np.testing.assert_allclose(infos.trust, trusts, rtol=1e-11)
    np.testing.assert_allclose(infos.belief_mean, [part.mean for part in parts], atol=1e-11)
    np.testing.assert_allclose(infos.belief_cov, [part.cov for part in parts], atol=1e-11)
    assert bool(infos.ok.all())


@pytest.mark.x64
@pytest.mark.parametrize(("trust", "form"), [("imq", FORMS[0]), ("huber", FORMS[1]), ("threshold", FORMS[2])])
def test_full_trust_is_the_plain_filter(trust, form):
    make, _ = of_distance[trust]
    plain = fx.method(f"LG(form={form})+C-Static", model=linear(noise=R))
    wolf = fx.method(
        f"LG(form={form})+C-Static", model=robust(linear(noise=R), make(1.0 if trust == "tempered" else 1e9))
    )
    state = plain.init(mean=np.zeros(D), cov=1.0)
    a, of_plain = plain.scan(state, H, Y)
    b, of_wolf = wolf.scan(state, H, Y)
    np.testing.assert_allclose(wolf.belief(b).mean, plain.belief(a).mean, rtol=1e-10)
    np.testing.assert_allclose(wolf.belief(b).cov, plain.belief(a).cov, rtol=1e-10)
    np.testing.assert_allclose(of_wolf.log_evidence, of_plain.log_evidence, rtol=1e-10)
    np.testing.assert_allclose(of_wolf.trust, 1.0)


@pytest.mark.x64
def test_the_largest_step_of_the_mean_is_known():
    """Scalar IMQ: sup over y is c |P h| / (2 sqrt(r (hPh + r))), at |e| = c sqrt((hPh + r) / r)."""
    c, r, h, P = 3.0, 0.5, np.array([1.0, -0.4]), np.array([[2.0, 0.3], [0.3, 0.7]])
    wolf = fx.method("WoLF-IMQ(c=3.0)+C-Static", model=linear(noise=r))
    state = wolf.init(mean=np.zeros(2), cov=P)
    moved = lambda y: jnp.linalg.norm(wolf.belief(wolf.step(state, h, y)[0]).mean)
    s = h @ P @ h
    top = c * np.sqrt((s + r) / r)
    grid = jax.vmap(moved)(jnp.concatenate([jnp.array([top]), jnp.linspace(-60.0, 60.0, 2001)]))
    np.testing.assert_allclose(grid[0], c * np.linalg.norm(P @ h) / (2 * np.sqrt(r * (s + r))), rtol=1e-13)
    assert int(jnp.argmax(grid)) == 0


each_form = pytest.mark.parametrize("name", [*(f"LG(form={form})" for form in FORMS), "NIG", "IEKF"])


@pytest.mark.parametrize(
    ("name", "trust"),
    sparse([*(f"LG(form={form})" for form in FORMS), "NIG", "IEKF"], ["imq", "mahalanobis", "threshold", "huber"]),
)
@given(y=st.lists(st.floats(width=32, allow_nan=False, allow_subnormal=False), min_size=2, max_size=2))
def test_finite_for_every_float32(name, trust, y):
    """Infinities included: nothing is refused, and no leaf of the state leaves the finite numbers."""
    wolf = fx.method(f"{name}+C-ACI(q=0.1)", model=robust(linear(noise=R), of_distance[trust][0](3.0)))
    state = wolf.init(mean=jnp.zeros(D, "float32"), cov=1.0)
    after, info = wolf.step(state, np.float32(H[0]), np.asarray(y, "float32"))
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(after))
    assert bool(info.ok)
    assert int(after.refused) == 0
    assert 0.0 <= float(info.trust) <= 1.0
    assert not np.any(np.isinf(y)) or float(info.trust) == 0.0
    assert float(info.log_evidence) < 5.0  # and not NaN
    assert float(jnp.max(jnp.abs(wolf.belief(after).mean))) < 100.0


@each_form
@pytest.mark.parametrize("y", [[np.inf, 0.0], pytest.param([-np.inf, np.inf], marks=pytest.mark.nightly), [200.0, 0.0]])
def test_no_trust_leaves_the_belief_bit_for_bit(name, y):
    """The datum carries nothing, without being refused; the state is that of a gap."""
    wolf = fx.method(f"WoLF-TMD(c=3)+{name}+C-Static", model=linear(noise=R))
    state, _ = wolf.scan(wolf.init(mean=jnp.zeros(D, "float32"), cov=1.0), np.float32(H[:3]), np.float32(Y[:3]))
    after, info = wolf.step(state, np.float32(H[3]), np.asarray(y, "float32"))
    assert bool(info.ok)
    assert float(info.trust) == 0.0
    for before, now in zip(jax.tree.leaves(state.bank), jax.tree.leaves(after.bank), strict=True):
        np.testing.assert_array_equal(np.asarray(before).view("int32"), np.asarray(now).view("int32"))


@pytest.mark.x64
def test_trust_looks_at_what_was_seen():
    """A missing output has no say: the trust is that of the other one alone."""
    wolf = fx.method("WoLF-MD(c=2)+C-Static", model=linear(noise=R))
    state = wolf.init(mean=np.zeros(D), cov=1.0)
    _, info = wolf.step(state, H[0], np.array([3.0, np.nan]))
    np.testing.assert_allclose(info.trust, (1 + 9.0 / R[0, 0] / 4.0) ** -0.5, rtol=1e-13)
    _, info = wolf.step(state, H[0], np.array([3.0, np.inf]), mask=np.array([True, False]))
    np.testing.assert_allclose(info.trust, (1 + 9.0 / R[0, 0] / 4.0) ** -0.5, rtol=1e-13)


@pytest.mark.x64
def test_one_threshold_has_a_unit_and_the_other_has_none():
    """WoLF-MD says the same of y in other units, WoLF-IMQ does not."""
    for name, same in (("MD", True), ("IMQ", False)):
        means = []
        for unit in (1.0, 1e3):
            wolf = fx.method(f"WoLF-{name}(c=2)+C-Static", model=linear(noise=0.5 * unit**2))
            state, _ = wolf.step(wolf.init(mean=np.zeros(D), cov=unit**2), H[0, 0], 4.0 * unit)
            means.append(np.asarray(wolf.belief(state).mean) / unit)
        assert np.allclose(*means, rtol=1e-12) == same


def absorbed(method, state, x, y):
    """The update of one hypothesis, with its two scores."""
    belief = jax.tree.map(lambda leaf: leaf[0], state.bank.belief)
    y = jnp.atleast_1d(jnp.asarray(y, belief.mean.dtype))
    mask = ~jnp.isnan(y)
    return _update(method, belief, jnp.asarray(x), jnp.where(mask, y, 0.0), mask)


@jax.jit
def _update(method, belief, x, y, mask):
    return method.posterior.update(belief, method.model, x, y, mask, None, None)


@pytest.mark.x64
@pytest.mark.parametrize(("form", "trust"), sparse(FORMS, list(of_distance)))
def test_two_numbers_evidence_and_score(trust, form):
    """The evidence is the plain density, the score N(y; yhat, HPH' + R/w²), with scipy; TMD stops at the gate."""
    make, weigh = of_distance[trust]
    c = 0.6 if trust == "tempered" else 2.0
    wolf = fx.method(f"LG(form={form})+C-Static", model=robust(linear(noise=R), make(c)))
    P = np.diag([1.0, 2.0, 0.5])
    state = wolf.init(mean=np.ones(D), cov=P)
    m, spread = H[0] @ np.ones(D), H[0] @ P @ H[0].T
    for y in (m + 0.3, m + np.array([5.0, -2.0]), m + 1e5):
        got = absorbed(wolf, state, H[0], y)
        w = weigh(y - m, R, c)
        want = (
            scipy.stats.multivariate_normal(m, spread + R / w**2).logpdf(y)
            if w > 0
            else -0.5 * c**2 - 0.5 * np.log(np.linalg.det(2 * np.pi * R))
        )
        np.testing.assert_allclose(
            got.log_evidence, scipy.stats.multivariate_normal(m, spread + R).logpdf(y), rtol=1e-11
        )
        np.testing.assert_allclose(got.log_score, want, rtol=1e-11)
        _, info = wolf.step(state, H[0], y)
        np.testing.assert_allclose(info.log_evidence, wolf.predict(state, H[0]).log_prob(y), rtol=1e-11)
    gap = absorbed(wolf, state, H[0], [np.nan, np.nan])
    assert float(gap.log_score) == float(gap.log_evidence) == 0.0
    one = absorbed(wolf, state, H[0], [m[0] + 1.0, np.nan])
    w = weigh(np.ones(1), R[:1, :1], c)
    np.testing.assert_allclose(one.log_score, log_normal(np.ones(1), spread[:1, :1] + R[:1, :1] / w**2), rtol=1e-11)


@pytest.mark.x64
@pytest.mark.parametrize("family", ["bernoulli", "categorical", "poisson"])
def test_exponential_families_take_a_weighted_newton_step(family):
    """Score and information times w², w from the Pearson residual; labels are scored w² p + (1 - w²)/C."""
    x, mean, P = np.array([1.0, -0.5]), np.array([0.8, -1.1]), np.array([[0.4, 0.1], [0.1, 0.3]])
    y, c = 0.0, 1.2
    J = x[None, :]
    if family == "categorical":
        mean, P = np.concatenate([mean, [0.3, 0.2, -0.4, 0.9]]), 0.3 * np.eye(6) + 0.05
        J, y = np.kron(x[None, :], np.eye(3)), 2.0
    eta = J @ mean
    if family == "bernoulli":
        p = 1 / (1 + np.exp(-eta))
        moment, V, r = p, np.diag(p * (1 - p)), (y - p) / np.sqrt(p * (1 - p))
    elif family == "poisson":
        y, rate = 9.0, np.exp(eta)
        moment, V, r = rate, np.diag(rate), (y - rate) / np.sqrt(rate)
    else:
        p = np.exp(eta) / np.exp(eta).sum()
        moment, V, r = p, np.diag(p) - np.outer(p, p), (np.eye(3)[2] - p) / np.sqrt(p)
    target = np.eye(3)[2] if family == "categorical" else np.array([y])
    w = (1 + r @ r / c**2) ** -0.5
    want = newton_step(mean, P, w**2 * J.T @ (target - moment), w**2 * J.T @ V @ J)
    for trust in (mahalanobis(c), imq(c)):  # without a fixed scale of y - E[y], IMQ looks at the whitened residual too
        wolf = fx.method("LG+C-Static", model=robust(linear(likelihood=getattr(fx.models, family)()), trust))
        state = wolf.init(mean=mean, cov=P)
        got = absorbed(wolf, state, x, y)
        np.testing.assert_allclose(got.trust, w, rtol=1e-12)
        np.testing.assert_allclose(got.belief.mean, want.mean, rtol=1e-11)
        np.testing.assert_allclose(got.belief.cov, want.cov, rtol=1e-10)
    chance = np.exp(float(wolf.predict(state, x).log_prob(y)))
    np.testing.assert_allclose(got.log_evidence, np.log(chance), rtol=1e-10)
    spread = (J @ P @ J.T)[0, 0]
    flat = {
        "bernoulli": 0.5,
        "categorical": 1 / 3,
        "poisson": scipy.stats.norm(moment[0], np.sqrt(moment[0] ** 2 * spread + moment[0] / w**2)).pdf(y),
    }[family]
    np.testing.assert_allclose(got.log_score, np.log(w**2 * chance + (1 - w**2) * flat), rtol=1e-8)


@pytest.mark.x64
def test_unknown_noise_against_brute_force():
    """Prior times likelihood to the power w², integrated on a grid of theta and log variance; w in learnt units."""
    shape, rate, m, P, h, R, y, c = 3.0, 2.0, 0.4, 0.8, 1.3, 1.5, 6.0, 2.0
    wolf = fx.method(f"WoLF-MD(c={c})+NIG(shape={shape}, rate={rate})+C-Static", model=linear(noise=R))
    state = wolf.init(mean=np.array([m]), cov=P)
    after, info = wolf.step(state, np.array([h]), y)
    w = (1 + (y - h * m) ** 2 / (R * rate / shape) / c**2) ** -0.5
    np.testing.assert_allclose(info.trust, w, rtol=1e-12)
    theta, log_v = np.linspace(-25.0, 25.0, 2001)[:, None], np.linspace(-4.0, 7.0, 1501)[None, :]
    v = np.exp(log_v)
    log_prior = (
        scipy.stats.invgamma(shape, scale=rate).logpdf(v) + log_v + scipy.stats.norm(m, np.sqrt(v * P)).logpdf(theta)
    )
    density = np.exp(log_prior + w**2 * scipy.stats.norm(h * theta, np.sqrt(v * R)).logpdf(y))
    density /= density.sum()
    belief = wolf.belief(after)
    np.testing.assert_allclose(belief.mean[0], (density * theta).sum(), rtol=1e-5)
    np.testing.assert_allclose(belief.noise, (density * v).sum(), rtol=1e-3)
    np.testing.assert_allclose(belief.shape, shape + w**2 / 2, rtol=1e-12)
    log_mean = (density * log_v).sum()
    np.testing.assert_allclose(np.log(belief.rate) - scipy.special.digamma(float(belief.shape)), log_mean, rtol=1e-5)
    t = scipy.stats.t(2 * shape, h * m, np.sqrt((h * h * P + R) * rate / shape))
    np.testing.assert_allclose(info.log_evidence, t.logpdf(y), rtol=1e-11)
    unit = rate / shape
    wide = scipy.stats.norm(h * m, np.sqrt(unit * (h * h * P + R / w**2))).pdf(y)
    score = absorbed(wolf, state, [h], y).log_score
    np.testing.assert_allclose(score, np.log(w**2 * t.pdf(y) + (1 - w**2) * wide), rtol=1e-11)


HAZARD, NOISE = 0.1, 0.3
X = rng.normal(size=(8, 2))
y_line = X @ np.array([1.0, -1.0]) + 0.5 * rng.normal(size=8)


def run_lengths(trust, posterior="LG", likelihood=None, slots=9, drift=None):
    model = linear(noise=NOISE) if likelihood is None else linear(likelihood=likelihood)
    return fx.method(
        f"{posterior}+C-Static",
        model=robust(model, trust),
        auxiliary=RunLength(HAZARD, slots),
        prior=Reset(static() if drift is None else drift),
    )


@pytest.mark.x64
def test_run_lengths_equal_enumeration_under_the_score():
    """All 2^T segmentations, each scored by a plain numpy WoLF-IMQ, with an outlier among the data."""
    y = y_line.copy()
    y[4] += 12.0
    c = 2.0

    def segment(start, stop):
        m, P, total = np.zeros(2), np.eye(2), 0.0
        for t in range(max(start, 1) - 1, stop):
            e = y[t] - X[t] @ m
            r = NOISE * (1 + e * e / c**2)
            S = X[t] @ P @ X[t] + r
            total += scipy.stats.norm(0.0, np.sqrt(S)).logpdf(e)
            m, P = m + P @ X[t] * e / S, P - np.outer(P @ X[t], P @ X[t]) / S
        return total

    rl = run_lengths(imq(c))
    end, infos = rl.scan(rl.init(mean=jnp.zeros(2), cov=1.0), X, y)
    want = enumerate_segmentations(segment, HAZARD, len(y))
    got = np.bincount(end.bank.aux, np.exp(end.bank.log_weight), minlength=len(y) + 1)
    np.testing.assert_allclose(got, want.runlength, atol=1e-12)
    assert np.all(np.isfinite(infos.log_evidence))


@pytest.mark.parametrize(
    ("trust", "posterior", "likelihood"),
    [
        (imq(3.0), "LG", None),
        pytest.param(mahalanobis(3.0), "LG(form=covariance)", None, marks=pytest.mark.nightly),
        (threshold(3.0), "LG", None),
        (mahalanobis(3.0), "NIG", None),
        (mahalanobis(3.0), "LG", "poisson"),
    ],
    ids=lambda part: getattr(part, "name", part),
)
def test_an_outlier_is_no_change(trust, posterior, likelihood):
    """As |y| grows without bound the change probability tends to the hazard; a plain filter's tends to one."""
    family = None if likelihood is None else fx.models.poisson()
    rl = run_lengths(trust, posterior, family, slots=10)
    y = y_line if family is None else np.array([1.0, 0.0, 2.0, 1.0, 0.0, 1.0, 3.0, 1.0])
    state, _ = rl.scan(rl.init(mean=jnp.zeros(2, "float32"), cov=0.3), np.float32(X), np.float32(y))
    x = np.array([0.6, 0.8], "float32")
    for far, tolerance in ((1e3, 0.02), (1e6, 1e-3), (1e18, 2e-5), (1e30, 2e-5), (3e38, 2e-5), (np.inf, 2e-5)):
        after, info = rl.step(state, x, np.float32(far))
        np.testing.assert_allclose(info.change_probability, HAZARD, atol=tolerance)
        assert bool(info.ok)
        np.testing.assert_allclose(np.exp(after.bank.log_weight).sum(), 1.0, rtol=1e-5)
    plain = fx.method(
        f"{posterior}+C-Static",
        model=linear(noise=NOISE) if family is None else linear(likelihood=family),
        auxiliary=RunLength(HAZARD, 10),
        prior=Reset(static()),
    )
    if family is None:
        assert float(plain.step(state, x, np.float32(1e3))[1].change_probability) > 0.9


def test_behind_a_gate_it_does_not_matter_how_far():
    """TMD with learnt noise: hypotheses differ by their noise level alone, bounded, whatever y is."""
    rl = run_lengths(threshold(3.0), "NIG", slots=10)
    state, _ = rl.scan(rl.init(mean=jnp.zeros(2, "float32"), cov=0.3), np.float32(X), np.float32(y_line))
    far = [rl.step(state, np.ones(2, "float32"), np.float32(y))[1].change_probability for y in (1e3, 1e30, np.inf)]
    np.testing.assert_allclose(far, far[0], rtol=1e-6)
    assert 0.01 < far[0] < 0.3


def test_a_trust_that_is_no_trust_is_refused_and_counted():
    """NaN, negative, infinite: taken as 0, the datum is not used, and a fault of W does not spread."""
    for W in (lambda r: jnp.nan * r[0], lambda r: -jnp.ones(()), lambda r: jnp.full((), jnp.inf)):
        wolf = fx.method("LG+C-Static", model=robust(linear(noise=0.5), trust=W))
        state = wolf.init(mean=jnp.zeros(D, "float32"), cov=1.0)
        after, info = wolf.step(state, np.float32(X[0, [0, 1, 0]]), np.float32(1.0))
        assert not bool(info.ok)
        assert float(info.trust) == 0.0
        assert int(after.refused) == 1
        assert np.isfinite(float(info.log_evidence))  # the forecast was made, and was right or wrong, all the same
        jax.tree.map(np.testing.assert_array_equal, after.bank, state.bank)
        _, infos = wolf.scan(state, np.ones((3, D), "float32"), np.ones(3, "float32"), complete=True)
        assert not bool(infos.ok.any())


@pytest.mark.x64
def test_a_trust_of_ones_own():
    """A function, and a pytree with settings that can be swept; both see the whitened residual."""

    class Mine(Module):
        sharpness: float

        def __call__(self, r):
            return jnp.exp(-self.sharpness * jnp.sum(r * r))

    mine = fx.method("LG+C-Static", model=robust(linear(noise=4.0), trust=Mine(0.1)))
    other = fx.method("LG+C-Static", model=robust(linear(noise=4.0), trust=lambda r: jnp.exp(-0.1 * jnp.sum(r * r))))
    state = mine.init(mean=np.zeros(2), cov=1.0)
    for wolf in (mine, other):
        _, info = wolf.step(state, X[0], 3.0)
        np.testing.assert_allclose(info.trust, np.exp(-0.1 * 9.0 / 4.0), rtol=1e-13)
        after, info = wolf.step(state, X[0], np.inf)
        assert bool(info.ok)
        jax.tree.map(np.testing.assert_array_equal, after.bank, state.bank)
    assert mine.name == "WoLF-Mine+C-Static"
    assert other.name == "WoLF-W+C-Static"


@pytest.mark.x64
def test_a_datum_is_judged_once_by_its_forecast():
    """Iterating changes nothing on a linear model, and on a curved one the trust is that of the forecast."""
    a, b = (fx.method(f"WoLF-MD(c=1)+{part}+C-Static", model=linear(noise=R)) for part in ("LG", "IEKF(iterations=4)"))
    state = a.init(mean=np.zeros(D), cov=1.0)
    for y in (np.array([1.0, 2.0]), np.array([30.0, -2.0]), np.array([np.inf, 0.0])):
        one, four = a.step(state, H[0], y), b.step(state, H[0], y)
        np.testing.assert_allclose(b.belief(four[0]).mean, a.belief(one[0]).mean, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(four[1].trust, one[1].trust)
    square = nonlinear(lambda theta, x: theta[0] ** 2, noise=0.1)
    wolf = fx.method("WoLF-IMQ(c=2)+IEKF(iterations=12)+C-Static", model=square)
    state, info = wolf.step(wolf.init(mean=np.array([1.0]), cov=0.5), np.zeros(1), 4.0)
    w2 = 1 / (1 + 9.0 / 4.0)
    np.testing.assert_allclose(info.trust**2, w2, rtol=1e-12)
    theta = np.linspace(0.5, 2.5, 2_000_001)
    loss = 0.5 * (theta - 1.0) ** 2 / 0.5 + 0.5 * w2 * (4.0 - theta**2) ** 2 / 0.1
    np.testing.assert_allclose(wolf.belief(state).mean[0], theta[np.argmin(loss)], atol=2e-6)


@pytest.mark.parametrize("size", [1e30, 1e4])
def test_the_bar_of_outliers(size):
    """1 % outliers for 1e5 float32 steps: error at most 1.1 times the standard deviation on clean data.

    The plain filter refuses 1e30, whose square overflows, and takes 1e4 for good.
    """
    draw = np.random.default_rng(0)
    steps, q, r = 100_000, 1e-4, 1.0
    truth = np.cumsum(np.sqrt(q) * draw.normal(size=steps))
    y = truth + np.sqrt(r) * draw.normal(size=steps)
    y[draw.random(steps) < 0.01] = size
    y[draw.random(steps) < 0.001] = -np.inf
    clean = 0.5 * (q + np.sqrt(q * q + 4 * q * r)) - q  # the steady variance of the plain filter without outliers
    for name in ("LG", "WoLF-IMQ(c=3)", "WoLF-MD(c=3)", "WoLF-TMD(c=4)"):
        wolf = fx.method(f"{name}+C-ACI(q={q})", model=gaussian(r))
        keep = ("belief_mean", "belief_var", "ok")
        end, infos = wolf.scan(wolf.init(mean=jnp.zeros(1, "float32"), cov=1.0), None, y.astype("float32"), keep=keep)
        error = np.sqrt(np.mean((np.asarray(infos.belief_mean[:, 0], "float64") - truth) ** 2))
        if name == "LG":
            assert int(end.refused) > 0  # at least the infinities
            assert error > 1e3 * np.sqrt(clean) or size == 1e30
            continue
        assert error <= 1.1 * np.sqrt(clean), name
        assert bool(infos.ok.all())
        assert int(end.refused) == 0
        assert bool(jnp.all(jnp.isfinite(infos.belief_var)))


@pytest.mark.x64
def test_the_threshold_can_be_swept_and_sloped():
    def total(c):
        wolf = fx.method("LG+C-Static", model=robust(linear(noise=0.5), imq(c)))
        return wolf.scan(wolf.init(mean=jnp.zeros(2), cov=1.0), X, y_line, keep=("log_evidence",))[1].log_evidence.sum()

    cs = jnp.array([0.5, 2.0, 8.0])
    np.testing.assert_allclose(jax.vmap(total)(cs), [total(c) for c in cs], rtol=1e-12)
    np.testing.assert_allclose(jax.grad(total)(2.0), (total(2 + 1e-6) - total(2 - 1e-6)) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "WoLF-IMQ(c=4)+C-ACI(q=0.1)",
        "WoLF-MD(c=2.5)+C-Static",
        "WoLF-TMD(c=3)+LG(form=covariance)+C-OU(rate=0.9)",
        "WoLF-Huber(c=1)+NIG(shape=2)+C-Static",
        "WoLF-Tempered(w=0.5)+IEKF(iterations=5)+C-Static",
    ],
)
def test_names_are_printed_back(name):
    made = fx.method(name, model=linear(noise=1.0))
    assert made.name == name
    assert fx.method(made.name, model=linear(noise=1.0)).name == name
    assert made.model.likelihood.inner.noise == 1.0


def test_the_name_and_the_parts_give_one_method():
    a = fx.method("WoLF-IMQ(c=4.0)+LG+C-ACI(q=0.1)", model=linear(noise=1.0))
    b = fx.method("C-ACI", model=robust(linear(noise=1.0), imq(4.0)), prior=additive_inflation(0.1))
    assert a.name == b.name == "WoLF-IMQ(c=4.0)+C-ACI(q=0.1)"
    assert jax.tree.structure(a) == jax.tree.structure(b)
    assert jax.tree.leaves(a) == jax.tree.leaves(b)


def test_a_bare_likelihood_is_a_model_of_theta_itself():
    wolf = fx.method("LG+C-Static", model=robust(gaussian(1.0), mahalanobis(2.0)))
    state, _ = wolf.step(wolf.init(mean=jnp.zeros(1, "float32"), cov=1.0), None, 1e10)
    assert abs(float(wolf.belief(state).mean[0])) < 1e-6


def test_refusals():
    """What was given, what was expected, what to do."""
    plain = linear(noise=1.0)
    with pytest.raises(ValueError, match=r"robust\(trust=...\) must be a function of the whitened residual.*got 3"):
        robust(plain, trust=3)
    with pytest.raises(ValueError, match=r"robust already; give the plain one"):
        robust(robust(plain, imq(2.0)), imq(2.0))
    with pytest.raises(ValueError, match=r"robust already; give the plain one"):
        fx.method("WoLF-IMQ(c=4)+C-Static", model=robust(plain, imq(2.0)))
    with pytest.raises(ValueError, match=r"robust\(model=...\) must come from filtax.models.*got float"):
        robust(1.0, imq(2.0))
    with pytest.raises(ValueError, match=r"WoLF-IMQ needs c; write WoLF-IMQ\(c=...\)"):
        fx.method("WoLF-IMQ+C-Static", model=plain)
    with pytest.raises(ValueError, match=r"no trust 'WoLF-IMC'. Did you mean \"WoLF-IMQ\"\?"):
        fx.method("WoLF-IMC(c=4)+C-Static", model=plain)
    with pytest.raises(ValueError, match=r"imq\(c=...\) must be finite and above 0, got 0.0"):
        fx.method("WoLF-IMQ(c=0)+C-Static", model=plain)
    with pytest.raises(ValueError, match=r"only be learned under Gaussian noise"):
        fx.method("WoLF-MD(c=4)+NIG+C-Static", model=linear(likelihood=fx.models.bernoulli()))
    wide = fx.method("LG+C-Static", model=robust(linear(noise=R), lambda r: r))
    with pytest.raises(
        ValueError, match=r"W returned an array of shape \(2,\) for 2 outputs; it must return one number"
    ):
        wide.step(wide.init(mean=jnp.zeros(D), cov=1.0), H[0], Y[0])


@pytest.mark.x64
def test_what_is_impossible_stays_refused():
    """Infinity is the limit of large numbers, and of large counts; it is no label, and no count is negative."""
    for family, y, taken in (
        ("poisson", np.inf, True),
        ("poisson", -np.inf, False),
        ("poisson", 2.5, False),
        ("bernoulli", np.inf, False),
        ("categorical", np.inf, False),
    ):
        wolf = fx.method("WoLF-MD(c=3)+C-Static", model=linear(likelihood=getattr(fx.models, family)()))
        state = wolf.init(mean=jnp.zeros(2), cov=1.0)
        after, info = wolf.step(state, X[0] if family != "categorical" else X[0, :1], y)
        assert bool(info.ok) == taken
        jax.tree.map(np.testing.assert_array_equal, after.bank.belief, state.bank.belief)


@pytest.mark.x64
def test_conservative():
    """claims 23: after one update the covariance is at least that of the plain filter."""
    plain = fx.method("LG+C-Static", model=linear(noise=R))
    state = plain.init(mean=np.zeros(D), cov=1.0)
    for trust in (imq(1.0), mahalanobis(1.0), threshold(1.0), huber(1.0)):
        wolf = fx.method("LG+C-Static", model=robust(linear(noise=R), trust))
        for y in (Y[0], Y[3]):
            gap = wolf.belief(wolf.step(state, H[0], y)[0]).cov - plain.belief(plain.step(state, H[0], y)[0]).cov
            assert np.linalg.eigvalsh(gap)[0] > -1e-12


def test_the_batch_oracle_agrees_with_weights():
    """A constant trust w is regression with the noise divided by w²: all data at once."""
    wolf = fx.method("WoLF-Tempered(w=0.5)+C-Static", model=linear(noise=NOISE))
    state, _ = wolf.scan(wolf.init(mean=jnp.zeros(2, "float32"), cov=1.0), np.float32(X), np.float32(y_line))
    want = batch_regression(X, y_line, np.zeros(2), np.eye(2), NOISE / 0.25)
    np.testing.assert_allclose(wolf.belief(state).mean, want.mean, rtol=1e-4)
