"""PULSE with a rank, hidden layers of low rank and all of the last one, against dense numpy (errata E33, E34, E36)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.stats

import filtax as fx
from filtax.beliefs import LowRank
from filtax.posteriors import LowRankForm
from oracles import log_normal

pytestmark = pytest.mark.x64
models, priors = fx.models, fx.priors
inverse = np.linalg.inv
exact = dict(rtol=1e-10, atol=1e-12)
T, H, L = 5, 16, 10  # hidden parameters, those of the last layer; two outputs: ten whitened rows in all
rng = np.random.default_rng(5)
R = np.array([[0.5, 0.2], [0.2, 0.4]])
X, Y = rng.normal(size=(T, 3)), rng.normal(size=(T, 2))
PARAMS = {  # of which a flat vector has the last layer first
    "head": {"bias": 0.5 * rng.normal(size=2), "weight": 0.5 * rng.normal(size=(4, 2))},
    "inner": {"bias": 0.5 * rng.normal(size=4), "weight": 0.5 * rng.normal(size=(3, 4))},
}


def network(params, x):
    hidden = jnp.tanh(x @ params["inner"]["weight"] + params["inner"]["bias"])
    return hidden @ params["head"]["weight"] + params["head"]["bias"]


PLAIN = models.nonlinear(network, noise=R)
WHOLE = models.subspace(PLAIN, None, PARAMS, last="head")


class Told(NamedTuple):
    """What the oracle ends with, and what it said of each datum."""

    hidden: np.ndarray
    last: np.ndarray
    P: np.ndarray
    Q: np.ndarray
    log_evidence: list
    S: list


def jacobians(hidden, last, x):
    """The network and its derivatives by the chain rule, written out: parameters are bias, then weight by rows."""
    a = np.tanh(x @ hidden[4:].reshape(3, 4) + hidden[:4])
    W = last[2:].reshape(4, 2)
    inner = (1.0 - a**2) * W.T  # of the outputs by what the tanh is of, (2, 4)
    J_h = np.concatenate([inner, (x[None, :, None] * inner[:, None, :]).reshape(2, 12)], axis=1)
    J_l = np.concatenate([np.eye(2), np.kron(a, np.eye(2))], axis=1)
    return a @ W + last[:2], J_h, J_l


def beginning():
    """Hidden parameters and the last layer before any datum."""
    return [np.concatenate([PARAMS[layer][k].ravel() for k in ("bias", "weight")]) for layer in ("inner", "head")]


def dense(P, Q, q=(0.0, 0.0), rank=None, spherical=False, w=1.0, marginal=False):
    """Two dense blocks, moved by the gain of both together, uncorrelated after each datum; with a rank, cut by SVD.

    What a datum tells of a block is told with all others known, or `marginal`, with the others as noise.
    """
    R_w = R / w**2
    hidden, last = beginning()
    upsilon, factor = inverse(P).diagonal(), np.zeros((H, 0))
    said = [], []
    for x, y in zip(X, Y, strict=True):
        P, Q = P + q[0] * np.eye(H), Q + q[1] * np.eye(L)
        eta, J_h, J_l = jacobians(hidden, last, x)
        spread = J_h @ P @ J_h.T + J_l @ Q @ J_l.T
        said[0].append(log_normal(y - eta, spread + R))
        said[1].append(spread + R)
        left = np.linalg.solve(spread + R_w, y - eta)
        hidden, last = hidden + P @ J_h.T @ left, last + Q @ J_l.T @ left
        joint, J = scipy.linalg.block_diag(P, Q), np.concatenate([J_h, J_l], axis=1)
        rows = np.linalg.cholesky(inverse(R_w + J_l @ Q @ J_l.T if marginal else R_w)).T @ J_h
        if marginal:  # all of the joint posterior, of which the correlations between the blocks are dropped
            after = joint - joint @ J.T @ np.linalg.solve(spread + R_w, J @ joint)
            P, Q = after[:H, :H], after[H:, H:]
        else:
            after = inverse(joint) + J.T @ inverse(R_w) @ J
            P, Q = inverse(after[:H, :H]), inverse(after[H:, H:])
        if rank is None:
            continue
        wide = np.concatenate([factor, rows.T], axis=1)
        u, s, _ = np.linalg.svd(wide, full_matrices=False)
        factor = u[:, :rank] * s[:rank]
        lost = (wide**2).sum(1) - (factor**2).sum(1)
        upsilon = upsilon + (lost.mean() if spherical else lost)
        P = inverse(np.diag(upsilon) + factor @ factor.T)
    return Told(hidden, last, P, Q, *said)


def run(name, cov=(0.7, 2.0), **parts):
    method = fx.method(name, model=WHOLE, **parts)
    state, infos = method.scan(method.init(cov=cov), X, Y)
    return method, state, infos


def agrees(run, want):
    method, state, infos = run
    belief = method.belief(state)
    assert isinstance(belief.parts[0], LowRank)
    np.testing.assert_allclose(belief.mean, np.concatenate([want.hidden, want.last]), **exact)
    np.testing.assert_allclose(belief.parts[0].cov, want.P, **exact)
    np.testing.assert_allclose(belief.parts[1].cov, want.Q, **exact)
    np.testing.assert_allclose(infos.log_evidence, want.log_evidence, **exact)
    np.testing.assert_allclose(infos.var, [np.diag(S) for S in want.S], **exact)


by_night = lambda *values: pytest.param(*values, marks=pytest.mark.nightly)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("PULSE(rank=10)+C-ACI(q=0.03)", dict(q=(0.03, 0.03))),
        ("PULSE(rank=10, spare=0, hidden=spherical)+C-Static", {}),
        ("WoLF-Tempered(w=0.6)+PULSE(rank=10, spare=3)+C-Static", dict(w=0.6)),
        ("PULSE(rank=10, spare=4, marginal=True)+C-ACI(q=0.03)", dict(q=(0.03, 0.03), marginal=True)),
        by_night("PULSE(rank=10, hidden=spherical, marginal=True)+C-Static", dict(marginal=True)),
        by_night("WoLF-Tempered(w=0.6)+PULSE(rank=10, marginal=True)+C-Static", dict(w=0.6, marginal=True)),
        by_night("PULSE(rank=10, spare=0)+C-Static", {}),
        by_night("PULSE(rank=1, spare=12, last=covariance)+C-Static", {}),
        by_night("PULSE(rank=10, spare=2, hidden=spherical)+C-ACI(q=0.03)", dict(q=(0.03, 0.03))),
    ],
)
def test_with_room_for_all_data_it_is_the_joint_filter_of_two_dense_blocks(name, settings):
    """Mean, both covariances, evidence and forecast, over five data; the last layer lies first among the parameters."""
    agrees(run(name), dense(0.7 * np.eye(H), 2.0 * np.eye(L), **settings))


@pytest.mark.parametrize(
    ("form", "marginal"), [("spherical", True), by_night("diagonal", False), by_night("diagonal", True)]
)
def test_a_cut_drops_what_a_singular_value_decomposition_drops(form, marginal):
    """Rank 3 of ten rows, cut after each datum; the joint gain sees what is left."""
    want = dense(0.7 * np.eye(H), 2.0 * np.eye(L), rank=3, spherical=form == "spherical", marginal=marginal)
    agrees(run(f"PULSE(rank=3, spare=0, hidden={form}, marginal={marginal})+C-Static"), want)


def test_forecast_has_the_spread_of_both_blocks():
    """S = J_h P J_hᵀ + J_l Q J_lᵀ + R, all of it, before a datum and after five."""
    method, state, _ = run("PULSE(rank=10)+C-Static")
    told = dense(0.7 * np.eye(H), 2.0 * np.eye(L))
    np.testing.assert_allclose(method.predict(method.init(cov=(0.7, 2.0)), X[0]).cov, told.S[0], **exact)
    eta, J_h, J_l = jacobians(told.hidden, told.last, X[1])
    forecast = method.predict(state, X[1])
    np.testing.assert_allclose(forecast.mean, eta, **exact)
    np.testing.assert_allclose(forecast.cov, J_h @ told.P @ J_h.T + J_l @ told.Q @ J_l.T + R, **exact)


def test_each_block_has_its_prior_covariance_and_its_noise():
    """Variances for the hidden parameters, a matrix for the last layer, a walk for each."""
    first, root = rng.uniform(0.2, 1.0, size=H), rng.normal(size=(L, L))
    Q = root @ root.T + np.eye(L)
    walk = priors.by_block([priors.additive_inflation(0.02), priors.additive_inflation(0.3)])
    agrees(run("PULSE(rank=10)+C-ACI", (first, Q), prior=walk), dense(np.diag(first), Q, (0.02, 0.3)))


def test_samples_are_networks_of_the_belief():
    method, state, _ = run("PULSE(rank=10)+C-Static")
    told = dense(0.7 * np.eye(H), 2.0 * np.eye(L))
    cov, count = scipy.linalg.block_diag(told.P, told.Q), 20000
    drawn = np.asarray(method.belief(state).sample(jax.random.key(0), (count,)))
    mean = np.concatenate([told.hidden, told.last])
    assert np.all(np.abs(drawn.mean(0) - mean) < 5 * np.sqrt(np.diag(cov) / count))
    error = 5 * np.sqrt((np.outer(np.diag(cov), np.diag(cov)) + cov**2) / count)
    assert np.all(np.abs(np.cov(drawn.T) - cov) < error)
    one = WHOLE.predictor.lift(jnp.asarray(drawn[0]))
    np.testing.assert_array_equal(one["head"]["bias"], drawn[0][H : H + 2])
    np.testing.assert_array_equal(one["inner"]["weight"].ravel(), drawn[0][4:H])


def test_thompson_sampling_chooses_with_it():
    """Two outputs as two arms: the probability of a choice is that of the better one under what both blocks spread."""
    method = fx.method("PULSE(rank=10)+C-Static", model=WHOLE)
    build = lambda policy: fx.bandits.Bandit(["a", "b"], method, policy, shared=True, cov=(0.7, 2.0))
    bandit = build(fx.bandits.thompson(draw="linearised"))
    hidden, last = beginning()
    eta, J_h, J_l = jacobians(hidden, last, X[0])
    V = 0.7 * J_h @ J_h.T + 2.0 * J_l @ J_l.T
    better = scipy.stats.norm.cdf((eta[0] - eta[1]) / np.sqrt(V[0, 0] + V[1, 1] - 2.0 * V[0, 1]))
    choice = bandit.pull(X[0], key=jax.random.key(0))
    np.testing.assert_allclose(choice.probability, better if choice.arm == "a" else 1.0 - better, rtol=1e-6)
    assert bandit.update(choice.id, 1.0) == "learned"
    assert 0.0 < build("ts").pull(X[0], key=jax.random.key(0)).probability < 1.0  # draws of the parameters themselves


@pytest.mark.parametrize(
    "name",
    [
        "WoLF-IMQ(c=2.0)+PULSE(rank=3)+C-OU(rate=0.95)",
        "PULSE(rank=3, hidden=spherical)+RL[3]-PR(hazard=0.1)",
        by_night("WoLF-MD(c=3.0)+PULSE(rank=3, spare=2, last=covariance)+RL[1]-OUPR(hazard=0.1)"),
        by_night("PULSE(rank=2)+CPL[2]-MCI(hazard=0.1, beta=0.4)"),
        by_night("PULSE(rank=2, coupled=False, iterations=2)+C-SP(shrink=0.9, q=0.01)"),
        by_night("PULSE(rank=0)+CPP-OU"),
    ],
)
def test_it_goes_with_trusts_and_changes_by_name(name):
    method, state, infos = run(name)
    assert method.name == name
    assert bool(np.all(infos.ok))
    assert np.all(np.isfinite(infos.log_evidence))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(state.hypotheses.belief))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("rank=-1", r"PULSE\(rank=...\) must be a whole number of at least 0, got -1\. .*: give 10"),
        ("rank=2.5", r"whole number of at least 0, got 2\.5"),
        ("rank=17", r"PULSE\(rank=17\) is more than the D = 16 parameters of the block; give at most 16"),
        ("rank=3, spare=-1", r"PULSE\(spare=...\) must be .* at least 0, got -1\. .*: leave it out"),
        ("spare=3", r"PULSE\(spare=3\) goes with a rank; give rank= too, or leave it out"),
        ("rank=3, hidden=root", r"PULSE\(hidden='root'\) does not go with a rank; use diagonal or spherical, or leave"),
        ("hidden=spherical", r"PULSE\(hidden=spherical\) goes with a rank; give rank= too, or use hidden=diagonal"),
        ("rank=3, last=spherical", r"form 'spherical' must be one of auto, root"),
        ("rank=3, marginal=yes", r"PULSE\(marginal=...\) must be True or False, got 'yes'"),
        ("coupled=False, marginal=True", r"do not see one another; leave one of the two out"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        fx.method(f"PULSE({settings})+C-Static", model=WHOLE)


def test_what_it_cannot_hold_is_refused():
    method = fx.method("PULSE(rank=3, hidden=spherical)+C-Static", model=WHOLE)
    with pytest.raises(ValueError, match=r"form=spherical must be one variance"):
        method.init(cov=(np.arange(1.0, H + 1.0), 1.0))
    with pytest.raises(ValueError, match="has correlations, which it cannot hold"):
        fx.method("PULSE(rank=3)+C-Static", model=WHOLE).init(cov=(np.eye(H) + 0.1, 1.0))
    narrow = models.subspace(PLAIN, None, jax.tree.map(lambda leaf: leaf.astype("float32"), PARAMS), "head")
    with pytest.raises(ValueError, match=r"init\(cov=...\) as float32 must be finite"):
        fx.method("PULSE(rank=3)+C-Static", model=narrow).init(cov=(1e300, 1.0))
    with pytest.raises(ValueError, match=r"a LowRank belief cannot move that way \(no `moment_match`\); use PR\."):
        fx.method("PULSE(rank=3)+RL[2]-MMPR(hazard=0.1)", model=WHOLE)
    with pytest.raises(ValueError, match=r"no blocks of parameters.*subspace\(model, None, params, last=True\)"):
        fx.method("PULSE(rank=3)+C-Static", model=PLAIN)
    with pytest.raises(ValueError, match=r"LowRankForm\(form='root'\) must be diagonal or spherical"):
        LowRankForm(3, form="root")


def shapes(jaxpr):
    """Sizes of all that a program computes, in its loops and branches too."""
    for eqn in jaxpr.eqns:
        yield from (var.aval.size for var in eqn.outvars)
        for value in eqn.params.values():
            for one in value if isinstance(value, list | tuple) else [value]:
                inner = getattr(one, "jaxpr", one)
                if hasattr(inner, "eqns"):
                    yield from shapes(inner)


def test_nothing_larger_than_the_factor_is_formed():
    """A network of 79,510 parameters: D x D would be 3 x 10⁹ numbers, rank and spare columns are 2.4 x 10⁶."""
    net = models.mlp((784, 100, 10))
    params = jax.tree.map(jnp.zeros_like, net.init(jax.random.key(0), "float32"))
    model = models.subspace(models.nonlinear(net.apply, likelihood=models.categorical()), None, params, last=True)
    method = fx.method("PULSE(rank=10)+C-ACI(q=0.0001)", model=model)
    many = 30 * model.predictor.sizes[0]
    last = jnp.eye(1010, dtype="float32")
    assert max(shapes(jax.make_jaxpr(lambda last: method.init(cov=(0.1, last)))(last).jaxpr)) == many
    state = method.init(cov=(0.1, 1.0))
    step = jax.make_jaxpr(lambda state, x: method.step(state, x, 1.0))(state, np.ones(784, "float32"))
    assert max(shapes(step.jaxpr)) == many
