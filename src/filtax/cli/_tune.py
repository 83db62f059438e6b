"""`filtax tune`: choose the numbers in a method's name on the first rows of a table."""

from pathlib import Path
from typing import Annotated

import typer

from filtax.cli._options import (
    Delay,
    Features,
    Horizon,
    Key,
    Season,
    Settings,
    Source,
    Target,
    Time,
    asked_for,
    name_of,
)
from filtax.cli._outcome import guarded
from filtax.cli._talk import start_jax, talk


def tune(
    source: Annotated[str | None, Source] = None,
    target: Target = None,
    time: Time = None,
    features: Features = None,
    task: Annotated[str | None, typer.Option(help="auto, regress or classify.")] = None,
    method: Annotated[str | None, typer.Option(help="Name of a filter, whose numbers are to be chosen.")] = None,
    season: Season = None,
    horizon: Horizon = None,
    delay: Delay = None,
    key: Key = None,
    config: Settings = None,
    rows: Annotated[int, typer.Option(help="First rows to choose by; no others are looked at.")] = 2000,
    budget: Annotated[int, typer.Option(max=1_000_000, help="Settings to try in all.")] = 48,
    by: Annotated[str, typer.Option(help="interval: its score (labels: the log loss); mae: the error.")] = "interval",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Another number, another search.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the journal and tuned.toml; out/tune-NAME.")] = None,
) -> None:
    """Choose the numbers in the name of a --method on the first rows of a table.

    Each setting that is tried is a run over these rows. Prints what was found as TOML, which is also written to
    tuned.toml in the folder: `filtax run --config out/tune-NAME/tuned.toml`. If nothing was better than the numbers
    it began with, it says so and keeps them. After an interruption the same command goes on where it stopped. The
    scores of the run afterwards include the rows that were chosen by; judge it by the others.

    Needs optuna: install filtax[tune]. Exit codes: 0 done; 1 optuna is missing; 2 wrong arguments, or a table that
    cannot be read; 4 not written; 130 interrupted.
    """
    entries = ("source", "target", "time", "features", "task", "method", "season", "horizon", "delay", "key")
    given = {name: value for name, value in locals().items() if name in entries}
    with guarded():
        from filtax.pipeline import Config

        asked = Config.from_json(asked_for(config, **given))
        folder, done = out or Path("out") / f"tune-{name_of(asked.source)}", 0
        start_jax()
        from filtax.pipeline._tune import JOURNAL, TUNED, search
        from filtax.report import progress

        try:
            with progress(["settings"], budget, unit="tried") as advance:

                def told(tried: int, loss: float) -> None:
                    nonlocal done
                    advance("settings", tried - done)
                    done = tried

                found = search(asked, folder, rows=rows, budget=budget, seed=seed, by=by, told=told, warn=talk)
        except KeyboardInterrupt:
            kept = f"The {done} settings that were tried" if done else "The settings that were tried before"
            kept = f"{kept} are kept in {folder}. To go on" if (folder / JOURNAL).exists() else "To start again"
            talk(f"Stopped. {kept}: the same command.")
            raise
        print((folder / TUNED).read_text(), end="")
        words = f"loss {found.loss:.4g} a row, {found.usual:.4g} before"
        words = words if found.loss < found.usual else "none was better than before"
        talk(f"{found.tried} settings on {found.rows} rows: {words}. To use it: filtax run --config {folder / TUNED}")
