"""LoFi as a method: exact while it has room, composed with trusts and changes, refused where it has no meaning."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx

pytestmark = pytest.mark.x64
models, priors = fx.models, fx.priors
D = 6
rng = np.random.default_rng(4)
X, Y = rng.normal(size=(40, 2, D)), rng.normal(size=(40, 2))
PRIORS = {
    "static": priors.static(),
    "walk": priors.additive_inflation(0.1),
    "relax": priors.ornstein_uhlenbeck(0.9),
    "shrink": priors.shrink_perturb(0.9, 0.1),
}


def run(name, prior, rows=slice(None), model=None):
    method = fx.method(f"{name}+C-{prior.name}", model=model or models.linear(noise=0.3), prior=prior)
    state, info = method.scan(method.init(mean=np.zeros(D), cov=2.0), X[rows], Y[rows])
    return method.belief(state), info


DAY = (("walk", "diagonal"), ("relax", "spherical"))
by_night = lambda case: [] if case in DAY else [pytest.mark.nightly]


@pytest.mark.parametrize(
    ("prior", "form"),
    [pytest.param(p, f, marks=by_night((p, f))) for p in PRIORS for f in ("diagonal", "spherical")],
)
def test_full_rank_is_the_kalman_filter(prior, form):
    """Forty steps at rank D, with cuts that drop nothing: mean, covariance, evidence."""
    spare = 5 if form == "diagonal" else 0
    got, info = run(f"LoFi(rank={D}, spare={spare}, form={form})", PRIORS[prior])
    want, exact = run("LG(form=covariance)", PRIORS[prior])
    np.testing.assert_allclose(got.mean, want.mean, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(got.cov, want.cov, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(info.log_evidence, exact.log_evidence, rtol=1e-10)


@pytest.mark.parametrize("spare", [2, *(pytest.param(spare, marks=pytest.mark.nightly) for spare in (0, 4))])
def test_exact_while_the_data_fit_the_rank(spare):
    """Two data of two outputs in rank 4 are kept in full; and any number before the first cut."""
    got, _ = run(f"LoFi(rank=4, spare={spare})", PRIORS["relax"], slice(0, 2))
    want, _ = run("LG(form=covariance)", PRIORS["relax"], slice(0, 2))
    np.testing.assert_allclose(got.cov, want.cov, rtol=1e-10, atol=1e-12)
    late, _ = run("LoFi(rank=1, spare=12)", PRIORS["walk"], slice(0, 5))
    want, _ = run("LG(form=covariance)", PRIORS["walk"], slice(0, 5))
    np.testing.assert_allclose(late.mean, want.mean, rtol=1e-10, atol=1e-12)


def network(params, x):
    return jnp.tanh(x @ params["inner"]) @ params["outer"]


@pytest.mark.nightly
def test_it_learns_labels_of_a_network_as_the_dense_filter_does():
    params = {"inner": 0.5 * rng.normal(size=(3, 4)), "outer": 0.5 * rng.normal(size=(4, 3))}
    x, y = rng.normal(size=(6, 3)), rng.integers(0, 3, size=6).astype(float)
    found = []
    for name in ("LG", "LoFi(rank=18, spare=3)"):
        method = fx.method(f"{name}+C-Static", model=models.nonlinear(network, likelihood=models.categorical()))
        state, info = method.scan(method.init(params=params, cov=1.0), x, y)
        found.append((method.belief(state).mean, info.log_evidence))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-9)


@pytest.mark.nightly
def test_adaptive_robust_and_scalable_at_once():
    """A line that jumps, with outliers, by an 81-parameter network of rank 5: it stays finite and beats the static."""
    local = np.random.default_rng(0)
    x = local.uniform(-1.0, 1.0, size=(600, 1))
    truth = np.where(np.arange(600)[:, None] % 200 < 100, 2.0 * x, -2.0 * x)[:, 0]
    seen = truth + 0.1 * local.normal(size=600)
    seen[::37] += 30.0
    net = fx.models.networks.mlp((1, 20, 2), activation="tanh")
    h = lambda params, x: net.apply(params, x)[0]
    start = net.init(jax.random.key(0), "float32")
    error = {}
    for name in ("LoFi(rank=5)+C-Static", "WoLF-IMQ(c=2)+LoFi(rank=5)+RL[1]-OUPR(hazard=0.01)"):
        method = fx.method(name, model=models.nonlinear(h, noise=0.05))
        state, info = method.scan(method.init(params=start, cov=0.5), x, seen)
        assert method.name == name
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(state.hypotheses.belief))
        error[name] = np.mean(np.abs(np.asarray(info.mean) - truth)[50:])
    static, adaptive = error.values()
    assert adaptive < 0.6 * static


def test_what_it_cannot_hold_is_refused():
    build = lambda name, **parts: fx.method(name, model=models.linear(noise=1.0), **parts)
    with pytest.raises(ValueError, match=r"rank=3.*D = 2 parameters"):
        build("LoFi(rank=3)+C-Static").init(mean=np.zeros(2))
    with pytest.raises(ValueError, match="correlations"):
        build("LoFi(rank=1)+C-Static").init(mean=np.zeros(2), cov=np.array([[1.0, 0.5], [0.5, 1.0]]))
    with pytest.raises(ValueError, match="one variance for all"):
        build("LoFi(rank=1, form=spherical)+C-Static").init(mean=np.zeros(2), cov=np.array([1.0, 2.0]))
    for prior in (priors.linear_dynamics(F=np.eye(2)), priors.linear_dynamics(Q=np.eye(2))):
        method = build("LoFi(rank=1)+C-LSSM", prior=prior)
        with pytest.raises(ValueError, match=r"is a matrix.*\(D,\)"):
            method.step(method.init(mean=np.zeros(2)), np.ones(2), 1.0)
    uneven = build("LoFi(rank=1, form=spherical)+C-ACI", prior=priors.additive_inflation(np.array([0.1, 0.2])))
    with pytest.raises(ValueError, match="spherical"):
        uneven.step(uneven.init(mean=np.zeros(2)), np.ones(2), 1.0)
