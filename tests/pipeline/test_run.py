"""A run on a table: against `Series` alone, cut in any way, by key, with known columns, and what it leaves behind."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet
import pytest

from filtax import io as store
from filtax.forecasting import Labels, Series
from filtax.io import InputError
from filtax.pipeline import Config, open_run, run_pipeline, write_outputs
from filtax.pipeline._scores import scores
from tables import HOURS, load, write
from thesis_load import LOAD, START, unit

pytestmark = pytest.mark.x64
ENDS = ("forecast", "lower", "upper")


def records_of(root):
    return np.concatenate(list(open_run(root).records()))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A run over a load with missing targets, a gross error, missing hours and a bad row."""
    folder = tmp_path_factory.mktemp("plain")
    y = load(0)
    y[200:203], y[300] = np.nan, 900.0
    kept = np.delete(np.arange(500), [*range(400, 410)])
    write(folder / "load<b>.csv", y[kept], HOURS[kept])
    text = (folder / "load<b>.csv").read_text().replace(f"{HOURS[250]},", f"{HOURS[250]},<script>alert(1)</script>", 1)
    (folder / "load<b>.csv").write_text(text)
    config = Config(str(folder / "load<b>.csv"), "load", time="when", horizon=3, block=128, checkpoint_every=128)
    progress = run_pipeline(config, folder / "run")
    kept = np.delete(kept, 250)
    return config, folder / "run", y[kept], HOURS[kept], progress


def arranged(out):
    """The forecasts of each row by step, of what was forecast at each row for the rows ahead: (T, H, 3)."""
    every = np.stack([out.forecast, out.lower, out.upper], axis=2)
    return np.array(
        [
            [e[t - j] if t >= j else np.full(3, np.nan) for j, e in enumerate(every.swapaxes(0, 1))]
            for t in range(len(every))
        ]
    )


def check(records, said):
    """Whether records hold the forecasts (T, H, 3) of each row, the last ones without a mark."""
    for j in range(said.shape[1]):
        mark = "" if j == said.shape[1] - 1 else f"_{j + 1}"
        for i, end in enumerate(ENDS):
            np.testing.assert_array_equal(records[end + mark], said[:, j, i], err_msg=end + mark)


def test_forecasts_of_each_step_are_those_of_the_series_made_so_many_steps_before(plain, tmp_path):
    _, root, y, time, _ = plain
    check(records_of(root), Series(3).learn(y, time).due)  # with missing hours
    y = load(7, 300)
    run_pipeline(Config(write(tmp_path / "t.csv", y), "load", time="when", horizon=3), tmp_path / "run")
    check(records_of(tmp_path / "run"), arranged(Series(3).learn(y, HOURS[:300])))


def test_late_targets_are_a_longer_step(tmp_path):
    y = load(7, 300)
    run_pipeline(Config(write(tmp_path / "t.csv", y), "load", time="when", delay=2), tmp_path / "run")
    out = Series((3,)).learn(y, HOURS[:300])  # row t - 2 of it is a forecast of row t
    for end in ENDS:
        said = np.concatenate([[np.nan, np.nan], vars(out)[end][:-2, 0]])
        np.testing.assert_array_equal(records_of(tmp_path / "run")[end], said)


@pytest.mark.parametrize("block", [7, 5000])
def test_known_columns_are_those_of_the_rows_ahead(block, tmp_path):
    """Rows wait until the columns ahead are there; at the end the last ones are repeated."""
    y, wind = load(1, 300), np.random.default_rng(2).normal(size=300)
    source = write(tmp_path / "t.csv", y, wind=[repr(w) for w in wind.tolist()])
    run_pipeline(Config(source, "load", time="when", features=("wind",), horizon=3, block=block), tmp_path / "run")
    known = np.concatenate([wind, [wind[-1]] * 2])[:, None]
    check(records_of(tmp_path / "run"), arranged(Series(3, known=1).learn(y, HOURS[:300], known)))


def test_other_columns_are_features_without_times_and_texts_are_indicators(tmp_path):
    rng = np.random.default_rng(5)
    x, day = rng.normal(size=400), rng.integers(0, 13, 400)
    y = 2.0 * x + day
    rows = [
        f"{a!r},{'' if d == 12 else 'abcdefghijklm'[d]},{v!r}\n"
        for a, d, v in zip(x.tolist(), day, y.tolist(), strict=True)
    ]
    (tmp_path / "t.csv").write_text("x,day,y\n" + "".join(rows))
    run_pipeline(Config(str(tmp_path / "t.csv"), "y", task="regress"), tmp_path / "run")
    met = list(dict.fromkeys(d for d in day.tolist() if d < 12))
    columns = np.array(
        [[met.index(d) == k if d in met[:11] else k == 11 for k in range(12)] for d in day.tolist()], float
    )
    columns[day == 12] = np.nan
    out = Series(1, known=13).learn(y, None, np.concatenate([x[:, None], columns], axis=1))
    np.testing.assert_array_equal(records_of(tmp_path / "run")["forecast"], out.forecast[:, 0])


def test_each_series_is_learned_as_if_it_were_alone(tmp_path):
    a, b = load(2, 300), 3.0 * load(3, 300)
    both, who = np.stack([a, b], axis=1).ravel(), ["a", "b"] * 300
    source = write(tmp_path / "both.csv", both, np.repeat(HOURS, 2), who=who)
    asked = Config(source, "load", time="when", key="who", horizon=2, block=64)
    run_pipeline(asked, tmp_path / "both")
    records = records_of(tmp_path / "both")
    assert open_run(tmp_path / "both").keys == ["a", "b"]
    for number, y in enumerate((a, b)):
        one = replace(asked, source=write(tmp_path / "one.csv", y), key=None)
        run_pipeline(one, tmp_path / f"one{number}")
        alone = records_of(tmp_path / f"one{number}")
        for name in (*ENDS, "forecast_1", "tail", "runlength"):
            np.testing.assert_array_equal(records[name][records["series"] == number], alone[name], err_msg=name)


def test_labels_are_those_of_the_classifier(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    words = np.array(["up", "down", ""])[np.where(rng.random(300) < 0.05, 2, (x > 0).astype(int))]
    rows = [f"{a!r},{w}\n" for a, w in zip(x.tolist(), words.tolist(), strict=True)]
    (tmp_path / "t.csv").write_text("x,kind\n" + "".join(rows))
    run_pipeline(Config(str(tmp_path / "t.csv"), "kind", block=64), tmp_path / "run")
    order = list(dict.fromkeys(word for word in words.tolist() if word))
    codes = np.array([order.index(word) if word else -1 for word in words.tolist()])
    chances = np.asarray(Labels(1).learn(codes, x[:, None]).probability)
    write_outputs(tmp_path / "run")
    table = pyarrow.parquet.read_table(tmp_path / "run" / "predictions.parquet").to_pydict()
    told = np.array([table[f"p({word})"] for word in order], float).T  # None, where a label has not been met, is NaN
    np.testing.assert_array_equal(told, np.where(chances > 0.0, chances, np.nan))
    assert table["kind"] == [word or None for word in words.tolist()]
    told = json.loads((tmp_path / "run" / "metrics.json").read_text())["table"]["filtax"]
    said = np.array(table["forecast"], object)
    ready = (codes >= 0) & (np.arange(300) > np.argmax(codes >= 0))
    np.testing.assert_allclose(told["accuracy"], np.mean((said == words)[ready]))
    own = chances[np.arange(300), codes]
    own = np.where(own > 0, own, 1.0 - chances.sum(axis=1))[ready]
    np.testing.assert_allclose(told["log_loss"], -np.log(own).mean())


def test_scores_are_those_of_numpy(plain):
    _, root, y, time, _ = plain
    records, found = records_of(root), scores(open_run(root))
    whole = np.full(500, np.nan)
    cells = ((time - time[0]) / np.timedelta64(60, "m")).astype(int)
    whole[cells] = y
    seen = lambda cell: next((v for v in whole[max(cell, 0) :: -1] if v == v), np.nan) if cell >= 0 else np.nan
    day = lambda cell: next((v for v in whole[max(cell, 0) :: -24] if v == v), np.nan) if cell >= 0 else np.nan
    for j, step in enumerate((1, 2, 3)):
        mark = "" if step == 3 else f"_{step}"
        said = records[f"forecast{mark}"], [seen(c - step) for c in cells], [day(c - 24) for c in cells]
        errors = np.abs(np.array(said) - y)
        ready = np.isfinite(errors).all(axis=0)
        line = found.steps[j]
        assert line["rows"] == ready.sum()
        np.testing.assert_allclose(line["mae"], errors[0, ready].mean())
        np.testing.assert_allclose(line["median"], np.median(errors[0, ready]), rtol=1e-6)
        np.testing.assert_allclose(line["rmse"], np.sqrt(np.mean(errors[0, ready] ** 2)))
        np.testing.assert_allclose(list(line["baselines"].values()), errors[1:, ready].mean(axis=1))
        low, high = records[f"lower{mark}"], records[f"upper{mark}"]
        judged = np.isfinite(y + low + high)
        np.testing.assert_allclose(line["coverage"], ((low <= y) & (y <= high))[judged].mean())
    assert found.table["filtax"]["mae"] == found.steps[-1]["mae"]


def test_events_name_their_lines(plain):
    _, root, _, _, progress = plain
    events = [json.loads(line) for line in (root / "events.jsonl").read_text().splitlines()]
    lines = lambda kind: [event["line"] for event in events if event["event"] == kind]
    assert lines("rejected") == [252]
    assert lines("blank") == [202, 203, 204]
    assert 302 in lines("outlier")
    gaps = [event for event in events if event["event"] == "gap"]
    assert [(gap["line"], gap["missing"]) for gap in gaps] == [(253, 1), (402, 10)]
    assert gaps[1]["time"] == "2024-01-18T02:00:00"
    outlier = next(event for event in events if event["event"] == "outlier" and event["line"] == 302)
    assert outlier["row"] == 300  # the bad row before it is no row
    assert (progress.rows, progress.rejected, progress.blank, progress.missing) == (489, 1, 3, 11)


def test_the_folder_holds_what_was_promised(plain):
    _, root, y, _, _ = plain
    words = write_outputs(root).words
    table = pyarrow.parquet.read_table(root / "predictions.parquet")
    names = ["line", "when", "load", *ENDS, *(f"{end}_{k}" for k in (1, 2) for end in ENDS)]
    assert table.column_names == [*names, "tail", "outlier", "change_probability", "runlength"]
    np.testing.assert_array_equal(table["load"].to_numpy(), y)
    metrics = json.loads((root / "metrics.json").read_text())
    assert (metrics["rows"], metrics["done"], len(metrics["steps"])) == (489, True, 3)
    assert metrics["words"] == words
    page = (root / "report.html").read_text()
    assert "<script>alert" not in page  # what the user's file holds is shown, not run
    assert "&lt;script&gt;alert" in page
    assert "load&lt;b&gt;.csv" in page
    assert not any(word in page for word in ("https://", "//cdn", "src="))
    assert page.count("<svg") == 6


@pytest.mark.parametrize("asked", [{}, {"features": ("load2",)}, {"key": "who", "horizon": 2}])
@pytest.mark.parametrize(("block", "every"), [(64, 64), (5000, 100_000)])
def test_how_rows_are_cut_does_not_matter(block, every, asked, tmp_path):
    y = load(4, 300)
    y[50:52] = np.nan
    time = np.repeat(HOURS, 2) if "key" in asked else HOURS
    source = write(tmp_path / "t.csv", y, time, load2=np.roll(y, 3), who=["a", "b"] * 150)
    text = (tmp_path / "t.csv").read_text().replace("\n", "\nbad,row\n", 3)
    (tmp_path / "t.csv").write_text(text)
    for name, how in (("a", {"block": 33, "checkpoint_every": 33}), ("b", {"block": block, "checkpoint_every": every})):
        run_pipeline(Config(source, "load", time="when", **{"horizon": 3, **asked}, **how), tmp_path / name)
        write_outputs(tmp_path / name)
    for name in ("predictions.parquet", "events.jsonl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_run_that_was_stopped_goes_on_bit_for_bit(tmp_path):
    source = write(tmp_path / "t.csv", load(0, 2000), wind=np.arange(2000) % 7)
    config = Config(source, "load", time="when", features=("wind",), horizon=3, block=300)
    assert run_pipeline(config, tmp_path / "run", stop=lambda: True).stopped
    while run_pipeline(Config.read(tmp_path / "run"), tmp_path / "run", stop=lambda: True).stopped:
        pass
    run_pipeline(config, tmp_path / "whole")
    assert open_run(tmp_path / "run").rows == 2000
    assert records_of(tmp_path / "run").tobytes() == records_of(tmp_path / "whole").tobytes()


@pytest.mark.parametrize("asked", [{}, {"features": ("wind",), "horizon": 4}])
def test_a_file_that_has_grown_goes_on_and_one_that_changed_is_refused(asked, tmp_path):
    """Also where the last rows were learned with known columns that were not there yet."""
    y, wind = load(1, 700), np.arange(700) % 5
    config = Config(write(tmp_path / "t.csv", y[:300], wind=wind[:300]), "load", time="when", block=128, **asked)
    run_pipeline(config, tmp_path / "run")
    write(tmp_path / "t.csv", y[:450], wind=wind[:450])
    assert run_pipeline(Config.read(tmp_path / "run"), tmp_path / "run").rows == 450
    run_pipeline(config, tmp_path / "whole")
    assert records_of(tmp_path / "run").tobytes() == records_of(tmp_path / "whole").tobytes()
    y[5] += 1.0
    write(tmp_path / "t.csv", y, wind=wind)
    with pytest.raises(store.Damaged, match="has changed since it was read"):
        run_pipeline(Config.read(tmp_path / "run"), tmp_path / "run")


def test_bad_rows_at_the_end_are_events_once_and_may_be_completed(tmp_path):
    """They lie behind the last row, where a resumed run starts to read: it meets them again."""
    source = write(tmp_path / "t.csv", load(1, 200))
    whole, events = (tmp_path / "t.csv").read_text(), tmp_path / "run" / "events.jsonl"
    (tmp_path / "t.csv").write_text(whole + "nonsense\n2024")
    assert run_pipeline(Config(source, "load", time="when"), tmp_path / "run").rejected == 2
    before = events.read_bytes()
    assert run_pipeline(Config.read(tmp_path / "run"), tmp_path / "run").rejected == 2
    assert events.read_bytes() == before
    assert before.count(b'"rejected"') == 2
    (tmp_path / "t.csv").write_text(whole + "nonsense\n2024-02-01,5\n")
    progress = run_pipeline(Config.read(tmp_path / "run"), tmp_path / "run")
    assert (progress.rows, progress.rejected) == (201, 1)
    assert events.read_bytes().count(b'"rejected"') == 1


@pytest.mark.parametrize("block", [32, 128])
@pytest.mark.parametrize("asked", [{}, {"task": "classify"}, {"delay": 4}, {"time": "t"}, {"key": "k", "time": "t"}])
def test_stop_ends_a_run_at_a_bad_row_and_it_goes_on_bit_for_bit(asked, block, tmp_path):
    def table(blank):
        rows = [f"{t},{'ab'[t % 2]},{(t * 5) % 7},{'' if t in blank else t % 3}\n" for t in range(90)]
        (tmp_path / "t.csv").write_text("t,k,x,y\n" + "".join(rows))

    config = Config(str(tmp_path / "t.csv"), "y", **{"task": "regress", **asked}, on_error="stop", block=block)
    table(blank=(70, 80))
    with pytest.raises(
        InputError, match=r"t\.csv:72:8: y: there is no target\. Fill it in, or .* --on-error reject\.$"
    ):
        run_pipeline(config, tmp_path / "run")
    waiting = 4 if "delay" in asked else 0  # for the columns of the rows after them
    assert open_run(tmp_path / "run").rows == 70 - waiting
    table(blank=())
    assert run_pipeline(Config.read(tmp_path / "run"), tmp_path / "run").rows == 90
    run_pipeline(config, tmp_path / "whole")
    assert records_of(tmp_path / "run").tobytes() == records_of(tmp_path / "whole").tobytes()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"horizon": 0}, "--horizon 0"),
        ({"horizon": 10**9, "time": "t"}, "--horizon"),
        ({"delay": 10**9}, "--delay"),
        ({"season": 10**9}, "--season"),
        ({"checkpoint_every": 10**15}, "--checkpoint-every"),
        ({"horizon": 3}, "needs --time"),
        ({"task": "cluster"}, "--task cluster"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(asked, words):
    with pytest.raises(ValueError, match=words):
        Config("t.csv", "y", **asked)


def test_a_horizon_that_would_need_too_much_memory_is_refused_in_a_sentence(tmp_path):
    source = write(tmp_path / "t.csv", load(0, 60), wind=range(60), sun=range(60), rain=range(60))
    asked = Config(source, "load", time="when", features=("wind", "sun", "rain"), horizon=9000, delay=1000)
    with pytest.raises(ValueError, match=r"look at 30000 numbers ahead, and 20000 is the most; shorten them, or name"):
        run_pipeline(asked, tmp_path / "run")


def test_many_series_are_saved_and_loaded(tmp_path):
    """The manifest of a checkpoint has a largest size, which keys must not count towards."""
    keys = [f"key{i}" for i in range(400)] * 2
    source = write(tmp_path / "t.csv", np.arange(800.0), np.repeat(HOURS[:2], 400), who=keys)
    run_pipeline(Config(source, "load", time="when", key="who"), tmp_path / "run")
    manifest = max((tmp_path / "run/checkpoint").glob("*.json"))
    assert manifest.stat().st_size < 5_000
    learner = open_run(tmp_path / "run").learner
    assert len(learner.tracks) == 400
    assert learner.tracks[399].series.count == 2


@pytest.mark.nightly
@pytest.mark.skipif(not LOAD.is_file(), reason="the load is not at hand: name the folder of data sets in FILTAX_DATA")
@pytest.mark.parametrize(("H", "error"), [(1, 0.032), (24, 0.13)])
def test_defaults_beat_the_baselines_with_honest_intervals(H, error, tmp_path):
    """All defaults, a file and two names, on the post-Covid load."""
    run_pipeline(Config(str(LOAD), "load_kw", time="time", horizon=H), tmp_path)
    records = np.concatenate(list(open_run(tmp_path).records()))
    y = records["y"]
    assert np.median((np.abs(records["forecast"] - y) / unit(y))[START:]) < error
    for step in scores(open_run(tmp_path)).steps:
        assert step["mae"] < min(step["baselines"].values())
        assert 0.88 < step["coverage"] < 0.92
