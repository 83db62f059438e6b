"""`filtax tune`: it looks at the first rows only, goes on where it stopped, and writes what `filtax run` takes."""

import sys
import tomllib

import numpy as np
import pytest

from command import filtax, sentence
from filtax import io as store
from filtax.runs import Config, carry_on, open_run
from filtax.runs.knobs import knobs_of, turned
from filtax.runs.search import _first_rows, search
from filtax.tuning import Log

pytestmark = pytest.mark.x64
ROWS = 120
ASK = ("tune", "t.csv", "--target", "y", "--method", "LG+C-ACI(q=0.9)", "--rows", ROWS)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A relation that does not move, for a method that thinks it does."""
    folder = tmp_path_factory.mktemp("tune")
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = 2.0 * x + 0.5 * rng.normal(size=300)
    rows = [f"{a!r},{b!r}\n" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    (folder / "t.csv").write_text("x,y\n" + "".join(rows))
    (folder / "start.csv").write_text("x,y\n" + "".join(rows[:ROWS]))
    return folder


@pytest.fixture(scope="module")
def tuned(home):
    return filtax(*ASK, "--budget", 12, "--out", "found", home=home)


def loss(home, config, root):
    carry_on(config, root)
    return -np.nanmean(np.concatenate(list(open_run(root).records()))["log_score"])


def test_what_it_prints_is_a_configuration_with_less_loss(tuned, home, tmp_path):
    """The oracle of the loss is a run on a file that has no other rows."""
    assert tuned.returncode == 0, tuned.stderr
    assert (home / "found" / "tuned.toml").read_text() == tuned.stdout
    found = Config.from_json(tomllib.loads(tuned.stdout))
    [knob] = knobs_of(found.method)
    assert float(found.method[knob.start : knob.stop]) < 0.3
    own = {"source": str(home / "start.csv"), "target": "y"}
    least = loss(home, Config(**own, method=found.method, prior=found.prior), tmp_path / "a")
    usual = loss(home, Config(**own, method="LG+C-ACI(q=0.9)"), tmp_path / "b")
    assert least < usual
    assert f"{least:.4g} a row, {usual:.4g} before" in tuned.stderr
    assert "settings: 12 tried" in tuned.stderr


def test_it_goes_on_where_it_stopped_and_never_looks_behind_the_first_rows(tuned, home):
    text = (home / "t.csv").read_text()
    lines = text.splitlines(keepends=True)
    (home / "t.csv").write_text("".join([*lines[: ROWS + 1], *["9,-9\n"] * 50]))
    again = filtax(*ASK, "--budget", 12, "--out", "found", home=home)
    (home / "t.csv").write_text(text)
    assert (again.returncode, again.stdout) == (0, tuned.stdout)
    more = filtax(*ASK, "--budget", 14, "--out", "found", home=home)
    assert "14 settings on 120 rows" in more.stderr
    assert "had a budget of 12 and has tried 12 settings; with 14 it goes on to 14." in more.stderr
    other = filtax(*ASK, "--budget", 14, "--out", "found", "--by", "mae", home=home)
    assert "holds another search" in sentence(other, 2)


def test_a_run_takes_it_and_options_count_more(tuned, home):
    ended = filtax("run", "--config", "found/tuned.toml", "--out", "ran", home=home)
    assert ended.returncode == 0, ended.stderr
    assert Config.read(home / "ran").method == tomllib.loads((home / "found/tuned.toml").read_text())["method"]
    ended = filtax("run", "--config", "ran/config.toml", "--method", "LG+C-Static", "--out", "other", home=home)
    assert ended.returncode == 0, ended.stderr
    assert Config.read(home / "other").method == "LG+C-Static"
    (home / "bad.toml").write_text("horizn = 3\n")
    assert "no entry 'horizn'" in sentence(filtax("run", "t.csv", "--config", "bad.toml", home=home), 2)
    assert "SOURCE is missing" in sentence(filtax("run", "--target", "y", home=home), 2)


def test_what_it_began_with_is_kept_if_nothing_is_better(home, tmp_path, monkeypatch):
    monkeypatch.setattr("filtax.runs.search.tune", lambda *_, **__: _Worse())
    found = search(Config(str(home / "t.csv"), "y", method="LG+C-Static"), tmp_path, rows=ROWS)
    assert (found.config.method, found.config.prior, found.loss) == ("LG+C-Static", 1.0, found.usual)


def test_the_first_rows_are_as_many_as_were_asked_for(home):
    """Also where blocks do not divide them."""
    found = _first_rows(Config(str(home / "t.csv"), "y", block=50), ROWS)
    assert [block.rows for block in found] == [50, 50, 20]
    assert found[-1].line[-1] == ROWS + 1


def test_what_is_interrupted_says_what_is_kept_and_how_to_go_on(home, monkeypatch):
    import filtax.runs.search as at

    loss, asked = at._loss, (*ASK, "--budget", 16, "--out", "stopped")
    left = [0]

    def interrupted(*given):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return loss(*given)

    monkeypatch.setattr(at, "_loss", interrupted)
    first = filtax(*asked, home=home)
    assert (first.returncode, first.stdout) == (130, "")
    assert first.stderr.endswith("Stopped before a setting was tried. To start again: the same command.\n")
    left[0] = 12  # what it began with, one batch of 8, and a part of the next
    second = filtax(*asked, home=home)
    assert (second.returncode, second.stdout) == (130, "")
    assert second.stderr.endswith(
        "Stopped. The 8 settings that were tried are kept in stopped. To go on: the same command.\n"
    )
    left[0] = 3
    assert "Stopped. The settings that were tried before are kept in stopped." in filtax(*asked, home=home).stderr
    monkeypatch.undo()
    assert "16 settings on 120 rows" in filtax(*asked, home=home).stderr


def test_two_searches_in_one_folder_are_refused(home):
    with store.lock(home / "found-twice"):
        said = sentence(filtax(*ASK, "--out", "found-twice", home=home), 4)
    assert "found-twice is being written by process" in said


class _Worse:
    best, loss, losses = {"prior": 5.0}, 1e9, np.ones(3)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--by", "luck"), "log_score, mae"),
        (("--rows", 3), "at least 50 rows"),
        (("--horizon", 2), "--time"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(more, words, home):
    assert words in sentence(filtax(*ASK, "--out", "no", *more, home=home), 2)


def test_without_optuna_it_says_what_to_install(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "install filtax[tune]" in sentence(filtax(*ASK, "--out", "bare", home=home), 1)


@pytest.mark.parametrize(
    ("name", "point", "want"),
    [
        ("LG+C-Static", {}, "LG+C-Static"),
        ("LG+C-OU(rate=0.9)", {"rate": 0.01}, "LG+C-OU(rate=0.99)"),
        ("LoFi(rank=10)+C-ACI(q=0.1)", {"q": 1e-4}, "LoFi(rank=10)+C-ACI(q=0.0001)"),
        ("OGD(rate=0.1, memory=10)+C-Static", {}, "OGD(rate=0.1, memory=10)+C-Static"),
        (
            "WoLF-MD(c=4)+NIG(form=covariance, shape=2)+RL[10]-PR(hazard=0.1)",
            {"c": 2.0, "shape": 1.0, "hazard": 0.01},
            "WoLF-MD(c=2.0)+NIG(form=covariance, shape=1.0)+RL[10]-PR(hazard=0.01)",
        ),
    ],
)
def test_numbers_in_a_name_are_turned_in_place(name, point, want):
    knobs = knobs_of(name)
    assert [knob.name for knob in knobs] == list(point)
    assert turned(name, knobs, point) == want
    assert all(isinstance(knob.space, Log) for knob in knobs)
