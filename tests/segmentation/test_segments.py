"""Marginals and the best segmentation against the enumeration of all of them, each segment by a batch regression."""

from collections import defaultdict
from functools import cache
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx
from filtax.auxiliary import run_length
from filtax.segmentation import (
    best_segmentation,
    change_marginals,
    changes_from_marginals,
    detect,
    segment,
    spread_changes,
    watch,
)
from filtax.segmentation._segments import differing

pytestmark = pytest.mark.x64
T, UNIT, COV, SHAPE, RATE = 9, 4.0, 5.0, 1.5, 0.3
rng = np.random.default_rng(4)
Y = np.where(np.arange(T) < 5, 0.5 * np.arange(T), 3.0 - np.arange(T) * 0.2) + 0.2 * rng.normal(size=T)
GAPS = np.where(np.arange(T) == 6, np.nan, Y)
PAIRS = np.column_stack([Y, -Y + 0.1 * rng.normal(size=T)])
HAZARDS = {"flat": 0.15, "by run": lambda r: 1.0 / (r + 3.0), "one": 1.0, "zero": 0.0}


def segment_evidence(y, first):
    """Student-t density of a segment whose first datum has run length `first`; all outputs share the noise."""
    y = y.reshape(len(y), -1)
    X = np.column_stack([np.ones(len(y)), (first + np.arange(len(y))) / UNIT])
    X = np.kron(X, np.eye(y.shape[1]))
    y = y.ravel()
    seen = np.isfinite(y)
    if not seen.any():
        return 0.0
    X, y = X[seen], y[seen]
    scale = RATE / SHAPE * (np.eye(len(y)) + COV * X @ X.T)
    return scipy.stats.multivariate_t(np.zeros(len(y)), scale, df=2 * SHAPE).logpdf(y)


def enumerate_changes(y, hazard):
    """Joint log probability of each set of changes after the first datum."""
    hazard = hazard if callable(hazard) else (lambda r, h=hazard: h)
    joint = defaultdict(lambda: -np.inf)
    evidence = cache(lambda begin, end, first: segment_evidence(y[begin:end], first))
    for path in product((False, True), repeat=len(y)):
        run, total, begin, first = 0, 0.0, 0, 1
        with np.errstate(divide="ignore"):
            for t, change in enumerate(path):
                total += np.log(hazard(run) if change else 1.0 - hazard(run))
                if change:
                    total += evidence(begin, t, first) if t else 0.0
                    begin, first, run = t, 0, 0
                else:
                    run += 1
        total += evidence(begin, len(y), first)
        changes = tuple(t for t, change in enumerate(path) if change and t > 0)
        joint[changes] = np.logaddexp(joint[changes], total)
    return joint


def seen(y, hazard, keep=None):
    rl = fx.method(
        f"NIG(shape={SHAPE},rate={RATE})+RL[inf]-PR(hazard=0.5)",
        model=fx.models.since_change(1.0, unit=UNIT),
        auxiliary=run_length(hazard, keep=keep, capacity=4),
    )
    outputs = 1 if y.ndim == 1 else y.shape[1]
    return watch(rl, rl.init(mean=jnp.zeros(2 * outputs), cov=COV), None, y, posterior=True)[1]


@pytest.mark.parametrize("y", [Y, GAPS, PAIRS], ids=["whole", "gap", "pairs"])
@pytest.mark.parametrize("law", HAZARDS)
def test_equals_the_enumeration_of_all_segmentations(y, law):
    got = seen(y, HAZARDS[law])
    joint = enumerate_changes(y, HAZARDS[law])
    scores = np.array(list(joint.values()))
    total = np.logaddexp.reduce(scores)
    np.testing.assert_allclose(got.log_evidence.sum(), total, rtol=1e-10)
    want = np.zeros(T)
    for changes, score in joint.items():
        want[list(changes)] += np.exp(score - total)
    np.testing.assert_allclose(change_marginals(got), want, atol=1e-10)
    assert tuple(best_segmentation(got)) == max(joint, key=joint.get)


def test_keeping_all_that_may_be_is_exact_and_few_finds_the_same():
    exact, same, few = seen(Y, 0.15), seen(Y, 0.15, keep=T + 1), seen(Y, 0.15, keep=4)
    np.testing.assert_allclose(change_marginals(same), change_marginals(exact), atol=1e-12)
    assert best_segmentation(same) == best_segmentation(few) == best_segmentation(exact)
    assert change_marginals(few).argmax() == change_marginals(exact).argmax()


def test_probability_spread_over_neighbours_is_one_change():
    spread = np.zeros(40)
    spread[10:14] = [0.2, 0.3, 0.2, 0.2]
    spread[30] = 0.45
    assert changes_from_marginals(spread) == [11]
    assert changes_from_marginals(spread, level=0.4) == [11, 30]
    assert changes_from_marginals(np.zeros(0)) == []
    close = np.zeros(40)
    close[[10, 13, 20]] = [1.0, 0.9, 1.0]  # each is a change of its own
    assert changes_from_marginals(close) == [10, 13, 20]


def test_a_change_that_nobody_can_place_is_told_in_its_middle():
    spread = np.zeros(300)
    spread[80:121] = 0.024  # 11 of them are 0.26
    spread[200] = 1.0
    assert changes_from_marginals(spread) == [200]
    assert spread_changes(spread, [200], [90, 200]) == [100]
    assert spread_changes(spread, [200], [200]) == []  # none in the most probable segmentation
    assert spread_changes(spread / 2, [200], [90, 200]) == []  # 0.49
    spread[150:171] = 0.03
    assert spread_changes(spread, [200], [90, 160, 200]) == [100, 160]


def test_a_slope_that_changes_is_told():
    t = np.arange(400)
    for seed in range(3):
        noise = np.random.default_rng(seed).normal(size=400)
        [change] = segment(0.03 * t - 0.08 * np.maximum(t - 200, 0) + noise).changes
        assert abs(change - 200) <= 15


def test_a_curve_is_not_cut_where_nobody_can_say():
    """Around any line neighbours then lie on the same side of it."""
    t = np.arange(400)
    curve = segment(1e-4 * t**2 + 0.01 * np.sin(t**2))
    assert all(np.sum(curve.probability[max(0, c - 5) : c + 6]) >= 0.5 for c in curve.changes)


def turned(seed, at, rows=600):
    hour = np.arange(rows)
    noise = np.random.default_rng(seed).normal(size=rows)
    return 50.0 + 5.0 * np.sin(2 * np.pi * hour / 24 + np.pi * (hour >= at)) + noise


@pytest.mark.parametrize("at", [200, 310])
def test_a_cycle_that_turns_round_is_one_change(at):
    for seed in range(3):
        [change] = segment(turned(seed, at)).changes
        assert abs(change - at) <= 4


@pytest.mark.nightly
def test_and_one_alarm_as_it_comes():
    for seed in range(10):
        [start] = detect(turned(seed, 500, 1000), warmup=100).starts
        assert abs(start - 500) <= 4


def test_a_posterior_that_was_not_kept_is_asked_for():
    rl = fx.method("NIG+RL[4]-PR(hazard=0.1)", model=fx.models.since_change(1.0))
    bare = watch(rl, rl.init(mean=jnp.zeros(2), cov=1.0), None, Y)[1]
    for ask in (change_marginals, best_segmentation):
        with pytest.raises(ValueError, match=r"give posterior=True to watch"):
            ask(bare)


@pytest.mark.parametrize("y", [np.zeros(0), np.zeros((0, 2)), [], np.zeros((2, 0))], ids=str)
def test_a_series_without_readings_is_refused(y):
    for find in (fx.segmentation.segment, fx.segmentation.detect):
        with pytest.raises(ValueError, match=r"y has shape .*; give at least two readings"):
            find(y)


@pytest.mark.parametrize("size", [8.0, 50.0, 1e6])
def test_gross_errors_are_omitted(size):
    rng = np.random.default_rng(2)
    y = rng.normal(size=400) + 4.0 * (np.arange(400) >= 200)
    clean = segment(y)
    y[[30, 90, 260, 333]] += size * np.array([1.0, -1.0, 1.0, 1.0])
    y[89] = np.nan
    found = segment(y)
    assert clean.outliers == []
    assert found.outliers == [30, 90, 260, 333]
    assert found.changes == clean.changes == [200]


def test_neighbouring_segments_differ_in_what_was_changed():
    t, rng = np.arange(600), np.random.default_rng(3)
    y = rng.normal(size=600) * np.where(t < 200, 1.0, 3.0) + np.where(t < 400, 0.0, 0.2 * (t - 400)) + 1e3
    spread, slope = differing(y, [200, 400])
    assert list(spread) == ["spread"]
    np.testing.assert_allclose(spread["spread"], [1.0, 3.0], rtol=0.1)
    assert list(slope) == ["slope"]
    np.testing.assert_allclose(slope["slope"], [0.0, 0.2], atol=0.02)
    (turned,) = differing(np.where(t < 300, 2.0, 5.0) * np.sin(t * np.pi / 6) + 0.1 * rng.normal(size=600), [300], 12.0)
    assert list(turned) == ["cycle"]
    np.testing.assert_allclose(turned["cycle"], [2.0, 5.0], rtol=0.02)
    assert differing(y, [599]) == [{}]
