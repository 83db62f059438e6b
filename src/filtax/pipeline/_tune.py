"""Choose the numbers in the name of a method on the first rows of a table, and on no others.

Each setting that is tried is a run over these rows in memory. The search is that of `filtax.tuning`, with a journal, so
that it goes on where it was interrupted.
"""

import json
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from filtax import io as store
from filtax.io import InputError
from filtax.io._files import LOCK, write_whole
from filtax.pipeline._config import Config
from filtax.pipeline._folder import refuse_foreign
from filtax.pipeline._learner import make
from filtax.pipeline._rows import Block, Plan, blocks, decide, open_source
from filtax.tuning import Log, Uniform, tune

TUNED, JOURNAL, ASKED = "tuned.toml", "journal.log", "asked.json"
LOSSES = ("interval", "mae")
FEWEST = 50  # rows that a choice can be made on
_PART = re.compile(r"(?P<part>[A-Za-z][A-Za-z-]*)(?:\[[^\]]*\])?\((?P<settings>[^()]*)\)")
_SETTING = re.compile(r"(?P<name>[^=,\s]+)\s*=(?P<value>[^,]*[^,\s][^,]*)")
RANGES: dict[str, Uniform] = {
    "c": Log(0.5, 20.0),
    "hazard": Log(1e-6, 0.2),
    "q": Log(1e-9, 1.0),
    "degrees": Log(2.1, 100.0),
    "beta": Uniform(0.05, 1.0),
    "w": Uniform(0.05, 1.0),
    "shape": Log(0.1, 100.0),
}
NEAR_ONE = Log(1e-6, 0.3)  # of what is missing to 1
KEPT = {("OU", "rate"), ("SP", "shrink")}


class Found(NamedTuple):
    """What a search found: the configuration, its mean loss, that of the settings it began with, settings, rows."""

    config: Config
    loss: float
    usual: float
    tried: int
    rows: int


class Knob(NamedTuple):
    """A number in a name: what it is called, where it stands, its range; `kept`: the search is over 1 - value.

    >>> knobs_of("LG+C-OU(rate=0.99)")[0].kept
    True
    """

    name: str
    start: int
    stop: int
    space: Uniform
    kept: bool


def knobs_of(method: str) -> list[Knob]:
    """The numbers of a name that can be chosen; sizes, forms and unknown ones stay as they are.

    >>> [knob.name for knob in knobs_of("WoLF-MD(c=4)+NIG(form=covariance)+RL[1]-OUPR(hazard=0.001)")]
    ['c', 'hazard']
    """
    found: list[Knob] = []
    for match in _PART.finditer(method):
        part = match["part"].split("-")[-1]
        for setting in _SETTING.finditer(method, *match.span("settings")):
            kept = (part, setting["name"]) in KEPT
            space = NEAR_ONE if kept else RANGES.get(setting["name"])
            if space is not None:
                twice = any(knob.name == setting["name"] for knob in found)
                called = f"{part} {setting['name']}" if twice else setting["name"]
                found.append(Knob(called, *setting.span("value"), space, kept))
    return found


def turned(method: str, knobs: list[Knob], point: dict[str, float]) -> str:
    """The name with other values, of five digits.

    >>> name = "WoLF-MD(c=4)+RL[1]-OUPR(hazard=0.001)"
    >>> turned(name, knobs_of(name), {"c": 2.5, "hazard": 0.0101234567})
    'WoLF-MD(c=2.5)+RL[1]-OUPR(hazard=0.010123)'
    """
    for knob in reversed(knobs):  # from the end, so that the places before stay where they are
        digits = float(f"{point[knob.name]:.5g}")
        method = f"{method[: knob.start]}{1.0 - digits if knob.kept else digits!r}{method[knob.stop :]}"
    return method


def search(
    config: Config,
    folder: Path,
    *,
    rows: int = 2000,
    budget: int = 48,
    seed: int = 0,
    by: str = "interval",
    told: Callable[[int, float], None] | None = None,
    warn: Callable[[str], object] | None = None,
) -> Found:
    """Search the numbers in the method's name.

    Args:
        config: Of the run; its method says what there is to choose.
        folder: For the journal and what was found; a search that was interrupted goes on there.
        rows: How many of the first rows to look at.
        budget: Settings to try in all.
        seed: Of the search.
        by: "interval", the interval score (labels: the log loss), or "mae".
        told: Called with the number of settings tried and the least loss.
        warn: Called with what there is to say of a search that goes on.
    """
    if by not in LOSSES:
        raise ValueError(f"--by {by:.40}: it must be one of {', '.join(LOSSES)}.")
    if rows < FEWEST or budget < 1:
        raise ValueError(f"--rows {rows} --budget {budget}: at least {FEWEST} rows and one setting are needed.")
    if not knobs_of(config.method or ""):
        raise ValueError(
            "tune: the experts of a run have no numbers to choose, they compete for weight; name a --method with "
            'numbers, such as "LG+C-ACI(q=0.01)".'
        )
    table = open_source(config, None)
    first = next((block for block in blocks(table, rows, [], eager=False) if len(block)), None)
    table.close()
    if first is None or len(first) < FEWEST:
        count = 0 if first is None else len(first)
        raise InputError(
            f"{config.source}: it has {count} rows that can be read, and {FEWEST} are needed to choose by."
        )
    plan = decide(config, first)
    refuse_foreign(folder, ASKED, {LOCK})
    with store.lock(folder):
        _agree(folder, config, plan, first, by)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", UserWarning)
            found = _searched(replace(config, task=plan.task), plan, first, folder, budget, seed, by, told)
    for each in said:
        if warn is not None:
            warn(str(each.message))
    return found


def _searched(
    config: Config, plan: Plan, first: Block, folder: Path, budget: int, seed: int, by: str, told: Callable | None
) -> Found:
    """The search itself, in a folder that is held."""
    method = config.method or ""
    knobs = knobs_of(method)
    usual = _loss(config, plan, first, by)

    def chosen(point: dict[str, Any]) -> Config:
        return replace(config, method=turned(method, knobs, point))

    def losses(points: dict[str, np.ndarray]) -> np.ndarray:
        each = [dict(zip(points, values, strict=True)) for values in zip(*points.values(), strict=True)]
        return np.array([_loss(chosen(point), plan, first, by) for point in each])

    space = {knob.name: knob.space for knob in knobs}
    found = tune(losses, space, budget=budget, seed=seed, journal=folder / JOURNAL, told=told)
    best = chosen(dict(found.best)) if found.loss < usual else config
    title = (
        f"filtax tune: {len(found.losses)} settings on the first {len(first)} rows, by {by}; for filtax run --config"
    )
    write_whole(folder / TUNED, best.to_toml(title).encode())
    return Found(best, min(found.loss, usual), usual, len(found.losses), len(first))


def _loss(config: Config, plan: Plan, first: Block, by: str) -> float:
    """Mean loss of one setting over the rows; infinite where it gives no number."""
    learner = make(config, plan)
    parts = [learner.learn(learner.read(first, 0)), learner.finish()]
    columns, y = np.concatenate([part.columns for part in parts]), np.concatenate([part.rows.y for part in parts])
    if plan.task == "classify":
        cost = -np.log(np.maximum(columns[:, 2], 1e-300))
    else:
        forecast, lower, upper = columns[:, :3].T
        cost = np.abs(forecast - y)
        if by == "interval":
            missed = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
            cost = upper - lower + 2.0 / (1.0 - config.level) * missed
    cost = cost[~np.isnan(cost)]
    return float(cost.mean()) if cost.size and np.isfinite(cost).all() else float("inf")


def _agree(folder: Path, config: Config, plan: Plan, first: Block, by: str) -> None:
    """A folder holds one search: of the same rows, for the same run."""
    seen = {name: str(each.tolist()) for name, each in {**first.numbers, **first.texts}.items()}
    about = {"run": store.digest([config.to_json(), plan.to_json()]), "rows": store.digest(seen), "by": by}
    path = folder / ASKED
    if path.is_file():
        try:
            known = json.loads(path.read_bytes())
        except ValueError:
            known = None
        if known != about:
            raise ValueError(f"{folder} holds another search, of other rows or for another run; name another --out.")
        return
    write_whole(path, json.dumps(about).encode())
