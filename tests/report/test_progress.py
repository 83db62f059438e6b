"""Progress: bars for people, plain lines for files."""

import io
import re
import time

import pytest

from filtax.report import progress
from filtax.report.progress import _Clock


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_file_gets_one_line_for_each_finished_part():
    talk = io.StringIO()
    with progress(["a", "b[1]"], total=10, to=talk) as advance:
        advance("a", 6)
        assert talk.getvalue() == ""
        advance("a", 4)
        assert talk.getvalue() == "a: 10 hours\n"
        advance("b[1]", 10)
    assert talk.getvalue() == "a: 10 hours\nb[1]: 10 hours\n"


def test_a_terminal_gets_bars_with_names_as_they_are(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    talk = Terminal()
    with progress(["a[red]b"], total=10, to=talk) as advance:
        advance("a[red]b", 10)
    assert "a[red]b" in talk.getvalue()
    assert "10/10" in talk.getvalue()
    assert "\x1b[?25h" in talk.getvalue()  # the cursor is given back


def test_a_terminal_is_told_the_time_left(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    talk = Terminal()
    with progress(["a"], total=10, to=talk) as advance:
        for _ in range(4):
            advance("a", 1)
            time.sleep(0.01)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", talk.getvalue())
    assert re.search(r"4/10 hours +0:00:\d\d +0:00:\d\d +left", plain), plain


def test_a_terminal_gets_its_cursor_back_after_an_interrupt(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    talk = Terminal()

    def interrupted():
        with progress(["a"], total=10, to=talk):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert talk.getvalue().rstrip().endswith("\x1b[?25h")


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test moves."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_the_time_left_is_told_from_the_first_step_on_and_runs_down(clock):
    told = _Clock(["a", "b"], 10, None)
    assert told.left("a") is None
    told.advance("a", 0)  # it begins
    assert told.left("a") is None
    clock[0] += 8
    told.advance("a", 4)
    assert told.left("a") == pytest.approx(12)  # 8 s for 4 steps, 6 to go
    clock[0] += 5
    assert told.left("a") == pytest.approx(7)
    clock[0] += 50  # overdue: it takes longer than was thought
    assert told.left("a") == pytest.approx(11)
    told.advance("a", 6)
    assert told.left("a") == 0
    assert told.left("b") is None


def test_the_time_left_of_all_is_what_is_expected_at_the_pace_that_was_measured(clock):
    told = _Clock(["a", "b", "known"], 10, {"a": 100.0, "b": 300.0, "known": 0.0})
    assert told.left("all") == pytest.approx(400)
    assert told.share() == 0
    told.advance("known", 10)  # costs nothing, says nothing
    assert told.left("all") == pytest.approx(400)
    told.advance("a", 0)
    clock[0] += 220
    told.advance("a", 10)  # at half the pace: (220 + 20) / (100 + 20)
    assert told.share() == pytest.approx(2.5)
    assert told.left("all") == pytest.approx(600)
    clock[0] += 60
    assert told.left("all") == pytest.approx(540)
    told.advance("b", 10)
    assert told.left("all") == 0
    assert told.share() == 10


def test_all_has_a_bar_and_a_line_says_what_is_left(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    talk, file = Terminal(), io.StringIO()
    for to in (talk, file):
        with progress(["a", "b"], 10, to=to, expected={"a": 600.0, "b": 1800.0}) as advance:
            advance("a", 10)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", talk.getvalue())
    assert re.search(r"all\s.* +2/10 hours +0:00:\d\d 0:00:5\d left", plain), plain
    assert file.getvalue() == "a: 10 hours, about 58 s left\n"
