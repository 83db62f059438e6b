"""`filtax tune`: it looks at the first rows only, goes on where it stopped, and writes what `filtax run` takes."""

import sys
import tomllib

import numpy as np
import pytest

from command import filtax, sentence
from filtax import io as store
from filtax.pipeline import Config, _tune, open_run, run_pipeline

pytestmark = pytest.mark.x64
ROWS = 120
ASK = ("tune", "t.csv", "--target", "y", "--method", "LG+C-ACI(q=0.9)", "--rows", ROWS, "--task", "regress")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
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
    return filtax(*ASK, "--budget", 9, "--out", "found", home=home)


def loss(config, root):
    """The interval score of a run."""
    run_pipeline(config, root)
    r = np.concatenate(list(open_run(root).records()))
    missed = np.maximum(r["lower"] - r["y"], 0) + np.maximum(r["y"] - r["upper"], 0)
    return np.nanmean(r["upper"] - r["lower"] + 20.0 * missed)


def test_what_it_prints_is_a_configuration_with_the_loss_it_says(tuned, home, tmp_path):
    """The oracle of the loss is a run on a file that has no other rows."""
    assert tuned.returncode == 0, tuned.stderr
    assert (home / "found" / "tuned.toml").read_text() == tuned.stdout
    found = Config.from_json(tomllib.loads(tuned.stdout))
    own = {"source": str(home / "start.csv"), "target": "y", "task": "regress"}
    least, usual = (
        loss(Config(**own, method=m), tmp_path / str(i)) for i, m in enumerate((found.method, "LG+C-ACI(q=0.9)"))
    )
    assert least <= usual
    better = f"{least:.4g} a row, {usual:.4g} before" in tuned.stderr
    assert better or (least == usual and "none was better" in tuned.stderr)
    assert "settings: 9 tried" in tuned.stderr


def test_it_goes_on_where_it_stopped_and_never_looks_behind_the_first_rows(tuned, home):
    text = (home / "t.csv").read_text()
    lines = text.splitlines(keepends=True)
    (home / "t.csv").write_text("".join([*lines[: ROWS + 1], *["9,-9\n"] * 50]))
    again = filtax(*ASK, "--budget", 9, "--out", "found", home=home)
    (home / "t.csv").write_text(text)
    assert (again.returncode, again.stdout) == (0, tuned.stdout)
    more = filtax(*ASK, "--budget", 10, "--out", "found", home=home)
    assert "10 settings on 120 rows" in more.stderr
    assert "had a budget of 9 and has tried 9 settings; with 10 it goes on to 10." in more.stderr
    other = filtax(*ASK, "--budget", 10, "--out", "found", "--by", "mae", home=home)
    assert "holds another search" in sentence(other, 2)


def test_a_run_takes_it_and_options_count_more(tuned, home):
    assert filtax("run", "--config", "found/tuned.toml", "--out", "ran", home=home).returncode == 0
    assert Config.read(home / "ran").method == tomllib.loads((home / "found/tuned.toml").read_text())["method"]
    asked = ("run", "--config", "ran/config.toml", "--method", "LG+C-Static", "--out", "other")
    assert filtax(*asked, home=home).returncode == 0
    assert Config.read(home / "other").method == "LG+C-Static"
    (home / "bad.toml").write_text("horizn = 3\n")
    assert "no entry 'horizn'" in sentence(filtax("run", "t.csv", "--config", "bad.toml", home=home), 2)
    assert "SOURCE is missing" in sentence(filtax("run", "--target", "y", home=home), 2)


def test_what_is_interrupted_says_what_is_kept_and_how_to_go_on(home, monkeypatch):
    own, left = _tune._loss, [10]  # what it began with, one batch of 8, and a part of the next

    def interrupted(*given):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return own(*given)

    monkeypatch.setattr(_tune, "_loss", interrupted)
    asked = (*ASK, "--budget", 16, "--out", "stopped")
    ended = filtax(*asked, home=home)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr.endswith(
        "Stopped. The 8 settings that were tried are kept in stopped. To go on: the same command.\n"
    )
    monkeypatch.undo()
    assert "16 settings on 120 rows" in filtax(*asked, home=home).stderr


def test_two_searches_in_one_folder_are_refused(home):
    with store.lock(home / "twice"):
        assert "twice is being written by process" in sentence(filtax(*ASK, "--out", "twice", home=home), 4)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--by", "luck"), "interval, mae"),
        (("--rows", 3), "at least 50 rows"),
        (("--method", "LG+C-Static"), "the experts of a run have no numbers to choose"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(more, words, home):
    assert words in sentence(filtax(*ASK, "--out", "no", *more, home=home), 2)


def test_without_optuna_it_says_what_to_install(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "install filtax[tune]" in sentence(filtax(*ASK, "--out", "bare", home=home), 1)
