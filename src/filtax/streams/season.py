"""The step of a timed series, inferred from its first rows, and the cycles that such a series may have."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Season"]

DAY = 86400.0
MONTH = 30.436875 * DAY
LONGEST = 20160  # steps of the longest cycle: two weeks of minutes
_NAMED = {
    "secondly": 1.0,
    "minutely": 60.0,
    "quarter-hourly": 900.0,
    "half-hourly": 1800.0,
    "hourly": 3600.0,
    "daily": DAY,
    "weekly": 7 * DAY,
    "monthly": MONTH,
    "quarterly": 3 * MONTH,
    "yearly": 12 * MONTH,
}


@dataclass(frozen=True)
class Season:
    """A step, its name, and the cycles in steps.

    Attributes:
        step: Seconds between readings, or units of the user where times are plain numbers.
        name: Such as "hourly"; "every 600 s" where there is no word; "numbered" for plain numbers.
        cycles: Lengths of the cycles in steps, shortest first: a day and a week, a week, or a year.
        months: Calendar months in a step, 0 where it is not made of months.

    Example:
        >>> import numpy as np
        >>> from filtax.streams import Season
        >>> Season.of(np.datetime64("2024-01-01T00") + np.arange(5))
        Season(step=3600.0, name='hourly', cycles=(24, 168), months=0)
        >>> Season.of(np.array(["2024-01-31", "2024-02-29", "2024-03-31"], "datetime64[D]")).name
        'monthly'
    """

    step: float
    name: str
    cycles: tuple[int, ...] = ()
    months: int = 0

    @classmethod
    def named(cls, name: str) -> "Season":
        """Return the season of a step that has a word, such as "hourly" or "daily"."""
        if name not in _NAMED:
            raise ValueError(f'Season.named("{name:.40}") must be one of {", ".join(_NAMED)}.')
        step = _NAMED[name]
        months = round(step / MONTH) if step >= MONTH else 0
        if months:
            return cls(step, name, (12 // months,) if months < 12 else (), months)
        if step == 7 * DAY:
            return cls(step, name, (52,))
        return cls(step, name, _cycles(step))

    @classmethod
    def of(cls, time: np.ndarray, rows: int = 1000) -> "Season":
        """Infer the step: the median distance of the first rows, by its word if it has one.

        Rows of several series must be told apart before. Fewer than two rows have no step; it is then 1.
        """
        time = np.asarray(time)[:rows]
        calendar = time.dtype.kind == "M"
        gaps = np.diff(_ticks(time))
        gaps = gaps[gaps > 0]
        step = float(np.median(gaps)) if gaps.size else 1.0
        if not calendar:
            return cls(step, "numbered")
        if not gaps.size:
            return cls(step, "single")
        for name, length in _NAMED.items():
            if abs(step - length) <= (0.1 if length >= MONTH else 1e-6) * length:
                return cls.named(name)
        return cls(step, f"every {step:g} s", _cycles(step))

    def phase(self, time: np.ndarray) -> np.ndarray:
        """How far times lie behind the last mark of a clock that ticks once a step, in the unit of the step."""
        return np.mod(_ticks(time), self.step)

    def cells(self, time: np.ndarray, phase: float = 0.0) -> np.ndarray:
        """Number the steps of a grid: calendar months, or the nearest whole number of steps behind the phase.

        >>> Season.named("hourly").cells(np.array(["1970-01-01T00:10", "1970-01-01T02:08"], "M8[m]"), 600.0)
        array([0, 2])
        """
        if self.months and time.dtype.kind == "M":
            return time.astype("datetime64[M]").astype(np.int64) // self.months
        return np.rint((_ticks(time) - phase) / self.step).astype(np.int64)

    def moments(self, cells: np.ndarray, phase: float = 0.0, *, calendar: bool = True) -> np.ndarray:
        """Times of the steps of a grid: what `cells` numbers so. A step of months is told by its first day.

        >>> Season.named("hourly").moments(np.array([0, 2]), 600.0).astype("M8[m]").tolist()[1].isoformat()
        '1970-01-01T02:10:00'
        """
        if self.months and calendar:
            return (np.asarray(cells) * self.months).astype("datetime64[M]").astype("datetime64[us]")
        ticks = phase + np.asarray(cells) * self.step
        return np.rint(ticks * 1e6).astype(np.int64).astype("datetime64[us]") if calendar else ticks

    def elapsed(self, time: np.ndarray, before: np.datetime64 | float | None = None) -> np.ndarray:
        """Time since the row before, in steps: the dt of a filter. The first row counts 1 if nothing came before.

        >>> Season.named("hourly").elapsed(np.array(["2024-01-01T00", "2024-01-01T03"], "datetime64[h]"))
        array([1., 3.])
        """
        ticks, step = _ticks(time), self.step
        first = None if before is None else _ticks(np.array([before]))
        if self.months and time.dtype.kind == "M":
            ticks, step = self.cells(time).astype(np.float64), 1.0
            first = None if before is None else self.cells(np.array([before])).astype(np.float64)
        if not len(ticks):
            return ticks
        return np.diff(ticks, prepend=ticks[:1] - step if first is None else first) / step


def _ticks(time: np.ndarray) -> np.ndarray:
    """Seconds since 1970, or plain numbers as they are."""
    if time.dtype.kind == "M":
        return time.astype("datetime64[us]").astype(np.int64) / 1e6
    return np.asarray(time, np.float64)


def _cycles(step: float) -> tuple[int, ...]:
    lengths = [length / step for length in (DAY, 7 * DAY)]
    return tuple(round(n) for n in lengths if 2 <= n <= LONGEST and abs(n - round(n)) < 1e-6)
