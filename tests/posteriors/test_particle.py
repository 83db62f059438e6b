"""Particle filters against the exact Kalman filter, sums over particles in numpy, and their statistics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx
from filtax.beliefs import Particles
from filtax.beliefs._particles import partners, resample_indices
from filtax.posteriors import Particle

keys = lambda count: jax.random.split(jax.random.key(0), count)
rng = np.random.default_rng(3)
X, Y = rng.normal(size=(6, 2)), 1.5 * rng.normal(size=6)
linear = fx.models.linear(noise=0.5)


def cloud(S=50, D=3, seed=0):
    draw = np.random.default_rng(seed)
    weight = draw.random(S)
    log_weight = jnp.log(jnp.asarray(weight / weight.sum()))
    return Particles.of(jnp.asarray(draw.normal(size=(S, D))), jax.random.key(seed), log_weight)


def update(posterior, belief, model, x, y, mask=None):
    run = jax.jit(lambda belief: posterior.update(belief, model, jnp.asarray(x), jnp.asarray(y), mask, None, None))
    return run(belief)


@pytest.mark.x64
def test_evidence_is_unbiased():
    """The mean of exp(log evidence) over seeds is that of the exact filter, whatever the number of particles."""
    exact = fx.method("LG+C-ACI(q=0.2)", model=linear)
    truth = float(exact.scan(exact.init(mean=jnp.zeros(2), cov=1.0), X, Y)[1].log_evidence.sum())
    method = fx.method("PF(size=100)+C-ACI(q=0.2)", model=linear)

    def run(key):
        start = method.init(mean=jnp.zeros(2), cov=1.0, key=key)
        return method.scan(start, X, Y, keep=("log_evidence",))[1].log_evidence.sum()

    ratio = np.exp(np.asarray(jax.jit(jax.vmap(run))(keys(2000))) - truth)
    assert abs(ratio.mean() - 1.0) < 4.0 * ratio.std() / np.sqrt(2000)
    assert ratio.std() < 1.0


@pytest.mark.x64
@pytest.mark.parametrize(
    "name",
    [
        "PF(size=2000)+C-ACI(q=0.2)",
        *(
            pytest.param(name, marks=pytest.mark.nightly)
            for name in ("APF(size=2000)+C-Static", "PF(size=2000, shrink=0.98)+C-Static")
        ),
    ],
)
def test_moments_are_those_of_the_exact_filter(name):
    exact = fx.method("LG+" + name.split("+")[1], model=linear)
    end, _ = exact.scan(exact.init(mean=jnp.zeros(2), cov=1.0), X, Y)
    want = exact.belief(end)
    method = fx.method(name, model=linear)

    def run(key):
        end, _ = method.scan(method.init(mean=jnp.zeros(2), cov=1.0, key=key), X, Y, keep=("ok",))
        return method.belief(end).mean, method.belief(end).cov

    mean, cov = (np.asarray(part).mean(0) for part in jax.vmap(run)(keys(16)))
    np.testing.assert_allclose(mean, want.mean, atol=0.03)
    np.testing.assert_allclose(cov, want.cov, atol=0.03)
    assert method.name == name


@pytest.mark.x64
def test_weights_and_evidence_by_hand():
    """New weights, evidence and forecast of one step, from scipy's density of each particle."""
    belief, x, y = cloud(), np.array([1.0, -0.5, 0.3]), 0.4
    got = update(Particle(size=50, threshold=0.0), belief, linear, x, [y])
    w, eta = np.exp(belief.log_weight), np.asarray(belief.members) @ x
    density = scipy.stats.norm(eta, np.sqrt(0.5)).pdf(y)
    np.testing.assert_allclose(got.log_evidence, np.log(w @ density), rtol=1e-11)
    np.testing.assert_allclose(np.exp(got.belief.log_weight), w * density / (w @ density), rtol=1e-10)
    np.testing.assert_array_equal(got.belief.members, belief.members)
    np.testing.assert_allclose(got.forecast.mean, w @ eta, rtol=1e-11)
    np.testing.assert_allclose(got.forecast.var, w @ (eta - w @ eta) ** 2 + 0.5, rtol=1e-11)
    m = w @ np.asarray(belief.members)
    P = np.cov(np.asarray(belief.members).T, aweights=w, ddof=0)
    np.testing.assert_allclose(belief.mean, m, rtol=1e-11)
    np.testing.assert_allclose(belief.cov, P, rtol=1e-10)
    np.testing.assert_allclose(belief.var, np.diag(P), rtol=1e-10)
    np.testing.assert_allclose(belief.project_cov(jnp.asarray(x)[None]), [[x @ P @ x]], rtol=1e-10)
    np.testing.assert_allclose(belief.effective, 1.0 / np.sum(w**2), rtol=1e-11)


@pytest.mark.x64
@pytest.mark.parametrize("threshold", [0.2, 1.0])
def test_resampling_below_the_threshold_alone(threshold):
    belief, x, y = cloud(), np.array([1.0, -0.5, 0.3]), 0.4
    weighted = update(Particle(size=50, threshold=0.0), belief, linear, x, [y]).belief
    got = update(Particle(size=50, threshold=threshold), belief, linear, x, [y]).belief
    if float(weighted.effective) >= threshold * 50:
        np.testing.assert_array_equal(got.log_weight, weighted.log_weight)
        return
    np.testing.assert_allclose(got.log_weight, -np.log(50), rtol=1e-12)
    old, new = np.asarray(weighted.members)[:, 0], np.asarray(got.members)[:, 0]
    counts = np.array([(new == value).sum() for value in old])
    assert counts.sum() == 50
    assert np.all(np.abs(counts - 50 * np.exp(weighted.log_weight)) < 1.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_systematic_counts(dtype):
    """Each point comes floor(S w) or ceil(S w) times, S w on average, and never without weight."""
    w = np.random.default_rng(0).dirichlet(np.full(20, 0.3))
    w[[3, 19]] = 0.0
    w /= w.sum()
    log_w = jnp.log(jnp.asarray(w, dtype))
    many = jax.jit(jax.vmap(lambda key: jnp.bincount(resample_indices(key, log_w, 30), length=20)))(keys(4000))
    counts = np.asarray(many)
    assert np.all(counts.sum(1) == 30)
    assert np.all(np.abs(counts - 30 * w) < 1.0 + 1e-4)
    assert np.all(counts[:, [3, 19]] == 0)
    np.testing.assert_allclose(counts.mean(0), 30 * w, atol=4 * 0.5 / np.sqrt(4000))
    order = jax.jit(jax.vmap(lambda key: partners(key, jnp.zeros(5, dtype), 5)))(keys(50))
    assert np.all(np.sort(order, axis=1) == np.arange(5))
    assert len(np.unique(np.asarray(order), axis=0)) > 20


@pytest.mark.x64
def test_kernel_of_liu_and_west_keeps_the_moments():
    belief = cloud()
    centres, root = belief.shrunk(jnp.asarray(0.9))
    w = np.exp(belief.log_weight)
    np.testing.assert_allclose(w @ np.asarray(centres), belief.mean, rtol=1e-11)
    between = np.cov(np.asarray(centres).T, aweights=w, ddof=0)
    np.testing.assert_allclose(between + root @ root.T, belief.cov, rtol=1e-10)
    moved = jax.jit(update_with)(keys(1)[0], belief).members
    assert len(np.unique(np.asarray(moved[:, 0]))) == 50  # no copies


def update_with(key, belief):
    fresh = Particles.of(belief.members, key, belief.log_weight)
    x, y = jnp.array([1.0, -0.5, 0.3]), jnp.array([0.4])
    return Particle(size=50, threshold=1.0, shrink=0.9).update(fresh, linear, x, y, None, None, None).belief


@pytest.mark.x64
def test_auxiliary_weights_correct_the_look_ahead():
    """The target is the kernel-smoothed prior times the likelihood, whatever the look-ahead chose."""
    belief, x, y = cloud(), jnp.array([1.0, -0.5, 0.3]), jnp.array([2.5])

    def run(key, posterior):
        fresh = Particles.of(belief.members, key, belief.log_weight)
        return posterior.update(fresh, linear, x, y, None, None, None).belief.mean

    posterior = Particle(size=50, shrink=0.8, auxiliary=True)
    got = np.asarray(jax.jit(jax.vmap(lambda key: run(key, posterior)))(keys(1000)))
    centres, root = (np.asarray(part) for part in belief.shrunk(jnp.asarray(0.8)))
    draw = np.random.default_rng(1)
    chosen = draw.choice(50, p=np.exp(belief.log_weight) / np.exp(belief.log_weight).sum(), size=400_000)
    points = centres[chosen] + draw.normal(size=(400_000, 3)) @ root.T
    weight = scipy.stats.norm(points @ np.asarray(x), np.sqrt(0.5)).pdf(2.5)
    want = weight @ points / weight.sum()
    np.testing.assert_allclose(got.mean(0), want, atol=0.03)


@pytest.mark.x64
@pytest.mark.parametrize("name", ["PF", "APF"])
def test_impossible_data_keep_the_belief(name):
    method = fx.method(f"{name}(size=10)+C-Static", model=linear)
    state = method.init(mean=jnp.zeros(2, "float32"), cov=1.0, key=jax.random.key(0))
    after, info = method.step(state, np.ones(2), 1e30)
    assert not bool(info.ok)
    assert float(info.log_evidence) == -np.inf
    np.testing.assert_array_equal(after.hypotheses.belief.members, state.hypotheses.belief.members)
    np.testing.assert_array_equal(after.hypotheses.belief.log_weight, state.hypotheses.belief.log_weight)
    assert int(after.refused) == 1


@pytest.mark.x64
def test_moves_of_particles():
    belief, other = cloud(), cloud(seed=9)
    np.testing.assert_allclose(belief.push(jnp.sin, None).members, np.sin(belief.members))
    A, b, k = np.random.default_rng(2).normal(size=(3, 3)), np.arange(3.0), np.array([0.9, 0.5, 0.0])
    np.testing.assert_allclose(
        belief.affine(jnp.asarray(A), jnp.asarray(b), None).members, np.asarray(belief.members) @ A.T + b, rtol=1e-12
    )

    def moved(key):
        fresh = Particles.of(belief.members, key, belief.log_weight)
        wide, mixed = fresh.add(jnp.asarray(0.5)), fresh.mix(other, jnp.asarray(k))
        return (
            wide.mean,
            wide.mean[:, None] * wide.mean[None] + wide.cov,
            mixed.mean,
            mixed.mean[:, None] * mixed.mean[None] + mixed.cov,
        )

    got = [np.asarray(part) for part in jax.jit(jax.vmap(moved))(keys(4000))]
    rest, m = np.sqrt(1 - k * k), np.asarray(belief.mean)
    mixed_mean = k * m + (1 - k) * np.asarray(other.mean)
    mixed_cov = np.outer(k, k) * belief.cov + np.outer(rest, rest) * other.cov
    want = [m, np.outer(m, m) + belief.cov + 0.5 * np.eye(3), mixed_mean, np.outer(mixed_mean, mixed_mean) + mixed_cov]
    for value, expected in zip(got, want, strict=True):
        assert np.all(np.abs(value.mean(0) - expected) < 4.5 * value.std(0) / np.sqrt(4000) + 1e-12)
    np.testing.assert_array_equal(belief.mix(other, jnp.asarray(1.0)).members, belief.members)
    wider = belief.inflate(jnp.asarray(2.5))
    np.testing.assert_allclose(wider.mean, m, rtol=1e-12)
    np.testing.assert_allclose(wider.cov, 2.5 * np.cov(belief.members.T, aweights=np.exp(belief.log_weight), ddof=0))
    np.testing.assert_array_equal(wider.log_weight, belief.log_weight)
    drawn = belief.sample(jax.random.key(0), (20_000,))
    np.testing.assert_allclose(np.asarray(drawn).mean(0), m, atol=0.04)
    pair = jax.tree.map(lambda a, b: jnp.stack([a, b]), belief, other)
    only = pair.moment_match(jnp.array([-jnp.inf, 0.0]))
    assert set(only.members[:, 0].tolist()) <= set(other.members[:, 0].tolist())


@pytest.mark.nightly
def test_copies_are_told():
    """Static parameters without a kernel end as copies of one particle; a certain prior is no collapse."""
    many = np.ones((300, 1)), np.random.default_rng(0).normal(size=300)
    method = fx.method("PF(size=20)+C-Static", model=fx.models.linear(noise=0.01))
    end, _ = method.scan(method.init(mean=jnp.zeros(1), cov=1.0, key=jax.random.key(0)), *many, keep=("ok",))
    with pytest.warns(fx.CollapseWarning, match=r"shrink=0\.98"):
        method.belief(end)
    sure, _ = method.scan(method.init(mean=jnp.zeros(1), cov=0.0, key=jax.random.key(0)), *many, keep=("ok",))
    assert method.belief(sure).mean.item() == 0.0
    moving = fx.method("APF(size=50)+C-Static", model=fx.models.linear(noise=0.01))
    end, _ = moving.scan(moving.init(mean=jnp.zeros(1), cov=1.0, key=jax.random.key(0)), *many, keep=("ok",))
    assert float(moving.belief(end).distinct) > 10


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fx.method("PF(size=0)+C-Static", model=linear), "at least 1"),
        (lambda: fx.method("PF(size=10.5)+C-Static", model=linear), "whole number"),
        (lambda: fx.method("PF(threshold=1.5)+C-Static", model=linear), r"\[0, 1\]"),
        (lambda: fx.method("APF(shrink=2)+C-Static", model=linear), r"\[0, 1\]"),
        (lambda: Particle(size=9, auxiliary=True), "such as 0.98"),
        (
            lambda: fx.method("PF+C-Static", model=fx.models.loss(lambda eta, y: jnp.sum(y - eta))),
            "no distribution of y",
        ),
        (lambda: fx.method("PF+C-Static", model=linear).init(mean=jnp.zeros(1)), "PF draws at random; give key="),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("name", ["PF(size=9)", "APF(size=9)", "OGD"])
def test_what_is_not_believed_leaves_every_bit(name):
    """Trust 0 is no fault; a trust that is no number is one, and is counted."""
    broken = lambda r: jnp.where(jnp.abs(r[0]) > 5.0, jnp.nan, 1.0)
    for trust, ok in ((fx.models.threshold(5.0), True), (broken, False)):
        method = fx.method(f"{name}+C-Static", model=fx.models.robust(linear, trust=trust))
        start = method.init(mean=jnp.zeros(2), cov=1.0, **({} if name == "OGD" else {"key": jax.random.key(0)}))
        state, _ = method.step(start, X[0], Y[0])
        after, info = method.step(state, X[1], 1e4)
        assert (bool(info.ok), float(info.trust), int(after.refused)) == (ok, 0.0, int(not ok))
        for part in ("mean",) if name == "OGD" else ("members", "log_weight"):
            np.testing.assert_array_equal(
                getattr(after.hypotheses.belief, part), getattr(state.hypotheses.belief, part)
            )
