"""Gates, responsibilities, drawn and diverse survivors: each against a plain statement of it."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import filtax as fx
from filtax.auxiliary import experts, map_path
from filtax.auxiliary._experts import ExpertValue
from filtax.weighting import diverse, gated, responsibilities, sampled

pytestmark = pytest.mark.x64
rng = np.random.default_rng(4)
model = fx.models.linear(noise=0.5)
LEVELS, TURN = np.array([-1.0, 0.5, 2.0]), np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])
Y = LEVELS[[0, 0, 2, 2, 1, 0, 2]] + 0.7 * rng.normal(size=7)
ONES = np.ones((7, 1))
SCORES = scipy.stats.norm(LEVELS, np.sqrt(0.5)).logpdf(Y[:, None])  # (T, E)
known = fx.priors.by_expert([fx.priors.linear_dynamics(F=0.0, b=np.array([m]), Q=0.0) for m in LEVELS])


def hypotheses(weighting=None, **settings):
    """Experts whose parameter is known: a Gaussian hidden Markov model."""
    return fx.method("ME[3]-LSSM", model=model, auxiliary=experts(3, **settings), prior=known, weighting=weighting)


def run(bone, keep=("log_evidence", "log_weight")):
    return bone.scan(bone.init(mean=jnp.zeros(1), cov=1.0), ONES, Y, keep=keep)


@pytest.mark.parametrize("merge", ["imm", "none"])
def test_state_posterior_and_map_path_of_a_hidden_markov_model(merge):
    """Against the enumeration of all 3^7 paths: evidence, filtered posterior of the last state, best path."""
    start = np.array([0.5, 0.3, 0.2])
    bone = hypotheses(transition=TURN, merge=merge, prior=start)
    _, infos = run(bone)
    paths = np.array(list(product(range(3), repeat=7)))
    joint = np.log((start @ TURN)[paths[:, 0]]) + SCORES[np.arange(7), paths].sum(1)
    joint += np.log(TURN[paths[:, :-1], paths[:, 1:]]).sum(1)
    np.testing.assert_allclose(infos.log_evidence.sum(), scipy.special.logsumexp(joint), rtol=1e-10)
    posterior = np.bincount(paths[:, -1], np.exp(joint - scipy.special.logsumexp(joint)))
    np.testing.assert_allclose(np.exp(infos.log_weight[-1]), posterior, atol=1e-11)
    assert map_path(bone.auxiliary, infos.log_weight).tolist() == paths[np.argmax(joint)].tolist()


def test_a_path_needs_the_weights_of_all_experts():
    for weight in (np.zeros((4, 2)), np.zeros(3), np.zeros((0, 3))):
        with pytest.raises(ValueError, match=r"there are 3 experts; give the \(T, 3\) array"):
            map_path(experts(3), weight)
    with pytest.raises(ValueError, match="there are 0 experts"):
        map_path(fx.auxiliary.run_length(0.1, keep=2), np.zeros((4, 3)))
    runs = fx.method("RL[inf]-PR(hazard=0.1)", model=model)
    with pytest.raises(ValueError, match=r"RL\[inf\] has more hypotheses at every row; give RL\[K\]"):
        run(runs)


def test_a_gate_climbs_its_gain():
    """Two steps at each datum of the gradient of log sum_k softmax(w u)_k p_k, in units of |u|²; by differences."""
    _, infos = run(hypotheses(weighting=gated(0.3, steps=2)))
    gain = lambda w, u, score: scipy.special.logsumexp(scipy.special.log_softmax(w.reshape(3, 2) @ u) + score)
    w, weight = np.zeros(6), np.full(3, 1 / 3)
    for t in range(7):
        np.testing.assert_allclose(infos.log_evidence[t], np.log(weight @ np.exp(SCORES[t])), rtol=1e-8)
        u = np.array([1.0, Y[t]])
        for _ in range(2):
            slope = [(gain(w + d, u, SCORES[t]) - gain(w - d, u, SCORES[t])) / 2e-6 for d in 1e-6 * np.eye(6)]
            w = w + 0.3 * np.array(slope) / (u @ u)
        weight = scipy.special.softmax(w.reshape(3, 2) @ u)
        np.testing.assert_allclose(np.exp(infos.log_weight[t]), weight, rtol=1e-7)


@pytest.mark.parametrize("huge", [1e30, 1.5e38, -3.4e38])
def test_a_gate_survives_what_is_huge_and_keeps_what_is_missing(huge):
    bone = hypotheses(weighting=gated(0.3))
    state = bone.init(mean=jnp.zeros(1, "float32"), cov=1.0)
    end, infos = bone.scan(state, ONES[:4], np.array([0.5, huge, np.nan, 2.0], "float32"), keep=("log_weight",))
    weight = np.exp(infos.log_weight)
    np.testing.assert_allclose(weight.sum(1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(weight[1], weight[2])
    assert np.isfinite(end.hypotheses.aux.gate).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("traced", [True, False])
def test_a_gate_learns_alike_from_data_of_every_size(dtype, traced):
    """One step in units of |u|² makes the logits rate * pull, whatever |u| is, until the gate is too small a number."""
    rate, scores = 0.3, np.array([-1.0, -2.0])
    pull = scipy.special.softmax(scores) - 0.5
    want = scipy.special.softmax(rate * pull)
    limits = np.finfo(dtype)
    sizes = np.exp2(np.linspace(0.0, limits.maxexp - 10.0, 30)).astype(dtype)

    def weigh(size):
        aux = ExpertValue(jnp.arange(2), jnp.zeros((2, 3), dtype))
        y, start = jnp.stack([size, -0.5 * size]), jnp.log(jnp.full(2, 0.5, dtype))
        return gated(rate).update_gate(aux, start, jnp.asarray(scores, dtype), y, jnp.ones(2, bool))[1]

    one = jax.jit(weigh) if traced else weigh  # of one datum: XLA orders divisions otherwise for many
    found = np.exp([one(jnp.asarray(size)) for size in sizes])
    np.testing.assert_allclose(found, np.broadcast_to(want, found.shape), rtol=50 * limits.eps)


def test_responsibilities_are_a_fixed_point():
    """Each expert learns from its share: in numpy, round by round, with experts that switch and do not merge."""
    start, turn, rounds = np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.2, 0.8]]), 4
    pair = experts(2, prior=start, transition=turn, merge="none")
    walks = [fx.priors.additive_inflation(q) for q in (0.01, 0.3)]
    bone = fx.method(
        "ME[2]-ACI", model=model, auxiliary=pair, prior=fx.priors.by_expert(walks), weighting=responsibilities(rounds)
    )
    end, infos = run(bone)
    weight, m, P = start, np.zeros(2), np.ones(2)
    for t, y in enumerate(Y):
        pi, P = weight @ turn, P + np.array([0.01, 0.3])
        score = scipy.stats.norm(m, np.sqrt(P + 0.5)).pdf(y)
        np.testing.assert_allclose(infos.log_evidence[t], np.log(pi @ score), rtol=1e-10)
        share = pi * score / (pi @ score)
        fit = lambda share, m=m, P=P, y=y: (
            (m / P + share * y / 0.5) / (1 / P + share / 0.5),
            1 / (1 / P + share / 0.5),
        )
        for _ in range(rounds):
            mean, var = fit(share)
            expected = scipy.stats.norm(mean, np.sqrt(0.5)).logpdf(y) - 0.5 * var / 0.5
            share = scipy.special.softmax(np.log(pi) + expected)
        (m, P), weight = fit(share), share
        np.testing.assert_allclose(np.exp(infos.log_weight[t]), weight, rtol=1e-9)
    np.testing.assert_allclose(end.hypotheses.belief.mean[:, 0], m, rtol=1e-9)


def test_one_expert_answers_for_all():
    alone = fx.method("ME[1]-Static", model=model, weighting=responsibilities())
    plain = fx.method("C-Static", model=model)
    got, want = (run(bone, ("log_evidence",))[1].log_evidence for bone in (alone, plain))
    np.testing.assert_allclose(got, want, rtol=1e-10)


def test_draws_are_right_on_average():
    """The mean weight of each hypothesis over many draws is its weight; at most K survive, with multiples of 1/K."""
    weight = np.array([0.02, 0.5, 0.08, 0.0, 0.4])
    keys = jax.random.split(jax.random.key(3), 4000)
    drawn = np.exp(jax.vmap(lambda key: sampled(3)(jnp.log(weight), key=key))(keys))
    assert (np.count_nonzero(drawn, axis=1) <= 3).all()
    np.testing.assert_allclose(drawn * 3, np.round(drawn * 3), atol=1e-12)
    np.testing.assert_allclose(drawn.sum(1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(drawn.mean(0), weight, atol=4 * 0.5 / np.sqrt(4000))
    assert not drawn[:, 3].any()


def test_a_method_that_draws_survivors():
    bone = fx.method("RL[3]-PR(hazard=0.2)", model=model, weighting=sampled(3))
    with pytest.raises(ValueError, match="by sampling draws at random; give key="):
        bone.init(mean=jnp.zeros(1), cov=1.0)
    ends = [
        bone.scan(bone.init(mean=jnp.zeros(1), cov=1.0, key=jax.random.key(seed)), ONES, Y, keep=("log_weight",))[1]
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(ends[0].log_weight, ends[1].log_weight)
    assert (np.isfinite(ends[0].log_weight).sum(1) <= 3).all()
    assert not np.array_equal(ends[0].log_weight, ends[2].log_weight)


@pytest.mark.parametrize("K", [1, 3, 6])
def test_a_diverse_beam(K):
    """In words: the best K - K//3, then those better than their twin, then the rest."""
    for _ in range(20):
        weight = rng.dirichlet(np.full(2 * K, 0.5)) + 1e-12
        order = sorted(range(2 * K), key=lambda i: -weight[i])
        chosen = order[: K - K // 3]
        twin = lambda i: (i + K) % (2 * K)
        chosen += [i for i in order if i not in chosen and weight[i] > weight[twin(i)]][: K - len(chosen)]
        chosen += [i for i in order if i not in chosen][: K - len(chosen)]
        want = np.where(np.isin(np.arange(2 * K), chosen), weight, 0.0)
        np.testing.assert_allclose(np.exp(diverse(K)(jnp.log(weight))), want / want.sum(), rtol=1e-9)


def test_of_equal_twins_the_first_survives():
    weight = np.array([0.4, 0.1, 0.05, 0.3, 0.1, 0.05])
    np.testing.assert_array_equal(np.isfinite(diverse(3)(jnp.log(weight))), [1, 1, 0, 1, 0, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sampled(0), "must be a whole number of at least 1"),
        (lambda: diverse(0), "must be a whole number of at least 1"),
        (lambda: gated(0.0), "must be finite and above 0"),
        (lambda: responsibilities(0), "must be a whole number of at least 1"),
        (lambda: fx.method("RL[2]-PR(hazard=0.1)", model=model, weighting=diverse(2)), r"RL\[2\]: .* no twins"),
        (
            lambda: fx.method("C-Static", model=model, weighting=gated()),
            "Gated with C: it weighs experts; use it with ME",
        ),
        (lambda: fx.method("PF+ME[2]-Static", model=model, weighting=responsibilities()), "PF .* drawn again; use LG"),
        (
            lambda: fx.method("Cj+ME[2]-Static", model=fx.models.bernoulli(), weighting=responsibilities()),
            "Cj with Responsibilities: it has no spread; use LG",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
