"""Which texts are numbers: one rule for every text format, so that no number is changed in silence.

A number is an optional sign, decimal digits 0-9 with at most one point, and an optional exponent; blanks around it are
ignored. Everything else is text: thousands separators, decimal commas, hexadecimal, digits of other scripts, booleans,
infinities. A number is read as the nearest 64-bit one; what would become infinite or zero that way is refused.
"""

import re

from filtax.sources.rejected import RowError

__all__ = ["MISSING", "is_missing", "number", "show"]

MISSING = ("", "NA", "N/A", "nan", "NaN", "NAN", "null", "NULL", "None")  # and these in any other case
_MISSING = {text.lower() for text in MISSING}
_NUMERAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WITH_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[_ '\u00a0][0-9]{3})+(?:\.[0-9]+)?")


def is_missing(text: str) -> bool:
    """Say whether a text stands for a value that is missing, in a column of numbers.

    >>> [is_missing(text) for text in ("", " NA ", "nan", "Null", "-", "0")]
    [True, True, True, True, False, False]
    """
    return text.strip(" \t").lower() in _MISSING


def number(text: str) -> float:
    """Read a number, NaN where it is missing; raise `RowError` (column 0) with the reason otherwise.

    >>> number(" 3 "), number("+5"), number("1e5"), number("NA")
    (3.0, 5.0, 100000.0, nan)
    """
    bare = text.strip(" \t")
    if _NUMERAL.fullmatch(bare) is None:
        if bare.lower() in _MISSING:
            return float("nan")
        raise RowError(0, f"{show(text)} is not a number{_advice(bare)}")
    value = float(bare)
    if value in (float("inf"), float("-inf")):
        raise RowError(0, f"{show(text)} is too large for a 64-bit number")
    if value == 0.0 and re.search("[1-9]", re.split("[eE]", bare)[0]):
        raise RowError(0, f"{show(text)} is too small for a 64-bit number")
    return value


def show(text: str) -> str:
    """Quote a text for a message: printable, and short.

    >>> show("abc"), len(show("x" * 1000))
    ("'abc'", 42)
    """
    return repr(text if len(text) <= 40 else text[:39] + "…") if text.isprintable() else ascii(text[:40])


def _advice(bare: str) -> str:
    if _WITH_COMMA.fullmatch(bare):
        return "; write decimals with a point"
    if _GROUPED.fullmatch(bare):
        return "; write it without marks between the thousands"
    if bare.lower().lstrip("+-") in ("inf", "infinity"):
        return " that is finite"
    return ""
