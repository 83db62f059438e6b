"""Progress: bars for people, plain lines for files."""

import io
import re
import time

import pytest

from filtax.report import progress


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


def test_a_bar_of_all_weighs_the_parts_by_the_time_that_they_may_take(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    talk = Terminal()
    with progress(["a", "b"], 10, to=talk, expected={"a": 600.0, "b": 1800.0}) as advance:
        for part, steps in (("a", 4), ("a", 6), ("b", 2)):
            advance(part, steps)
            time.sleep(0.01)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", talk.getvalue())
    assert re.search(r"all\s.* +4/10 hours +0:00:\d\d 0:00:0\d left", plain), plain
