"""A run on a table: against the method's own verbs, cut in any way, by key, and what it leaves behind."""

import json
import os
import signal
import threading

import jax.numpy as jnp
import numpy as np
import pyarrow.parquet
import pytest

import filtax as fx
from filtax import io as store
from filtax.evaluate import prequential
from filtax.io import InputError
from filtax.runs import Config, carry_on, open_run, scores
from filtax.runs.outputs import write_outputs
from filtax.streams import Season, TimedFeatures

pytestmark = pytest.mark.x64
HOURS = np.datetime64("2024-01-01T00:00") + 60 * np.arange(700)
METHOD = "WoLF-Huber(c=2.5)+NIG+C-Static"


def load(seed, rows=500):
    t = np.arange(rows)
    return 50.0 + 5.0 * np.sin(2 * np.pi * t / 24) + np.random.default_rng(seed).normal(size=rows)


def write(path, y, time=HOURS):
    lines = [f"{when},{'' if value != value else repr(float(value))}\n" for when, value in zip(time, y, strict=False)]
    path.write_text("when,load\n" + "".join(lines))
    return str(path)


def everything(root):
    run = open_run(root)
    [records] = run.records()
    return run, records


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A run over a load with a gap, a gross error and a bad row."""
    folder = tmp_path_factory.mktemp("plain")
    y = load(0)
    y[200:203] = np.nan
    y[300] = 900.0
    source = write(folder / "load<b>.csv", y)
    text = (folder / "load<b>.csv").read_text().replace(f"{HOURS[250]},", f"{HOURS[250]},<script>alert(1)</script>", 1)
    (folder / "load<b>.csv").write_text(text)
    y = np.delete(y, 250)
    config = Config(source, "load", time="when", method=METHOD, block=128, every=128)
    progress = carry_on(config, folder / "run")
    return config, folder / "run", y, np.delete(HOURS[:500], 250), progress


@pytest.mark.parametrize("H", [1, 3])
def test_forecasts_are_those_of_the_method_on_timed_features(H, plain, tmp_path):
    """The oracle: all rows at once, the method's own distributions, their intervals stretched by counting misses."""
    config, root, y, time, _ = plain
    if H > 1:
        config = Config(config.source, "load", time="when", method=METHOD, horizon=H, block=128)
        root = tmp_path / "run"
        carry_on(config, root)
    _, records = everything(root)
    maker = TimedFeatures(Season.of(time), horizon=H)
    _, made = maker.make(maker.init(), time, y)
    method = fx.method(METHOD, model=fx.models.linear(noise=1.0))
    start = method.init(mean=jnp.zeros(made.X.shape[1]), cov=0.1)
    learned = np.where(made.absurd > 0.0, np.nan, made.target)  # the gross error is as good as missing
    report = prequential(
        method, start, made.X, learned, metrics=("coverage(0.9)",), baselines=(), delay=H - 1, chunk=499
    )
    [run] = report.runs.values()
    forecast = run.forecasts[0]
    said = made.restore(np.asarray(forecast.mean))
    said[:H], said[H : 2 * H] = np.nan, y[:H]  # nothing is known, then only the last reading
    np.testing.assert_allclose(records["forecast"], said, rtol=1e-7)
    seen = np.isfinite(made.target)
    early = np.cumsum(seen) <= 1 + (H > 1)  # the first row that is judged, and those whose label has not come by then
    for name, u in (("lower", forecast.lower), ("upper", forecast.upper)):
        np.testing.assert_allclose(records[name][early], made.restore(np.asarray(u))[early], rtol=1e-7, err_msg=name)
    missed = seen & ((y < records["lower"]) | (y > records["upper"]))
    verdicts = np.where(seen, missed - 0.1, 0.0)
    stretch = np.exp(0.02 * np.concatenate([np.zeros(H), np.cumsum(verdicts)])[:499])
    wide, usual = (np.asarray(u) for u in (records["upper"] - records["lower"], forecast.upper - forecast.lower))
    late = np.arange(499) > 250  # by then a Student-t is nearly Gaussian, and the stretch is the ratio of the widths
    np.testing.assert_allclose((wide / (usual * made.scale))[late], stretch[late], rtol=0.01)
    want = np.asarray(forecast.log_prob) - np.log(made.scale)
    judged = np.isfinite(learned)
    np.testing.assert_allclose(records["log_score"][judged], want[judged], rtol=1e-6, atol=1e-8)
    assert np.isfinite(records["log_score"][seen]).all()
    assert np.isnan(records["log_score"][~seen]).all()


def test_events_name_their_lines(plain):
    _, root, _, _, progress = plain
    events = [json.loads(line) for line in (root / "events.jsonl").read_text().splitlines()]
    rejected = [event for event in events if event["event"] == "rejected"]
    assert [event["line"] for event in rejected] == [252]
    outlier = next(event for event in events if event["event"] == "distrusted" and event["line"] == 302)
    assert outlier["time"] == str(HOURS[300]) + ":00"
    assert outlier["row"] == 300  # the bad row before it was no row
    assert (progress.rows, progress.rejected) == (499, 1)


def test_scores_are_those_of_numpy(plain):
    _, root, y, _, _ = plain
    run, records = everything(root)
    found = scores(run)
    ready = np.isfinite(y) & np.isfinite(records["forecast"]) & (np.arange(499) > 0)
    error = np.abs(records["forecast"] - y)[ready]
    own = found["table"][METHOD]
    np.testing.assert_allclose(own["mae"], error.mean())
    np.testing.assert_allclose(own["median"], np.median(error))
    np.testing.assert_allclose(own["rmse"], np.sqrt(np.mean(error**2)))
    known = np.isfinite(y) & (np.arange(499) > 1)  # the first two have no interval
    inside = (records["lower"] <= y) & (y <= records["upper"])
    np.testing.assert_allclose(found["coverage"], inside[known].mean(), rtol=1e-12)
    last = np.abs(np.diff(y))
    np.testing.assert_allclose(found["table"]["last-value"]["mae"], np.nanmean(last), rtol=0.03)


def test_the_folder_holds_what_was_promised(plain):
    _, root, y, _, _ = plain
    written = write_outputs(root)
    table = pyarrow.parquet.read_table(root / "predictions.parquet")
    assert table.column_names[:5] == ["line", "when", "load", "forecast", "lower"]
    np.testing.assert_array_equal(table["load"].to_numpy(), y)
    metrics = json.loads((root / "metrics.json").read_text())
    assert metrics["rows"] == 499
    assert metrics["done"] is True
    assert "beats" in written.words or "loses" in written.words
    page = (root / "report.html").read_text()
    assert "<script>alert" not in page  # what the user's file holds is shown, not run
    assert "&lt;script&gt;alert" in page
    assert "load&lt;b&gt;.csv" in page
    assert not any(word in page for word in ("http://", "https://", "//cdn", "src=")) or "www.w3.org" in page
    assert page.count("<svg") >= 6


@pytest.mark.parametrize(("block", "every"), [(64, 64), (512, 100_000)])
def test_how_rows_are_cut_does_not_matter(block, every, plain, tmp_path):
    config, root, _, _, _ = plain
    again = Config(config.source, "load", time="when", method=METHOD, block=block, every=every)
    carry_on(again, tmp_path / "run")
    assert everything(root)[1].tobytes() == everything(tmp_path / "run")[1].tobytes()


def test_a_run_that_was_stopped_goes_on_bit_for_bit(plain, tmp_path):
    config, root, _, _, _ = plain
    asked = iter([False, True])
    first = carry_on(config, tmp_path / "run", stop=lambda: next(asked))
    assert (first.stopped, first.rows) == (True, 256)
    resumed = Config.read(tmp_path / "run")
    second = carry_on(resumed, tmp_path / "run")
    assert (second.stopped, second.rows) == (False, 499)
    write_outputs(root)
    write_outputs(tmp_path / "run")
    for name in ("predictions.parquet", "events.jsonl"):
        assert (root / name).read_bytes() == (tmp_path / "run" / name).read_bytes()


def test_a_file_that_has_grown_goes_on_and_one_that_changed_is_refused(tmp_path):
    y = load(1, 700)
    source = write(tmp_path / "t.csv", y[:300])
    config = Config(source, "load", time="when", method=METHOD, block=128)
    carry_on(config, tmp_path / "run")
    write(tmp_path / "t.csv", y[:450])
    assert carry_on(Config.read(tmp_path / "run"), tmp_path / "run").rows == 450
    carry_on(Config(source, "load", time="when", method=METHOD, block=128), tmp_path / "whole")
    assert everything(tmp_path / "run")[1].tobytes() == everything(tmp_path / "whole")[1].tobytes()
    y[5] += 1.0
    write(tmp_path / "t.csv", y)
    with pytest.raises(store.Damaged, match="has changed since it was read"):
        carry_on(Config.read(tmp_path / "run"), tmp_path / "run")


def test_bad_rows_at_the_end_are_told_of_once(tmp_path):
    """They lie behind the last row, where a resumed run starts to read: it meets them again."""
    source = write(tmp_path / "t.csv", load(1, 200))
    with open(source, "a") as file:
        file.write("nonsense\n")
    carry_on(Config(source, "load", time="when", method=METHOD, block=128), tmp_path / "run")
    told = (tmp_path / "run" / "events.jsonl").read_bytes()
    assert told.count(b'"rejected"') == 1
    assert carry_on(Config.read(tmp_path / "run"), tmp_path / "run").rejected == 1
    assert (tmp_path / "run" / "events.jsonl").read_bytes() == told


def test_a_second_writer_is_refused(plain):
    _, root, _, _, _ = plain
    with store.lock(root / "checkpoint"), pytest.raises(store.Busy, match="is being written by process"):
        carry_on(Config.read(root), root)


def test_each_series_is_learned_as_if_it_were_alone(tmp_path):
    """Of a table with two series, each must come out as from a table of its own, bit for bit."""
    a, b = load(2, 300), 3.0 * load(3, 300)
    rows = [f"{when},{name},{value!r}\n" for when, *pair in zip(HOURS[:300], a, b, strict=True)
            for name, value in zip("ab", map(float, pair), strict=True)]  # fmt: skip
    (tmp_path / "both.csv").write_text("when,who,load\n" + "".join(rows))
    both = Config(str(tmp_path / "both.csv"), "load", time="when", key="who", method=METHOD, block=128)
    carry_on(both, tmp_path / "both")
    run, records = everything(tmp_path / "both")
    assert run.note["keys"] == ["a", "b"]
    for number, y in enumerate((a, b)):
        alone = Config(write(tmp_path / "one.csv", y), "load", time="when", method=METHOD, block=128)
        carry_on(alone, tmp_path / f"one{number}")
        _, one = everything(tmp_path / f"one{number}")
        for name in ("forecast", "lower", "pit", "last-value", "seasonal-naive(24)"):
            np.testing.assert_allclose(records[name][records["series"] == number], one[name], rtol=1e-9, err_msg=name)


def test_columns_in_wild_units_are_learned(tmp_path):
    """y = 1e6 x - 7 + noise with x near 1e-3, a text that shifts y, and a constant column: as least squares would."""
    rng = np.random.default_rng(5)
    x, day = 5e-3 + 1e-3 * rng.normal(size=600), rng.integers(0, 3, 600)
    y = 1e6 * x - 7.0 + 900.0 * (day == 1) + rng.normal(size=600)
    rows = [f"{float(a)!r},{'abc'[d]},4,{float(v)!r}\n" for a, d, v in zip(x, day, y, strict=True)]
    (tmp_path / "t.csv").write_text("x,day,four,y\n" + "".join(rows))
    carry_on(Config(str(tmp_path / "t.csv"), "y", method="LG+C-Static", prior=100.0, block=128), tmp_path / "run")
    run, records = everything(tmp_path / "run")
    assert run.config.task == "regress"
    off = np.abs(records["forecast"] - y)[400:]
    assert off.mean() < 5.0  # the spread of y is 1000; least squares leave 0.8
    assert scores(run)["table"]["LG+C-Static"]["mae"] < scores(run)["table"]["running-mean"]["mae"]


def test_stop_keeps_the_rows_before_the_bad_one(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{i % 3},{i % 5}.5\n" for i in range(80)) + "1,x\n2,3.5\n")
    config = Config(str(tmp_path / "t.csv"), "y", method="LG+C-Static", on_bad="stop", block=128)
    with pytest.raises(InputError, match=r"t\.csv:82:3"):
        carry_on(config, tmp_path / "run")
    assert open_run(tmp_path / "run").rows == 80
    text = (tmp_path / "t.csv").read_text()
    (tmp_path / "t.csv").write_text(text.replace("1,x\n", "1,2.5\n"))
    assert carry_on(Config.read(tmp_path / "run"), tmp_path / "run").rows == 82
    carry_on(config, tmp_path / "whole")
    assert everything(tmp_path / "run")[1].tobytes() == everything(tmp_path / "whole")[1].tobytes()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"horizon": 0}, "--horizon 0"),
        ({"horizon": 3}, "needs --time"),
        ({"task": "cluster"}, "--task cluster"),
        ({"on_bad": "cry"}, "--on-bad cry"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(asked, words):
    with pytest.raises(ValueError, match=words):
        Config("t.csv", "y", **asked)


def test_methods_that_cannot_run_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{i},{i}.5\n" for i in range(20)))
    refused = {"EnKF(size=10)+C-Static": "draws at random", "LG+RL[inf]-PR(hazard=0.1)": "ever more"}
    refused |= dict.fromkeys(("CPV(memory=3)-Sub", "OGD(rate=0.1)+C-Static"), "remembers data as they came")
    for name, words in refused.items():
        with pytest.raises(ValueError, match=words):
            carry_on(Config(str(tmp_path / "t.csv"), "y", method=name), tmp_path / "run")


def test_interrupt_between_blocks_leaves_a_checkpoint(plain, tmp_path, request):
    config, root, _, _, _ = plain
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals come to the main thread")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    calls = iter(range(9))

    def tell(*_):
        if next(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    lazy = Config(config.source, "load", time="when", method=METHOD, block=128, every=100_000)
    with pytest.raises(KeyboardInterrupt):
        carry_on(lazy, tmp_path / "run", tell=tell)
    assert open_run(tmp_path / "run").rows == 256
    carry_on(Config.read(tmp_path / "run"), tmp_path / "run")
    assert everything(tmp_path / "run")[1].tobytes() == everything(root)[1].tobytes()


def test_checkpoints_come_as_often_as_was_asked_for(plain, tmp_path, monkeypatch):
    """A block may be longer than that; only the first, by which the run is planned, stays whole."""
    config, root, _, _, _ = plain
    kept, save = [], store.save
    told = lambda *args, note, **how: (kept.append(note["rows"]), save(*args, note=note, **how))[1]
    monkeypatch.setattr(store, "save", told)
    carry_on(Config(config.source, "load", time="when", method=METHOD, block=128, every=50), tmp_path / "run")
    assert kept[:4] == [128, 178, 228, 278]
    assert everything(tmp_path / "run")[1].tobytes() == everything(root)[1].tobytes()
