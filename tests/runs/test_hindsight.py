"""Errors among the first readings: told of with the 24th row, and then forgotten by all that had learned of them."""

import json

import numpy as np
import pytest

from command import filtax
from filtax.runs.blocks import Block
from filtax.runs.config import Config
from filtax.runs.fan import Fan
from filtax.runs.hindsight import ROWS, errors
from filtax.runs.numbers import NumberStream
from filtax.runs.plan import decide

pytestmark = pytest.mark.x64
LENGTH = 300
T = np.arange(LENGTH)
HOURS = np.datetime64("2024-01-01T00", "us") + 3_600_000_000 * T
METHOD = "WoLF-MD(c=4)+NIG+C-Static"
KINDS = {
    "first": ([0], 1000.0),
    "huge": ([0], 1e15),
    "sentinel": ([0, 1, 2], -999.0),
    "apart": ([3, 11, 19], 9999.0),
    "sixth": ([5], 1e6),
}


def day(seed):
    return 20.0 + 3.0 * np.sin(2 * np.pi * T / 24) + 0.3 * np.random.default_rng(seed).normal(size=LENGTH)


def spoiled(seed, kind):
    y, (at, value) = day(seed), KINDS[kind]
    y[at] = value
    return y, at


def block(y, rows=slice(None), key=None):
    y = np.asarray(y)[rows]
    return Block(
        {"y": y}, {}, HOURS[T[rows] if key is None else T[rows] // 2], key, T[rows], np.zeros(len(y)), [], None
    )


@pytest.fixture(scope="module")
def made():
    plan = decide(Config("-", "y", time="t", method=METHOD, block=512), block(day(0)))
    learner = NumberStream(plan).learner
    return lambda: NumberStream(plan, learner=learner)


def told_in(found):
    """Rows that were not trusted, and those that were known late."""
    later = [row - value[0] for row, kind, value in found if kind == "hindsight"]
    return later, [row for row, kind, _ in found if kind == "distrusted"]


@pytest.mark.parametrize("kind", KINDS)
def test_behind_the_first_rows_a_run_is_as_if_the_errors_had_been_missing(made, kind):
    """The oracle: a run on the same series with blanks in their place."""
    y, at = spoiled(1, kind)
    stream, blank = made(), made()
    said, found = stream.learn(block(y))
    want, _ = blank.learn(block(np.where(np.isin(T, at), np.nan, y)))
    later, at_once = told_in(found)
    assert sorted({*later, *(row for row in at_once if row < ROWS)}) == at
    assert not set(later) & set(at_once)
    for name in ("forecast", "lower", "upper", "pit"):
        np.testing.assert_array_equal(said[name][ROWS:], want[name][ROWS:], err_msg=name)
    for own, other in zip(stream.course.arrays, blank.course.arrays, strict=True):
        np.testing.assert_array_equal(own, other)


def test_in_pieces_and_by_way_of_a_checkpoint_it_is_the_same(made):
    y, _ = spoiled(2, "apart")
    whole, found = made().learn(block(y))
    stream, parts, events = made(), [], []
    for rows in np.split(T, [1, 2, 12, 23, 24, 25, 100]):
        said, more = stream.learn(block(y, rows))
        parts.append(said)
        events += [(int(rows[0]) + row, kind, value) for row, kind, value in more]
        kept, stream = stream.state(), made()
        stream.restore(kept)
    assert events == found
    for name, values in whole.items():
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), values, err_msg=name)


def test_series_that_come_in_turn_have_each_a_beginning(made):
    y = np.stack([spoiled(3, "first")[0], day(4)], axis=1).ravel()[:LENGTH]
    config = Config("-", "y", time="t", key="k", method=METHOD, block=512)
    both = NumberStream(decide(config, block(y, key=np.tile(["a", "b"], LENGTH // 2))))
    said, found = both.learn(block(y, key=np.tile(["a", "b"], LENGTH // 2)))
    assert [(row, value[0]) for row, kind, value in found if kind == "hindsight"] == [(2 * ROWS - 2, ROWS - 1)]
    for k in (0, 1):
        alone, _ = made().learn(block(y[k::2], slice(0, LENGTH // 2)))
        np.testing.assert_allclose(said["upper"][k::2], alone["upper"], rtol=1e-9)


def test_every_step_of_a_horizon_looks_back():
    y, at = spoiled(5, "sentinel")

    def wide(y):
        fan = Fan(decide(Config("-", "y", time="t", method=METHOD, horizon=3, block=512), block(day(0))))
        said, found = fan.learn(block(y))
        return np.median((said["upper"] - said["lower"])[30:60]), found

    (width, found), (usual, _) = wide(y), wide(day(5))
    assert told_in(found)[0] == at
    assert width < 1.4 * usual  # they were six times as wide


def test_where_labels_come_late_it_is_known_later():
    y, at = spoiled(5, "sentinel")
    stream = NumberStream(decide(Config("-", "y", time="t", method=METHOD, delay=4, block=512), block(day(0))))
    assert stream.late.delay == 4
    found = stream.learn(block(y))[1]
    assert [(row, row - value[0]) for row, kind, value in found if kind == "hindsight"] == [(ROWS + 3, i) for i in at]


@pytest.mark.parametrize("shape", ["hill", "step", "line", "still", "end", "half", "short"])
def test_what_may_be_right_is_no_error(shape):
    t = np.arange(ROWS)
    noise = np.random.default_rng(0).normal(size=ROWS)
    y = {
        "hill": noise + np.maximum(0.0, 100.0 * np.sin(np.pi * (t - 7) / 10)) * ((t > 7) & (t < 17)),  # the sun
        "step": noise + 1e4 * (t >= 12),
        "line": 1e3 * t + noise,
        "still": np.where(t == 0, 1e6, 5.0),  # no unit to be far off by
        "end": noise + 1e5 * (t >= 22),  # a level that has moved, for all that is known
        "half": noise + 1e5 * (t % 3 == 0),
        "short": np.where(t < 8, noise + 1e5 * (t == 0), np.nan),
    }[shape]
    assert np.isnan(errors(y)).all()


@pytest.mark.parametrize("noise", ["normal", "standard_t", "lognormal"])
def test_of_clean_beginnings_hardly_one_is_looked_at_again(noise):
    rng = np.random.default_rng(0)
    drawn = {"normal": rng.normal, "lognormal": rng.lognormal, "standard_t": lambda size: rng.standard_t(3, size)}
    assert sum(np.isfinite(errors(drawn[noise](size=ROWS))).any() for _ in range(1000)) <= 2


def test_the_report_and_the_events_name_the_line(tmp_path):
    y, at = spoiled(1, "sentinel")
    rows = [f"{when},{value!r}\n" for when, value in zip(HOURS[:100].astype("M8[m]"), y[:100].tolist(), strict=True)]
    (tmp_path / "t.csv").write_text("t,y\n" + "".join(rows))
    for block_size in (8, 128):
        out = f"run{block_size}"
        asked = ("--target", "y", "--time", "t", "--method", METHOD, "--block", block_size, "--out", out)
        ended = filtax("run", "t.csv", *asked, home=tmp_path)
        assert ended.returncode == 0, ended.stderr
        events = [json.loads(line) for line in (tmp_path / out / "events.jsonl").read_text().splitlines()]
        assert [(e["row"], e["line"], e["known"]) for e in events] == [(i + 1, i + 2, ROWS) for i in at]
        assert events[0]["time"] == "2024-01-01T00:00:00"
        report = (tmp_path / out / "report.html").read_text()
        assert [report.count(f"<td>2024-01-01 0{i}:00:00</td><td>-999</td>") for i in at] == [1, 1, 1]
