"""Bands a dozen steps ahead hold among the first rows too, where errors come in groups and few have been seen."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, t

from filtax.runs.bands import Bands
from filtax.runs.blocks import Block
from filtax.runs.config import Config
from filtax.runs.numbers import NumberStream
from filtax.runs.plan import decide

H = 12


def drawn(kind, seed, rows=300):
    """Hours that are correlated, that walk, or that walk around a day."""
    noise, y = np.random.default_rng(seed).normal(size=rows), np.zeros(rows)
    if kind == "walk":
        return np.cumsum(0.1 + noise)
    keeps, level = (0.95, 0.0) if kind == "correlated" else (0.9, 10.0)
    for i in range(1, rows):
        y[i] = keeps * y[i - 1] + noise[i]
    return y + level * np.sin(2.0 * np.pi * np.arange(rows) / 24)


@pytest.fixture(scope="module")
def inside():
    """Whether each row lay inside of its 90 % interval of step H; NaN where there was none."""
    made = {}

    def learn(y):
        at = np.arange(len(y))
        when = (np.datetime64("2024-01-01", "h") + at).astype("M8[us]")
        rows = Block({"y": y}, {}, when, None, at, np.zeros(len(y)), [], None)
        if not made:
            plan = decide(Config("-", "y", time="t", horizon=H, block=512), rows)
            plan = replace(plan, config=replace(plan.config, near=None), steps=())
            made.update(plan=plan, learner=NumberStream(plan).learner)
        said, _ = NumberStream(**made).learn(rows)
        held = (said["lower"] <= y) & (y <= said["upper"])
        return np.where(np.isfinite(said["lower"]), held, np.nan)

    return learn


@pytest.mark.x64
@pytest.mark.parametrize("kind", ["correlated", "walk", "day"])
def test_the_first_rows_lie_inside_as_often_as_promised(inside, kind):
    """Before, 81 to 82 %."""
    assert 0.86 <= np.mean([np.nanmean(inside(drawn(kind, seed))) for seed in range(70, 82)]) <= 0.94


@pytest.mark.x64
@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["correlated", "walk", "day"])
def test_rows_later_on_do_so_as_before(inside, kind):
    assert 0.88 <= np.mean([np.nanmean(inside(drawn(kind, seed, 6000))[1000:]) for seed in range(90, 94)]) <= 0.92


def test_how_much_wider_bands_are_follows_the_errors_that_were_seen():
    """In the middle of each interval nothing is missed: what is left is a Student-t beside a Gaussian."""
    bands, rows = Bands(0.9, H - 1, wary=True), 40 * H
    given = bands.follow(np.zeros(rows, int), np.full(rows, 0.5))
    judged = np.maximum(np.arange(rows) - (H - 1), 0)
    heavy = t.ppf(0.95, 2.0 + judged / (12.0 * H)) / norm.ppf(0.95)
    want = -0.002 * judged + np.minimum(judged / (2.0 * H), 1.0) * np.log(heavy)
    np.testing.assert_allclose(given, want, atol=1e-9)
    np.testing.assert_allclose(bands.now(), bands.follow(np.zeros(1, int), np.array([np.nan])))
    plain = Bands(0.9, 0, wary=True).follow(np.zeros(9, int), np.full(9, 0.5))
    np.testing.assert_allclose(plain, -0.002 * np.arange(9))


def test_in_pieces_bands_are_the_same():
    pit = np.random.default_rng(0).random(200)
    whole, parts, slot = Bands(0.9, 3, wary=True), [], np.zeros(200, int)
    want, bands = whole.follow(slot, pit), Bands(0.9, 3, wary=True)
    for part in np.split(pit, [1, 2, 50, 120]):
        parts.append(bands.follow(slot[: len(part)], part))
        kept, bands = bands.arrays, Bands(0.9, 3, wary=True)
        bands.restore(kept)
    np.testing.assert_array_equal(np.concatenate(parts), want)
