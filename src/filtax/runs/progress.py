"""How far a run has come, in numbers that its checkpoints hold."""

from dataclasses import dataclass

__all__ = ["Progress"]


@dataclass
class Progress:
    """How far a run has come.

    Attributes:
        rows: Rows taken in.
        blank: Those without a target: they are forecast, and there is nothing to learn.
        rejected: Rows left out.
        changes: Alarms of a change.
        distrusted: Rows that were not trusted.
        seconds: Time spent on all rows but those of the first block of a process, for which programs are compiled, and
            those that came a few at a time: what they take is the cost of a call.
        untimed: Rows of those blocks.
        stopped: Whether it was asked to stop before the end of its source.
        gaps: Places where steps of a regular clock are missing.
        missing: How many steps are missing there.

    >>> Progress().rows
    0
    """

    rows: int = 0
    rejected: int = 0
    changes: int = 0
    distrusted: int = 0
    seconds: float = 0.0
    untimed: int = 0
    stopped: bool = False
    blank: int = 0
    gaps: int = 0
    missing: int = 0
