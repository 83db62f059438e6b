r"""Forecasts of every step up to a horizon: for each a stream of numbers of its own, which knows nothing younger.

The forecast of step h is made directly and not by feeding forecasts back: features, belief and interval of step h see
readings that are at least h steps old, and each interval is stretched by the misses of its own step. So the bands are
calibrated step by step, whatever the method believes about the growth of errors.

Which steps there are says the plan: of a long horizon not all. A step between two of them is forecast as the longer
one: what that uses is old enough.
"""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from filtax.runs.bands import ENDS
from filtax.runs.blocks import Block
from filtax.runs.numbers import NumberStream
from filtax.runs.plan import Plan
from filtax.streams import TimedFeatures

__all__ = ["Fan"]


class Fan(NumberStream):
    """The stream of the horizon, and those of the steps before it; changes are looked for by the nearest.

    >>> from filtax.runs.config import Config
    >>> from filtax.runs.plan import decide
    >>> t = np.arange(200.0)
    >>> block = Block({"y": np.sin(t)}, {}, t, None, np.arange(200), np.zeros(200), [], None)
    >>> fan = Fan(decide(Config("-", "y", time="t", method="LG+C-Static", horizon=2, block=256), block))
    >>> said, _ = fan.learn(block)
    >>> bool(np.abs(said["forecast_1"] - np.sin(t))[-50:].max() < np.abs(said["forecast"] - np.sin(t))[-50:].max())
    True
    """

    def __init__(self, plan: Plan, keys: list[str] | None = None, met: dict | None = None) -> None:
        assert plan.season is not None
        plans = {h: replace(plan, config=replace(plan.config, horizon=h, near=None), steps=()) for h in plan.steps}
        near = plans[plan.steps[0]]
        plans[plan.steps[0]] = replace(near, config=replace(near.config, method=plan.config.near or plan.config.method))
        makers = [TimedFeatures(plan.season, each.config.late + 1) for each in (plan, *plans.values())]
        width = max(len(maker.names) for maker in makers)  # of all, so that one program serves all
        super().__init__(plan, keys, met, width)
        self.nearer = {}
        for h, each in plans.items():
            learner = self.learner if each.config.late and each.config.method == plan.config.method else None
            self.nearer[h] = NumberStream(each, keys, met, width, learner)

    @property
    def names(self) -> tuple[str, ...]:
        """What `learn` returns for each row: forecast_h, lower_h and upper_h were known h steps before it."""
        return (*super().names, *(f"{end}_{h}" for h in self.nearer for end in ENDS))

    @property
    def watches(self) -> bool:
        """Whether changes are looked for."""
        return self.nearer[self.plan.steps[0]].watches

    @property
    def streams(self) -> tuple[NumberStream, ...]:
        """A stream for each step that is forecast, the nearest first."""
        return (*self.nearer.values(), self)

    def learn(self, block: Block) -> tuple[dict[str, np.ndarray], list[tuple[int, str, Any]]]:
        """Forecast each row as it was seen from every step before it, then learn it."""
        said, _ = super().learn(block)
        every = dict(zip(self.nearer, _side_by_side(self.nearer.values(), block), strict=True))
        first, found = every[self.plan.steps[0]]
        said |= {name: first[name] for name in ("trust", "change_probability", "runlength")}
        said |= {f"{end}_{h}": told[end] for h, (told, _) in every.items() for end in ENDS}
        return said, found

    def state(self) -> PyTree:
        """All arrays that a resumed run needs."""
        return {"far": super().state(), "nearer": [each.state() for each in self.nearer.values()]}

    def restore(self, state: PyTree) -> None:
        """Go on from what `state` returned."""
        super().restore(state["far"])
        for each, own in zip(self.nearer.values(), state["nearer"], strict=True):
            each.restore(own)


def _side_by_side(streams: Iterable[NumberStream], block: Block) -> list[tuple]:
    """What each stream learns of a block; on all cores, as they have nothing in common."""
    wide = jax.config.read("jax_enable_x64")  # of this thread

    def learn(stream: NumberStream) -> tuple:
        with jax.enable_x64(wide):
            return stream.learn(block)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(learn, streams))
