"""Disks that are full, read-only or limited: exit code 4, a sentence that says what to do, and a run that goes on."""

import os
import re
import resource
import subprocess
import sys

import numpy as np
import pytest

from command import filtax, sentence

pytestmark = pytest.mark.x64
ARGUMENTS = ("--target", "load", "--time", "when", "--checkpoint-every", 256)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    y = 50.0 + 5.0 * np.sin(2 * np.pi * np.arange(900) / 24) + np.random.default_rng(0).normal(size=900)
    hours = np.datetime64("2024-01-01T00:00") + 60 * np.arange(900)
    (folder / "load.csv").write_text("when,load\n" + "".join(f"{h},{v}\n" for h, v in zip(hours, y, strict=True)))
    done = filtax("run", "load.csv", *ARGUMENTS, "--block", 128, "--out", "whole", home=folder)
    assert done.returncode == 0, done.stderr
    return folder


def last_words(ended):
    """How it ended, in a sentence."""
    return sentence(ended, 4)


def same_as_whole(root, home):
    for name in ("predictions.parquet", "events.jsonl"):
        assert (root / name).read_bytes() == (home / "whole" / name).read_bytes(), name


def test_a_file_that_grows_too_large_ends_the_run_at_4_and_it_goes_on(home):
    """The limit of the process on the size of a file: records cross it in the middle of the run."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (68_000, hard))
    try:
        ended = filtax("run", "load.csv", *ARGUMENTS, "--block", 128, "--out", "limited", home=home)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    said = last_words(ended)
    told = re.search(
        r"rows.bin could not be written \(File too large\): at least (\d+) bytes are needed and a file may have 68000",
        said,
    )
    assert told, said
    size = (home / "whole" / "checkpoint" / "rows.bin").stat().st_size
    assert 68_000 < int(told[1]) <= size
    assert "raise the limit on the size of a file (ulimit -f)" in said
    assert "resume" in said
    again = filtax("resume", "limited", home=home)
    assert again.returncode == 0, again.stderr
    same_as_whole(home / "limited", home)


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own, where this process may mount one."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(tmp_path)]
    if (
        sys.platform != "linux"
        or os.geteuid() != 0
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("no disk can be mounted here")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def remount(disk, option):
    subprocess.run(["mount", "-o", f"remount,{option}", str(disk)], check=True)


def test_a_full_disk_says_what_is_needed_and_what_is_free_and_the_run_goes_on(disk, home):
    said = last_words(filtax("run", "load.csv", *ARGUMENTS, "--block", 128, "--out", disk / "run", home=home))
    assert "No space left on device" in said
    assert "bytes are needed and " in said
    assert " bytes are free; make room, or name a folder on another disk" in said
    remount(disk, "size=4m")
    again = filtax("resume", disk / "run", home=home)
    assert again.returncode == 0, again.stderr
    same_as_whole(disk / "run", home)


def test_a_read_only_disk_is_refused_in_a_sentence(disk, home):
    remount(disk, "ro")
    said = sentence(filtax("run", "load.csv", *ARGUMENTS, "--out", disk / "run", home=home), 4)
    assert "read-only: name a folder on another one" in said
    said = sentence(filtax("predict", "whole", "load.csv", "--out", disk / "told.csv", home=home), 4)
    assert f"{disk / 'told.csv'} could not be written (Read-only file system)" in said


def test_a_full_standard_output_is_told_as_such(home):
    """It has no name of its own, and `No space left on device` alone would send people to the folder of the run."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "filtax", "methods"], cwd=home, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 4
    assert done.stderr.startswith("filtax: standard output could not be written (no space left on device); make room")
