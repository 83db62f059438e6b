"""How far a run has come, on standard error: live bars in a terminal, else a plain line for each finished part."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["progress"]

ALL = "all"
FIRST = 20.0  # seconds for which what was expected counts beside what was measured


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
        expected: Seconds that each part may take, by which the time left for all of them is told.

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
    to, clock = to or sys.stderr, _Clock(parts, total, expected)
    if to.isatty():
        with _bars(clock, unit, to) as advance:
            yield advance
        return

    def advance(part: str, steps: int) -> None:
        clock.advance(part, steps)
        if clock.done[part] >= total > clock.done[part] - steps:
            left = clock.left(ALL) if expected else None
            print(f"{part}: {clock.done[part]} {unit}{_words(left)}", file=to, flush=True)

    yield advance


class _Clock:
    """Steps done, and seconds left of each part and of all."""

    def __init__(self, parts: Sequence[str], total: int, expected: Mapping[str, float] | None) -> None:
        self.done, self.total, self.expected = dict.fromkeys(parts, 0), total, expected or {}
        self.began, self.seen = time.monotonic(), {}

    def advance(self, part: str, steps: int) -> None:
        now = time.monotonic()
        self.done[part] += steps
        self.seen[part] = (self.seen.get(part, (now,))[0], now)

    def share(self) -> float:
        """Of all that is expected."""
        sum_ = sum(self.expected.values())
        return self.total * (1.0 - self._remaining() / sum_) if sum_ else float(self.total)

    def left(self, part: str) -> float | None:
        """Seconds, as of now; none where nothing is known."""
        if part == ALL:
            remaining, now = self._remaining(), time.monotonic()
            finished = sum(self.expected.values()) - remaining
            told = max((at for _, at in self.seen.values()), default=self.began)
            pace = (told - self.began + FIRST) / (finished + FIRST)
            return _since(remaining * pace, now - told) if remaining else 0.0
        first, told = self.seen.get(part, (0.0, 0.0))
        share = self.done[part] / self.total
        if share in (0.0, 1.0):
            return 0.0 if share else None
        return _since((told - first) * (1.0 - share) / share, time.monotonic() - told)

    def _remaining(self) -> float:
        return sum(one * (1.0 - self.done[part] / self.total) for part, one in self.expected.items())


def _since(left: float, passed: float) -> float:
    """Of the seconds that were left; what is overdue takes longer, the longer it is."""
    return max(left - passed, 0.2 * passed)


def _words(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f", about {seconds / 60:.0f} minutes left" if seconds >= 90 else f", about {seconds:.0f} s left"


@contextmanager
def _bars(clock: _Clock, unit: str, to: Any) -> Iterator[Callable]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    def left(task: Any) -> str:
        seconds = clock.left(task.description)
        whole = round(seconds or 0.0)
        return "-:--:--" if seconds is None else f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"

    class Left(TextColumn):
        def render(self, task: Any) -> Any:
            return type(super().render(task))(left(task))

    columns = (
        TextColumn("{task.description}", markup=False),  # a method's name may hold brackets
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        Left(""),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(file=to)) as bars:
        tasks = {part: bars.add_task(part, total=clock.total, start=False) for part in clock.done}
        if clock.expected:
            tasks[ALL] = bars.add_task(ALL, total=clock.total)

        def advance(part: str, steps: int) -> None:
            clock.advance(part, steps)
            bars.start_task(tasks[part])
            bars.update(tasks[part], advance=steps)
            if clock.expected:
                bars.update(tasks[ALL], completed=round(clock.share()))

        yield advance
