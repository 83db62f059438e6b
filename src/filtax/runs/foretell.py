"""Forecasts of rows that a stream of numbers has not met: from what it knows, and without learning them.

Axes: B rows, N streams, one for each step that is forecast, S series.
"""

import numpy as np

from filtax.estimators.intervals import interval, parts_of
from filtax.runs.bands import ENDS, restored
from filtax.runs.blocks import Block, padded
from filtax.runs.large import held, released
from filtax.runs.numbers import NumberStream

__all__ = ["foresee", "reach", "settle"]


def reach(stream: NumberStream) -> np.ndarray:
    """How many steps behind the last reading a row of each step may lie, (N,); they grow."""
    return np.array([each.late.delay + 1 for each in stream.streams])


def settle(stream: NumberStream) -> None:
    """Learn the rows that wait for their targets: behind the end of a run all that will come have come."""
    for each in stream.streams:
        slots = np.tile(np.arange(len(each.late.rows)), each.late.delay)
        for start in range(0, len(slots), each.plan.config.block):
            slot = slots[start : start + each.plan.config.block]
            blank = np.zeros((len(slot), each.late.rows.shape[2]))
            unknown = np.full(len(slot), np.nan)
            arrived = each.late.exchange(slot, blank, unknown)
            each.advance(slot, blank, arrived, unknown)
            each.bands.follow(slot, unknown)


def foresee(stream: NumberStream, block: Block, which: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Forecast rows: nothing is learned, but a target that is there is a lag of later rows.

    Args:
        stream: What was learned. The rows are put on the grids of its series.
        block: The rows; those of a series that was never met have no forecast, NaN.
        which: For each row the number of the step whose stream forecasts it, (B,); by default the furthest.

    Returns:
        forecast, lower and upper, (B,).
    """
    told = [_foresee(each, block) for each in stream.streams]
    chosen = np.full(block.rows, len(told) - 1) if which is None else which
    return {end: np.stack([each[end] for each in told])[chosen, np.arange(block.rows)] for end in ENDS}


def _foresee(stream: NumberStream, block: Block) -> dict[str, np.ndarray]:
    n, size, target = block.rows, stream.plan.config.block, stream.plan.config.target
    block = block._replace(numbers=held(block.numbers, stream.plan.powers))
    y = np.asarray(block.numbers.get(target, np.full(n, np.nan)), np.float64)
    key = [""] * n if block.key is None else block.key.astype(str).tolist()
    slot = np.array([stream.keys.get(each, -1) for each in key], np.int64)
    X, base, scale, *_ = stream.features(block, slot, y)
    rows = stream.design(np.concatenate([X, stream.inputs.read(block)], axis=1))
    if stream.maker is None:
        base, scale = (np.broadcast_to(unit, (n,)) for unit in stream.target_units())
    at = padded(np.maximum(slot, 0), size)
    made = stream.learner.foresee(stream.carry, at, padded(rows, size), stream.late.delay + 1)
    parts = parts_of(made, n)
    ends = interval(parts, stream.bands.levels(stream.bands.now()[slot]))
    told = zip(ENDS, (parts.mean, *ends), strict=True)
    own = {name: np.where(slot >= 0, restored(name, base, scale, values), np.nan) for name, values in told}
    return released(own, stream.plan.power)
