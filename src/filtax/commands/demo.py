"""`filtax demo`: learn a generated hourly load online; print a table, draw a figure."""

from pathlib import Path
from typing import Annotated

import typer

from filtax.commands.talk import print_wrapped, start_jax, talk

__all__ = ["demo"]


def demo(
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
    start_jax()
    from filtax import demo as job
    from filtax.report import progress
    from filtax.streams import hourly_load

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
    print_wrapped(f"{report}\n{job.winners(report)}\nFigure: {figure}")
