"""How well the bank forecasts real series, beside simple baselines: `python -m benchmarks.forecasts [SET ...]`.

    load       day-ahead load of the IEEE competition, issued at 08:00, mean absolute error of 2020 in MW
    nab        21 series of the Numenta benchmark, each row an origin, 1 and 24 rows ahead
    streams    15 series of prices, demand, weather and polls, likewise
    m4         414 hourly series of the M4 competition without times, 48 rows ahead from the end of the training part

Everything runs with defaults. Ratios are to the best of last value, seasonal and weekly naive and running mean. The
folder of data sets is $FILTAX_DATA. `python -m benchmarks.ablation` removes one part of the bank at a time.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DATA = os.environ.get("FILTAX_DATA") or str(Path(__file__).resolve().parents[2] / "shared" / "data")
START = 500  # rows before errors count
SHOWN = (1, 24)


@dataclass
class Case:
    """A series, its times if it has any, and the columns that are known for a row before its target."""

    name: str
    times: Any
    y: np.ndarray
    known: np.ndarray | None = None


def read(name: str) -> dict[str, np.ndarray]:
    """The columns of a table of the data folder."""
    import pyarrow.csv

    path = Path(DATA) / name
    return {k: np.asarray(v) for k, v in pyarrow.csv.read_csv(path).to_pydict().items()}


def nab() -> Iterator[Case]:
    for path in sorted((Path(DATA) / "forecasting" / "nab").glob("*.csv.gz")):
        table = read(f"forecasting/nab/{path.name}")
        yield Case(path.name[:-7], table["timestamp"].astype("datetime64[us]"), table["value"].astype(float))


def streams() -> Iterator[Case]:
    elec, rain, polls = (read(f"streams/{name}.csv.gz") for name in ("elec2", "noaa_weather", "trump_approval"))
    half_hours = np.datetime64("1996-05-07") + 30 * np.arange(len(elec["nswprice"])).astype("timedelta64[m]")
    days = np.arange(max(len(rain["rain"]), len(polls["gallup"]))).astype("timedelta64[D]")
    yield Case("price", half_hours, elec["nswprice"].astype(float))
    yield Case("demand", half_hours, elec["nswdemand"].astype(float))
    yield Case(
        "temperature", np.datetime64("1949-01-01") + days[: len(rain["rain"])], rain["temperature_f"].astype(float)
    )
    approval = polls["five_thirty_eight"].astype(float)
    yield Case("approval", np.datetime64("2017-01-20") + days[: len(approval)], approval)
    dow, stocks = (
        read("finance/djia_daily_ohlcv_1992_2026.csv.gz"),
        read("finance/sp500_20_stocks_daily_1990_2022.csv.gz"),
    )
    for name, table, column in (("dow", dow, "close"), *((name, stocks, name) for name in ("AAPL", "AMD", "BAC"))):
        times, price = table["date"].astype("datetime64[us]"), table[column].astype(float)
        yield Case(name, times, price)
        yield Case(f"{name} return", times[1:], np.diff(np.log(price)))
    yield Case(
        "dow volatility", dow["date"].astype("datetime64[us]")[1:], np.abs(np.diff(np.log(dow["close"].astype(float))))
    )


def prequential(cases: Iterator[Case], without: tuple[str, ...] = ()) -> list[dict]:
    """Errors and intervals of each series 1 and 24 rows ahead, and the error of the best simple baseline."""
    from filtax.forecasting import Series, standard

    rows = []
    for case in cases:
        columns = 0 if case.known is None else case.known.shape[1]
        experts = tuple(expert for expert in standard(columns) if expert.names[0] not in without)
        series = Series(max(SHOWN), known=columns, experts=experts)
        began = time.process_time()
        out = series.learn(case.y, case.times, case.known)
        spent, n = time.process_time() - began, len(case.y)
        for h in SHOWN:
            at = np.arange(min(START, n // 3) + 1, n - h + 1)
            target = case.y[at + h - 1]
            forecast, lower, upper = out.due[at + h - 1, h - 1].T
            error = np.nanmean(np.abs(forecast - target))
            inside = (lower <= target) & (target <= upper)
            beyond = np.maximum(lower - target, 0.0) + np.maximum(target - upper, 0.0)
            quarters = [float(part.mean()) for part in np.array_split(inside, 4)]
            best = min(np.nanmean(np.abs(other[at] - target)) for other in baselines(case, series, h))
            rows.append(
                {
                    "name": case.name,
                    "h": h,
                    "error": error,
                    "ratio": error / best,
                    "inside": inside.mean(),
                    "score": np.nanmean(upper - lower + 20.0 * beyond),  # Winkler's, for intervals of 90 %
                    "quarters": quarters,
                }
                | {"rows": n, "us": spent / n * 1e6}
            )
    return rows


def baselines(case: Case, series: Any, h: int) -> Iterator[np.ndarray]:
    """Last value, running mean, and the last value of the same slot of the day and of the week, for all origins."""
    n = len(case.y)
    last = np.concatenate([[np.nan], case.y[:-1]])
    yield last
    yield np.concatenate([[np.nan], np.cumsum(case.y[:-1]) / np.arange(1, n)])
    for period in (series.pipe.layout.season, series.pipe.layout.week):
        if period > 1:
            at = np.arange(n) + h - 1 - period * (-(-h // period))
            yield np.where(at >= 0, case.y[np.maximum(at, 0)], last)


def load(columns: tuple[str, ...] = (), **options: Any) -> dict:
    """Mean absolute error of 2020 in MW, all months and those without a break; coverage of 90 % intervals."""
    from filtax.forecasting import Series

    actual, weather = (read(f"electricity_postcovid/{n}_2017_2020.csv.gz") for n in ("actuals", "weather_forecasts"))
    times = weather["time"].astype("datetime64[us]")
    keep = times <= np.datetime64("2020-11-08T23")
    times, y = times[keep], np.full(keep.sum(), np.nan)
    y[: len(actual["load_kw"])] = actual["load_kw"]
    known = np.stack([weather[name][keep].astype(float) for name in columns], 1) if columns else None
    hour = times.astype("datetime64[h]").astype(int) % 24
    steps = tuple(range(17, 41))
    series = Series(steps, known=len(columns), stride=24, **options)
    out = series.learn(y, times, known, issue=hour == 8)
    forecast, low, high = (np.full(len(y), np.nan) for _ in range(3))
    for row in np.flatnonzero(hour == 8):
        at = row - 1 + np.asarray(steps)
        at = at[at < len(y)]
        for into, part in ((forecast, out.forecast), (low, out.lower), (high, out.upper)):
            into[at] = part[row, : at.size]
    judged = (times >= np.datetime64("2020-01-01")) & ~np.isnan(forecast) & ~np.isnan(y)
    error, month = np.abs(forecast - y)[judged] / 1e3, times[judged].astype("datetime64[M]").astype(int) % 12 + 1
    calm = np.mean([error[month == m].mean() for m in (1, 2, 6, 7, 8, 9, 10)])
    return {"total": error.mean(), "calm": calm, "inside": np.mean((low <= y)[judged] & (y <= high)[judged])}


def m4(every: int = 1) -> dict:
    """Mean MASE and sMAPE over the series, 48 rows ahead."""
    from filtax.forecasting import Series

    table = read("forecasting/m4_hourly.csv.gz")
    mase, smape = [], []
    for name in list(dict.fromkeys(table["unique_id"].tolist()))[::every]:
        mine = table["unique_id"] == name
        train = table["y"][mine & (table["split"] == "train")].astype(float)
        test = table["y"][mine & (table["split"] == "test")].astype(float)
        series = Series(len(test))
        series.learn(train)
        forecast = series.ahead().forecast
        mase.append(np.mean(np.abs(test - forecast)) / np.mean(np.abs(train[24:] - train[:-24])))
        smape.append(200.0 * np.mean(np.abs(test - forecast) / (np.abs(test) + np.abs(forecast) + 1e-12)))
    return {"MASE": np.mean(mase), "median": np.median(mase), "sMAPE": np.mean(smape)}


def geometric(rows: list[dict], h: int) -> tuple[float, float]:
    """Geometric mean and maximum of the ratios."""
    ratios = np.array([row["ratio"] for row in rows if row["h"] == h])
    return float(np.exp(np.mean(np.log(ratios)))), float(ratios.max())


def show_prequential(name: str, cases: Callable[[], Iterator[Case]]) -> None:
    rows = prequential(cases())
    print(f"\n{name}: mean absolute error / best of last, seasonal, weekly, mean")
    for row in rows:
        print(f"  {row['name']:32} h={row['h']:<3} {row['ratio']:.3f}  inside {row['inside']:.3f}  {row['us']:.0f} us")
    for h in SHOWN:
        mean, worst = geometric(rows, h)
        quarters = np.array([row["quarters"] for row in rows if row["h"] == h]).ravel()
        share = np.mean((quarters >= 0.86) & (quarters <= 0.94))
        print(f"  h={h}: geometric mean {mean:.3f}, worst {worst:.3f}; quarters with 86-94 % inside: {share:.2f}")


def main() -> None:
    """Print the tables of the sets that are named, or of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=["load", "nab", "streams", "m4"])
    parser.add_argument("--every", type=int, default=1, help="of the M4 series, take each so many")
    args = parser.parse_args()
    import filtax as fx

    fx.tune_xla()
    for name in args.sets:
        if name == "load":
            for columns in ((), ("temperature_c",), ("temperature_c", "cloud_cover_pct", "wind_speed_kmh", "pressure")):
                found = load(columns)
                print(
                    f"load, {len(columns)} known columns: " + ", ".join(f"{k} {v:.3f}" for k, v in found.items()),
                    flush=True,
                )
        elif name == "m4":
            print("m4: " + ", ".join(f"{k} {v:.3f}" for k, v in m4(args.every).items()), flush=True)
        else:
            show_prequential(name, {"nab": nab, "streams": streams}[name])


if __name__ == "__main__":
    main()
