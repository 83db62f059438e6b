"""The command line: parses and prints, computes nothing. Standard output is data, standard error is talk.

Exit codes: 0 done, 1 failed, 2 wrong arguments, 130 interrupted. A command imports what it needs when it runs. 64-bit
numbers and the cache of compiled programs are switched on here, for this process; importing filtax changes neither.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app", "main", "run"]

app = typer.Typer(
    help="Bayesian filters that learn from a stream: adaptive, robust, scalable.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line on the arguments of this process, and exit."""
    sys.exit(run(sys.argv[1:]))


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
        return _say(2, f"{message.rstrip('.')}. See `filtax --help`.")
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _say(1, f"{error.filename or 'a file'}: {(error.strerror or str(error)).lower()}.")
    except KeyboardInterrupt:
        return 130


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


@app.command("demo", short_help="Learn an hourly load online; print a table, draw a figure.")
def _demo(
    hours: Annotated[int, typer.Option(min=336, help="Length of the stream.")] = 4368,
    seed: Annotated[int, typer.Option(min=0, help="Another number, another stream.")] = 0,
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder for the figure.")] = Path("out"),
    methods: Annotated[
        list[str] | None, typer.Option(help="Name of a method; repeat it for more. Three by default.")
    ] = None,
) -> None:
    """Learn a generated hourly load online: daily cycle, drift, a level shift, missing hours, gross errors.

    Prints the scores of the methods beside those of simple baselines, and draws demo.png.
    """
    _start_jax()
    from filtax import demo as job
    from filtax.report import progress
    from filtax.streams import hourly_load

    try:
        chosen = job.build(methods or job.METHODS)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'--methods'") from None
    out.mkdir(parents=True, exist_ok=True)
    stream = hourly_load(hours, key=seed)
    _talk(job.describe(stream))
    with progress(list(chosen), len(stream)) as advance:
        report = job.learn(stream, chosen, advance)
    _talk("mae: mean absolute error in GW. log_score: higher is better.")
    _talk("coverage(0.9): share of readings inside the 90 % interval; the closer to 0.9 the better.")
    figure = job.draw(stream, report, out / "demo.png")
    _print_wrapped(f"{report}\n{job.winners(report)}\nFigure: {figure}")


@app.command("methods", short_help="List the parts of a method's name, and the published methods.")
def _methods(
    name: Annotated[str | None, typer.Argument(help="A published method, to see its parts and parameters.")] = None,
) -> None:
    """List the parts that a method's name is made of, and the published methods that are made of them.

    A name reads POSTERIOR+AUXILIARY[K]-PRIOR, such as "LG+C-ACI(q=0.01)" or "LG+RL[10]-PR(hazard=0.01)".
    """
    from filtax.report import catalogue, describe, published

    if name is not None:
        try:
            print(describe(name))
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="'NAME'") from None
        return
    _print_table(catalogue())
    print("\nPublished methods: filtax.methods.NAME(model, ...); filtax methods NAME tells more.")
    _print_table([("name", "task", "changes", "M.2", "M.3", "A.1", "A.2"), *published()])


@app.command("bandit", short_help="Judge a bandit policy by the log of another one.")
def _bandit(
    log: Annotated[Path, typer.Argument(help="CSV with the columns arm, reward, probability; others are the context.")],
    arms: Annotated[str | None, typer.Option(help="All arms, a,b,c; those of the log by default.")] = None,
    policy: Annotated[str, typer.Option(help="ts, ts-predictive, ucb, bayes-ucb, greedy or epsilon-greedy.")] = "ts",
    rewards: Annotated[str, typer.Option(help="binary, number, or auto to look.")] = "auto",
    rate: Annotated[float, typer.Option(help="Share of what was learned that a tick keeps.")] = 0.999,
    context: Annotated[str | None, typer.Option(help="Context columns, x,y; all others by default.")] = None,
    uniform: Annotated[bool, typer.Option(help="Every arm was logged with the same probability.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Another number, other draws.")] = 0,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
) -> None:
    """Estimate what a policy that learns would have earned a round, from the log of another policy.

    Prints the mean reward of the log, and the estimates by replay, IPS, SNIPS and doubly robust, each with an interval.
    """
    _start_jax()
    from filtax.bandits import judge_log, read_log

    split = lambda text: None if text is None else [part for part in text.split(",") if part]  # noqa: E731
    try:
        found = read_log(log, arms=split(arms), context=split(context), uniform=uniform)
        judged = judge_log(found, policy, rewards=rewards, rate=rate, seed=seed, level=level)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'LOG'") from None
    _talk(f"{len(found)} rows, {len(found.arms)} arms; {judged.method} with {policy}. Mean reward of a round:")
    _print_table([("estimate", "value", "low", "high", "rows"), *judged.rows])


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _start_jax() -> None:
    """Compute in 64 bits, and keep compiled programs for the next time; where they cannot be kept, go without."""
    import jax

    jax.config.update("jax_enable_x64", True)
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME", ""))
        folder = (base if base.is_absolute() else Path.home() / ".cache") / "filtax" / "jax"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # not allowed, or nobody's home
        return
    if os.access(folder, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _print_wrapped(text: str) -> None:
    """Print, and in a terminal break sentences that are longer than its lines."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for line in text.splitlines():
        fits = not width or len(line) <= width
        print(line if fits else textwrap.fill(line, width, subsequent_indent="  ", break_on_hyphens=False))


def _talk(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _say(code: int, sentence: str) -> int:
    _talk(f"filtax: {sentence}")
    return code
