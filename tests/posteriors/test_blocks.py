"""Blocks of beliefs and PULSE against dense numpy: one joint gain, mean-field covariances (identities 29-33, 58)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import filtax as fx
from filtax.beliefs import Blocks, Covariance, Diagonal, SquareRoot
from filtax.posteriors import Variational, blockwise
from oracles import exact_update

pytestmark = pytest.mark.x64
models, priors = fx.models, fx.priors
exact = dict(rtol=1e-10, atol=1e-12)
d, L = 3, 4
rng = np.random.default_rng(3)
ROOTS = rng.normal(size=(d, d)), rng.normal(size=(L, L))
P, Q = (root @ root.T + 0.1 * np.eye(len(root)) for root in ROOTS)
JOINT = scipy.linalg.block_diag(P, Q)
M = rng.normal(size=d + L)
H, y = rng.normal(size=(2, d + L)), rng.normal(size=2)
Z, W = H[:, :d], H[:, d:]
R = np.array([[0.5, 0.2], [0.2, 0.4]])
inverse = np.linalg.inv


def filtered(forms=("root", "covariance"), coupled=True, marginal=False, cov=(P, Q), H=H, **parts):
    split = blockwise(forms, (d, L), coupled=coupled, marginal=marginal)
    method = fx.method("C-Static", model=models.linear(noise=R), posterior=split, **parts)
    state, info = method.step(method.init(mean=M, cov=cov), H, y)
    return method, state, info, method.belief(state)


@pytest.mark.parametrize(
    "forms", [("root", "covariance"), pytest.param(("precision", "root"), marks=pytest.mark.nightly)]
)
def test_one_datum_gives_the_joint_mean_and_mean_field_covariances(forms):
    """Identities 29, 30, 31 and the gains of the theorem as printed, with their d x d and L x L solves."""
    method, _, info, belief = filtered(forms)
    full = exact_update(M, JOINT, H, R, y)
    np.testing.assert_allclose(belief.mean, full.mean, **exact)
    precision = inverse(full.cov)
    np.testing.assert_allclose(inverse(belief.parts[0].cov), precision[:d, :d], **exact)
    np.testing.assert_allclose(inverse(belief.parts[1].cov), precision[d:, d:], **exact)
    assert np.all(np.asarray(belief.cov)[:d, d:] == 0.0)

    e = y - H @ M
    Pz, Pw = inverse(inverse(P) + Z.T @ inverse(R) @ Z), inverse(inverse(Q) + W.T @ inverse(R) @ W)
    Kz, Kw = Pz @ Z.T @ inverse(R), Pw @ W.T @ inverse(R)
    gain_z = np.linalg.solve(np.eye(d) - Kz @ W @ Kw @ Z, Kz @ (np.eye(2) - W @ Kw))
    gain_w = np.linalg.solve(np.eye(L) - Kw @ Z @ Kz @ W, Kw @ (np.eye(2) - Z @ Kz))
    np.testing.assert_allclose(belief.mean, M + np.concatenate([gain_z @ e, gain_w @ e]), **exact)
    left = e - H @ (np.asarray(belief.mean) - M)
    np.testing.assert_allclose(np.asarray(belief.mean)[:d] - M[:d], P @ Z.T @ inverse(R) @ left, **exact)
    np.testing.assert_allclose(np.asarray(belief.mean)[d:] - M[d:], Q @ W.T @ inverse(R) @ left, **exact)

    S = H @ JOINT @ H.T + R
    np.testing.assert_allclose(info.log_evidence, -0.5 * (e @ inverse(S) @ e + np.linalg.slogdet(2 * np.pi * S)[1]))
    np.testing.assert_allclose(method.predict(method.init(mean=M, cov=(P, Q)), H).cov, S, **exact)


def test_blocks_are_overconfident_and_nearest_in_divergence():
    """Identities 32 and 33: below the joint marginals, and every other pair of blocks is further away in KL(q || p)."""
    *_, belief = filtered()
    full = exact_update(M, JOINT, H, R, y)
    for at, part in ((slice(0, d), belief.parts[0]), (slice(d, None), belief.parts[1])):
        assert np.linalg.eigvalsh(full.cov[at, at] - np.asarray(part.cov))[0] > -1e-12
    target = Covariance(jnp.asarray(full.mean), jnp.asarray(full.cov))
    dense = lambda mean, cov: Covariance(jnp.asarray(mean), jnp.asarray(cov))
    least = float(fx.kl(dense(belief.mean, belief.cov), target))
    for seed in range(30):
        draw = np.random.default_rng(seed)
        twist = scipy.linalg.block_diag(*(np.eye(n) + 0.05 * draw.normal(size=(n, n)) for n in (d, L)))
        mean = np.asarray(belief.mean) + 0.05 * draw.normal(size=d + L)
        assert float(fx.kl(dense(mean, twist @ np.asarray(belief.cov) @ twist.T), target)) > least


def test_a_block_that_is_not_seen_leaves_the_other_its_own_filter():
    """Identity 58: Z = 0 is the last-layer filter, W = 0 the subspace filter; a block without parameters likewise."""
    for at, G in ((slice(d, None), np.concatenate([0 * Z, W], 1)), (slice(0, d), np.concatenate([Z, 0 * W], 1))):
        *_, belief = filtered(H=G)
        alone = exact_update(M[at], JOINT[at, at], G[:, at], R, y)
        np.testing.assert_allclose(np.asarray(belief.mean)[at], alone.mean, **exact)
        np.testing.assert_allclose(np.asarray(belief.cov)[at, at], alone.cov, **exact)
    empty = fx.method("C-ACI(q=0.1)", model=models.linear(noise=R), posterior=blockwise(["root", "root"], (0, L)))
    walk = priors.by_block([priors.static(), priors.additive_inflation(0.1)])
    also = fx.method("C-ACI", model=models.linear(noise=R), posterior=empty.posterior, prior=walk)
    alone = exact_update(M[d:], Q + 0.1 * np.eye(L), W, R, y)
    for method in (empty, also):
        belief = method.belief(method.step(method.init(mean=M[d:], cov=(1.0, Q)), W, y)[0])
        np.testing.assert_allclose(belief.mean, alone.mean, **exact)
        np.testing.assert_allclose(belief.cov, alone.cov, **exact)


@pytest.mark.parametrize("forms", [("root", "covariance"), ("precision", "diagonal")])
def test_marginal_blocks_have_the_covariances_of_the_joint_posterior(forms):
    """A diagonal form keeps the diagonal of what a block sees that takes the others for noise."""
    cov = (P, Q) if forms[1] != "diagonal" else (P, np.diag(Q))
    *_, belief = filtered(forms, cov=cov, marginal=True)
    full = exact_update(M, scipy.linalg.block_diag(P, Q if forms[1] != "diagonal" else np.diag(np.diag(Q))), H, R, y)
    np.testing.assert_allclose(belief.mean, full.mean, **exact)
    np.testing.assert_allclose(belief.parts[0].cov, full.cov[:d, :d], **exact)
    want = full.cov[d:, d:]
    if forms[1] == "diagonal":
        want = np.diag(1.0 / inverse(want).diagonal())
    np.testing.assert_allclose(belief.parts[1].cov, want, **exact)


def test_uncoupled_blocks_each_take_the_whole_residual():
    """PULSE as first published: two filters side by side, each blind to what the other does not know."""
    *_, belief = filtered(coupled=False)
    e = y - H @ M
    for at, G, C in ((slice(0, d), Z, P), (slice(d, None), W, Q)):
        alone = exact_update(M[at], C, G, R, G @ M[at] + e)
        np.testing.assert_allclose(np.asarray(belief.mean)[at], alone.mean, **exact)
        np.testing.assert_allclose(np.asarray(belief.cov)[at, at], alone.cov, **exact)


def test_each_block_has_its_prior_variance_and_its_drift():
    F, noise = np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.1], [0.0, 0.0, 0.9]]), 0.2 * np.eye(d)
    walk = priors.by_block([priors.linear_dynamics(F, Q=noise), priors.ornstein_uhlenbeck(0.8)])
    split = blockwise(["root", "covariance"], (d, L))
    method = fx.method("C-LSSM", model=models.linear(noise=R), posterior=split, prior=walk)
    state = method.init(mean=M, cov=(0.3, Q))
    gone, _ = method.step(state, H, np.full(2, np.nan))
    first, last = method.belief(gone).parts
    np.testing.assert_allclose(first.mean, F @ M[:d], **exact)
    np.testing.assert_allclose(first.cov, 0.3 * F @ F.T + noise, **exact)
    np.testing.assert_allclose(last.cov, Q, **exact)  # it relaxes to where it is
    assert method.name == "PULSE(hidden=root, last=covariance)+C-LSSM"


def test_algebra_is_that_of_the_parts():
    pair = Blocks(
        (SquareRoot.start(jnp.asarray(M[:d]), jnp.asarray(P)), Diagonal.start(jnp.asarray(M[d:]), jnp.ones(L)))
    )
    dense = scipy.linalg.block_diag(P, np.eye(L))
    k, q, F = rng.uniform(size=d + L), rng.uniform(size=d + L), rng.normal(size=d + L)
    start = Blocks((SquareRoot.start(jnp.zeros(d), jnp.ones(d)), Diagonal.start(jnp.zeros(L), jnp.ones(L))))
    np.testing.assert_allclose(pair.add(jnp.asarray(q)).cov, dense + np.diag(q), **exact)
    np.testing.assert_allclose(pair.inflate(jnp.asarray(2.0)).cov, 2 * dense, **exact)
    moved = pair.affine(jnp.asarray(F), jnp.asarray(q), jnp.asarray(0.5))
    np.testing.assert_allclose(moved.mean, F * M + q, **exact)
    np.testing.assert_allclose(moved.cov, np.diag(F) @ dense @ np.diag(F) + 0.25 * np.eye(d + L), **exact)
    mixed = pair.mix(start, jnp.asarray(k))
    np.testing.assert_allclose(mixed.mean, k * M, **exact)
    np.testing.assert_allclose(mixed.cov, np.diag(k) @ dense @ np.diag(k) + np.diag(1 - k**2), **exact)
    np.testing.assert_allclose(pair.at(jnp.asarray(q)).mean, q, **exact)
    both = jax.tree.map(lambda *rows: jnp.stack(rows), pair, start)
    met = fx.beliefs.moment_match(both, jnp.log(jnp.array([0.25, 0.75])))
    gap = M[:d]
    np.testing.assert_allclose(met.mean, 0.25 * M, **exact)
    want = 0.25 * P + 0.75 * np.eye(d) + 0.25 * 0.75 * np.outer(gap, gap)
    np.testing.assert_allclose(met.parts[0].cov, want, **exact)
    drawn = np.asarray(pair.sample(jax.random.key(0), (20000,)))
    np.testing.assert_allclose(drawn.mean(0), M, atol=5 * np.sqrt(np.diag(dense).max() / 20000))
    error = 5 * np.sqrt(2 / 20000) * np.sqrt(np.outer(np.diag(dense), np.diag(dense)))
    assert np.all(np.abs(np.cov(drawn.T) - dense) < error)
    with pytest.raises(ValueError, match=r"F is a matrix over all.*by_block"):
        pair.affine(jnp.eye(d + L), None, None)


def test_failure_is_a_flag_and_leaves_all_blocks():
    pair = filtered()[-1]
    done = pair.condition(jnp.full((1, d + L), 1e200), jnp.eye(1), jnp.ones(1))
    assert not bool(done.ok)
    for old, new in zip(jax.tree.leaves(pair), jax.tree.leaves(done.belief), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.nightly
@pytest.mark.parametrize("inner", [Variational(), fx.method("OB+C-Static", model=models.linear(1.0)).posterior])
def test_other_posteriors_work_on_blocks(inner):
    """On a linear-Gaussian model RVGA makes the update of PULSE itself; OB, far from an outlier, nearly so."""
    split = blockwise(["root", "root"], (d, L), inner=inner)
    method = fx.method("C-Static", model=models.linear(noise=R), posterior=split)
    state, info = method.step(method.init(mean=M, cov=(P, Q)), H, H @ M + 0.1)
    full = exact_update(M, JOINT, H, R, H @ M + 0.1)
    assert bool(info.ok)
    near = exact if isinstance(inner, Variational) else dict(rtol=0.1, atol=0.05)
    np.testing.assert_allclose(method.belief(state).mean, full.mean, **near)


NET = models.mlp((3, 4, 2), "tanh")
PARAMS = NET.init(jax.random.key(1))
BASIS = models.random_directions(16, 2, key=jax.random.key(2))


def test_pulse_of_a_network_is_the_joint_filter_of_its_coordinates():
    """By name, on labels: natural-parameter form with R = diag(p) - ppᵀ, in numpy, over three steps."""
    plain = models.nonlinear(NET.apply, likelihood=models.categorical())
    inside = models.subspace(plain, BASIS, PARAMS, last=True)
    pulse = fx.method("PULSE(last=covariance)+C-ACI(q=0.01)", model=inside)
    assert pulse.name == "PULSE(last=covariance)+C-ACI(q=0.01)"
    state = pulse.init(cov=(0.5, 2.0))
    m, parts = np.asarray(inside.predictor.begin()), [0.5 * np.eye(2), 2.0 * np.eye(10)]
    np.testing.assert_array_equal(m[:2], 0.0)
    for x, label in zip(rng.normal(size=(3, 3)), [0, 1, 1], strict=True):
        parts = [C + 0.01 * np.eye(len(C)) for C in parts]
        at = inside.linearise(jnp.asarray(m), jnp.asarray(x))
        J, logits = np.asarray(at.jacobian), np.asarray(at.eta)
        p = np.exp(logits) / np.exp(logits).sum()
        V = np.diag(p) - np.outer(p, p)
        joint = inverse(inverse(scipy.linalg.block_diag(*parts)) + J.T @ V @ J)
        m = m + joint @ J.T @ (np.eye(2)[label] - p)
        parts = [inverse(inverse(C) + G.T @ V @ G) for C, G in zip(parts, (J[:, :2], J[:, 2:]), strict=True)]
        state, _ = pulse.step(state, x, label)
    belief = pulse.belief(state)
    np.testing.assert_allclose(belief.mean, m, **exact)
    np.testing.assert_allclose(belief.cov, scipy.linalg.block_diag(*parts), **exact)


def test_pulse_without_directions_is_the_last_layer():
    plain = models.nonlinear(NET.apply, noise=R)
    none = models.subspace(plain, np.zeros((16, 0)), PARAMS, last=True)
    pulse = fx.method("PULSE+C-ACI(q=0.01)", model=none)
    alone = fx.method("LG+C-ACI(q=0.01)", model=models.last_layer(plain, PARAMS))
    X, Y = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    left, a = pulse.scan(pulse.init(cov=0.3), X, Y, keep=("log_evidence",))
    right, b = alone.scan(alone.init(cov=0.3), X, Y, keep=("log_evidence",))
    np.testing.assert_allclose(pulse.belief(left).mean, alone.belief(right).mean, **exact)
    np.testing.assert_allclose(pulse.belief(left).cov, alone.belief(right).cov, **exact)
    np.testing.assert_allclose(a.log_evidence, b.log_evidence, **exact)


def test_what_does_not_fit_is_refused():
    plain, linear = models.nonlinear(NET.apply, noise=R), models.linear(noise=R)
    with pytest.raises(ValueError, match=r"no blocks of parameters.*last=True"):
        fx.method("PULSE+C-Static", model=plain)
    with pytest.raises(ValueError, match="one block of parameters"):
        fx.method("PULSE+C-Static", model=models.subspace(plain, np.ones((26, 1)), PARAMS))
    with pytest.raises(ValueError, match="form 'rooot'"):
        fx.method("PULSE(hidden=rooot)+C-Static", model=models.subspace(plain, BASIS, PARAMS, last=True))
    with pytest.raises(ValueError, match="do not divide 5"):
        fx.method("C-Static", model=linear, posterior=blockwise(["root"], (3,))).init(mean=np.zeros(5))
    with pytest.raises(ValueError, match="correlations between blocks"):
        filtered(cov=np.eye(d + L) + 0.1)
    with pytest.raises(ValueError, match="1 covariances but there are 2 blocks"):
        filtered(cov=(1.0,))
    with pytest.raises(ValueError, match=r"\(2,\) for a block of 3"):
        filtered(cov=(np.ones(2), 1.0))
    with pytest.raises(ValueError, match="precision"):
        filtered(forms=("precision", "root"), cov=(0.0, 1.0))
    with pytest.raises(ValueError, match="EnKF holds no Gaussian"):
        blockwise(["root"], (3,), inner=fx.method("EnKF+C-Static", model=linear).posterior)
    one = priors.by_block([priors.static()])
    with pytest.raises(ValueError, match="by_block holds 1 dynamics but the belief has 2 blocks"):
        filtered(prior=one)
    with pytest.raises(ValueError, match=r"ACI\(q=...\) has shape \(4,\).*D = 3"):
        filtered(prior=priors.by_block([priors.additive_inflation(np.ones(4)), priors.static()]))
    with pytest.raises(ValueError, match="no `blockwise`"):
        fx.method("LG+C-ACI", model=linear, prior=one)
    with pytest.raises(ValueError, match="for each block"):
        priors.by_block([])
