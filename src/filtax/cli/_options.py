"""What `filtax run`, `tune` and `segment` share: options in the same words, and what is made of them."""

from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "LARGEST_SEED",
    "Features",
    "Horizon",
    "Key",
    "NoFeatures",
    "OnBad",
    "Source",
    "Target",
    "Time",
    "asked_for",
    "name_of",
]

Source = typer.Argument(help="CSV, TSV, JSON lines or Parquet, also gzipped; a pattern; - for stdin.")
Target = Annotated[str | None, typer.Option(help="Column that is to be learned.")]
Time = Annotated[str | None, typer.Option(help="Column of times.")]
Features = Annotated[str | None, typer.Option(help="Columns to learn from, a,b; all others by default.")]
LARGEST_SEED = 2**63 - 1
Horizon = Annotated[int | None, typer.Option(help="Steps ahead; 1 by default.")]
Key = Annotated[str | None, typer.Option(help="Column that tells one series from another.")]
OnBad = Annotated[
    str | None,
    typer.Option(help="reject: leave bad rows out, keep those without a target; stop: end at the first of either."),
]
NoFeatures = Annotated[bool, typer.Option("--no-features", help="Make no lags and calendar of the target.")]


def asked_for(config: Path | None, **options: Any) -> dict[str, Any]:
    """Entries of a configuration: those of a file, and over them the options that were given."""
    from filtax.runs.config import settings_of

    given = {name: value for name, value in options.items() if value is not None}
    if "features" in given:
        given["features"] = [name for name in given["features"].split(",") if name]
    asked = {**(settings_of(config) if config else {}), **given}
    for name, word in (("source", "SOURCE"), ("target", "--target")):
        if name not in asked:
            raise ValueError(f"{word} is missing: name it, or give a --config that does.")
    return asked


def name_of(source: str) -> str:
    """A short name of a source, for the folder of what is made of it.

    >>> name_of("data/load-*.csv.gz"), name_of("-")
    ('load', 'stdin')
    """
    return "stdin" if source == "-" else Path(source).name.split(".")[0].strip("*?[]-_") or "run"
