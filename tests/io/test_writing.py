"""Writing checkpoints: on disks that are full, failing or read-only, by two at once, under kills."""

import errno
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from filtax import io
from filtax.io import _files
from stored import SMALL, same


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "open"])
@pytest.mark.parametrize("at", range(4))
def test_a_full_or_failing_disk_leaves_what_was_there(tmp_path, monkeypatch, call, at):
    """Each system call of a save fails in turn, as with a full disk."""
    io.save(tmp_path, SMALL, source={"row": 1})
    real, calls = getattr(os, call), iter(range(100))

    def fail(*arguments, **options):
        if call == "open" and not str(arguments[0]).endswith(_files.PARTIAL) and Path(arguments[0]) != tmp_path:
            return real(*arguments, **options)
        if next(calls) == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments, **options)

    happens = call not in ("write", "replace") or at < 2  # two files, each written and renamed once
    with monkeypatch.context() as patch:
        patch.setattr(_files.os, call, fail)
        with pytest.raises(OSError, match=r"bytes are needed.*intact") if happens else nullcontext():
            io.save(tmp_path, {**SMALL, "t": 8}, source={"row": 2})
    state, manifest = io.load(tmp_path, SMALL)
    assert not manifest["skipped"]
    assert (state["t"], manifest["source"]) in [(7, {"row": 1}), (8, {"row": 2})]
    assert not list(tmp_path.glob(f"*{_files.PARTIAL}"))
    io.save(tmp_path, {**SMALL, "t": 9}, source={"row": 3})
    assert io.load(tmp_path, SMALL)[0]["t"] == 9


def test_short_writes_are_finished(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(_files.os, "write", lambda file, content: real(file, bytes(content[:7])))
    io.save(tmp_path, SMALL)
    same(io.load(tmp_path, SMALL)[0], SMALL)


def test_a_read_only_disk_is_refused_in_words(tmp_path, monkeypatch):
    io.save(tmp_path, SMALL)

    def refuse(path, *arguments):
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(_files.os, "open", refuse)
        with pytest.raises(OSError, match="Read-only file system"), io.lock(tmp_path.parent / "elsewhere"):
            io.save(tmp_path, SMALL, held=True)
    same(io.load(tmp_path, SMALL)[0], SMALL)


def test_a_second_writer_is_refused_and_told_who_holds_it(tmp_path):
    with io.lock(tmp_path):
        with pytest.raises(io.Busy, match=f"process {os.getpid()} on"):
            io.save(tmp_path, SMALL)
        assert io.save(tmp_path, SMALL, held=True) == 1
        io.load(tmp_path, SMALL)  # readers need no lock
    assert io.save(tmp_path, SMALL) == 2


KILLS = """
import os, random, select, signal, sys, tempfile, time
import numpy as np
from filtax import io

like = {"row": 0, "values": np.zeros(2000)}
random.seed(int(sys.argv[2]))
for trial in range(int(sys.argv[1])):
    with tempfile.TemporaryDirectory() as folder:
        acknowledged, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(acknowledged)
            row = 0
            while True:
                row += 1
                io.save(folder, {"row": row, "values": np.full(2000, float(row))}, source={"row": row})
                os.write(tell, b".")
        os.close(tell)
        os.read(acknowledged, 1)
        time.sleep(random.random() * 0.03)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        rows = 1
        while got := os.read(acknowledged, 65536):
            rows += len(got)
        os.close(acknowledged)
        state, manifest = io.load(folder, like)
        assert manifest["skipped"] == [], manifest["skipped"]
        assert state["row"] == manifest["source"]["row"] >= rows, (state["row"], rows)
        assert state["row"] <= rows + 1
        assert np.array_equal(state["values"], np.full(2000, float(state["row"])))
        io.save(folder, like)  # the lock of the dead is free
print("survived")
"""


def survive(kills, seed):
    command = [sys.executable, "-W", "ignore", "-c", KILLS, str(kills), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.stdout.strip(), done.returncode) == ("survived", 0), done.stderr


def test_twenty_kills():
    survive(20, seed=0)


@pytest.mark.nightly
def test_a_thousand_kills():
    survive(1000, seed=1)
