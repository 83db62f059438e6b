"""How far a run has come, on standard error: live bars in a terminal, else a plain line for each finished part."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["progress"]

ALL = "all"


@contextmanager
def progress(
    parts: Sequence[str],
    total: int,
    unit: str = "hours",
    to: Any = None,
    expected: Mapping[str, float] | None = None,
) -> Iterator[Callable]:
    r"""Show the progress of several parts of equal length; gives `advance(part, steps)`.

    Args:
        parts: Name of each part, in the order in which they are shown.
        total: Steps of each part.
        unit: What a step is called.
        to: Where to write; standard error if not given.
        expected: Seconds that each part may take; a bar of all parts weighs them by it.

    Example:
        >>> import io
        >>> from filtax.report import progress
        >>> talk = io.StringIO()
        >>> with progress(["one"], total=2, to=talk) as advance:
        ...     advance("one", 1)
        ...     advance("one", 1)
        >>> talk.getvalue()
        'one: 2 hours\n'
    """
    to = to or sys.stderr
    if to.isatty():
        with _bars(parts, total, unit, to, expected or {}) as advance:
            yield advance
        return
    done = dict.fromkeys(parts, 0)

    def advance(part: str, steps: int) -> None:
        done[part] += steps
        if done[part] >= total > done[part] - steps:
            print(f"{part}: {done[part]} {unit}", file=to, flush=True)

    yield advance


@contextmanager
def _bars(parts: Sequence[str], total: int, unit: str, to: Any, expected: Mapping[str, float]) -> Iterator[Callable]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),  # a method's name may hold brackets
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(file=to), speed_estimate_period=float("inf")) as bars:
        tasks = {part: bars.add_task(part, total=total, start=False) for part in parts}
        seconds = sum(expected.values())
        whole = bars.add_task(ALL, total=total) if seconds else None

        def advance(part: str, steps: int) -> None:
            bars.start_task(tasks[part])
            bars.advance(tasks[part], steps)
            if whole is not None:
                bars.advance(whole, steps * expected[part] / seconds)

        yield advance
