"""`python -m filtax` is the command line."""

import subprocess
import sys
from importlib.metadata import version


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
