"""What each part of the bank earns: `python -m benchmarks.ablation [SET ...] [--every N] [--parts PART ...]`.

The bank forecasts real series, first whole and then with one part removed at a time: 21 series of the Numenta
benchmark (`nab`), 15 series of prices, demand, weather and polls (`streams`), 52 hourly series of the M4 competition
without times (`m4`), an hourly load (`load`), and the load with four known columns of weather (`weather`); every row is
an origin. The table has, 1 and 24 rows ahead, the mean absolute error and the score of the 90 % intervals (Winkler,
1972), both relative to those of the whole bank, as geometric means over the series, and the share of the quarters of
the longer series with 86 to 94 % of the targets inside. `a+b` removes two parts. `--every N` takes each N-th series,
`--jobs N` measures so many parts at once. The folder of data sets is $FILTAX_DATA. All of it takes about an hour of one
core.
"""

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from itertools import chain, islice, repeat
from multiprocessing import get_context
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.forecasts import SHOWN, Case, nab, prequential, read, streams
from filtax.forecasting import _aggregate, _calibrate, _experts, _heads, _pipeline, standard

LONG = 2000  # rows from which the quarters of a series are looked at
Part = Callable[[], AbstractContextManager]


def load() -> Iterator[Case]:
    """The hourly load of the IEEE competition, without its weather."""
    table = read("electricity_postcovid/actuals_2017_2020.csv.gz")
    yield Case("load", table["time"].astype("datetime64[us]"), table["load_kw"].astype(float))


def weather() -> Iterator[Case]:
    """The same with the weather of the row."""
    table = read("electricity_postcovid/actuals_2017_2020.csv.gz")
    columns = ("temperature_c", "cloud_cover_pct", "wind_speed_kmh", "pressure")
    known = np.stack([table[name].astype(float) for name in columns], 1)
    yield Case("load, weather", table["time"].astype("datetime64[us]"), table["load_kw"].astype(float), known)


def m4() -> Iterator[Case]:
    """Each eighth hourly series of the M4 competition."""
    table = read("forecasting/m4_hourly.csv.gz")
    for name in list(dict.fromkeys(table["unique_id"].tolist()))[::8]:
        yield Case(name, None, table["y"][table["unique_id"] == name].astype(float))


SETS = {"nab": nab, "streams": streams, "m4": m4, "load": load, "weather": weather}


def corrected(residual: bool, walk: bool) -> Part:
    """The residual heads of the filters, or the autoregression, say nothing."""
    whole = _heads.Heads.correct

    def correct(self: _heads.Heads, base: jax.Array, x: jax.Array) -> jax.Array:
        if x.shape[1] == _pipeline.STILL:
            return whole(self, base, x) if residual else base
        return whole(self, base, x) if walk else jnp.full_like(base, jnp.nan)  # asleep

    return lambda: patch.object(_heads.Heads, "correct", correct)


def equal_weights(self: _aggregate.Regret, awake: jax.Array) -> jax.Array:
    """All experts that are awake count alike."""
    share = awake / jnp.maximum(jnp.sum(awake, axis=-1, keepdims=True), 1)
    return jnp.broadcast_to(share[None], self.total.shape)


def constant(module: object, name: str, value: float) -> Part:
    """A constant of a module, when its functions are compiled again."""
    return lambda: patch.object(module, name, value)


PARTS: dict[str, Part] = {
    "autoregression": corrected(residual=True, walk=False),
    "residual heads": corrected(residual=False, walk=True),
    "learned weights": lambda: patch.object(_aggregate.Regret, "weights", equal_weights),
    "short memory": constant(_aggregate, "MEMORY", np.inf),
    "bounded innovations": constant(_experts, "CLIP", np.inf),
    "bounded targets": constant(_pipeline, "GROSS", np.inf),
    "adaptive intervals": constant(_calibrate, "STEP", 0.0),
    "widths of slots": lambda: patch.multiple(_calibrate, SLOT_RATE=0.0, SLOT_PRIOR=np.inf),
}


def measured(name: str, sets: list[str], every: int) -> list[dict]:
    """Errors and intervals without some parts; `nothing` is the whole bank."""
    removed = tuple(name.split("+"))
    cases = islice(chain.from_iterable(SETS[name]() for name in sets), 0, None, every)
    with ExitStack() as patched:
        for part in PARTS.keys() & set(removed):
            patched.enter_context(PARTS[part]())
        jax.clear_caches()  # what is patched counts when a function is compiled
        return prequential(cases, removed)


def relative(key: str, h: int, found: list[dict], whole: list[dict]) -> float:
    """Geometric mean of a measure at a horizon, relative to the whole bank."""
    pairs = [(one[key], other[key]) for one, other in zip(found, whole, strict=True) if one["h"] == h]
    return float(np.exp(np.mean(np.log([one / other for one, other in pairs if one > 0.0 < other]))))


def row(name: str, found: list[dict], whole: list[dict]) -> str:
    """A line of the table."""
    cells = [relative(key, h, found, whole) for key in ("error", "score") for h in SHOWN]
    for h in SHOWN:
        quarters = np.ravel([one["quarters"] for one in found if one["h"] == h and one["rows"] >= LONG])
        cells.append(float(np.mean((quarters >= 0.86) & (quarters <= 0.94))))
    return f"{name:32}" + "".join(f"{cell:8.3f}" for cell in cells)


def main() -> None:
    """Print the table, a line as soon as it is known."""
    parts = [*(expert.names[0] for expert in standard(4)), *PARTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)} (default: all)")
    parser.add_argument("--every", type=int, default=1, help="take each so many series")
    parser.add_argument("--jobs", type=int, default=1, help="parts measured at the same time")
    parser.add_argument("--parts", nargs="+", default=parts, metavar="PART", help=f"of {', '.join(parts)}")
    options = parser.parse_args()
    sets = options.sets or list(SETS)
    for given, choices in ((sets, SETS), ([part for name in options.parts for part in name.split("+")], parts)):
        if unknown := set(given) - set(choices):
            parser.error(f"there is no {unknown.pop()!r}; choose from {', '.join(choices)}")
    print(f"{'':32}   error           score of 90 %   quarters inside")
    print(f"{'removed':32}" + "".join(f"{f'at {h}':>8}" for _ in range(3) for h in SHOWN), flush=True)
    names = ["nothing", *options.parts]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        whole: list[dict] = []
        for name, found in zip(names, pool.map(measured, names, repeat(sets), repeat(options.every)), strict=True):
            whole = whole or found
            print(row(name, found, whole), flush=True)


if __name__ == "__main__":
    main()
