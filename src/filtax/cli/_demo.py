"""`filtax demo`: forecast a generated hourly load by all defaults; print a table, draw a figure, write a report."""

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from filtax.cli._run import go
from filtax.cli._shared import LARGEST_SEED, start_jax, talk

LATEST = 168  # hours in the rolling error


def demo(
    hours: Annotated[int, typer.Option(min=336, max=1_000_000, help="Length of the stream.")] = 4368,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Another number, another stream.")] = 0,
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder for what it writes.")] = Path("out"),
) -> None:
    """Forecast a generated hourly load: daily cycle, drift, a level shift, missing hours, gross errors.

    Writes the load as demo.csv, runs `filtax run` on it with all defaults, and draws demo.png: the forecasts through an
    outlier, a gap and the level shift.
    """
    start_jax()
    from filtax.pipeline import Config
    from filtax.synthetic import hourly_load

    stream = hourly_load(hours, key=seed)
    table, root = out / "demo.csv", out / "demo"
    _empty(root, table)
    out.mkdir(parents=True, exist_ok=True)
    rows = zip(stream.time.astype("datetime64[m]"), stream.y.tolist(), strict=True)
    table.write_text("time,load\n" + "".join(f"{time},{'' if y != y else repr(y)}\n" for time, y in rows))
    days = [f"on {stream.time[t].astype('datetime64[D]')} the level shifts" for t in stream.changes]
    wrong = 0 if stream.outliers is None else int(stream.outliers.sum())
    faults = f"Of {hours} hours the meter misses {int(stream.missing.sum())} and gets {wrong} grossly wrong"
    talk(f"An hourly load in GW. {'; '.join([faults, *days])}.\nfiltax run {table} --target load --time time")
    go(Config(str(table), "load", time="time"), root)
    talk(f"Figure: {_draw(stream, root, out / 'demo.png')}")


def _empty(root: Path, table: Path) -> None:
    """Remove what an earlier demo left; anything else in its place is not touched."""
    from filtax.pipeline import Config
    from filtax.pipeline._config import CONFIG
    from filtax.pipeline._folder import CHECKPOINT, OUTPUTS

    if not (root / CONFIG).exists():
        for path in (table, table.with_suffix(".png")):
            if path.exists() or path.is_symlink():
                raise ValueError(f"{path} is there already, and no demo left it; name another --out.")
        return
    others = {each.name for each in root.iterdir()} - OUTPUTS - {CONFIG, CHECKPOINT, "events.jsonl"}
    if others or Path(Config.read(root).source).resolve() != table.resolve():
        raise ValueError(f"{root} holds more than what a demo left there; name another --out.")
    for path in (table, table.with_suffix(".png")):
        path.unlink(missing_ok=True)  # a link goes, and not what it points to
    shutil.rmtree(root)


def _draw(stream: Any, root: Path, path: Path) -> Path:
    """Draw the forecasts of the run, and rolling errors beside those of two baselines."""
    import numpy as np

    from filtax.evaluate import last_value, rolling, seasonal_naive
    from filtax.pipeline import open_run
    from filtax.report import draw_stream

    records = np.concatenate(list(open_run(root).records()))
    forecast = np.stack([records[name] for name in ("lower", "forecast", "upper")])
    means = {"filtax": records["forecast"]}
    means |= {baseline.name: np.asarray(baseline(stream.y).mean) for baseline in (last_value(), seasonal_naive(24))}
    begun = np.arange(len(stream)) >= LATEST
    errors = {name: np.where(begun, rolling(np.abs(mean - stream.y), LATEST), np.nan) for name, mean in means.items()}
    return draw_stream(stream, forecast, errors, path)
