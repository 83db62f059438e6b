"""A run in a process of its own: asked to stop in each way, and left by whoever reads it."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from filtax import io as store
from filtax.cli._stopping import asked_to_stop

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = [sys.executable, "-c", "from filtax.cli import main; main()"]
SLOW = ("--target", "y", "--checkpoint-every", "2000", "--block", "100")
ENDLESS = """
import sys
import jax
from filtax.cli import main
from filtax.cli._run import _Show
from filtax.pipeline import _segments

blocks = []

def never_returns(*_):
    blocks.append(0)
    if len(blocks) == (2 if "run" in sys.argv else 1):
        print("inside", file=sys.stderr, flush=True)
        print(jax.jit(lambda: jax.lax.while_loop(lambda n: n >= 0, lambda n: n + 1, 0))())

_Show.__call__ = _segments._segment = never_returns
main()
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    x = np.sin(np.arange(60_000))
    (folder / "t.csv").write_text("x,y\n" + "".join(f"{a:.6f},{2 * a:.6f}\n" for a in x))
    return folder


def start(*arguments, home, command=COMMAND, **more):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "XDG_CACHE_HOME": str(home / "cache")}
    return subprocess.Popen(
        [*command, *arguments], cwd=home, env=environment, stderr=subprocess.PIPE, text=True, **more
    )


@pytest.mark.parametrize(
    ("name", "code"), [("SIGTERM", 0), pytest.param("SIGHUP", 0, marks=pytest.mark.nightly), ("SIGINT", 130)]
)
def test_a_signal_ends_a_run_at_a_checkpoint(name, code, home):
    with start("run", "t.csv", *SLOW, "--out", name, home=home, stdout=subprocess.DEVNULL) as process:
        while not any((home / name / "checkpoint").glob("*.json")):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        process.send_signal(getattr(signal, name))
        began = time.monotonic()
        said = process.stderr.read()
        assert process.wait(timeout=60) == code, said
    assert time.monotonic() - began < 5.0
    assert f"To go on: filtax resume {name}" in said
    assert "Traceback" not in said


def test_a_signal_before_a_row_is_learned_ends_the_process(home):
    """Also while it compiles; what was kept, if anything, goes on."""
    asked = ("run", "t.csv", "--target", "y", "--out", "early")
    with start(*asked, home=home, stdout=subprocess.DEVNULL) as process:
        while not (home / "early" / "checkpoint" / "lock").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        said = process.stderr.read()
        assert process.wait(timeout=60) == 0, said
    assert time.monotonic() - began < 6.0
    assert said.startswith("Stopped")
    with start(*asked, "--resume", home=home, stdout=subprocess.DEVNULL) as process:
        assert "60000 rows learned, 0 rejected" in process.stderr.read()
        assert process.wait(timeout=60) == 0


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 0), pytest.param("SIGINT", 130, marks=pytest.mark.nightly)])
def test_a_signal_ends_a_series_that_is_cut_and_it_goes_on(name, code, home):
    y = np.random.default_rng(0).normal(size=300) + 9.0 * (np.arange(300) >= 200)
    (home / "s.csv").write_text("y\n" + "".join(f"{value!r}\n" for value in y.tolist()))
    out = f"cut-{name}"
    with start("segment", "s.csv", "--target", "y", "--out", out, home=home, stdout=subprocess.PIPE) as process:
        assert process.stderr.readline() == "300 rows read; looking for changes ...\n"
        process.send_signal(getattr(signal, name))
        began = time.monotonic()
        said = process.stderr.read()
        assert (process.wait(timeout=60), process.stdout.read()) == (code, "")
    assert time.monotonic() - began < 5.0
    assert said == f"Stopped before a checkpoint was written. To start again: filtax resume {out}\n"
    assert {path.name for path in (home / out).rglob("*")} == {"config.toml", "checkpoint", "lock"}
    with start("resume", out, home=home, stdout=subprocess.PIPE) as process:
        assert [part["row"] for part in json.load(process.stdout)["segments"]] == [1, 201]
        assert process.stderr.read().endswith(f"Report: {out}/report.html\n")
        assert process.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("verb", "names", "code"),
    [
        ("run", ["SIGTERM"], 143),
        ("segment", ["SIGINT", "SIGINT"], 130),
        pytest.param("run", ["SIGINT", "SIGINT"], 130, marks=pytest.mark.nightly),
        pytest.param("segment", ["SIGTERM"], 143, marks=pytest.mark.nightly),
    ],
)
def test_a_native_program_that_does_not_return_is_ended_with_its_process(verb, names, code, home):
    """Python's own handlers wait for it: only SIGKILL ended such a process."""
    (home / "few.csv").write_text("".join((home / "t.csv").read_text().splitlines(keepends=True)[:1301]))
    out = f"endless-{verb}-{names[0]}"
    how = ("--checkpoint-every", "100", "--block", "100") if verb == "run" else ()
    asked = (verb, "few.csv", "--target", "y", *how, "--out", out)
    with start(*asked, home=home, command=[sys.executable, "-c", ENDLESS], stdout=subprocess.DEVNULL) as process:
        try:
            while (line := process.stderr.readline()) != "inside\n":
                assert line, "it ended before the program began"
            for name in names:
                time.sleep(1.0)
                assert process.poll() is None
                process.send_signal(getattr(signal, name))
            assert process.wait(timeout=8.0) == code
        finally:
            process.kill()
    with start("resume", out, home=home, stdout=subprocess.DEVNULL) as process:
        said = process.stderr.read()
        assert process.wait(timeout=60) == 0, said
    assert "Report: " in said


@pytest.mark.parametrize(
    ("name", "code"), [("SIGTERM", 0), pytest.param("SIGHUP", 0, marks=pytest.mark.nightly), ("SIGINT", 130)]
)
def test_a_signal_after_the_last_row_leaves_the_run_whole(name, code, home):
    (home / "short.csv").write_text("".join((home / "t.csv").read_text().splitlines(keepends=True)[:3000]))
    out = f"late-{name}"
    with start("run", "short.csv", *SLOW, "--out", out, home=home, stdout=subprocess.DEVNULL) as process:
        while "learned" not in (line := process.stderr.readline()):
            assert line, "it ended before it said what it learned"
        process.send_signal(getattr(signal, name))
        said = process.stderr.read()
        assert process.wait(timeout=60) == code, said
    assert said == (
        f"Stopped: all rows are learned and kept, the report is not written. To write it: filtax report {out}\n"
    )
    assert not list((home / out).glob("*.partial"))
    assert not (home / out / "report.html").exists()


@pytest.mark.parametrize(("name", "code"), [pytest.param("SIGTERM", 0, marks=pytest.mark.nightly), ("SIGINT", 130)])
def test_a_run_that_waits_for_more_rows_keeps_what_it_learned(name, code, home):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    out = f"waits-{name}"
    with start("run", "-", *SLOW, "--print", "--out", out, home=home, **pipes) as process:
        process.stdin.write("".join((home / "t.csv").read_text().splitlines(keepends=True)[:61]))
        process.stdin.flush()
        seen = [process.stdout.readline() for _ in range(61)]
        assert seen[-1].startswith("61,"), process.stderr.read()
        time.sleep(0.2)  # it is back at waiting
        process.send_signal(getattr(signal, name))
        assert process.wait(timeout=60) == code
        assert f"To write its report: filtax report {out}" in process.stderr.read()
    assert any((home / out / "checkpoint").glob("*.json"))


def test_a_reader_that_leaves_a_run_is_no_error(home):
    with start("run", "t.csv", *SLOW, "--print", "--out", "pipe", home=home, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "line,forecast,lower,upper,y\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 0


def test_a_second_writer_is_told_at_once_without_jax(tmp_path):
    """Exit 4 in one sentence, before anything that takes a second is imported."""
    with store.lock(tmp_path / "checkpoint"):
        code = "import sys; from filtax.cli import run; print(run(['resume', sys.argv[1]]), 'jax' in sys.modules)"
        asked = [sys.executable, "-c", code, str(tmp_path)]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "4 False\n"
    assert "is being written by process" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_signal_while_memory_is_cleared_up_is_not_lost(capfd):
    """What is raised there is only printed, with a traceback."""
    sent = []

    def send(phase, _):
        if phase == "start" and not sent:
            sent.append(phase)
            signal.raise_signal(signal.SIGTERM)

    gc.callbacks.append(send)
    try:
        with asked_to_stop(patient=False) as asked:
            gc.collect()
            with pytest.raises(KeyboardInterrupt):
                time.sleep(10.0)
    finally:
        gc.callbacks.remove(send)
    assert list(asked) == [signal.SIGTERM]
    assert capfd.readouterr().err == ""
