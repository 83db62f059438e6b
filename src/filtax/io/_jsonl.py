"""JSON lines: one object a line. What a row does not name is missing there; what nobody asked for is ignored."""

import json
import re
from typing import Any

from filtax.io._errors import RowError
from filtax.io._layout import Layout, Raw, read_rows
from filtax.io._text import Block, decode, number, show, shown, too_long

_HALF = re.compile("[\ud800-\udfff]")  # of a pair of escapes that means a character; alone it cannot be written
_MARKS = re.compile(r'("(?:[^"\\]|\\.)*"[ \t]*:)|"(?:[^"\\]|\\.)*"|[{}\[\]]')  # names, other texts, and what nests
_NO_TEXT = "holds half of a surrogate pair, which is no text"


class _NamedError(Exception):
    """Trouble with one name of a row; its place is looked up in the text."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name, self.reason = name, reason


def sample_objects(block: Block, limit: int, most: int = 1000) -> dict[str, list[Any]]:
    """Values of the first rows, by name; rows that cannot be read are passed over."""
    found: dict[str, list[Any]] = {}
    for data in block.data.splitlines()[:most]:
        try:
            row = _object(data, limit) if data.strip() else {}
        except (RowError, _NamedError):
            continue
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return found


def read_objects(block: Block, layout: Layout, file: str, limit: int) -> Raw:
    """Read a block row by row."""

    def parse(body: bytes) -> tuple[list[float], list[Any]] | None:
        if not body.strip():
            return None
        try:
            row = _object(body, limit)
            numbers = [_number(row.get(name), name) for name in layout.numbers]
            return numbers, [_text(row.get(name), name, name == layout.time) for name in layout.words]
        except _NamedError as fault:
            raise RowError(place_of(decode(body), fault.name), fault.reason) from None

    return read_rows(block, layout, file, parse)


def place_of(text: str, name: str) -> int:
    """Character, from 1, with which a name begins in a row, outside of what is nested; 1 if it is not there."""
    depth = 0
    for mark in _MARKS.finditer(text):
        depth += (mark[0] in "{[") - (mark[0] in "}]")
        if depth == 1 and mark[1] and json.loads(mark[0].rstrip(": \t")) == name:
            return mark.start() + 1
    return 1


def _object(body: bytes, limit: int) -> dict[str, Any]:
    if len(body) > limit:
        raise RowError(limit + 1, too_long(limit))
    text = decode(body)
    try:
        read = _not_vanishing if "e-" in text or "E-" in text or "0" * 200 in text else None
        # Whole numbers become floats as in every other format, and without Python's limit on the digits of an int.
        row = json.loads(text, object_pairs_hook=_unique, parse_int=float, parse_float=read)
    except json.JSONDecodeError as error:
        raise RowError(error.colno, f"not JSON: {error.msg[0].lower()}{error.msg[1:]}") from None
    except RecursionError:
        raise RowError(1, "not JSON that can be read: it is nested too deeply") from None
    if not isinstance(row, dict):
        raise RowError(1, 'a row must be a JSON object, such as {"load": 1.5}')
    return row


def _not_vanishing(text: str) -> float | str:
    """A number; as it is written where it would become 0, so that it is refused with its name if it is read."""
    value = float(text)
    if value == 0.0:
        try:
            return number(text)
        except RowError:
            return text
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _NamedError(twice, f"{show(twice)} stands twice in the row")
    if _HALF.search("".join(row)):
        raise RowError(1, f"a name {_NO_TEXT}")
    return row


def _number(value: Any, name: str) -> float:
    if isinstance(value, float):
        if abs(value) == float("inf"):
            raise _NamedError(name, f"{shown(name)}: the number is infinite, or too large for 64 bits")
        return value
    if value is None:
        return float("nan")
    if not isinstance(value, str):
        raise _NamedError(name, f"{shown(name)}: {show(json.dumps(value))} is not a number")
    try:
        return number(value)
    except RowError as fault:
        raise _NamedError(name, f"{shown(name)}: {fault.reason}") from None


def _text(value: Any, name: str, is_time: bool) -> Any:
    if isinstance(value, str):
        if _HALF.search(value):
            raise _NamedError(name, f"{shown(name)}: {show(value)} {_NO_TEXT}")
        return value
    if value is None:
        return ""
    if isinstance(value, dict | list):
        raise _NamedError(name, f"{shown(name)}: {show(json.dumps(value))} is neither text nor a number")
    if is_time and isinstance(value, float):
        return value
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
