"""The command line: parses and prints, computes nothing. Standard output is data, standard error is talk.

Exit codes: 0 done, 1 failed, 2 wrong arguments or input that cannot be used, 3 a checkpoint that cannot be used, 4 not
written, 130 interrupted, 143 ended by a SIGTERM in the middle of a long computation. A command imports what it needs
when it runs. 64-bit numbers and the cache of compiled programs are switched on by the commands, for their process;
importing filtax changes neither.
"""

import gc
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.metadata import version
from typing import Annotated

import typer

from filtax.cli._bandit import bandit
from filtax.cli._data import data
from filtax.cli._demo import demo
from filtax.cli._methods import methods
from filtax.cli._outcome import NOT_WRITTEN, failing
from filtax.cli._report import compare, doctor, predict, report
from filtax.cli._reproduce import reproduce
from filtax.cli._run import resume, segment
from filtax.cli._run import run as learn
from filtax.cli._stopping import deaf, watch_signals
from filtax.cli._talk import talk
from filtax.cli._tune import tune

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
    sys.meta_path.insert(0, _WithoutPandas())
    gc.set_threshold(100_000, 50, 100)  # tracing makes many objects, and few of them are garbage
    code = run(sys.argv[1:])
    deaf()
    sys.exit(code)


class _WithoutPandas(MetaPathFinder):
    """Pyarrow imports pandas where it is installed, for half a second, and needs it for nothing that is done here."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("the command line does without pandas", name=fullname)


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
    except typer.TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        return _say(2, f"{message}{'' if message.endswith(('.', '?')) else '.'} See `filtax --help`.")
    except BrokenPipeError:
        return _leave_quietly()
    except SystemExit as left:  # what typer makes of a broken pipe that it sees first
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        return _leave_quietly()
    except OSError as error:
        return _say(NOT_WRITTEN, f"{failing(error).rstrip('.')}.")
    except MemoryError as error:
        return _say(1, f"the memory of this machine is too small for what was asked ({error}); ask for less.")
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # ours to mend; what was checkpointed is kept
        if os.environ.get("FILTAX_TRACEBACK"):
            raise
        text = " ".join(str(error).split())[:300].rstrip(".")
        hint = "set FILTAX_TRACEBACK=1 to see where, and please report it"
        return _say(1, f"a fault of filtax, {type(error).__name__}: {text or 'without a word'}; {hint}.")


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


def _say(code: int, sentence: str) -> int:
    talk(f"filtax: {sentence}")
    return code
