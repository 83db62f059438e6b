"""Outliers and changes: the posterior against an enumeration of segmentations, rates on good rows, changes found."""

import itertools
import json

import numpy as np
import pytest
from scipy import stats

from filtax.monitoring import Monitor

HOURS = np.datetime64("2024-01-01T00", "h")
HAZARD, RECOVERY, PRECISION, SHAPE, RATE = 1e-3, 1e-3, 0.1, 1.0, 1.0


def log_disturbed(z, share):
    """Log evidence of one disturbance, one error after the other; each counts as a share of one."""
    total = 0.0
    for n in range(len(z)):
        k, w = PRECISION + share[:n].sum(), share[:n]
        mean, shape = (w * z[:n]).sum() / k, SHAPE + w.sum() / 2
        rate = max(RATE + ((w * z[:n] ** 2).sum() - k * mean**2) / 2, shape)
        total += share[n] * stats.t.logpdf(z[n], 2 * shape, mean, np.sqrt(rate / shape * (1 + 1 / k)))
    return total


def disturbed_by_enumeration(z, share, calm):
    """Probability of a disturbance at the last row: all ways to begin ("+"), go on ("-") and end disturbances (".")."""
    weights = {True: 0.0, False: 0.0}
    for path in itertools.product(".+-", repeat=len(z)):
        log, before = 0.0, "."
        for t, now in enumerate(path):
            allowed = {".": {".": 1 - HAZARD, "+": HAZARD}, "+": {".": RECOVERY, "-": 1 - RECOVERY}}
            chance = allowed["." if before == "." else "+"].get(now, 0.0)
            log, before = log + (np.log(chance) if chance else -np.inf) + (calm[t] if now == "." else 0.0), now
        starts = [t for t, now in enumerate(path) if now == "+"]
        for s in starts if log > -np.inf else []:
            stop = next((t for t in range(s + 1, len(z)) if path[t] != "-"), len(z))
            log += log_disturbed(z[s:stop], share[s:stop])
        weights[path[-1] != "."] += np.exp(log)
    return weights[True] / sum(weights.values())


def test_the_probability_of_a_change_is_that_of_all_segmentations():
    y = np.random.default_rng(1).normal(size=7)
    y[4:] += 3.0
    quantile = stats.t.ppf(0.95, 1 / (1 / 10 + 1 / np.maximum(np.arange(7), 1)))
    seen = Monitor().learn(y, np.zeros(7), -quantile, quantile)  # a scale of 1 to begin with
    z, share, logs, want = [], [], [], []
    centre, square, product, last, calm = 0.0, 1.0, 0.0, 0.0, 1.0
    for t in range(7):
        z.append((y[t] - centre) / np.sqrt(square))
        correlation = max(product / square, 0.0)
        share.append((1 - correlation) / (1 + correlation))
        logs.append(share[t] * stats.t.logpdf(z[t], t + 1))
        want.append(disturbed_by_enumeration(np.array(z), np.array(share), logs))
        bound = 3 + 15 / (t + 1)
        rate, bounded = 1 / (t + 2), np.sqrt(square) * np.clip(z[-1], -bound, bound)
        product += rate * calm * (bounded * last - product)
        centre, square, last = centre + rate * bounded, square + rate * (bounded**2 - square), bounded
        calm = 1.0 - want[-1]
    np.testing.assert_allclose(seen.change_probability, want, rtol=1e-8)


def forecast(X, y, level=0.9):
    """Recursive least squares, and intervals whose sides follow the misses: a forecaster that does not forget."""
    T, M = X.shape
    w, P, issued = np.zeros(M), 100.0 * np.eye(M), np.full((3, T), np.nan)
    low, high, width = 2.0, 2.0, np.nan
    for t, x in enumerate(X):
        f = w @ x
        issued[:, t] = f, f - low * width, f + high * width
        step = max(0.1, min(0.3, 5 / (t + 1)))
        low *= np.exp(step * (float(y[t] < issued[1, t]) - (1 - level) / 2))
        high *= np.exp(step * (float(y[t] > issued[2, t]) - (1 - level) / 2))
        error = abs(y[t] - f)
        width = error if t == 0 else width + max(0.05, 1 / (t + 1)) * (min(error, 10 * width) - width)
        gain = P @ x / (1 + x @ P @ x)
        w, P = w + gain * (y[t] - f), P - np.outer(gain, P @ x)
    return issued


def stream(rng, T=700, at=500, turn=1.0, level=0.0, noise=1.0):
    """Three features with slopes of 1; at a row slopes turn, the level moves, the noise grows."""
    X, after = np.column_stack([rng.normal(size=(T, 3)), np.ones(T)]), np.arange(T) >= at
    y = X[:, :3].sum(axis=1) * np.where(after, turn, 1.0) + level * after
    return X, y + rng.normal(size=T) * np.where(after, noise, 1.0)


@pytest.mark.parametrize("degrees", [5, np.inf])
def test_good_rows_give_few_alarms(degrees):
    outliers = changes = early = rows = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = stream(rng, T=1500, noise=0.0, at=0)
        y = y + rng.standard_t(degrees, size=len(y))
        seen = Monitor().learn(y, *forecast(X, y))
        outliers, changes, rows = outliers + seen.outlier.sum(), changes + seen.change.sum(), rows + len(y)
        early += seen.outlier[:60].sum()
    assert outliers <= 2 * 0.001 * rows
    assert early <= 2
    assert changes <= 0.0003 * rows


@pytest.mark.parametrize("change", [{"turn": -1.0}, {"level": 2.0}, {"noise": 3.0}])
def test_changes_are_found_once_and_begin_where_they_began(change):
    for seed in range(6):
        X, y = stream(np.random.default_rng(seed), **change)
        seen = Monitor().learn(y, *forecast(X, y))
        (row,) = np.flatnonzero(seen.change)
        assert 500 <= row < 600
        assert abs(row - seen.start[row] - 500) <= 15
        assert seen.runlength[-1] == seen.start[-1] == seen.start[row] + len(y) - 1 - row


def test_a_level_that_forecasts_follow_at_once_is_found_with_times():
    """The last value of the level is the forecast: there is one large error, as at an outlier."""
    rng = np.random.default_rng(8)
    y = rng.normal(size=600) + 10.0 * (np.arange(600) >= 400)
    fast = np.where(np.arange(600) > 400, 10.0, 0.0)
    y[200] += 10.0
    given = (y, fast, fast - 1.645, fast + 1.645)
    assert np.flatnonzero(Monitor().learn(*given).change).size == 0
    seen = Monitor().learn(*given, times=HOURS + np.arange(600))
    assert (np.flatnonzero(seen.change) - seen.start[seen.change]).tolist() == [400]
    assert seen.outlier[200]


@pytest.mark.parametrize("size", [8.0, 1e9, -np.inf])
def test_an_outlier_is_no_change(size):
    X, y = stream(np.random.default_rng(3))
    issued = forecast(X, y)
    y[300] += size
    seen = Monitor().learn(y, *issued)
    assert seen.outlier[300]
    assert not seen.change.any()


def test_a_gap_is_no_change_and_labels_that_turn_round_are_one():
    X, y = stream(np.random.default_rng(4))
    issued = forecast(X, y)
    y[200:400] = np.nan
    seen = Monitor().learn(y, *issued)
    assert not seen.change.any()
    assert np.isnan(seen.tail[200:400]).all()
    assert not seen.outlier[200:400].any()
    p = 1 / (1 + np.exp(-2 * X[:, 0]))
    labels = (np.random.default_rng(5).random(700) < p).astype(int)
    labels[500:] = 1 - labels[500:]
    seen = Monitor().learn_labels(labels, np.column_stack([1 - p, p]))
    row = np.flatnonzero(seen.change)[0]
    assert 500 <= row < 540
    assert seen.tail[0] == pytest.approx([1 - p[0], p[0]][labels[0]] if seen.tail[0] < 1 else 1.0)


def test_batches_single_rows_and_a_restored_monitor_agree_in_every_bit():
    X, y = stream(np.random.default_rng(6), T=300, at=200, noise=3.0)
    y[50:60] = np.nan
    rows = (y, *forecast(X, np.nan_to_num(y)), HOURS + np.arange(300))
    whole, monitor, parts = Monitor().learn(*rows), Monitor(), []
    for start, stop in itertools.pairwise([0, 1, 2, 3, 50, 57, 130, 131, 300]):
        parts.append(monitor.learn(*(row[start:stop] for row in rows)))
        monitor = Monitor.restore(json.loads(json.dumps(monitor.settings())), monitor.arrays())
    for name, value in vars(whole).items():
        np.testing.assert_array_equal(value, np.concatenate([getattr(part, name) for part in parts]))


def test_labels_met_later_change_no_bit():
    rng = np.random.default_rng(7)
    p = np.sort(rng.dirichlet(np.ones(12), size=80), axis=1) * 0.99
    y = rng.integers(-1, 13, size=80)
    assert np.isnan(Monitor().learn_labels([-1], np.zeros((1, 0))).tail[0])
    whole, monitor = Monitor().learn_labels(y, np.column_stack([p, np.zeros((80, 9))])), Monitor()
    parts = [monitor.learn_labels(y[t : t + 1], p[t : t + 1]) for t in range(80)]
    for name, value in vars(whole).items():
        np.testing.assert_array_equal(value, np.concatenate([getattr(part, name) for part in parts]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.learn(np.zeros(3), np.zeros(2), np.zeros(3), np.zeros(3)), r"shapes are \(3,\), \(2,\)"),
        (
            lambda m: (m.learn(*np.zeros((4, 3))), m.learn(*np.zeros((4, 3)), [HOURS] * 3)),
            "give them in all, or in none",
        ),
        (lambda m: m.learn_labels([0, 1], [0.5, 0.5]), r"give \(T,\) and \(T, C\)"),
        (lambda m: Monitor(level=1.5), "level"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call(Monitor())
