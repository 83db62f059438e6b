r"""The threshold of an alarm for a chosen rate of false ones, found by simulation without any change.

With M the largest odds of a new regime that a stream of n data without a change shows, the threshold is the order
statistic of rank $\lceil (1 - \alpha)(N + 1) \rceil$ of N simulated M: an (N + 1)-th stream then gives an alarm with
probability at most $\alpha$, whatever the law, as long as it is the one that was simulated.

Axes: N runs, n data. Cost: that of N runs of `detect`, in one batch.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from filtax import checks
from filtax.segmentation.detect import causal_scale
from filtax.segmentation.plan import ONLINE, Settings, build, start
from filtax.segmentation.watch import _watch

__all__ = ["calibrate"]


def calibrate(
    false_alarms: float,
    length: int,
    *,
    key: Array,
    runs: int = 400,
    settings: Settings = ONLINE,
    least: int = 5,
    warmup: int = 30,
    outputs: int = 1,
    simulate: Callable[[Array, tuple[int, ...]], Array] | None = None,
) -> float:
    """Find the threshold at which a stream without a change gives an alarm with a chosen probability.

    Args:
        false_alarms: Probability of at least one alarm among `length` data.
        length: How long a stream to think of.
        key: Random key.
        runs: Streams to simulate; more for rarer alarms.
        settings: As for `detect`.
        least: As for `detect`.
        warmup: As for `detect`.
        outputs: Numbers read at a step.
        simulate: Law of a stream without a change, from (key, shape) to readings; independent Gaussian noise if left
            out. Noise with a memory looks like change: simulate it if you expect it.

    Returns:
        A threshold for `detect(..., period=None)`.

    >>> level = calibrate(0.2, 60, key=jax.random.key(0), runs=20, settings=Settings(noise=0.5, keep=20))
    >>> 0.0 < level < 1.0
    True
    """
    checks.whole("calibrate(length=...)", length, least=2, hint="It is a number of data.")
    rank = math.ceil((1.0 - false_alarms) * (runs + 1)) if 0.0 < false_alarms < 1.0 else runs + 1
    if rank > runs:
        raise ValueError(
            f"calibrate(false_alarms={false_alarms}, runs={runs}): a rate must lie between 1 / (runs + 1) and 1; "
            "simulate more runs."
        )
    noise = jax.random.normal if simulate is None else simulate
    Y = np.asarray(noise(key, (runs, length, outputs)), np.float64)
    method, state = build(settings, outputs, cyclic=False)
    scaled = [causal_scale(y, warmup) for y in Y]
    begun = [start(state, settings, centre, variance) for _, centre, variance in scaled]
    stack = lambda trees: jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)  # noqa: E731
    series = np.stack([z if outputs > 1 else z[:, 0] for z, _, _ in scaled])
    silent = np.zeros((runs, length), bool)
    highest = _highest(method, stack([s for s, _ in begun]), series, stack([rows for _, rows in begun]), silent, least)
    odds = float(np.sort(np.asarray(highest, np.float64))[rank - 1])
    return 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0


@jax.jit
def _highest(method: Any, states: Any, series: Any, initial: Any, silent: Any, least: Any) -> Array:
    never = partial(_watch, odds=jnp.inf, since=np.int32(0), least=least, posterior=False)
    run = lambda state, y, rows, quiet: jnp.max(never(method, state, (None, y, rows, quiet))[1].log_odds)  # noqa: E731
    return jax.vmap(run)(states, series, initial, silent)
