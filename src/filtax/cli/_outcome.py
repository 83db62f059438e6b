"""How a command ends when something is wrong with a run: one sentence, and an exit code that says what kind."""

import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from filtax.cli._talk import talk

FAILED, BAD_INPUT, BAD_CHECKPOINT, NOT_WRITTEN, INTERRUPTED = 1, 2, 3, 4, 130


@contextmanager
def guarded() -> Iterator[None]:
    """Turn what can go wrong into a sentence and an exit code.

    1: a package is missing; a fault of filtax is left to `filtax.cli`. 2: the source or an argument cannot be used. 3:
    a checkpoint, or a source that is not the one it was. 4: something could not be written or read, or another process
    is at it. 130: interrupted.

    >>> with guarded():
    ...     raise ValueError("--horizon 0: it must be 1 or more steps.")
    Traceback (most recent call last):
    typer.exceptions.Exit: 2
    """
    from filtax.io import Damaged

    try:
        yield
    except Damaged as problem:
        raise _say(BAD_CHECKPOINT, problem) from None
    except ValueError as problem:  # InputError is one
        if isinstance(problem, _faults()):
            raise
        if os.environ.get("FILTAX_TRACEBACK"):
            traceback.print_exc()
        raise _say(BAD_INPUT, problem) from None
    except ModuleNotFoundError as problem:
        raise _say(FAILED, problem) from None
    except BrokenPipeError:  # whoever read our output has seen enough: no error, and nothing more to write
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except OSError as problem:
        raise _say(BAD_INPUT if isinstance(problem, FileNotFoundError) else NOT_WRITTEN, failing(problem)) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def onward(source: str, root: Path) -> str:
    """What can be done with a run whose source ended in a fault.

    A Parquet that is repaired is another file: no row of it is known to be the one that was read.

    >>> onward("load.csv", Path("out/load"))
    'to go on: filtax resume out/load'
    """
    if source.lower().endswith((".parquet", ".pq")):
        return f"a repaired Parquet needs a new run; of these rows: filtax report {root}"
    return f"to go on: filtax resume {root}"


def _faults() -> tuple[type[ValueError], ...]:
    """Errors that are values by kind and yet no word about the input: what numpy finds wrong with our own arrays."""
    from numpy.exceptions import AxisError
    from numpy.linalg import LinAlgError

    return LinAlgError, AxisError


def failing(problem: OSError) -> str:
    """What the system would not do, and what to do about it.

    >>> failing(PermissionError(13, "Permission denied", "out"))
    'out: permission denied; name a folder that you may write to, or have its permissions changed'
    """
    from filtax.io._files import advice

    reason = problem.strerror or str(problem)
    if problem.errno == errno.ENOSPC and reason == os.strerror(errno.ENOSPC):  # of a file, filtax says which
        return f"standard output could not be written ({reason.lower()}); make room where it goes, or send it elsewhere"
    if not problem.filename:  # what filtax says itself is a sentence already
        return reason
    told = "" if isinstance(problem, FileNotFoundError) else f"; {advice(problem, problem.filename)}"
    return f"{problem.filename}: {reason.lower()}{told}"


def _say(code: int, problem: Exception | str) -> typer.Exit:
    told = problem.strerror if isinstance(problem, OSError) else None
    sentence = " ".join((told or str(problem)).split())
    talk(f"filtax: {sentence}{'' if sentence.endswith(('.', '?')) else '.'}")
    return typer.Exit(code)
