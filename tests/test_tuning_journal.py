"""A search that was killed goes on, wherever in a write it was; and it says how far it is."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from filtax.tuning import Uniform, tune

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


@pytest.mark.parametrize(
    "line", [b'{"setting": {"shift": 0.1}, "lo', b"\x00\xff", b"", b"7", b'{"loss": 4}', b'{"setting": {"shift": 0.1}}']
)
def test_other_damage_is_refused_with_the_number_of_the_line(content, tmp_path, line):
    journal, lines = tmp_path / "search.log", content.splitlines()
    for number in (1, 5, len(lines)):
        journal.write_bytes(b"\n".join([*lines[: number - 1], line, *lines[number:]]) + b"\n")
        before = journal.read_bytes()
        with pytest.raises(ValueError, match=rf"search\.log'\) is damaged: line {number} is no step of a search; "):
            tune(square, SPACE, budget=4, journal=journal)
        assert journal.read_bytes() == before


def test_progress_is_a_line_for_each_batch_and_in_a_terminal_a_bar(monkeypatch, tmp_path, capsys):
    tune(square, SPACE, budget=5, batch=2, journal=tmp_path / "search.log")
    assert capsys.readouterr() == ("", "")
    for terminal in ("", "1"):
        monkeypatch.setenv("FORCE_COLOR", terminal)
        found = tune(square, SPACE, budget=5, batch=2, progress=True)
        said = capsys.readouterr().err
        least = [f"{found.losses[:n].min():.6g}" for n in (2, 4, 5)]
        wanted = [f"tune: {n} of 5 settings, least loss {loss}" for n, loss in zip((2, 4, 5), least, strict=True)]
        assert wanted[-1] in said if terminal else said.splitlines() == wanted


def test_a_search_that_is_killed_goes_on(tmp_path):
    """By the system, at any time: nothing is lost but what was under way."""
    journal = tmp_path / "search.log"
    program = (
        "import os, sys; from filtax.tuning import Uniform, tune; tune(lambda at: at['shift'] ** 2, "
        "{'shift': Uniform(-1.0, 1.0)}, budget=8, batch=2, journal=sys.argv[1], "
        "told=lambda tried, least: tried == 4 and os.kill(os.getpid(), 9))"
    )
    assert subprocess.run([sys.executable, "-c", program, str(journal)], check=False).returncode == -9
    assert tune(square, SPACE, budget=8, batch=2, journal=journal).losses.size == 8
