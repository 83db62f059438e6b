"""A command in this process, as a person meets it: what it printed, where, and how it ended."""

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

import pytest

from filtax.cli import run


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def filtax(*arguments, home, given=""):
    """A command in this process, where JAX is started already; test_cli.py starts processes of its own."""
    out, err = io.StringIO(), io.StringIO()
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(given.encode())))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(home)
        patch.setattr("sys.stdin", stdin)
        for module in ("run", "report", "reproduce", "demo"):
            patch.setattr(f"filtax.cli._{module}.start_jax", lambda: None)
        return Ended(run([str(argument) for argument in arguments]), out.getvalue(), err.getvalue())


def sentence(ended, code):
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stderr
    said = ended.stderr.strip()
    assert said.startswith("filtax: ")
    assert said.endswith((".", "?"))
    assert "\n" not in said
    assert "Traceback" not in said
    return said
