"""`python -m filtax` is the command line."""

import subprocess
import sys
from importlib.metadata import version

import pytest


def test_the_module_is_the_command():
    told = [
        subprocess.run(
            [sys.executable, "-m", "filtax", *arguments], capture_output=True, text=True, timeout=240, check=False
        )
        for arguments in (["--version"], ["nonsense"])
    ]
    assert (told[0].returncode, told[0].stdout.strip()) == (0, f"filtax {version('filtax')}")
    assert (told[1].returncode, told[1].stdout) == (2, "")
    assert told[1].stderr == "filtax: No such command 'nonsense'. See `filtax --help`.\n"


RUN = "run {0}/t.csv --target y --print --out {0}/out <&- >&- 2>&-"


@pytest.mark.parametrize(("arguments", "code"), [("--version >&-", 0), ("nonsense 2>&-", 2), (RUN, 0)])
def test_standard_streams_may_be_closed(arguments, code, tmp_path):
    """It was a fault of filtax, or what was for standard error went to standard output."""
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{t % 7},{2 * (t % 7)}\n" for t in range(60)))
    command = ["bash", "-c", f'exec "$0" -m filtax {arguments.format(tmp_path)}', sys.executable]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", "")
    assert (tmp_path / "out/report.html").is_file() == (arguments == RUN)
