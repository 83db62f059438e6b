"""`filtax demo`: learn a generated hourly load online; print a table, draw a figure."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from filtax.cli._options import LARGEST_SEED
from filtax.cli._outcome import guarded
from filtax.cli._run import go
from filtax.cli._talk import print_wrapped, start_jax, talk

__all__ = ["demo"]


def demo(
    hours: Annotated[int, typer.Option(min=336, max=1_000_000, help="Length of the stream.")] = 4368,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Another number, another stream.")] = 0,
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder for the figure.")] = Path("out"),
    methods: Annotated[
        list[str] | None, typer.Option(help="Name of a method; repeat it for more. Three by default.")
    ] = None,
    table_alone: Annotated[bool, typer.Option("--report/--no-report", help="Whether to end with `filtax run`.")] = True,
) -> None:
    """Learn a generated hourly load online: daily cycle, drift, a level shift, missing hours, gross errors.

    Prints the scores of three methods beside those of simple baselines, and draws demo.png. Then it does what anybody
    would with the table alone, demo.csv: `filtax run`, all defaults, and ends with the path of the report.
    """
    start_jax()
    from filtax.cli import _example as job
    from filtax.report import progress
    from filtax.runs.config import Config
    from filtax.synthetic import hourly_load

    try:
        chosen = job.build(methods or job.METHODS)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'--methods'") from None
    out.mkdir(parents=True, exist_ok=True)
    stream = hourly_load(hours, key=seed)
    talk(job.describe(stream))
    with progress(list(chosen), len(stream)) as advance:
        report = job.learn(stream, chosen, advance)
    talk("mae: mean absolute error in GW. log_score: higher is better.")
    talk("coverage(0.9): share of readings inside the 90 % interval; the closer to 0.9 the better.")
    figure = job.draw(stream, report, out / "demo.png")
    print_wrapped(f"{report}\n{job.winners(report)}\nFigure: {figure}\n")
    if not table_alone:
        return
    table = job.write_readings(stream, out / "demo.csv")
    talk(f"Now the table alone, as if it were yours: filtax run {table} --target load --time time")
    with guarded():
        go(Config(str(table), "load", time="time"), _emptied(out / "demo", str(table)))


def _emptied(root: Path, source: str) -> Path:
    """The folder of the run, without what an earlier demo left; anything else in its place is not touched."""
    from filtax.runs.config import CONFIG, Config

    if (root / CONFIG).exists():
        if Path(Config.read(root).source).resolve() != Path(source).resolve():
            raise ValueError(f"{root} holds a run of something else; name another --out.")
        shutil.rmtree(root)
    return root
