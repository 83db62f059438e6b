"""Stretched intervals: the rule against counting, its promise on a stream that breaks that of the model."""

import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from filtax.estimators import Regressor
from filtax.estimators.stretch import FARTHEST, RATE, deviation, next_stretch, stretched
from filtax.runs.bands import Bands, tails


def by_counting(score, level):
    """The brute-force oracle: limits on |z| themselves, and a stretch that is recounted from the start at every row.

    No recursion: as long as no limit binds, the stretch is RATE times (misses - (1 - level) rows).
    """
    z = scipy.stats.norm.ppf(0.5 + level / 2)
    outside, used = [], []
    for value in score:
        judged = [each for each in outside if each is not None]
        rate, share = Fraction(RATE), 1 - Fraction(level)
        used.append(float(rate * (sum(judged) - share * len(judged))))
        outside.append(None if math.isnan(value) else int(abs(value) > z * math.exp(used[-1])))
    return np.array(used), outside


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("spread", [0.6, 1.0, 1.7])
def test_the_stretch_is_what_counting_gives(level, spread):
    rng = np.random.default_rng(0)
    score = spread * rng.normal(size=400)
    score[rng.random(400) < 0.05] = np.nan
    used, outside = by_counting(score, level)
    bands = Bands(level, late=0)
    got = bands.follow(np.zeros(400, int), scipy.stats.norm.cdf(score))
    np.testing.assert_allclose(got, used, atol=1e-12)
    np.testing.assert_allclose(
        bands.levels(got), 1 - 2 * scipy.stats.norm.sf(deviation(level) * np.exp(got)), rtol=1e-9
    )
    judged = [each for each in outside if each is not None]
    share = 1 - level + bands.stretch[0] / (RATE * len(judged))  # it telescopes
    np.testing.assert_allclose(np.mean(judged), share, atol=1e-12)


@pytest.mark.parametrize("late", [1, 5])
def test_a_late_label_counts_when_it_comes(late):
    """Each row by hand: it sees the verdicts on the rows that lie more than `late` before it, and no others."""
    rng = np.random.default_rng(1)
    pit, level = rng.random(200), 0.8
    got = Bands(level, late).follow(np.zeros(200, int), pit)
    edge = np.abs(scipy.stats.norm.ppf(pit)) / scipy.stats.norm.ppf(0.9)
    outside = edge > np.exp(got)
    want = [RATE * np.sum(outside[: max(0, t - late)] - 0.2) for t in range(200)]
    np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("late", [0, 3])
def test_series_do_not_mix_and_cuts_do_not_matter(late):
    rng = np.random.default_rng(2)
    slot, pit = rng.integers(0, 3, 300), rng.random(300) ** 2
    whole, cut = Bands(0.9, late), Bands(0.9, late)
    whole.make_room(3)
    cut.make_room(3)
    at_once = whole.follow(slot, pit)
    parts = []
    for rows in np.split(np.arange(300), [1, 7, 150, 151]):
        parts.append(cut.follow(slot[rows], pit[rows]))
        kept = [array.copy() for array in cut.arrays]
        cut = Bands(0.9, late)
        cut.restore(kept)
    np.testing.assert_array_equal(at_once, np.concatenate(parts))
    for series in range(3):
        alone = Bands(0.9, late).follow(np.zeros((slot == series).sum(), int), pit[slot == series])
        np.testing.assert_array_equal(at_once[slot == series], alone)


def test_the_stretch_has_limits():
    bands = Bands(0.9, late=0)
    bands.follow(np.zeros(500, int), np.ones(500))
    assert bands.stretch.tolist() == [FARTHEST]
    bands.follow(np.zeros(5000, int), np.full(5000, 0.5))
    assert bands.stretch.tolist() == [-FARTHEST]
    yes = jnp.array(True)
    assert float(next_stretch(jnp.array(FARTHEST), yes, jnp.array(0.9), yes)) == pytest.approx(FARTHEST)
    assert float(next_stretch(jnp.array(0.3), yes, jnp.array(0.9), ~yes)) == pytest.approx(0.3)


def test_tails_are_those_of_a_wider_gaussian():
    pit = np.array([0.5, 0.01, 0.9999])
    got = tails(pit, np.log([1.0, 2.0, 0.5]))
    value = np.abs(scipy.stats.norm.ppf(pit))
    want = [2 * scipy.stats.norm.sf(v, scale=s) for v, s in zip(value, [1.0, 2.0, 0.5], strict=True)]
    np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.parametrize("level", [-0.1, 0.0, 1.0, 90.0, float("nan")])
def test_a_level_that_is_none_is_refused(level):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        stretched(level, 0.0)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        Regressor(level=level).learn_one({"a": 1.0}, 1.0)


@pytest.mark.x64
@pytest.mark.nightly
def test_an_estimator_keeps_its_promise_where_its_noise_is_not_gaussian():
    """Its stretch, by the rule and from what it told; and 90 % of 2000 intervals hold, to the telescoped error."""
    rng = np.random.default_rng(3)
    rows, wide = 2000, np.where(np.arange(2000) % 400 < 200, 0.3, 1.5)
    X, y = rng.normal(size=(rows, 2)), wide * rng.standard_t(3, size=rows)
    y += X @ np.array([1.0, -2.0])
    model = Regressor(false_alarms=1e-9).partial_fit(X[:1], y[:1])
    model._arrays = None
    keys = model._table.columns([0, 1])
    start = model._engine().stretch(model._vector)
    extended = model._extended(model._rows(keys, X[1:]), model._targets(y[1:].tolist()))
    _, told = model._engine().learn(model._vector, extended)
    z, theta, outside = scipy.stats.norm.ppf(0.95), start, []
    for t, tail in enumerate(told[:, 2]):
        if t + 1 < 5:  # before KNOWN data nothing is judged
            continue
        outside.append(tail < 2 * scipy.stats.norm.sf(z * math.exp(theta)))
        theta += RATE * (outside[-1] - 0.1)
    model.partial_fit(X[1:], y[1:])
    assert model._engine().stretch(model._vector) == pytest.approx(theta, abs=1e-9)
    assert 0.88 < 1 - np.mean(outside) < 0.92
    low, high = model.predict_interval_one({0: 0.0, 1: 0.0})
    law = model.predict_one({0: 0.0, 1: 0.0}, with_dist=True)
    assert law.cdf(low) == pytest.approx(scipy.stats.norm.sf(z * math.exp(theta)), rel=1e-6)
    assert 1 - law.cdf(high) == pytest.approx(scipy.stats.norm.sf(z * math.exp(theta)), rel=1e-6)
