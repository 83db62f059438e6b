"""How far a search is, on standard error: one line that is written anew in a terminal, else a plain line each time."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["countdown"]


@contextmanager
def countdown(budget: int, done: int = 0, to: Any = None) -> Iterator[Callable[[int, float], None]]:
    r"""Show how many settings of a budget were tried, the least loss, and the time left; gives `told(tried, least)`.

    Args:
        budget: Settings to try in all.
        done: Settings that were tried before the clock began; they say nothing about the pace.
        to: Where to write; standard error if not given.

    >>> import io
    >>> to = io.StringIO()
    >>> with countdown(2, to=to) as told:
    ...     told(2, 0.25)
    >>> to.getvalue()
    'tune: 2 of 2 settings, least loss 0.25\n'
    """
    to, began, width = to or sys.stderr, time.monotonic(), 0
    live = to.isatty()

    def told(tried: int, least: float) -> None:
        nonlocal width
        words = f"tune: {tried} of {budget} settings"
        words += f", least loss {least:.6g}" if np.isfinite(least) else ", no finite loss yet"
        if done < tried < budget:
            words += f", about {_span((time.monotonic() - began) * (budget - tried) / (tried - done))} left"
        print(f"\r{words:<{width}}" if live else words, end="" if live else "\n", file=to, flush=True)
        width = len(words)

    try:
        yield told
    finally:
        if live and width:
            print(file=to, flush=True)


def _span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    return f"{round(whole / 60)} min" if whole < 6000 else f"{whole / 3600:.1f} h"
