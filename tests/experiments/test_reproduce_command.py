"""`filtax reproduce` as a person meets it: what is absent, what is interrupted, and what was lost."""

import dataclasses

import pytest

from command import filtax, sentence
from filtax.experiments import find, registry, runner


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without data sets."""
    for name in ("FILTAX_DATA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "empty"))
    return tmp_path


def test_what_has_no_data_is_left_out_before_the_others_run(bare):
    ended = filtax("reproduce", "ewma", "ridge", "uci-corrupted", home=bare)
    assert ended.returncode == 2
    first, second, *after = ended.stderr.splitlines()
    assert first.startswith("filtax: ewma is left out: data set djia: ")
    assert "get it from" in first
    assert second.startswith("filtax: uci-corrupted is left out: data set ")
    assert "So it is with " in second
    assert after[0].startswith("ridge: 100")
    assert "holds" in ended.stdout
    page = (bare / "out/reproduce/report.html").read_text()
    assert 'id="ridge-quick-0"' in page
    assert "ewma-quick" not in page


def test_where_nothing_can_run_a_sentence_is_all(bare):
    assert "ewma is left out" in sentence(filtax("reproduce", "ewma", home=bare), 2)
    assert not (bare / "out/reproduce/report.html").exists()


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (RuntimeError, 1)])
def test_what_was_done_before_an_end_is_in_the_report(bare, monkeypatch, error, code):
    def stop(*_):
        raise error

    stopped = dataclasses.replace(find("segments"), run=stop)
    monkeypatch.setattr(runner, "find", lambda name: stopped if name == "segments" else registry.find(name))
    ended = filtax("reproduce", "ridge", "segments", home=bare)
    assert ended.returncode == code
    assert 'id="ridge-quick-0"' in (bare / "out/reproduce/report.html").read_text()
    assert "Report: " in ended.stderr
