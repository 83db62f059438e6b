"""Times: ISO dates with or without a zone, seconds or milliseconds since 1970, or plain numbers in any unit.

How times are written is decided by the first one, and holds for the whole source. Calendar times come out as
`datetime64[us]` (in UTC if they carry a zone, else as written), plain numbers as float64.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from filtax.sources.numerals import is_missing, number, show
from filtax.sources.rejected import RowError

__all__ = ["CLOCKS", "clock_of", "read_times"]

CLOCKS = ("local", "zoned", "seconds", "milliseconds", "number")
_UNIT = {"seconds": 10**6, "milliseconds": 10**3}
_ISO = re.compile(
    r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?P<zone> ?(?:Z|[+-][0-9]{2}:?[0-9]{2}))?)?"
)
_ADVICE = "; write 2024-05-31, 2024-05-31T14:00, 2024-05-31T14:00:00+02:00, or seconds since 1970"


def clock_of(values: Sequence[Any] | np.ndarray) -> str | None:
    """Tell by the first value that is one how times are written; None if there is none.

    >>> clock_of(["2024-05-31 14:00"]), clock_of(["2024-05-31T14:00Z"]), clock_of(["1717164000"]), clock_of(["17"])
    ('local', 'zoned', 'seconds', 'number')
    """
    for value in values:
        if isinstance(value, str):
            form = _ISO.fullmatch(value.strip(" \t"))
            if form:
                return "zoned" if form["zone"] else "local"
        try:
            value = abs(number(value) if isinstance(value, str) else float(value))
        except (RowError, TypeError, ValueError):
            continue
        if value < float("inf"):
            return "seconds" if 1e8 <= value < 1e11 else "milliseconds" if 1e11 <= value < 1e14 else "number"
    return None


def read_times(values: Sequence[Any] | np.ndarray, clock: str) -> tuple[np.ndarray, dict[int, str]]:
    """Read times of one clock.

    Args:
        values: Texts, or numbers where the format has them.
        clock: How they are written, one of `CLOCKS`.

    Returns:
        `datetime64[us]`, or float64 for plain numbers; and the reason for each row that has none.

    Example:
        >>> from filtax.sources import read_times
        >>> times, faults = read_times(["2024-05-31", "31.5.2024"], "local")
        >>> str(times[0])[:10], list(faults)
        ('2024-05-31', [1])
    """
    if clock == "local" and (quick := _all_local(values)) is not None:
        return quick, {}
    read = _moment if clock in ("local", "zoned") else _count
    moments, faults = [], {}
    for i, value in enumerate(values):
        try:
            moments.append(read(value, clock))
        except RowError as fault:
            faults[i] = fault.reason
            moments.append(None)
    return np.array(moments, np.float64 if clock == "number" else "datetime64[us]"), faults


def _all_local(values: Sequence[Any] | np.ndarray) -> np.ndarray | None:
    """All times at once, where every one of them is well formed; None where one needs a closer look."""
    texts = list(values)
    if all(isinstance(text, str) and (form := _ISO.fullmatch(text)) and not form["zone"] for text in texts):
        try:
            return np.array(texts, "datetime64[us]")
        except ValueError:  # such as a 30th of February
            return None
    return None


def _moment(value: Any, clock: str) -> datetime:
    text = value.strip(" \t") if isinstance(value, str) else str(value)
    form = _ISO.fullmatch(text)
    try:
        moment = datetime.fromisoformat(text) if form else None
    except ValueError as error:
        raise RowError(0, f"{show(text)} is not a time: {str(error).splitlines()[0]}") from None
    if moment is None:
        raise RowError(0, "the time is missing" if is_missing(text) else f"{show(text)} is not a time{_ADVICE}")
    if moment.tzinfo is None:
        if clock == "zoned" and len(text) > 10:
            raise RowError(0, f"{show(text)} has no zone, but the first time has one")
        return moment
    if clock == "local":
        raise RowError(0, f"{show(text)} has a zone, but the first time has none")
    try:
        return moment.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise RowError(0, f"{show(text)} is too near the end of the calendar") from None


def _count(value: Any, clock: str) -> float | int:
    """A plain number, or microseconds since 1970, rounded from the digits that are written."""
    try:
        read = number(value) if isinstance(value, str) else float(value)
    except (RowError, TypeError, ValueError):
        raise RowError(0, f"{show(str(value))} is not a time{_ADVICE}") from None
    if read != read:
        raise RowError(0, "the time is missing")
    if abs(read) == float("inf"):
        raise RowError(0, "the time is infinite, or too large for 64 bits")
    if clock == "number":
        return read
    if abs(read) * _UNIT[clock] > 9e18:
        raise RowError(0, f"{show(str(value))} is not a time in {clock} since 1970")
    return round(Decimal(value.strip(" \t") if isinstance(value, str) else repr(read)) * _UNIT[clock])
