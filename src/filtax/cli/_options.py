"""Options that several commands share, and the configuration that is made of them."""

from pathlib import Path
from typing import Annotated, Any

import typer

LARGEST_SEED = 2**63 - 1

Source = typer.Argument(help="CSV, TSV, JSON lines or Parquet, also gzipped; a pattern; - for stdin.")
Target = Annotated[str | None, typer.Option(help="Column that is to be forecast.")]
Time = Annotated[str | None, typer.Option(help="Column of times.")]
Features = Annotated[str | None, typer.Option(help="Columns known when a row is forecast, a,b.")]
Horizon = Annotated[int | None, typer.Option(help="Steps ahead; 1 by default.")]
Delay = Annotated[int | None, typer.Option(help="Rows by which targets become known later.")]
Key = Annotated[str | None, typer.Option(help="Column that names the series of a row.")]
Season = Annotated[int | None, typer.Option(help="Rows of a season, without times; looked for by default.")]
Settings = Annotated[
    Path | None, typer.Option(help="TOML with these options, as every run and `filtax tune` write it.")
]
OnError = Annotated[
    str | None,
    typer.Option(help="reject: skip and count rows that cannot be read; stop: end at the first, or without a target."),
]


def asked_for(config: Path | None, **options: Any) -> dict[str, Any]:
    """Entries of a configuration: those of a file, and over them the options that were given."""
    from filtax.pipeline._config import settings_of

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
