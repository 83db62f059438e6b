"""Choose the settings of a run on its first rows, and on no others: the search behind `filtax tune`.

Each setting is a run over these rows in memory, and its loss the mean of what its forecasts cost: minus the log score,
or the absolute error. The search is that of `filtax.tuning`, with a journal, so that it goes on where it was
interrupted.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from filtax import io as store
from filtax.io import InputError, open_table
from filtax.io._files import LOCK, write_whole
from filtax.runs.blocks import Block, blocks
from filtax.runs.config import Config
from filtax.runs.folder import refuse_foreign
from filtax.runs.knobs import RANGES, knobs_of, turned
from filtax.runs.plan import Plan, decide
from filtax.runs.streams import make_stream
from filtax.runs.wording import counted
from filtax.tuning import tune

__all__ = ["JOURNAL", "LOSSES", "TUNED", "Found", "search"]

TUNED, JOURNAL, ASKED = "tuned.toml", "journal.log", "asked.json"
LOSSES = ("log_score", "mae")
FEWEST = 50  # rows that a choice can be made on


class Found(NamedTuple):
    """What a search found.

    Attributes:
        config: With the best settings, to be run.
        loss: Their mean loss.
        usual: Mean loss of the settings that it began with; those are kept if nothing was better.
        tried: Settings that were tried, those of earlier calls included.
        rows: Rows that were looked at.
    """

    config: Config
    loss: float
    usual: float
    tried: int
    rows: int


def search(
    config: Config,
    folder: Path,
    *,
    rows: int = 2000,
    budget: int = 48,
    seed: int = 0,
    by: str = "log_score",
    told: Callable[[int, float], None] | None = None,
) -> Found:
    """Search the numbers in the method's name, and the variance of the weights before any row.

    Args:
        config: Of the run; its method, or the usual one, says what there is to choose.
        folder: For the journal and what was found; a search that was interrupted goes on there.
        rows: How many of the first rows to look at.
        budget: Settings to try in all.
        seed: Of the search.
        by: "log_score" or "mae".
        told: Called with the number of settings tried and the least loss.
    """
    if by not in LOSSES:
        raise ValueError(f"--by {by:.40}: it must be one of {', '.join(LOSSES)}.")
    if rows < FEWEST or budget < 1:
        raise ValueError(f"--rows {rows} --budget {budget}: at least {FEWEST} rows and one setting are needed.")
    first = _first_rows(config, rows)
    count = sum(block.rows for block in first)
    if count < FEWEST:
        raise InputError(
            f"{config.source}: it has {counted(count, 'row')} that can be read, and {FEWEST} are needed to choose by."
        )
    plan = replace(decide(config, first[0]), steps=())  # the horizon itself decides
    if plan.heads and by == "mae":
        raise ValueError("--by mae: labels have no such error; leave it out.")
    refuse_foreign(folder, ASKED, {LOCK})
    with store.lock(folder):
        _agree(folder, plan, first, by)
        return _searched(config, plan, first, folder, budget, seed, by, told)


def _searched(
    config: Config, plan: Plan, first: list[Block], folder: Path, budget: int, seed: int, by: str, told: Callable | None
) -> Found:
    """The search itself, in a folder that is held."""
    count = sum(block.rows for block in first)
    method, prior = plan.config.method or "", float(plan.config.prior or 1.0)
    knobs = knobs_of(method)
    space = {**{knob.name: knob.space for knob in knobs}, "prior": RANGES["prior"]}
    usual = _loss(plan, first, by)

    def chosen(point: dict[str, Any]) -> Config:
        return replace(plan.config, method=turned(method, knobs, point), prior=float(f"{point['prior']:.5g}"))

    def losses(points: dict[str, np.ndarray]) -> np.ndarray:
        each = [dict(zip(points, values, strict=True)) for values in zip(*points.values(), strict=True)]
        return np.array([_loss(replace(plan, config=chosen(point)), first, by) for point in each])

    found = tune(losses, space, budget=budget, seed=seed, journal=folder / JOURNAL, told=told)
    better = found.loss < usual
    best = chosen(dict(found.best)) if better else replace(plan.config, method=method, prior=prior)
    best = replace(best, version=None, block=config.block, every=config.every)
    title = f"filtax tune: {len(found.losses)} settings on the first {count} rows, by {by}; for filtax run --config"
    write_whole(folder / TUNED, best.to_toml(title).encode())
    return Found(best, min(found.loss, usual), usual, len(found.losses), count)


def _first_rows(config: Config, rows: int) -> list[Block]:
    asked = {"target": config.target, "time": config.time, "key": config.key, "on_bad": config.on_bad}
    features = None if config.features is None else list(config.features)
    if features is None and config.time is not None and config.made and config.task == "regress":
        features = []
    found: list[Block] = []
    for block in blocks(
        open_table(config.source, **asked, features=features), min(config.block, rows), [], eager=False
    ):
        left = rows - sum(each.rows for each in found)
        if block.rows:
            found.append(block if block.rows <= left else _head(block, left))
        if left <= block.rows:
            break
    return found


def _head(block: Block, rows: int) -> Block:
    numbers, texts = ({n: each[:rows] for n, each in part.items()} for part in (block.numbers, block.texts))
    time, key = (None if each is None else each[:rows] for each in (block.time, block.key))
    return Block(numbers, texts, time, key, block.line[:rows], block.file[:rows], [], None)


def _loss(plan: Plan, first: list[Block], by: str) -> float:
    """Mean loss over the rows of one setting; infinite where it gives no number."""
    stream = make_stream(plan)
    costs = []
    for block in first:
        said, _ = stream.learn(block)
        if plan.heads:
            costs.append(-np.log(np.maximum(said["p_true"], 1e-300)))
        else:
            costs.append(-said["log_score"] if by == "log_score" else np.abs(said["forecast"] - said["y"]))
    cost = np.concatenate(costs)
    cost = cost[~np.isnan(cost)]
    return float(cost.mean()) if cost.size and np.isfinite(cost).all() else float("inf")


def _agree(folder: Path, plan: Plan, first: list[Block], by: str) -> None:
    """A folder holds one search: of the same rows, for the same run."""
    seen = [{n: str(each.tolist()) for n, each in {**block.numbers, **block.texts}.items()} for block in first]
    about = {"run": store.digest(plan.to_json()), "rows": store.digest(seen), "by": by}
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
