"""The command line: parses and prints, computes nothing. Standard output is data, standard error is talk.

Exit codes: 0 done, 1 failed, 2 wrong arguments or input that cannot be used, 3 a checkpoint that cannot be used, 4 not
written, 130 interrupted, 143 ended by a SIGTERM in the middle of a long computation. A command imports what it needs
when it runs. 64-bit numbers and the cache of compiled programs are switched on by the commands, for their process;
importing filtax changes neither.
"""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from filtax.cli._demo import demo
from filtax.cli._report import bandit, compare, data, doctor, methods, predict, report
from filtax.cli._reproduce import reproduce
from filtax.cli._run import resume, segment, tune
from filtax.cli._run import run as learn
from filtax.cli._shared import BAD_CHECKPOINT, BAD_INPUT, FAILED, INTERRUPTED, NOT_WRITTEN, talk
from filtax.cli._stopping import deaf, watch_signals

app = typer.Typer(
    help="Bayesian filters that learn from a stream: adaptive, robust, scalable.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line on the arguments of this process, and exit.

    Example:
        >>> import subprocess, sys
        >>> code = "from filtax.cli import main; main()"
        >>> subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True).returncode
        0
    """
    _open_closed_streams()
    watch_signals()
    code = run(sys.argv[1:])
    deaf()
    sys.exit(code)


def _open_closed_streams() -> None:
    """Let standard streams that were closed lead nowhere, before another file is opened in their place."""
    sys.stdin = sys.stdin or open(os.devnull)
    sys.stdout = sys.stdout or open(os.devnull, "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; whatever goes wrong is said in one sentence.

    Example:
        >>> from filtax.cli import run
        >>> run(["demo", "--hours", "many"])
        2
    """
    try:
        code = app(list(arguments) or ["--help"], prog_name="filtax", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        return _leave_quietly()
    except SystemExit as left:  # what typer makes of a broken pipe that it sees first
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        return _leave_quietly()
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("FILTAX_TRACEBACK"):
            traceback.print_exc()
        code, words = _diagnosis(error)
        sentence = " ".join(words.split())
        talk(f"filtax: {sentence}{'' if sentence.endswith(('.', '?')) else '.'}")
        return code


def _diagnosis(error: Exception) -> tuple[int, str]:
    """The exit code that says what kind of error it is, and what is wrong."""
    from numpy.exceptions import AxisError
    from numpy.linalg import LinAlgError

    from filtax.io import Damaged

    if isinstance(error, typer.TyperException):
        message = error.format_message()
        return BAD_INPUT, f"{message}{'' if message.endswith(('.', '?')) else '.'} See `filtax --help`."
    if isinstance(error, Damaged):
        return BAD_CHECKPOINT, str(error)
    if isinstance(error, ValueError) and not isinstance(error, LinAlgError | AxisError):  # these are about our arrays
        return BAD_INPUT, str(error)
    if isinstance(error, OSError):
        return BAD_INPUT if isinstance(error, FileNotFoundError) else NOT_WRITTEN, _failing(error)
    if isinstance(error, ModuleNotFoundError):
        return FAILED, str(error)
    if isinstance(error, MemoryError):
        return FAILED, f"the memory of this machine is too small for what was asked ({error}); ask for less"
    text = " ".join(str(error).split())[:300].rstrip(".")
    hint = "set FILTAX_TRACEBACK=1 to see where, and please report it"
    return FAILED, f"a fault of filtax, {type(error).__name__}: {text or 'without a word'}; {hint}"


def _failing(problem: OSError) -> str:
    """What the system would not do, and what to do about it."""
    from filtax.io._files import advice

    reason = problem.strerror or str(problem)
    if problem.errno == errno.ENOSPC and reason == os.strerror(errno.ENOSPC):  # of a file, filtax says which
        return f"standard output could not be written ({reason.lower()}); make room where it goes, or send it elsewhere"
    if not problem.filename:  # what filtax says itself is a sentence already
        return reason
    told = "" if isinstance(problem, FileNotFoundError) else f"; {advice(problem, problem.filename)}"
    return f"{problem.filename}: {reason.lower()}{told}"


def _leave_quietly() -> int:
    """Whoever read our output has seen enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(f"filtax {version('filtax')}")
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


app.command("run", short_help="Learn a table of your own online; forecasts, alarms, a report.")(learn)
app.command("resume", short_help="Go on with a run that was interrupted.")(resume)
app.command("predict", short_help="Forecast other rows with what a run has learned.")(predict)
app.command("report", short_help="Write the report of a run again.")(report)
app.command("compare", short_help="Hold runs against each other.")(compare)
app.command("tune", short_help="Choose the numbers in a method's name on the first rows.")(tune)
app.command("segment", short_help="Find where a series changed.")(segment)
app.command("doctor", short_help="Check that filtax works here.")(doctor)
app.command("demo", short_help="Forecast an hourly load; a table, a figure, a report.")(demo)
app.command("bandit", short_help="Judge a bandit policy by the log of another one.")(bandit)
app.command("data", short_help="List the public data sets, and where they are.")(data)
app.command("methods", short_help="List the parts of a method's name, and the published methods.")(methods)
app.command("reproduce", short_help="Run the experiments of the thesis; verdicts, figures, a report.")(reproduce)
