"""A search that was killed goes on, wherever in a write it was; and it says how far it is."""

import io
import subprocess
import sys
import warnings

import numpy as np
import pytest

from filtax.countdown import countdown
from filtax.search import Uniform, tune

SPACE = {"shift": Uniform(-1.0, 1.0)}


def square(at):
    return at["shift"] ** 2


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """A journal of four settings."""
    journal = tmp_path_factory.mktemp("search") / "search.log"
    tune(square, SPACE, budget=4, batch=2, journal=journal)
    return journal.read_bytes()


def test_goes_on_from_a_last_line_cut_at_any_byte(content, tmp_path):
    journal, lines = tmp_path / "search.log", content.splitlines(keepends=True)
    start, before = len(content) - len(lines[-1]), None
    for end in range(start, len(content)):
        journal.write_bytes(content[:end])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = tune(square, SPACE, budget=4, batch=2, journal=journal)
        assert found.losses.size == 4
        assert [str(one.message).partition(": ")[2] for one in said] == (end > start) * [
            f"line {len(lines)}, the last, was cut off and is dropped; the search goes on from the one before."
        ]
        before = found.losses if before is None else before
        np.testing.assert_array_equal(found.losses, before)  # as if the line had never been begun
        assert journal.read_bytes().startswith(content[:start])


def test_of_every_earlier_cut_what_is_whole_is_kept(content, tmp_path):
    journal = tmp_path / "search.log"
    for end in range(0, len(content), 97):
        journal.write_bytes(content[:end])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert tune(square, SPACE, budget=4, batch=2, journal=journal).losses.size == 4
        assert journal.read_bytes().startswith(content[: content.rfind(b"\n", 0, end) + 1])


@pytest.mark.parametrize(
    "line", [b'{"op_code": 4, "wor', b"\x00\xff", b"", b"7", b'{"op_code": 4}', b'{"worker_id": "a"}']
)
def test_other_damage_is_refused_with_the_number_of_the_line(content, tmp_path, line):
    journal, lines = tmp_path / "search.log", content.splitlines()
    for number in (1, 5, len(lines)):
        journal.write_bytes(b"\n".join([*lines[: number - 1], line, *lines[number:]]) + b"\n")
        before = journal.read_bytes()
        with pytest.raises(ValueError, match=rf"search\.log'\) is damaged: line {number} is no step of a search; "):
            tune(square, SPACE, budget=4, journal=journal)
        assert journal.read_bytes() == before


def test_a_folder_is_no_journal(tmp_path):
    with pytest.raises(ValueError, match="is no file"):
        tune(square, SPACE, journal=tmp_path)


@pytest.mark.nightly
def test_the_lock_of_a_process_killed_in_a_write_does_not_hold_for_ever(tmp_path):
    """The lock is a link, and the path of the journal relative to another folder."""
    (tmp_path / "out").mkdir()
    program = (
        "import os, sys; from filtax import search; search.PATIENCE = 3; writes = []\n"
        "def kill(file): writes.append(file); len(writes) == 9 and os.kill(os.getpid(), 9)\n"
        "if sys.argv[1:]: os.fsync = kill\n"
        "space = {'shift': search.Uniform(-1.0, 1.0)}\n"
        "print(search.tune(lambda at: at['shift'], space, budget=4, journal='out/search.log').losses.size)"
    )
    run = lambda *words: subprocess.run(
        [sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True, timeout=40, check=False
    )
    assert run("kill").returncode == -9
    assert (tmp_path / "out" / "search.log.lock").is_symlink()
    journal = tmp_path / "out" / "search.log"
    journal.write_bytes(journal.read_bytes()[:-5])
    again = run()
    assert (again.returncode, again.stdout) == (0, "4\n")
    assert "was cut off and is dropped" in again.stderr


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_a_line_for_each_batch_and_in_a_terminal_one_line(monkeypatch, tmp_path, capsys):
    tune(square, SPACE, budget=5, batch=2, journal=tmp_path / "search.log")
    assert capsys.readouterr() == ("", "")
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        found = tune(square, SPACE, budget=5, batch=2, progress=True)
        said = stream.getvalue()
        assert said.count("\n") == (1 if stream.isatty() else 3)
        said = said.replace("\r", "" if said.count("\r") == 0 else "\n").strip().splitlines()
        least = [f"{found.losses[:n].min():.6g}" for n in (2, 4, 5)]
        begun = [f"tune: {n} of 5 settings, least loss {loss}" for n, loss in zip((2, 4, 5), least, strict=True)]
        assert [line.rstrip() for line in said] == [
            f"{begun[0]}, about 0 s left",
            f"{begun[1]}, about 0 s left",
            begun[2],
        ]


def test_time_left_is_that_of_this_call_and_a_shorter_line_covers_a_longer(monkeypatch):
    clock = iter([100.0, 136.0, 160.0, 6100.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    to = Terminal()
    with countdown(100, done=40, to=to) as told:
        told(50, np.inf)  # ten in 36 s: 50 left
        told(60, 0.125)
        told(70, 0.125)
    first, second, third = to.getvalue()[1:-1].split("\r")
    assert to.getvalue()[-1] == "\n"
    assert first == "tune: 50 of 100 settings, no finite loss yet, about 3 min left"
    assert second.rstrip() == "tune: 60 of 100 settings, least loss 0.125, about 2 min left"
    assert third.rstrip() == "tune: 70 of 100 settings, least loss 0.125, about 1.7 h left"
    assert len(first) <= len(second)


def test_a_search_that_is_killed_goes_on(tmp_path):
    """By the system, at any time: nothing is lost but what was under way."""
    journal = tmp_path / "search.log"
    program = (
        "import os, sys; from filtax.search import Uniform, tune; tune(lambda at: at['shift'] ** 2, "
        "{'shift': Uniform(-1.0, 1.0)}, budget=8, batch=2, journal=sys.argv[1], "
        "told=lambda tried, least: tried == 4 and os.kill(os.getpid(), 9))"
    )
    assert subprocess.run([sys.executable, "-c", program, str(journal)], check=False).returncode == -9
    assert tune(square, SPACE, budget=8, batch=2, journal=journal).losses.size == 8
