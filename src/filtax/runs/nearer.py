"""Which steps before a horizon are forecast beside it."""

import numpy as np

__all__ = ["STEPS", "nearer_steps"]

STEPS = 48  # steps up to a horizon that are forecast at most


def nearer_steps(horizon: int) -> tuple[int, ...]:
    """Steps below a horizon that are forecast beside it: all, or `STEPS` of a long one, closer where they are near.

    >>> nearer_steps(4), nearer_steps(1)
    ((1, 2, 3), ())
    >>> steps = nearer_steps(1440)
    >>> len(steps) < STEPS, steps[:3], steps[-1]
    (True, (1, 2, 3), 1234)
    """
    if horizon <= STEPS:
        return tuple(range(1, horizon))
    spread = np.rint(np.geomspace(1.0, horizon, STEPS)).astype(int)
    return tuple(sorted(set(spread.tolist()) - {horizon}))
