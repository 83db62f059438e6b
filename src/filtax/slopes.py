"""The derivative of a function along those of its arguments that move."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.interpreters import ad

__all__ = ["along"]


def along(function: Callable[..., Any], given: Sequence[Any], slopes: Sequence[Any]) -> tuple[Any, Any]:
    """What a function makes of its arguments, and its slope; an argument that stays has a symbolic zero.

    >>> along(lambda a, b: a * b, (2.0, 3.0), (1.0, 0.5))[1].item()
    4.0
    """
    moving = [i for i, slope in enumerate(slopes) if type(slope) is not ad.Zero]

    def moved(*values: Any) -> Any:
        whole = list(given)
        for i, value in zip(moving, values, strict=True):
            whole[i] = value
        return function(*whole)

    return jax.jvp(moved, [given[i] for i in moving], [slopes[i] for i in moving])
