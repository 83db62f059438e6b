"""`filtax tune`: choose the settings of a run on its first rows."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from filtax.cli._options import Features, Horizon, Key, NoFeatures, Source, Target, Time, asked_for, name_of
from filtax.cli._outcome import guarded
from filtax.cli._talk import start_jax, talk

__all__ = ["tune"]


def tune(
    source: Annotated[str | None, Source] = None,
    target: Target = None,
    time: Time = None,
    features: Features = None,
    task: Annotated[str | None, typer.Option(help="auto, regress or classify.")] = None,
    method: Annotated[
        str | None, typer.Option(help="Name of a filter, whose numbers are to be chosen; the usual one by default.")
    ] = None,
    horizon: Horizon = None,
    delay: Annotated[int | None, typer.Option(help="Rows by which targets come late.")] = None,
    key: Key = None,
    config: Annotated[Path | None, typer.Option(help="TOML with these options, as every run writes it.")] = None,
    rows: Annotated[int, typer.Option(help="First rows to choose by; no others are looked at.")] = 2000,
    budget: Annotated[int, typer.Option(max=1_000_000, help="Settings to try in all.")] = 48,
    by: Annotated[str, typer.Option(help="log_score: honest intervals count; mae: the error alone.")] = "log_score",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Another number, another search.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the journal and tuned.toml; out/tune-NAME.")] = None,
    no_features: NoFeatures = False,
) -> None:
    """Choose the numbers in a method's name, and how far weights may lie from 0 at first, on the first rows of a table.

    Each setting that is tried is a run over these rows. Prints what was found as TOML, which is also written to
    tuned.toml in the folder: `filtax run --config out/tune-NAME/tuned.toml`. If nothing was better than the settings
    it began with, it says so and keeps them. After an interruption the same command goes on where it stopped. The
    scores of the run afterwards include the rows that were chosen by; judge it by the others.

    Needs optuna: install filtax[tune]. Exit codes: 0 done; 1 optuna is missing; 2 wrong arguments, or a table that
    cannot be read; 4 not written; 130 interrupted.
    """
    with guarded():
        from filtax.runs.config import Config

        asked = Config.from_json(
            asked_for(
                config,
                source=source,
                target=target,
                time=time,
                key=key,
                features=features,
                task=task,
                method=method,
                horizon=horizon,
                delay=delay,
                made=False if no_features else None,
            )
        )
        folder = out or Path("out") / f"tune-{name_of(asked.source)}"
        from filtax.runs.search import TUNED

        found = _shown(asked, folder, rows=rows, budget=budget, seed=seed, by=by)
        print((folder / TUNED).read_text(), end="")
        better = found.loss < found.usual
        unit = "minus the log score" if by == "log_score" else "error"
        words = f"{unit} {found.loss:.4g} a row, {found.usual:.4g} before" if better else "none was better than before"
        talk(f"{found.tried} settings on {found.rows} rows: {words}. To use it: filtax run --config {folder / TUNED}")


def _shown(asked: Any, folder: Path, *, budget: int, **how: Any) -> Any:
    """The search, with its progress; where it is interrupted, what is kept and how to go on."""
    from filtax.report import progress
    from filtax.runs.search import search

    done = 0
    try:
        start_jax()
        with progress(["settings"], budget, unit="tried") as advance:

            def told(tried: int, loss: float) -> None:
                nonlocal done
                advance("settings", tried - done)
                done = tried

            with _heard() as warned:
                found = search(asked, folder, budget=budget, told=told, **how)
    except KeyboardInterrupt:
        talk(_stopped(folder, done))
        raise
    for words in warned:
        talk(words)
    return found


def _stopped(folder: Path, done: int) -> str:
    from filtax.runs.search import JOURNAL

    if not (folder / JOURNAL).exists():
        return "Stopped before a setting was tried. To start again: the same command."
    tried = f"The {done} settings that were tried" if done else "The settings that were tried before"
    return f"Stopped. {tried} are kept in {folder}. To go on: the same command."


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Sentences of the warnings that come meanwhile; they are there when it is over."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        yield said
    said += [str(warning.message) for warning in warned]
