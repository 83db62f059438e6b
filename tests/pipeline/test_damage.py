"""A run folder that was changed on disk: refused, or passed over with a sentence, whichever file it was."""

import random
import shutil

import pytest

from command import filtax, sentence

pytestmark = pytest.mark.x64
NEWEST = "run/checkpoint/000005"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A finished run with two generations, events and records."""
    folder = tmp_path_factory.mktemp("sound")
    chance = random.Random(0)
    rows = [f"{x},{2 * x + chance.gauss(0, 0.1):.4f}\n" for x in (round(chance.gauss(0, 1), 3) for _ in range(1200))]
    rows[120], rows[150] = "0.5,900\n", "0.5,what\n"
    (folder / "t.csv").write_text("x,y\n" + "".join(rows))
    asked = ("--target", "y", "--task", "regress", "--block", 64, "--checkpoint-every", 64, "--out", "run")
    done = filtax("run", "t.csv", *asked, home=folder)
    assert done.returncode == 0, done.stderr
    assert len((folder / "run/events.jsonl").read_text().splitlines()) >= 2
    return folder


@pytest.fixture
def home(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "home")


def flip(path, at, bit=0):
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
def test_the_generation_before_is_used_and_that_is_said(suffix, home):
    flip(home / f"{NEWEST}.{suffix}", 300)
    for arguments in (("report", "run"), ("predict", "run", "t.csv"), ("compare", "run"), ("resume", "run")):
        ended = filtax(*arguments, home=home)
        assert ended.returncode == 0, ended.stderr
        told = [line for line in ended.stderr.splitlines() if f"{NEWEST}.json: " in line]
        assert len(told) == 1, (arguments, ended.stderr)
        assert "does not agree" in told[0] or "changed on disk" in told[0]
        assert "the checkpoint before it is used, which stands behind row 1192, line 1194 of t.csv." in told[0]
    assert "checkpoint before" not in filtax("report", "run", home=home).stderr  # the resumed run has a sound one


def test_what_a_damaged_generation_lost_is_learned_again(sound, home):
    flip(home / f"{NEWEST}.safetensors", 300)
    assert filtax("resume", "run", home=home).returncode == 0
    for name in ("predictions.parquet", "events.jsonl", "checkpoint/rows.bin"):
        assert (home / "run" / name).read_bytes() == (sound / "run" / name).read_bytes()


@pytest.mark.parametrize("name", ["checkpoint/rows.bin", "events.jsonl"])
def test_every_flipped_bit_of_records_and_events_is_refused(name, home):
    path = home / "run" / name
    content, chance = path.read_bytes(), random.Random(1)
    readable = [content.find(word) + 1 for word in (b'"event"', b": 1")]  # events that still look like events
    for at in (0, len(content) - 1, *readable, *chance.sample(range(len(content)), 2)):
        flip(path, at)
        before = (home / "run/predictions.parquet").read_bytes()
        for command in ("resume", "report"):
            said = sentence(filtax(command, "run", home=home), 3)
            assert name in said
        assert (home / "run/predictions.parquet").read_bytes() == before
        path.write_bytes(content)
    assert filtax("resume", "run", home=home).returncode == 0


def test_the_folder_of_an_older_version_is_refused(home):
    config = home / "run/config.toml"
    config.write_text(config.read_text().replace("on_error", "on_bad").replace("checkpoint_every", "every"))
    for command in ("resume", "report", "predict"):
        said = sentence(filtax(command, "run", home=home), 3)
        assert "there is no entry 'on_bad'" in said
        assert "of another version of filtax" in said
