"""The clock of a series: how long a step and a season are, and which slot of the season a time falls into.

Everything here runs once per table or batch of rows, on the host, in numpy. What the pipeline sees are small integers.
A slot comes from the time itself and not from the row number, so gaps and irregular clocks shift nothing.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

DAY = 86400.0
FINEST = 48  # slots of a day that have parameters of their own; a finer clock shares them among neighbours
PILOT = 1000  # times from which the step is read
REGULAR = 0.95  # share of steps of equal length from which a longer one is a gap
MISSING = 2000  # steps of a gap that are filled with rows without a target; a longer gap is none
DETECTION = 300  # rows in which a season is looked for where there are no times


@dataclass(frozen=True)
class Moments:
    """Where rows lie in the seasons: what the pipeline needs to know about a time.

    Attributes:
        slot: Slot of the first season (a day, or 7 days, 52 weeks, 12 months, ...).
        week: Slot of the second season, seven times the first; zeros without one.
        calendar: Weekday indicators, and sine and cosine of the year.
    """

    slot: Int[np.ndarray, " T"]
    week: Int[np.ndarray, " T"]
    calendar: Float[np.ndarray, "T C"]


@dataclass(frozen=True)
class Clock:
    """The step and the seasons of a series.

    Attributes:
        kind: "subdaily", "daily", "weekly", "monthly", "quarterly", "yearly" or "index" (rows without times).
        start: Seconds since 1970 of the first row; 0 without times.
        step: Seconds from row to row; 1 without times.
        season: Rows of the first season; 1 if there is none.
        week: Rows of the second season; 0 if there is none.
        regular: Whether all but a few rows follow the row before by one step.

    >>> hours = np.datetime64("2024-01-01T00") + np.arange(100).astype("timedelta64[h]")
    >>> clock = Clock.of(hours)
    >>> clock.season, clock.week, clock.moments(hours[30:31]).slot.tolist()
    (24, 168, [6])
    """

    ROWS: ClassVar[int] = 48  # rows from which a series reads its clock

    kind: str
    start: float
    step: float
    season: int
    week: int
    regular: bool = False

    @classmethod
    def of(cls, times: np.ndarray) -> "Clock":
        """The clock of a column of times (datetime64)."""
        seconds = _seconds(times[: PILOT + 1])
        gaps = np.diff(seconds)
        step = float(np.median(gaps)) if gaps.size else DAY
        start = float(seconds[0]) if seconds.size else 0.0
        regular = bool(np.mean(np.abs(gaps - step) <= 0.02 * step) >= REGULAR) if gaps.size else False
        if step < 0.9 * DAY:
            season = max(2, round(DAY / max(step, 1e-3)))
            return cls("subdaily", start, step, season, 7 * season, regular)
        kinds = (("daily", 6.5, 7), ("weekly", 27.0, 52), ("monthly", 85.0, 12), ("quarterly", 200.0, 4))
        for kind, below, season in kinds:
            if step < below * DAY:
                return cls(kind, start, step, season, 0, regular and kind in ("daily", "weekly"))
        return cls("yearly", start, step, 1, 0)

    @classmethod
    def by_index(cls, season: int) -> "Clock":
        """The clock of rows without times, whose season is known or was detected."""
        return cls("index", 0.0, 1.0, season, 7 * season if season in (24, 48, 96) else 0)

    @classmethod
    def by_values(cls, y: Float[np.ndarray, " T"]) -> "Clock":
        """The clock of rows without times by the season that is detected in the first 300 of them.

        >>> Clock.by_values(np.sin(np.arange(300) * 2 * np.pi / 24)).season
        24
        """
        return cls.by_index(_season(y))

    @property
    def bins(self) -> int:
        """Slots that have parameters of their own."""
        return self.season if self.season <= FINEST else 24 if self.kind == "index" else FINEST

    @property
    def calendar(self) -> int:
        """Number of calendar columns."""
        return (6 if self.week else 0) + (2 if self.kind in ("subdaily", "daily") else 0)

    def moments(self, times: np.ndarray) -> Moments:
        """Slots of times, or of row numbers where the series has no times."""
        if self.kind == "index" and self.season == 1:
            zero = np.zeros(len(times), int)
            return Moments(zero, zero, _none(zero))
        if self.kind == "index":
            row = np.asarray(times, int)
            slot = row % self.season
            week = row % self.week if self.week else np.zeros_like(row)
            weekday = row // self.season % 7
            return Moments(slot, week, (weekday[:, None] == np.arange(6)).astype(float) if self.week else _none(row))
        times = np.asarray(times, "datetime64[us]")
        day = times.astype("datetime64[D]")
        weekday = (day.astype(int) + 3) % 7  # 1970-01-01 was a Thursday, and Monday is 0
        year_day = (day - times.astype("datetime64[Y]").astype("datetime64[D]")).astype(int)
        month = times.astype("datetime64[M]").astype(int) % 12
        zero, angle = np.zeros(len(times), int), 2.0 * np.pi * (year_day + 1) / 365.25
        year = np.stack([np.sin(angle), np.cos(angle)], axis=1)
        if self.kind == "subdaily":
            share = (_seconds(times) - self.start) % DAY / DAY
            slot = np.floor(share * self.season + 1e-6).astype(int) % self.season
            columns = np.concatenate([weekday[:, None] == np.arange(6), year], axis=1)
            return Moments(slot, weekday * self.season + slot, columns)
        slot = {
            "daily": weekday,
            "weekly": np.minimum(year_day // 7, 51),
            "monthly": month,
            "quarterly": month // 3,
            "yearly": zero,
        }[self.kind]
        return Moments(slot, zero, year if self.kind == "daily" else _none(zero))

    def ahead(self, time: np.ndarray, count: Int[np.ndarray, " N"]) -> np.ndarray:
        """The times that lie so many steps after each of some times: (T, N)."""
        if self.kind == "index":
            return np.asarray(time, int)[:, None] + count
        times = np.asarray(time, "datetime64[us]")
        if self.kind in ("monthly", "quarterly", "yearly"):
            months = {"monthly": 1, "quarterly": 3, "yearly": 12}[self.kind]
            month = times.astype("datetime64[M]")
            return (month[:, None] + months * count).astype("datetime64[us]")
        return times[:, None] + (count * round(self.step * 1e6)).astype("timedelta64[us]")

    def missing(self, latest: np.ndarray, times: np.ndarray) -> Int[np.ndarray, " T"]:
        """Steps that are missing before each of some times, the row before the first of them being `latest` (1,).

        >>> hours = np.datetime64("2024-01-01T00") + np.arange(60).astype("timedelta64[h]")
        >>> Clock.of(hours).missing(hours[:1], hours[[1, 2, 6]]).tolist()
        [0, 0, 3]
        """
        if not self.regular:
            return np.zeros(len(times), int)
        steps = np.diff(_seconds(np.concatenate([latest, times]))) / self.step
        count = np.rint(steps)
        gap = (count > 1) & (count <= MISSING + 1) & (np.abs(steps - count) <= 0.1)
        return np.where(gap, count - 1, 0).astype(int)


def _season(y: Float[np.ndarray, " T"]) -> int:
    """The first autocorrelation peak that is nearly the highest, which is often a multiple; 1 if there is none."""
    values = np.asarray(y, float)[:DETECTION]
    values = values[np.isfinite(values)]
    if values.size < 20 or np.ptp(values) == 0:
        return 1
    row = np.arange(values.size)
    values = values - np.polyval(np.polyfit(row, values, 1), row)
    values = values - values.mean()
    total = float(values @ values)
    if total <= 0:
        return 1
    lags = np.arange(1, min(values.size // 3, 200))
    acf = np.array([values[k:] @ values[:-k] / total * values.size / (values.size - k) for k in lags])
    inner = np.arange(1, acf.size - 1)
    peaks = inner[(acf[inner] > acf[inner - 1]) & (acf[inner] >= acf[inner + 1]) & (acf[inner] > 0.3)]
    if peaks.size == 0:
        return 1
    return int(lags[peaks[acf[peaks] >= 0.85 * acf[peaks].max()][0]])


def _seconds(times: np.ndarray) -> np.ndarray:
    return np.asarray(times, "datetime64[us]").astype(np.int64) / 1e6


def _none(rows: np.ndarray) -> np.ndarray:
    return np.zeros((len(rows), 0))
