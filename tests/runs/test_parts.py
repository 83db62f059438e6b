"""The parts of a run that numpy can check: units, baselines as rows come, blocks, alarms."""

import numpy as np
import pytest

from filtax.evaluate import last_class, last_value, majority_class, naive_plus_change, running_mean, seasonal_naive
from filtax.io import open_table
from filtax.runs.blocks import blocks
from filtax.runs.inputs import WIDTH, Inputs, Pool
from filtax.runs.rivals import LabelRivals, Rivals
from filtax.runs.surprise import Surprise
from filtax.runs.trace import ROOM, Trace


def cuts(rows, seed):
    inner = np.sort(np.random.default_rng(seed).integers(0, rows, 6))
    return [slice(a, b) for a, b in zip([0, *inner], [*inner, rows], strict=True)]


def test_a_pool_knows_mean_and_variance_of_all_it_saw():
    rows = np.random.default_rng(0).normal(3.0, 2.0, (500, 3))
    rows[::7, 1] = np.nan
    pool = Pool.start(3)
    for part in cuts(500, 1):
        pool.add(rows[part])
    pool.close()
    np.testing.assert_allclose(pool.mean, np.nanmean(rows, axis=0))
    np.testing.assert_allclose(pool.var, np.nanvar(rows, axis=0))
    z = pool.standard(rows)
    np.testing.assert_allclose(z[0, 0], (rows[0, 0] - pool.mean[0]) / np.sqrt(pool.var[0]))
    assert z[0, 1] == 0.0


def test_a_pool_does_not_care_how_rows_are_cut():
    rows = 1e9 + np.random.default_rng(3).normal(size=(200, 2))
    pools = []
    for seed in (4, 5):
        pools.append(Pool.start(2))
        for part in cuts(200, seed):
            pools[-1].add(rows[part])
        pools[-1].close()
    assert pools[0].arrays.tobytes() == pools[1].arrays.tobytes()
    np.testing.assert_allclose(pools[0].scale, rows.std(axis=0), rtol=1e-6)


def test_one_absurd_number_does_not_become_the_unit():
    pool = Pool.start(1)
    for rows in (np.random.default_rng(0).normal(size=(100, 1)), np.array([[1e12]])):
        pool.add(rows)
        pool.close()
    assert pool.scale[0] < 3.0


def test_texts_have_slots_of_their_own_until_they_run_out():
    inputs = Inputs([], ["a"])
    words = np.array([f"w{i}" for i in range(WIDTH + 5)], object)
    raw = inputs.raw(np.empty((len(words), 0)), {"a": words})
    assert np.isinf(raw).sum(axis=1).tolist() == [1] * len(words)
    assert np.isinf(raw).sum(axis=0).tolist() == [1] * (WIDTH - 1) + [6]
    again = inputs.raw(np.empty((2, 0)), {"a": words[[3, 0]]})
    assert np.flatnonzero(np.isinf(again[0])).tolist() == [3]


@pytest.mark.parametrize("H", [1, 5])
def test_baselines_as_rows_come_are_those_of_the_whole_series(H):
    """The oracle sees the whole series at once."""
    rng = np.random.default_rng(2)
    y = rng.normal(size=300)
    y[rng.random(300) < 0.1] = np.nan
    rivals = Rivals((4, 12), H - 1)
    said = np.concatenate([rivals.forecast(np.zeros(part.stop - part.start, int), y[part]) for part in cuts(300, 3)])
    rules = [last_value(), seasonal_naive(4), naive_plus_change(4), seasonal_naive(12), naive_plus_change(12)]
    for column, rule in zip(said.T, rules, strict=True):
        np.testing.assert_array_equal(column, rule(y, delay=H - 1).mean)


def test_series_do_not_mix():
    y = np.arange(20.0)
    slot = np.tile([0, 1], 10)
    rivals = Rivals((), 0)
    rivals.make_room(2)
    said = np.concatenate([rivals.forecast(slot[part], y[part]) for part in cuts(20, 0)])
    np.testing.assert_array_equal(said[slot == 1, 0], last_value()(y[slot == 1]).mean)
    np.testing.assert_allclose(said[slot == 0, 1], running_mean()(y[slot == 0]).mean)


def test_label_baselines_are_those_of_the_whole_series():
    y = np.random.default_rng(4).integers(0, 3, 60).astype(float)
    y[[3, 17]] = np.nan
    rivals = LabelRivals(3)
    said = np.concatenate([rivals.forecast(y[part]) for part in cuts(60, 5)])
    seen = np.isfinite(y[:-1])
    assert np.isnan(said[0]).all()
    want = [last_class(3)(y).mean.argmax(axis=1), majority_class(3)(y).mean.argmax(axis=1)]
    np.testing.assert_array_equal(said[1:, 0], y[:-1][np.maximum.accumulate(np.where(seen, np.arange(59), 0))])
    assert np.mean(said[10:, 1] == want[1][10:]) == 1.0


def test_alarms_do_not_depend_on_blocks_and_find_a_shift():
    rng = np.random.default_rng(6)
    pit = rng.random(3000)
    pit[2000:2100] = 0.5 + 0.5 * rng.random(100) ** 0.05
    slot = np.zeros(3000, int)
    whole = Surprise(0.001).numbers(slot, pit)
    pieces, start = Surprise(0.001), []
    for part in cuts(3000, 7):
        start += [(row + part.start, *rest) for row, *rest in pieces.numbers(slot[part], pit[part])]
    assert whole == start
    changes = [(row, since) for row, kind, since in whole if kind == "change"]
    assert changes
    assert 2000 <= changes[0][0] < 2040
    assert changes[0][0] - changes[0][1] <= 2005


def test_false_alarms_of_a_change_are_rarer_than_the_rate():
    """Calibrated forecasts: the mean time to a false alarm is at least a million rows."""
    pit = np.random.default_rng(8).random(200_000)
    found = Surprise(0.001).numbers(np.zeros(len(pit), int), pit)
    distrusted = sum(kind == "distrusted" for _, kind, _ in found)
    assert sum(kind == "change" for _, kind, _ in found) <= 2  # P(more) < 1e-3 at 0.2 expected
    assert abs(distrusted - 200) < 60  # four standard deviations


@pytest.mark.parametrize("bytes_at_once", [64, 1 << 20])
def test_blocks_have_one_size_whatever_the_chunks(bytes_at_once, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y\n" + "".join("x\n" if i % 10 == 3 else f"{i}\n" for i in range(100)))
    table = open_table(path, target="y", types={"y": "number"}, block=bytes_at_once)
    cut = list(blocks(table, 16, [], eager=False))
    assert [block.rows for block in cut] == [16] * 5 + [10]
    assert sum(len(block.rejected) for block in cut) == 10
    for block in cut[:-1]:
        assert all(row.line < block.line[-1] for row in block.rejected)
    rest = list(blocks(open_table(path, target="y", start=cut[1].position()), 16, [], eager=False))
    np.testing.assert_array_equal(rest[0].numbers["y"], cut[2].numbers["y"])


def test_a_trace_keeps_a_bounded_number_of_looks_that_span_the_run():
    trace = Trace(2)
    for row in range(1, 20_001):
        trace.look(row, lambda row=row: np.array([row, -row]))
    assert ROOM // 2 <= len(trace.rows) < ROOM
    assert trace.rows[0] == trace.gap
    np.testing.assert_array_equal(np.diff(trace.rows), trace.gap)
    assert trace.rows[-1] + trace.gap > 20_000
    np.testing.assert_array_equal(trace.weights, np.stack([trace.rows, -trace.rows], axis=1))
