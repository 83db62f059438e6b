"""Whether a device keeps to the clock: then what it does can be known, and what it does otherwise is news.

Two ways to foretell the level of a reading are counted, with forgetting: as that of the reading before, and as that of
a cycle ago, give or take a step. Switching at random, the second is wrong more often; by the clock, it is nearly always
right, while the first is wrong at each switch. Of a spell in which the second is wrong only the first readings count: a
schedule that has just stopped is still one.
"""

from collections.abc import Mapping, Sequence

import numpy as np

__all__ = ["Schedule"]

KEPT = 1.0 - 1.0 / 5000.0  # of what was counted, at each reading
LEAST, BETTER = 3.0, 0.3  # switches; of these, the share that a cycle ago must be wrong less often than
SPELL = 3.0  # readings of a spell that count


class Schedule:
    """What is counted of one series, for each of its cycles.

    >>> clock, y = Schedule(Schedule.none((6,)), (6,)), np.tile([0.0, 0.0, 0.0, 5.0, 5.0, 5.0], 5)
    >>> for cell, reading in enumerate(y.tolist()):
    ...     clock.look(cell, reading, 0.1)
    >>> clock.is_kept
    True
    """

    def __init__(self, state: Mapping[str, np.ndarray], cycles: Sequence[int]) -> None:
        self.cycles, self.past = cycles, state["schedule"].tolist()
        self.cell, self.counts = int(state["scheduled"][0]), state["scheduled"][1:].reshape(-1, 3).tolist()

    @staticmethod
    def none(cycles: Sequence[int]) -> dict[str, np.ndarray]:
        """Nothing counted."""
        room = max(cycles, default=0) + 2
        return {"schedule": np.full(room, np.nan), "scheduled": np.zeros(1 + 3 * len(cycles))}

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, for a checkpoint."""
        flat = [count for each in self.counts for count in each]
        return {"schedule": np.array(self.past), "scheduled": np.array([self.cell, *flat], np.float64)}

    @property
    def is_kept(self) -> bool:
        """Whether what was a cycle ago foretells levels better, by far, than what was just before."""
        return any(switches >= LEAST and wrong < BETTER * switches for wrong, switches, _ in self.counts)

    def look(self, cell: int, reading: float, wide: float | None) -> None:
        """Count a reading of a step of the grid; levels are `wide` to either side, None where that is not known."""
        room = len(self.past)
        for at in range(max(self.cell + 1, cell - room), cell):
            self.past[at % room] = np.nan
        before = self.past[(cell - 1) % room]
        step = abs(reading - before)
        if wide is not None and step == step:
            self._count(cell, reading, step > wide, wide)
        self.past[cell % room], self.cell = reading, cell

    def _count(self, cell: int, reading: float, switches: bool, wide: float) -> None:
        room = len(self.past)
        for cycle, each in zip(self.cycles, self.counts, strict=True):
            near = [abs(reading - self.past[(cell - cycle + by) % room]) for by in (-1, 0, 1)]
            if near[1] == near[1]:
                spell = each[2] + 1.0 if not any(off <= wide for off in near) else 0.0
                each[:] = KEPT * each[0] + float(0.0 < spell <= SPELL), KEPT * each[1] + float(switches), spell
