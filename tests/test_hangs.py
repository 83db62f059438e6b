"""The watch over methods that hang: what it tells of those that come back, wait for ever, or end the process."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hangs

WORK = """
import os, time

def turns(names, seconds, pipe):
    for name in names:
        pipe.send((name, None))
        if name == "waits":
            time.sleep(60.0)
        if name == "ends":
            os._exit(7)
        pipe.send((name, 5))

def broken(names, seconds, pipe):
    os._exit(1)
"""


@pytest.fixture
def work(tmp_path, monkeypatch):
    (tmp_path / "work_of_hangs.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("work_of_hangs")
    del sys.modules["work_of_hangs"]


def test_a_method_that_waits_or_ends_the_process_is_named_and_the_others_go_on(work, capsys):
    calls, lost = hangs.watch(["first", "waits", "ends", "last"], seconds=60.0, patience=6.0, work=work.turns)
    assert calls == {"first": 15, "waits": 0, "ends": 0, "last": 5}  # the first in each of three processes
    assert lost == {"waits": "did not come back within 6 s", "ends": "ended the process, exit code 7"}
    assert [json.loads(line)["method"] for line in capsys.readouterr().out.splitlines()] == ["waits", "ends"]


def test_a_process_that_cannot_begin_is_an_error(work):
    with pytest.raises(RuntimeError, match="no method was running when it ended the process, exit code 1"):
        hangs.watch(["first"], seconds=60.0, work=work.broken)


@pytest.mark.x64
def test_methods_come_back():
    """The short form of what `make nightly` does for 30 minutes."""
    script = Path(hangs.__file__)
    path = os.pathsep.join([str(script.parents[1] / "src"), str(script.parent)])
    arguments = [sys.executable, str(script), "0.1", "regression"]
    done = subprocess.run(
        arguments, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["methods"], told["lost"]) == (1, {})
    assert told["calls"] > 0
