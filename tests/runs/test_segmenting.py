"""A series that is cut: the folder it leaves, what is told of it, and how it goes on after a crash."""

import json

import numpy as np
import pyarrow.parquet
import pytest

from command import filtax, sentence
from filtax.runs import segmenting
from filtax.runs.alike import correlation
from filtax.runs.cutting import Cut, alone
from filtax.runs.differing import differing
from filtax.runs.told_segments import in_words

pytestmark = pytest.mark.x64
FILES = ("config.toml", "events.jsonl", "metrics.json", "predictions.parquet", "report.html")


def write(path, rows=220, change=160):
    rng = np.random.default_rng(1)
    y = rng.normal(20.0, 1.0, size=rows) + np.where(np.arange(rows) < change, 0.0, 8.0)
    y[130] = 900.0
    hours = np.datetime64("2024-01-01T00:00") + 60 * np.arange(rows)
    lines = [f"{when},{float(value)!r}\n" for when, value in zip(hours, y, strict=True)]
    lines[7] = f"{hours[7]},much\n"
    path.write_text("when,<kW>\n" + "".join(lines))
    return lines


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    write(folder / "kw.csv")
    return folder


@pytest.fixture(scope="module")
def done(home):
    return filtax("segment", "kw.csv", "--target", "<kW>", "--time", "when", home=home)


def test_one_change_is_one_segment_more_and_one_alarm(done, home):
    """The oracle is how the series was made; row 8 cannot be read, so that rows count one less than lines."""
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["rows"], told["left_out"], told["missing"], told["period"]) == (219, 1, 0, None)
    assert [(part["row"], part["line"], part["rows"]) for part in told["segments"]] == [(1, 2, 159), (160, 162, 60)]
    rows = pyarrow.parquet.read_table(home / "out/segment-kw/predictions.parquet").to_pydict()
    y, trusted = np.array(rows["<kW>"]), np.array(rows["trust"]) == 1.0
    means = [y[:159][trusted[:159]].mean(), y[159:].mean()]
    np.testing.assert_allclose([part["mean"] for part in told["segments"]], means)
    np.testing.assert_allclose(rows["level"], np.repeat(means, [159, 60]))
    assert rows["segment"] == [1] * 159 + [2] * 60
    assert [place["row"] for place in told["distrusted"]] == [130]
    [alarm] = told["alarms"]
    assert alarm["change"] == alarm["began"]["row"] == 160
    assert 164 <= alarm["row"] <= 175
    assert told["segments"][1]["time"] == alarm["began"]["time"] == "2024-01-07T16:00:00"


def test_the_folder_is_that_of_a_run(done, home):
    root = home / "out/segment-kw"
    assert {path.name for path in root.iterdir()} == {*FILES, "checkpoint"}
    assert not (home / "out/segments.png").exists()
    events = [json.loads(line) for line in (root / "events.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["rejected", "distrusted", "change", "segment", "segment"]
    assert (events[2]["file"], events[2]["began"]) == ("kw.csv", 160)
    metrics = json.loads((root / "metrics.json").read_text())
    assert metrics["changes"] == 1
    said = done.stderr.splitlines()
    assert said[-2] == metrics["words"]
    assert said[-2].startswith(
        "<kW> changed once, with row 160 (line 162, 2024-01-07 16:00:00): its mean was 19.9 and is 28."
    )
    assert said[-2].endswith("1 reading that stands alone was not trusted.")
    assert said[-1] == "Report: out/segment-kw/report.html"
    page = (root / "report.html").read_text()
    assert page.count("<svg") == 2
    assert page.count('class="mark"') == 1
    assert "<kW>" not in page
    assert "&lt;kW&gt;" in page


def test_other_commands_read_it_or_say_why_not(done, home):
    before = {name: (home / "out/segment-kw" / name).read_bytes() for name in FILES}
    (home / "out/segment-kw/report.html").unlink()
    assert filtax("report", "out/segment-kw", home=home).stdout == done.stdout
    assert filtax("resume", "out/segment-kw", home=home).stdout == done.stdout
    assert {name: (home / "out/segment-kw" / name).read_bytes() for name in FILES} == before
    for verb in ("compare", "predict"):
        assert "was cut, and no forecasts" in sentence(filtax(verb, "out/segment-kw", home=home), 2)
    asked = ("run", "--config", "out/segment-kw/config.toml", "--out", "out/segment-kw")
    assert "add --resume" in sentence(filtax(*asked, home=home), 2)


def test_it_goes_on_after_a_crash_and_when_the_file_has_grown(done, home, monkeypatch):
    """Rows that came in two parts, with a process that died before it had cut them, end as rows that came at once."""
    whole = (home / "kw.csv").read_text()
    part = home / "part"
    part.mkdir()
    (part / "kw.csv").write_text("".join(whole.splitlines(keepends=True)[:110]))

    def die(y):
        raise MemoryError

    asked = ("run", "kw.csv", "--target", "<kW>", "--time", "when", "--task", "segment", "--out", "out/segment-kw")
    with monkeypatch.context() as patch:
        patch.setattr(segmenting, "cut_up", die)
        assert filtax(*asked, home=part).returncode == 1
    said = sentence(filtax("report", "out/segment-kw", home=part), 2)
    assert said.endswith("to go on: filtax resume out/segment-kw.")
    (part / "kw.csv").write_text(whole)
    again = filtax("resume", "out/segment-kw", home=part)
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr
    for name in FILES:
        assert (part / "out/segment-kw" / name).read_bytes() == (home / "out/segment-kw" / name).read_bytes(), name
    (part / "kw.csv").write_text(whole.replace("00:00,2", "00:00,3", 1))
    assert "has changed since it was read" in sentence(filtax("resume", "out/segment-kw", home=part), 3)


@pytest.mark.parametrize(
    ("at", "words", "then"),
    [
        ("runs.segmenting.open_table", "before the series was read: there is nothing to go on from.", None),
        ("store.save", "before the series was kept. To read it again: filtax resume r", "resume"),
        ("runs.segmenting.cut_up", "To go on: filtax resume r", "resume"),
        ("runs.segment_page.write_told", "the report is not written. To write it: filtax report r", "report"),
    ],
)
def test_an_interrupt_leaves_nothing_half_written_wherever_it_comes(at, words, then, done, home, tmp_path, monkeypatch):
    (tmp_path / "kw.csv").write_text((home / "kw.csv").read_text())
    asked = ("segment", "kw.csv", "--target", "<kW>", "--time", "when", "--out", "r")

    def stop(*_, **__):
        if then == "report":
            (tmp_path / "r/metrics.json.partial").write_text("{")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"filtax.{at}", stop)
        left = filtax(*asked, home=tmp_path)
    assert (left.returncode, left.stdout) == (130, "")
    assert left.stderr.splitlines()[-1].startswith("Stopped")
    assert left.stderr.strip().endswith(words)
    assert not list(tmp_path.rglob("*.partial"))
    again = filtax(then, "r", home=tmp_path) if then else filtax(*asked, home=tmp_path)
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y\n1\n", "1 reading; it takes 2 to 20000"),
        ("y\n" + "NA\n" * 9, "is empty in all rows"),
        ("y\na\nb\n", "holds no numbers"),
        ("y\n" + "1\n" * 20_001, "more than 20000 readings"),
    ],
)
def test_what_cannot_be_cut_is_refused(text, words, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    assert words in sentence(filtax("segment", "t.csv", "--target", "y", home=tmp_path), 2)
    assert not (tmp_path / "out/segment-t/config.toml").exists()


def test_a_reading_that_stands_alone_is_no_step_no_pair_and_no_count():
    rng = np.random.default_rng(0)
    y = rng.normal(size=300) + np.where(np.arange(300) < 200, 0.0, 50.0)
    for row in (10, 100, 250):  # the first is too early to say what is usual
        y[row] += 70.0
    y[[150, 151]] += 70.0
    y[252] = np.nan
    assert np.flatnonzero(alone(y)).tolist() == [100, 250]
    assert not alone(np.repeat([0.0, 1.0, 0.0], [99, 1, 99])).any()  # where nothing moves, nothing is usual
    assert not alone(np.full(99, np.nan)).any()
    assert not alone(100.0 * np.tanh(5.0 * np.sin(np.arange(500) / 20.0))).any()  # nor where a smooth one is steep
    part = alone(y[:200])  # nothing but two readings is looked ahead at
    np.testing.assert_array_equal(part[:-2], alone(y)[:198])


def test_rows_that_resemble_their_neighbours_are_told_of():
    """Each starts from the one before: what is cut off is no change. Levels, lines and cycles do not count."""
    rng, n = np.random.default_rng(1), 20_000
    noise, follows = rng.normal(size=n), np.zeros(n)
    for t in range(1, n):
        follows[t] = 0.8 * follows[t - 1] + noise[t]
    uncut, cut = (Cut(at, None, 1, [], [], [], np.zeros(n)) for at in ([], [n // 2]))
    assert abs(correlation(follows, uncut) - 0.8) < 0.02
    apart = Cut([], None, 1, [7, 99], [], [], np.zeros(n))
    assert abs(correlation(np.where(np.isin(np.arange(n), [7, 99]), 1e4, follows), apart) - 0.8) < 0.02
    stairs = noise + np.where(np.arange(n) < n // 2, 5.0, 1e-3 * np.arange(n))
    assert abs(correlation(stairs, cut)) < 0.03 < 0.7 < correlation(stairs, uncut)
    cycle = Cut([], 24.0, 1, [], [], [], np.zeros(n))
    there = noise + 9.0 * np.sin(2 * np.pi * np.arange(n) / 24)
    there[99] = np.nan
    assert abs(correlation(there, cycle)) < 0.03
    assert correlation(np.full(n, 3.0), uncut) == correlation(np.full(n, np.nan), uncut) == 0.0


def test_the_words_warn_of_them(tmp_path):
    y, rng = [0.0], np.random.default_rng(4)
    for noise in rng.normal(size=399).tolist():
        y.append(0.8 * y[-1] + noise)
    (tmp_path / "t.csv").write_text("y\n" + "".join(f"{value!r}\n" for value in y))
    done = filtax("segment", "t.csv", "--target", "y", home=tmp_path)
    told = json.loads(done.stdout)
    assert 0.25 < told["correlation"] < 0.8
    [said] = [line for line in done.stderr.splitlines() if "resemble" in line]
    assert f"(correlation {told['correlation']:.2f})" in said
    assert "use `filtax run`" in said


def test_an_alarm_is_of_the_nearest_change_once():
    cut = Cut([100, 200], None, 1, [], [30, 108, 115, 230], [12, 103, 98, 207], np.zeros(300))
    assert cut.meant == [None, 0, None, 1]
    assert Cut([100, 200], 48.0, 8, [], [230], [207], np.zeros(300)).meant == [1]


def test_an_alarm_behind_a_slope_is_of_it_though_it_names_a_later_start():
    """Cuts and alarms of slopes that change after 300 readings, as they were found."""
    of = lambda changes, times, starts: Cut(changes, None, 1, [], times, starts, np.zeros(900)).meant
    assert of([296], [377], [332]) == of([305], [335], [327]) == of([290], [329], [304]) == [0]
    assert of([298], [335, 363], [274, 299]) == [None, 0]  # the one that names it is of it
    assert of([305], [312, 327], [305, 320]) == [0, None]  # and once is enough
    assert of([298, 310], [318], [312]) == [1]
    assert of([296], [280], [250]) == of([296], [700], [680]) == [None]  # before it, and long after
    assert of([296, 400], [420], [380]) == [1]


def test_the_words_say_in_what_two_segments_differ():
    """The oracle is how they were made: a level, a slope, or a cycle of a day alone."""
    t, late = np.arange(600), np.arange(600) >= 300
    noise, day = np.random.default_rng(0).normal(size=600), 5.0 * np.sin(2 * np.pi * t / 24)
    of = lambda y, period=24.0: differing(y + noise, 0, 300, 600, period)
    assert of(day) == of(0.05 * t + day) == {}
    assert list(of(day + 4.0 * late)) == ["level"]
    assert list(of(0.05 * np.maximum(t - 300, 0), None)) == ["slope"]
    bent = of(0.05 * np.maximum(t - 300, 0) + day)
    np.testing.assert_allclose(bent["slope"], [0.0, 0.05], atol=0.005)
    assert of(np.where(late, -day, day)) == {"cycle": "turned round"}
    assert of(np.where(late, 0.3 * day, day)) == {"cycle": "shrank"}
    assert of(np.where(late, np.roll(day, 6), day)) == {"cycle": "became another one"}
    assert differing(np.arange(8.0), 0, 4, 8, None) == {}
    assert list(differing(np.repeat([3.0, 4.0], 50), 0, 50, 100, None)) == ["level"]
    parts = [{"row": 1, "line": 2, "mean": 0.05}, {"row": 301, "line": 302, "mean": 7.5, "differs": bent}]
    told = {"target": "y", "rows": 600, "alarms": [], "distrusted": [], "period": 24.0, "correlation": 0.0}
    said = in_words({**told, "segments": parts})
    assert "its slope was" in said
    assert "24 rows, which is no change." in said
    parts[1]["differs"] = {"cycle": "turned round"}
    assert "with row 301 (line 302): its cycle turned round. It has a cycle of 24 rows. As" in in_words(
        {**told, "segments": parts}
    )
    parts[1]["differs"] = {}
    assert "its mean was 0.05 and is 7.5." in in_words({**told, "segments": parts})
