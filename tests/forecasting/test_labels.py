"""Labels: the experts and their mixture against plain numpy, the bound on the regret, and the promises of the verbs."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.forecasting import Labels
from filtax.forecasting._label_pipeline import reweighted

DRIFTS = (1e-3, 1e-2, 1e-1, 1e-2)  # of a logit; the last filter starts from the probabilities of the last-label expert


def stream(rows, seed=0):
    """Labels that repeat often, depend on two columns, and are sometimes missing; a third class appears late."""
    rng = np.random.default_rng(seed)
    known = rng.normal(size=(rows, 2)) * [1.0, 50.0] + [3.0, 0.0]
    known[rng.random((rows, 2)) < 0.05] = np.nan
    y = (np.nan_to_num(known[:, 0], nan=3.0) + rng.logistic(size=rows) > 3.0).astype(int)
    y[rng.random(rows) < 0.2] = -1
    y[:2] = 0, 1
    late = np.arange(rows) > 0.6 * rows
    y[late & (known[:, 1] > 30.0)] = 2
    return y, known


def shares(numbers):
    return numbers / numbers.sum() if numbers.sum() > 0 else numbers


def scaled(known, rows):
    """Columns in units of the first rows, without what lies outside of Tukey's fences."""
    low, high = np.nanquantile(known[:rows], [0.25, 0.75], axis=0)
    inside = np.clip(known[:rows], low - 1.5 * (high - low), high + 1.5 * (high - low))
    return np.nan_to_num(np.arcsinh((known - np.nanmean(inside, axis=0)) / np.nanstd(inside, axis=0)))


def in_numpy(y, known, delay, C=3):
    """Probabilities and weights of all rows, in units of the first half of them."""
    T = len(y)
    z = scaled(known, T // 2)
    designs = [np.column_stack([np.ones(T), z]), np.column_stack([np.ones(T), z, np.abs(z)])]
    filters: list[Any] = [
        (X, np.zeros((C, X.shape[1])), np.eye(X.shape[1]), q, n == 3) for X in designs for n, q in enumerate(DRIFTS)
    ]
    counts, recent, moves, last = np.zeros(C), np.zeros(C), np.zeros((C, C)), None
    w = np.full(12, 1 / 12)
    said, lasts, probability, weights = np.zeros((T, 12, C)), [], np.zeros((T, C)), np.zeros((T, 12))

    def softmax(logits, on):
        return shares(np.where(on, np.exp(logits - logits[on].max()), 0.0)) if on.any() else np.zeros(C)

    def logits(X, M, after, t):
        base, out = said[t, 3], M @ X[t]
        if after and base.any():
            logs = np.log(base[base > 0])
            out = out + np.where(base > 0, np.log(np.maximum(base, 1e-300)), logs.mean())
        return out

    for t in range(T):
        seen, n, K = counts > 0, counts.sum(), np.sum(counts > 0)
        frequency = shares((counts + 0.5) * seen)
        said[t, 0], said[t, 1] = frequency, shares((recent + 0.5) * seen)
        row = moves[last] if last is not None else np.zeros(C)
        said[t, 2] = (row + frequency) / (row.sum() + 1)
        said[t, 3] = frequency
        if last is not None:
            repeated, others = (np.trace(moves) + 0.5) / (moves.sum() + 1), frequency * (np.arange(C) != last)
            said[t, 3] = shares((1 - repeated) * shares(others) + repeated * (np.arange(C) == last))
        for k, (X, M, P, _, after) in enumerate(filters):
            said[t, 4 + k] = softmax(logits(X, M, after, t) / np.sqrt(1 + np.pi / 8 * X[t] @ P @ X[t]), seen)
        new = K * (K + 1) / max(n * n + n + 2 * K, 1)
        probability[t], weights[t] = (1 - new) * w @ said[t], w
        lasts.append(last)
        s = t - delay
        if s < 0 or y[s] < 0:
            continue
        hit = np.arange(C) == y[s]
        if said[s, 0, y[s]] > 0:
            w = (1 - 1 / (n + 2)) * shares(w * said[s, :, y[s]]) + 1 / (n + 2) / 12
        for k, (X, M, P, q, after) in enumerate(filters):
            g = softmax(logits(X, M, after, s), seen | hit)
            r = hit - g
            b = (g @ r**2 - (g @ r) ** 2) / (r @ r) if r @ r > 0 else 0.0
            gain = P @ X[s] / (1 + b * X[s] @ P @ X[s])
            P = P - b * np.outer(gain, P @ X[s]) + q * np.diag(np.r_[0.5, np.full(len(P) - 1, 0.5 / (len(P) - 1))])
            filters[k] = (X, M + np.outer(r, gain), P, q, after)
        if lasts[s] is not None:
            moves[lasts[s], y[s]] += 1
        counts, recent, last = counts + hit, recent * (1 - 1 / 300) + hit, y[s]
    return probability, weights


@pytest.mark.parametrize("delay", [0, 3])
def test_probabilities_and_weights_are_those_of_plain_numpy(delay):
    y, known = stream(256)
    out = Labels(known=2, delay=delay).learn(y, known)
    probability, weights = in_numpy(y, known, delay)
    np.testing.assert_allclose(out.probability[128:], probability[128:], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(out.weights[128:], weights[128:], rtol=1e-6, atol=1e-9)


@pytest.mark.x64
def test_a_named_method_gives_the_probabilities_of_its_own_filter_for_each_class():
    y, known = stream(256)
    y, name = y.clip(-1, 1), "LG+C-ACI(q=0.001)"
    labels = Labels(known=2, method=name)
    out = labels.learn(y, known)
    X, said = np.column_stack([np.ones(256), scaled(known, 128)]), np.zeros((256, 2))
    for c in range(2):
        bone = fx.method(name, model=fx.models.linear(likelihood=fx.models.bernoulli()))
        own = np.where(y < 0, np.nan, y == c)[y >= 0]  # missing labels are no time for it
        said[y >= 0, c] = bone.scan(bone.init(mean=jnp.zeros(3), cov=1.0), jnp.asarray(X[y >= 0]), jnp.asarray(own))[
            1
        ].mean
    for t in range(128, 255):  # from the weights before and after a label follows what was said of it
        if y[t] >= 0:
            n, w = np.sum(y[:t] >= 0), out.weights[t : t + 2, -1]
            mixed = out.probability[t, y[t]] / out.probability[t].sum()
            found = (w[1] - 1 / (n + 2) / 5) / ((1 - 1 / (n + 2)) * w[0]) * mixed
            np.testing.assert_allclose(found, shares(said[t])[y[t]], rtol=1e-5)


def hostile(kind, rng, T=300, K=5):
    """Probabilities (T, K) that experts give to the label that comes."""
    if kind == "turns":
        return np.where(np.arange(K) == (np.arange(T) // 30 % K)[:, None], 0.95, 0.02)
    if kind == "one":
        return np.where(np.arange(K) == 3, 0.99, rng.uniform(size=(T, K)))
    return rng.uniform(size=(T, K)) ** (20 if kind == "noise" else 1)  # noise over many orders of magnitude


def losses_of_sequences(loss, changes):
    """Loss of the best sequence of experts for each number of changes, by dynamic programming."""
    best = np.full((changes + 1, loss.shape[1]), np.inf)
    best[0] = 0.0
    for t, row in enumerate(loss):
        moved = np.full_like(best, np.inf)
        if t:
            moved[1:] = best[:-1].min(axis=1, keepdims=True)
        best = np.minimum(best, moved) + row
    return best.min(axis=1)


@pytest.mark.x64
@pytest.mark.parametrize("kind", ["answers", "turns", "one", "noise"])
@pytest.mark.parametrize("seed", range(3))
def test_the_loss_exceeds_that_of_any_sequence_of_experts_by_the_bound_at_most(kind, seed):
    rng, T, K = np.random.default_rng(seed), 300, 5
    given = hostile(kind, rng)
    w, loss, total = np.full(K, 1 / K), np.zeros((T, K)), 0.0
    for t in range(T):
        # "answers": of two labels, the one comes that the mixture holds for less probable
        p = 1 - given[t] if kind == "answers" and w @ given[t] > 0.5 else given[t]
        total, loss[t] = total - np.log(w @ p), -np.log(p)
        w = np.asarray(reweighted(*map(jnp.asarray, (w, p, float(t)))))
    bound = losses_of_sequences(loss, 12) + np.arange(1, 14) * np.log(K * T)
    assert total <= bound.min()
    if kind == "turns":  # following the best expert costs less than staying with one
        assert total < loss.sum(axis=0).min() / 2


def test_batches_and_single_rows_give_the_same_bits():
    y, known = stream(200)
    y[150] = 3  # room for more classes is made on the way
    whole = Labels(known=2, delay=3).learn(y, known)
    for size in (1, 7, 64):
        labels = Labels(known=2, delay=3)
        parts = [labels.learn(y[t : t + size], known[t : t + size]) for t in range(0, 200, size)]
        for part, t in zip(parts, range(0, 200, size), strict=True):
            width = part.probability.shape[1]
            np.testing.assert_array_equal(part.probability, whole.probability[t : t + size, :width])
            np.testing.assert_array_equal(part.weights, whole.weights[t : t + size])


@pytest.mark.parametrize("delay", [0, 3])
def test_what_comes_later_changes_nothing_that_was_said(delay):
    y, known = stream(160)
    cut = 100
    y[: cut - delay] = y[: cut - delay].clip(-1, 1)
    y[cut - delay] = 2  # of which nothing is known yet at the cut
    plain = Labels(known=2, delay=delay).learn(y, known)
    others, columns = y.copy(), known.copy()
    others[cut - delay :], columns[cut + 1 :] = 1 - others[cut - delay :].clip(0, 1), np.nan
    altered = Labels(known=2, delay=delay).learn(others, columns)
    width = altered.probability.shape[1]
    np.testing.assert_array_equal(plain.probability[: cut + 1, :width], altered.probability[: cut + 1])
    assert not np.array_equal(plain.probability[cut + 1 :, :width], altered.probability[cut + 1 :])


@pytest.mark.parametrize("delay", [0, 3])
def test_a_row_is_predicted_as_it_is_forecast_when_it_comes(delay):
    y, known = stream(80)
    labels = Labels(known=2, delay=delay)
    labels.learn(y[:70], known[:70])
    for t in range(70, 80):
        said = labels.predict(known[t : t + 1])
        issued = labels.learn(y[t : t + 1], known[t : t + 1]).probability
        np.testing.assert_array_equal(said, issued[:, : said.shape[1]])


@pytest.mark.parametrize("method", [None, "LG+RL[1]-OUPR(hazard=0.001)"])
def test_what_was_restored_goes_on_with_the_same_bits(method):
    y, known = stream(150)
    labels = Labels(known=2, method=method, delay=3)
    labels.learn(y[:90], known[:90])
    copy = Labels.restore(labels.settings(), labels.arrays())
    one, other = (each.learn(y[90:], known[90:]) for each in (labels, copy))
    np.testing.assert_array_equal(one.probability, other.probability)
    np.testing.assert_array_equal(one.weights, other.weights)


@pytest.mark.parametrize("method", [None, "LG+C-ACI(q=0.001)"])
def test_many_classes_are_learned_as_they_appear(method):
    rng = np.random.default_rng(5)
    kind = np.minimum(np.arange(900) // 40, rng.integers(10, size=900))
    first = list(dict.fromkeys(kind.tolist()))
    y = np.array([first.index(k) for k in kind.tolist()])
    known = np.column_stack([np.cos(kind * 0.63), np.sin(kind * 0.63)]) + 0.05 * rng.normal(size=(900, 2))
    out = Labels(known=2, method=method).learn(y, known)
    assert out.probability.shape == (900, 10)
    assert np.mean(out.probability[600:].argmax(axis=1) == y[600:]) > 0.9
    assert np.all(out.probability.sum(axis=1) < 1.0)  # the rest is a class never met
    assert np.all(out.probability[1:][np.arange(899), y[:-1]] > 0.0)


def test_labels_without_columns_are_forecast_from_the_past_alone():
    out = Labels().learn(np.arange(300) % 3)
    assert np.all(out.probability[200:].argmax(axis=1) == np.arange(200, 300) % 3)
    only = Labels().learn(np.zeros(50, int)).probability
    assert only[0, 0] == 0.0  # nothing is known of a class never met
    assert np.all((only[1:] > 0.0) & (only[1:] < 1.0))


def test_a_useless_column_of_any_size_costs_little():
    rng = np.random.default_rng(2)
    y = (rng.random(600) < 0.3).astype(int)
    y[:2] = 0, 1
    noise = np.column_stack([rng.standard_cauchy(600) * 1e200, np.full(600, 7.0), np.full(600, np.inf)])
    outs = Labels(known=3).learn(y, noise), Labels().learn(y)
    with_noise, without = (-np.log(out.probability[2:][np.arange(598), y[2:]]).sum() for out in outs)
    assert with_noise < without + np.log(12 * 600)


def test_wrong_input_is_refused_with_a_sentence():
    wrong = {"number them 0, 1, 2": ([0, 2],), "whole numbers": ([0.5],), "a row for each y": ([0], np.zeros((1, 3)))}
    for sentence, given in wrong.items():
        with pytest.raises(ValueError, match=sentence):
            Labels().learn(*given)
    with pytest.raises(ValueError, match="draws at random"):
        Labels(method="PF(size=10)+C-Static")
