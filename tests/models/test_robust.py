"""(M.1) The update of WoLF: dense Bayes with noise R/w², how little an outlier can do, and trusts of a user's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.models import gaussian, imq, linear, nonlinear, robust
from filtax.protocols import Module
from oracles import joint_conditioning
from wolf import FORMS, D, H, Q, R, T, X, Y, of_distance, sparse, y_line


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
    wolf = fx.method(f"LG(form={form})+C-Static", model=robust(linear(noise=R), make(1e9)))
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


NAMES = [*(f"LG(form={form})" for form in FORMS), "NIG", "IEKF"]
each_form = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize("c", [3.0, pytest.param(1e3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("name", "trust"), sparse(NAMES, ["imq", "mahalanobis", "threshold", "huber"]))
def test_nothing_is_refused_for_its_size(name, trust, c):
    """By eighths of powers of two up to the largest number, and infinities; no leaf of the state leaves the numbers.

    A band of sizes was refused once, where 1/|y| is rounded to 0.
    """
    wolf = fx.method(f"{name}+C-ACI(q=0.1)", model=robust(linear(noise=R), of_distance[trust][0](c)))
    state = wolf.init(mean=jnp.zeros(D, "float32"), cov=1.0)
    sizes = np.exp2(np.arange(0.0, 128.0, 0.125))[:, None]
    infinite = [[np.inf, 0.0], [0.0, -np.inf], [np.inf, -np.inf]]
    rows = np.concatenate([*(sizes * way for way in ([0, 1], [1, 0], [1, -1])), infinite]).astype("float32")
    after, info = jax.jit(jax.vmap(lambda y: wolf.step(state, np.float32(H[0]), y)))(rows)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(after))
    assert bool(jnp.all(info.ok))
    assert np.all((info.trust >= 0.0) & (info.trust <= 1.0))
    assert info.trust[-3:].tolist() == [0.0] * 3
    assert np.all(info.log_evidence < 5.0)  # and not NaN
    assert np.all(np.abs(jax.vmap(lambda end: wolf.belief(end).mean)(after)) < 100.0 * c)


@each_form
@pytest.mark.parametrize("y", [[np.inf, 0.0], pytest.param([-np.inf, np.inf], marks=pytest.mark.nightly), [200.0, 0.0]])
def test_no_trust_leaves_the_belief_bit_for_bit(name, y):
    """The datum carries nothing, without being refused; the state is that of a gap."""
    wolf = fx.method(f"WoLF-TMD(c=3)+{name}+C-Static", model=linear(noise=R))
    state, _ = wolf.scan(wolf.init(mean=jnp.zeros(D, "float32"), cov=1.0), np.float32(H[:3]), np.float32(Y[:3]))
    after, info = wolf.step(state, np.float32(H[3]), np.asarray(y, "float32"))
    assert bool(info.ok)
    assert float(info.trust) == 0.0
    for before, now in zip(jax.tree.leaves(state.hypotheses), jax.tree.leaves(after.hypotheses), strict=True):
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


@pytest.mark.x64
@pytest.mark.nightly
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
        jax.tree.map(np.testing.assert_array_equal, after.hypotheses, state.hypotheses)
    assert mine.name == "WoLF-Mine+C-Static"
    assert other.name == "WoLF-W+C-Static"


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
        jax.tree.map(np.testing.assert_array_equal, after.hypotheses, state.hypotheses)
        _, infos = wolf.scan(state, np.ones((3, D), "float32"), np.ones(3, "float32"), complete=True)
        assert not bool(infos.ok.any())


@pytest.mark.x64
@pytest.mark.nightly
def test_the_threshold_can_be_swept_and_sloped():
    def total(c):
        wolf = fx.method("LG+C-Static", model=robust(linear(noise=0.5), imq(c)))
        return wolf.scan(wolf.init(mean=jnp.zeros(2), cov=1.0), X, y_line, keep=("log_evidence",))[1].log_evidence.sum()

    cs = jnp.array([0.5, 2.0, 8.0])
    np.testing.assert_allclose(jax.vmap(total)(cs), [total(c) for c in cs], rtol=1e-12)
    np.testing.assert_allclose(jax.grad(total)(2.0), (total(2 + 1e-6) - total(2 - 1e-6)) / 2e-6, rtol=1e-6)


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
        jax.tree.map(np.testing.assert_array_equal, after.hypotheses.belief, state.hypotheses.belief)
