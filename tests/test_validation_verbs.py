"""The border: every slip of a user is refused in one sentence that says what was given and what to do."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import filtax as fx
from filtax import _validation as checks

KF = fx.method("LG+C-ACI(q=0.1)", model=fx.models.linear(noise=1.0))
PLAIN = KF.init(mean=jnp.zeros(2), cov=1.0)
X, Y = np.ones((3, 2)), np.zeros(3)


@pytest.mark.parametrize("dtype", [float, "float32", int])
def test_what_is_masked_is_missing(dtype):
    """What lies under a mask is never looked at; a whole number becomes NaN as well."""
    Y = np.ma.array([1, 2, 99], dtype, mask=[False, False, True])
    wide = [KF.scan(PLAIN, X, rows)[1] for rows in (Y, Y.filled(0) * [1.0, 1.0, np.nan])]
    np.testing.assert_array_equal(wide[0].residual, wide[1].residual)
    np.testing.assert_array_equal(KF.step(PLAIN, X[0], Y[2])[1].residual, np.nan)
    np.testing.assert_array_equal(KF.scan(PLAIN, X, np.ma.array(Y.data))[1].ok, True)
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    assert np.isnan(fx.ewma(masked, q=0.1, r=1.0).mean).sum() == 0
    for call in (
        lambda: KF.init(mean=masked, cov=1.0),
        lambda: KF.scan(PLAIN, X, Y, mask=np.ma.array([True, True, True], mask=[True, False, False])),
        lambda: KF.init(mean=np.zeros(2), cov=masked),
    ):
        with pytest.raises(ValueError, match="has masked entries"):
            call()


def test_long_doubles_are_data_and_no_settings():
    """JAX has no such type: its message was three screens long."""
    wide = [KF.scan(PLAIN, X.astype(kind), Y.astype(kind), dt=np.ones(3, kind))[1] for kind in ("longdouble", float)]
    np.testing.assert_array_equal(wide[0].residual, wide[1].residual)
    one = np.ones(2, "longdouble")
    np.testing.assert_array_equal(KF.step(PLAIN, one, one[0])[1].var, KF.step(PLAIN, X[0], 1.0)[1].var)
    assert KF.init(mean=one, cov=1.0).initial.mean.dtype == jnp.result_type(float)
    with pytest.raises(ValueError, match=r"noise=... has masked entries or is a long double, got .*give float64"):
        fx.models.linear(noise=one[0])


INIT = [
    (dict(), "give mean=... .* or params=... .*, got neither"),
    (dict(mean=jnp.zeros(2), params=[jnp.zeros(2)]), "got both"),
    (dict(mean=jnp.zeros((2, 2))), r"must be a vector \(D,\), got shape \(2, 2\); give a matrix .* as params="),
    (dict(mean=jnp.zeros(0)), r"init\(mean=...\) is empty, got shape \(0,\); give a vector \(D,\) with a number for"),
    (dict(params=[jnp.zeros(0)]), r"init\(params=...\) is empty, got shape \(0,\); give arrays with a number for each"),
    (dict(mean=[0.0, np.nan]), r"init\(mean=...\) must be finite"),
    (dict(params=[jnp.array([np.inf])]), r"init\(params=...\) must be finite"),
    (dict(mean=[0.0, 0.0], cov=[1.0, 1.0, 1.0]), r"mean has D = 2 parameters but cov has shape \(3,\)"),
    (dict(mean=[0.0, 0.0], cov=-1.0), r"init\(cov=...\) must be finite and at least 0, got -1.0"),
    (dict(mean=[0.0, 0.0], cov=[[1.0, 2.0], [2.0, 1.0]]), r"init\(cov=...\) must be positive semidefinite"),
    (dict(mean=np.zeros(1, "float32"), cov=1e300), r"init\(cov=...\) as float32 must be finite"),
    (dict(mean="zero"), "mean must hold numbers"),
]


@pytest.mark.x64
@pytest.mark.parametrize(("given", "match"), INIT)
def test_init_refuses(given, match):
    with pytest.raises(ValueError, match=match):
        KF.init(**given)


def test_init_accepts():
    """A number is a vector of one, whole numbers become floats, a type is kept, a variance spreads."""
    assert KF.init(mean=3).initial.mean.tolist() == [3.0]
    state = KF.init(mean=np.zeros(2, "float32"), cov=4)
    assert {state.initial.mean.dtype, state.initial.root.dtype} == {np.dtype("float32")}
    np.testing.assert_array_equal(state.initial.cov, 4.0 * np.eye(2))
    assert KF.init(params={"w": jnp.zeros((2, 3))}).layout.shapes == ((2, 3),)
    assert KF.init(mean=[1.0, 2.0], cov=0.0).initial.var.tolist() == [0.0, 0.0]  # what is certain may be given


@pytest.mark.parametrize(
    ("name", "prior"),
    [("q", fx.priors.additive_inflation(np.ones(3))), ("rate", fx.priors.ornstein_uhlenbeck([0.9] * 3))],
)
def test_settings_must_fit_the_parameters(name, prior):
    kf = fx.method("LG+C-ACI", model=fx.models.linear(noise=1.0), prior=prior)
    with pytest.raises(
        ValueError, match=rf"\({name}=...\) has shape \(3,\) but the belief has D = 2.* a number or \(2,\)"
    ):
        kf.init(mean=jnp.zeros(2))
    kf = fx.method("LG+C-LSSM", model=fx.models.linear(noise=1.0), prior=fx.priors.linear_dynamics(Q=np.eye(3)))
    with pytest.raises(ValueError, match=r"LSSM\(Q=...\) has shape \(3, 3\) but .* \(2,\) or \(2, 2\)"):
        kf.init(mean=jnp.zeros(2))


STEP = [
    (dict(y=None), "step: y is None; give a number, or NaN where it is missing"),
    (dict(y=[1.0, 2.0]), r"y has shape \(2,\) but the model predicts 1 number for this x; give y of shape \(\)"),
    (dict(mask=1.0), r"mask must hold True and False, got float64; write mask != 0"),
    (dict(mask=[True, False]), r"mask has shape \(2,\) but y has shape \(\)"),
    (dict(dt=-1.0), "dt must be finite and at least 0, got -1.0. It is the length of a time step"),
    (dict(dt=[1.0]), r"dt must be a single value, got shape \(1,\)"),
    (dict(changed=1), "changed must hold True and False, got int64"),
    (dict(x=[1.0, 2.0, 3.0]), r"x has shape \(3,\) but there are D = 2"),
]


@pytest.mark.x64
@pytest.mark.parametrize(("given", "match"), STEP)
def test_step_refuses(given, match):
    with pytest.raises(ValueError, match=match):
        KF.step(**{"state": PLAIN, "x": [1.0, 2.0], "y": 0.0, **given})


SCAN = [
    (dict(keep=["mean", "varr"]), "scan\\(keep='varr'\\): no such field. Did you mean \"var\""),
    (dict(Y=0.0), "scan: Y has no rows"),
    (dict(X=np.ones((2, 2))), "scan: X has 2 rows but Y has 3; row t of each must belong together"),
    (dict(X=np.ones(())), "scan: X has no rows but Y has 3"),
    (dict(dt=1.0), "dt must be one value for each row"),
    (dict(dt=[1.0, 1.0]), "scan: dt has 2 rows but Y has 3"),
    (dict(mask=[True] * 4), "scan: mask has 4 rows"),
    (dict(mask=[True] * 3, complete=True), "a complete stream has no mask"),
]


@pytest.mark.parametrize(("given", "match"), SCAN)
def test_scan_refuses(given, match):
    with pytest.raises(ValueError, match=match):
        KF.scan(PLAIN, **{"X": X, "Y": Y, **given})


@pytest.mark.parametrize(
    ("rows", "dt", "match"),
    [(None, None, "no rows"), (np.ones((0, 2)), None, "no rows"), (X, [1.0], "dt has 1 rows but X_future has 3")],
)
def test_forecast_refuses(rows, dt, match):
    with pytest.raises(ValueError, match=f"forecast: .*{match}"):
        KF.forecast(PLAIN, rows, dt=dt)


HUGE = ["LG+C-ACI(q=1e39)", "LG+C-SP(shrink=0.9, q=1e39)", "NIG(shape=1e39)+C-Static", "NIG(rate=1e39)+C-Static"]
HUGE += ["WoLF-IMQ(c=1e39)+C-Static", "OB(a=1e39)+C-Static", "IW(degrees=1e39)+C-Static", "ST(degrees=1e39)+C-Static"]
HUGE += ["OGD(rate=1e39)+C-Static", "LG+RLCC[2](b=1e39)-PR"]


@pytest.mark.x64
@pytest.mark.parametrize("name", HUGE)
def test_a_setting_that_the_dtype_does_not_hold_is_refused(name):
    """An inflation of 1e39 in float32 was none; other settings gave NaN."""
    method = fx.method(name, model=fx.models.linear(noise=1.0))
    with pytest.raises(ValueError, match=r"is too large for float32, got 1e\+39; give at most 3.4e\+38, or init"):
        method.init(mean=np.zeros(2, "float32"))
    assert method.init(mean=np.zeros(2)).initial.mean.dtype == np.float64


@pytest.mark.x64
def test_a_step_that_the_dtype_does_not_hold_is_refused():
    small = KF.init(mean=np.zeros(2, "float32"), cov=1.0)
    dt, match = np.array([1.0, 1.0, 1e39]), r"\(dt=...\) is too large for float32, got 1e\+39"
    with pytest.raises(ValueError, match=f"scan{match}"):
        KF.scan(small, X, Y, dt=dt)
    with pytest.raises(ValueError, match=f"forecast{match}"):
        KF.forecast(small, X, dt=dt)
    for verb in (KF.step, lambda state, x, y, dt: KF.predict(state, x, dt=dt)):
        with pytest.raises(ValueError, match=match):
            verb(small, X[0], Y[0], dt=1e39)
        verb(PLAIN, X[0], Y[0], dt=1e39)


def test_parts_must_work_together():
    with pytest.raises(ValueError, match=r"Bone\(weighting=...\) got None, which is no Weighting of filtax"):
        fx.Bone(KF.model, KF.auxiliary, KF.prior, KF.posterior, None)
    with pytest.raises(ValueError, match=r"method\(prior=...\) must come from filtax.priors, such as static\(\)"):
        fx.method("LG+C-Static", model=KF.model, prior=0.1)


@pytest.mark.x64
def test_strain_is_warned_of_from_a_tenth_of_what_the_type_resolves():
    """The ratio is of variances: its root is compared with 0.1 / eps, 8.4e5 in float32; tracing cannot look."""
    state = KF.init(mean=jnp.zeros(1, "float32"), cov=1.0)
    strained = lambda ratio: eqx.tree_at(lambda s: s.conditioning_ratio, state, jnp.asarray(ratio**2, "float32"))
    checks.warn_of_conditioning(strained(8.3e5))
    with pytest.warns(fx.ConditioningWarning, match=r"a datum was 8e\+05 times more precise.*float32"):
        checks.warn_of_conditioning(strained(8.5e5))
    jax.jit(lambda: checks.warn_of_conditioning(strained(jnp.asarray(1e9))))()


@pytest.mark.parametrize("verb", ["step", "scan", "predict", "forecast"])
def test_a_state_of_another_size_than_the_prior_is_refused(verb):
    model = fx.models.linear(noise=1.0)
    state = fx.method("LG+C-Static", model=model).init(mean=np.zeros(3), cov=1.0)
    other = fx.method("LG+C-Static", model=model, prior=fx.priors.additive_inflation(np.ones(5)))
    rows = {"step": (np.ones(3), 1.0), "scan": (np.ones((2, 3)), np.ones(2)), "predict": (np.ones(3),)}
    with pytest.raises(ValueError, match=r"shape \(5,\) but the belief has D = 3"):
        getattr(other, verb)(state, *rows.get(verb, (np.ones((2, 3)),)))


def test_a_state_of_another_kind_of_method_is_refused():
    linear = fx.models.linear(noise=1.0)
    plain = fx.method("LG+C-Static", model=linear)
    state = plain.init(mean=jnp.zeros(2), cov=1.0)
    learned = fx.method("NIG+C-Static", model=linear)
    with pytest.raises(ValueError, match=r"holds a SquareRoot belief but NIG.*works on NormalInverseGamma"):
        learned.step(state, jnp.ones(2), 1.0)
    many = fx.method("RL[3]-PR(hazard=0.1)", model=linear)
    with pytest.raises(ValueError, match=r"the state has 1 hypotheses but .* keeps 4"):
        many.predict(state, jnp.ones(2))


@pytest.fixture
def untyped():
    """As users run it: without the check of annotations, which would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.parametrize("key", [0, None, "seed", np.zeros((2, 2), np.uint32), jax.random.split(jax.random.key(0))])
def test_only_a_random_key_draws(key, untyped):
    for drawn in (KF.predict(PLAIN, X[0]), KF.belief(PLAIN)):
        with pytest.raises(ValueError, match=r"sample\(key=...\) must be a single random key, got .*; give jax.random"):
            drawn.sample(key)


def test_every_kind_of_key_draws(untyped):
    drawn = KF.predict(PLAIN, X[0])
    keys = jax.random.split(jax.random.key(0), 3)
    assert float(drawn.sample(jax.random.key(1))) == float(drawn.sample(jax.random.PRNGKey(1)))
    assert jax.vmap(drawn.sample)(keys).shape == (3,)


def returns(text):
    return lambda *_: text


@pytest.mark.parametrize(
    ("model", "prior", "who"),
    [
        (fx.models.nonlinear(returns("text"), noise=1.0), None, "nonlinear: h"),
        (fx.models.linear(noise=returns("text")), None, "noise=...: the function"),
        (fx.models.linear(noise=1.0), fx.priors.linear_dynamics(F=returns("text")), "linear_dynamics: F"),
        (fx.models.linear(noise=1.0), fx.priors.linear_dynamics(Q=returns("text")), "linear_dynamics: Q"),
        (fx.models.linear(noise=1.0), fx.priors.nonlinear_dynamics(returns("text")), "nonlinear_dynamics: f"),
    ],
)
def test_a_function_that_returns_no_numbers_is_named(model, prior, who):
    kf = fx.method("LG+C-Static" if prior is None else "LG+C-LSSM", model=model, **({"prior": prior} if prior else {}))
    state = kf.init(mean=jnp.zeros(2), cov=1.0)
    for verb in (lambda: kf.step(state, X[0], 0.0), lambda: kf.predict(state, X[0])):
        with pytest.raises(ValueError, match=f"{who} returned 'text'; it must return a number or an array of numbers"):
            verb()


@pytest.mark.parametrize("name", ["LG+C-Static", "LG+RL[3]-PR(hazard=0.1)"])
def test_stacked_states_are_mapped_over(name):
    """`belief` answered with that of the first stream."""
    kf = fx.method(name, model=fx.models.linear(noise=0.3))
    start, X, Y = kf.init(mean=jnp.zeros(2)), jnp.ones((4, 3, 2)), jnp.arange(12.0).reshape(4, 3)
    states, _ = jax.vmap(lambda x, y: kf.scan(start, x, y))(X, Y)
    x = jnp.ones(2)
    calls = {"belief": (), "predict": (x,), "forecast": (x[None],), "step": (x, 1.0), "scan": (X[0], Y[0])}
    for verb, rest in calls.items():
        with pytest.raises(
            ValueError, match=rf"{verb}: the state holds 4 states.*jax.vmap\(.*method.{verb}.*\)\(states"
        ):
            getattr(kf, verb)(states, *rest)
    with pytest.raises(ValueError, match=r"online: the state holds 4 states.*give one of them"):
        fx.online(kf, states)
    means = jax.vmap(lambda state: kf.belief(state).mean)(states)
    for i in range(4):
        one = kf.belief(kf.scan(start, X[i], Y[i])[0]).mean
        np.testing.assert_allclose(means[i], one, rtol=1e-5)
    if name.startswith("LG+RL"):  # a mixture is collapsed when it is asked
        for part in ("mean", "var", "cov"):
            with pytest.raises(ValueError, match=rf"{part}: this holds the beliefs of many states.*ask inside"):
                getattr(jax.vmap(kf.belief)(states), part)
