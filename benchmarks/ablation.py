"""What each part of the bank earns: `python -m benchmarks.ablation [SET ...] [--every N] [--parts PART ...]`.

The bank forecasts real series, first whole and then with one part removed at a time: 21 series of the Numenta
benchmark (`nab`), 15 series of prices, demand, weather and polls (`streams`), and an hourly load (`load`); every row is
an origin. The table has, 1 and 24 rows ahead, the mean absolute error relative to that of the whole bank, as the
geometric mean over the series, and the share of the targets inside the 90 % intervals, as the mean over the series.
`--every N` takes each N-th series. The folder of data sets is $FILTAX_DATA. All of it takes about half an hour.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.forecasts import SHOWN, Case, nab, prequential, read, streams
from filtax.forecasting import _aggregate, _calibrate, _experts, _heads, _pipeline, standard

Part = Callable[[], AbstractContextManager]


def load() -> Iterator[Case]:
    """The hourly load of the IEEE competition, without its weather."""
    table = read("electricity_postcovid/actuals_2017_2020.csv.gz")
    yield Case("load", table["time"].astype("datetime64[us]"), table["load_kw"].astype(float))


SETS = {"nab": nab, "streams": streams, "load": load}


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
    "shared regret": constant(_aggregate, "SHARED", 0.0),
    "bounded innovations": constant(_experts, "CLIP", np.inf),
    "adaptive intervals": constant(_calibrate, "STEP", 0.0),
    "widths of slots": constant(_calibrate, "SLOT_RATE", 0.0),
}


def cases(sets: list[str], every: int) -> Iterator[Case]:
    """Each so many series of the sets."""
    return islice(chain.from_iterable(SETS[name]() for name in sets), 0, None, every)


def row(name: str, found: list[dict], whole: list[dict]) -> str:
    """A line of the table."""
    cells = []
    for h in SHOWN:
        pairs = [(one, other) for one, other in zip(found, whole, strict=True) if one["h"] == h]
        ratio = np.exp(np.mean([np.log(one["error"] / other["error"]) for one, other in pairs]))
        inside = np.mean([one["inside"] for one, _ in pairs])
        cells.append((ratio, inside))
    return f"{name:22}" + "".join(f"{ratio:8.3f}" for ratio, _ in cells) + "".join(f"{i:9.3f}" for _, i in cells)


def main() -> None:
    """Print the table, a line as soon as it is known."""
    experts = {expert.names[0]: expert for expert in standard()}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)} (default: all)")
    parser.add_argument("--every", type=int, default=1, help="take each so many series")
    parser.add_argument("--parts", nargs="+", choices=[*experts, *PARTS], metavar="PART", help="remove these alone")
    options = parser.parse_args()
    sets = options.sets or list(SETS)
    if unknown := set(sets) - set(SETS):
        parser.error(f"there is no set {unknown.pop()!r}; choose from {', '.join(SETS)}")
    whole: list[dict] = []
    print("removed                 error at 1, 24    inside at 1, 24", flush=True)
    for name in ("nothing", *(options.parts or [*experts, *PARTS])):
        members = tuple(expert for each, expert in experts.items() if each != name)
        with PARTS.get(name, nullcontext)():
            jax.clear_caches()  # what is patched counts when a function is compiled
            found = prequential(cases(sets, options.every), experts=members)
        whole = whole or found
        print(row(name, found, whole), flush=True)


if __name__ == "__main__":
    main()
