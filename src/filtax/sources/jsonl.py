"""JSON lines: one object a line. What a row does not name is missing there; what nobody asked for is ignored."""

import json
import re
from typing import Any

import numpy as np

from filtax.sources.layout import Layout
from filtax.sources.lines import Block, too_long
from filtax.sources.numerals import number, show
from filtax.sources.raw import Raw
from filtax.sources.rejected import Rejected, RowError
from filtax.sources.separated import decode

__all__ = ["place_of", "read_objects", "sample_objects"]


def sample_objects(block: Block, limit: int, most: int = 1000) -> dict[str, list[Any]]:
    r"""Values of the first rows, by name; rows that cannot be read are passed over.

    >>> import hashlib
    >>> sample_objects(Block(b'{"a": 1}\n{"b": "x"}\n', 1, 0, hashlib.sha256()), 100)
    {'a': [1.0], 'b': ['x']}
    """
    found: dict[str, list[Any]] = {}
    for data in block.data.splitlines()[:most]:
        try:
            row = _object(data, limit) if data.strip() else {}
        except RowError:
            continue
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return found


_HALF = re.compile("[\ud800-\udfff]")  # of a pair of escapes that means a character; alone it cannot be written
_MARKS = re.compile(r'("(?:[^"\\]|\\.)*"[ \t]*:)|"(?:[^"\\]|\\.)*"|[{}\[\]]')  # names, other texts, and what nests


def read_objects(block: Block, layout: Layout, file: str, limit: int) -> Raw:
    r"""Read a block row by row.

    >>> import hashlib
    >>> layout = Layout("a", None, None, ("a",), {"a": "number"})
    >>> raw = read_objects(Block(b'{"a": 1}\n{"a": 1e400}\n{"a": \n', 1, 0, hashlib.sha256()), layout, "t.jsonl", 99)
    >>> raw.numbers.tolist(), [each.line for each in raw.rejected]
    ([[1.0]], [2, 3])
    """
    rows, labels, lines, ends = [], [], [], []
    rejected, before = list(block.rejected), [0] * len(block.rejected)
    offset = block.offset
    for line, data in enumerate(block.data.splitlines(keepends=True), block.line):
        offset += len(data)
        body = data.rstrip(b"\r\n")
        if not body.strip():
            continue
        try:
            row = _object(body, limit)
            values = [_number(row.get(name), name) for name in layout.numbers]
            words = [_text(row.get(name), name, name == layout.time) for name in layout.words]
        except RowError as fault:
            rejected.append(Rejected(file, line, fault.column or _place(body, fault), fault.reason))
            before.append(len(rows))
            continue
        rows.append(values)
        labels.append(words)
        lines.append(line)
        ends.append(offset)
    numbers = np.array(rows, np.float64).reshape(len(rows), len(layout.numbers))
    columns = {name: np.empty(len(rows), object) for name in layout.words}
    for j, name in enumerate(layout.words):
        columns[name][:] = [words[j] for words in labels]
    where = (np.array(values, np.int64) for values in (lines, ends))
    return Raw(numbers, columns, *where, rejected=rejected, before=before, digest=block.digest)


def _object(body: bytes, limit: int) -> dict[str, Any]:
    if len(body) > limit:
        raise RowError(limit + 1, too_long(limit))
    text = decode(body)
    try:
        read = _not_vanishing if "e-" in text or "E-" in text or "0" * 200 in text else None
        row = json.loads(text, object_pairs_hook=_unique, parse_int=_whole, parse_float=read)
    except json.JSONDecodeError as error:
        raise RowError(error.colno, f"not JSON: {error.msg[0].lower()}{error.msg[1:]}") from None
    except RecursionError:
        raise RowError(1, "not JSON that can be read: it is nested too deeply") from None
    if not isinstance(row, dict):
        raise RowError(1, 'a row must be a JSON object, such as {"load": 1.5}')
    return row


def _whole(digits: str) -> float:
    return float(digits)  # as in every other format, and without Python's limit on the digits of an int


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
        raise RowError(1, "a name holds half of a surrogate pair, which is no text")
    return row


def _number(value: Any, name: str) -> float:
    if isinstance(value, float):
        if abs(value) == float("inf"):
            raise _NamedError(name, f"{show(name)[1:-1]}: the number is infinite, or too large for 64 bits")
        return value
    if value is None:
        return float("nan")
    if isinstance(value, str):
        try:
            return number(value)
        except RowError as fault:
            raise _NamedError(name, f"{show(name)[1:-1]}: {fault.reason}") from None
    raise _NamedError(name, f"{show(name)[1:-1]}: {show(json.dumps(value))} is not a number")


def _text(value: Any, name: str, is_time: bool) -> Any:
    if isinstance(value, str):
        if _HALF.search(value):
            raise _NamedError(
                name, f"{show(name)[1:-1]}: {show(value)} holds half of a surrogate pair, which is no text"
            )
        return value
    if value is None:
        return ""
    if isinstance(value, dict | list):
        raise _NamedError(name, f"{show(name)[1:-1]}: {show(json.dumps(value))} is neither text nor a number")
    if is_time and isinstance(value, float):
        return value
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)


class _NamedError(RowError):
    """Trouble with one name of a row; its place is looked up in the text."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(0, reason)
        self.name = name


def _place(body: bytes, fault: RowError) -> int:
    return place_of(decode(body), getattr(fault, "name", ""))


def place_of(text: str, name: str) -> int:
    """Character, from 1, with which a name begins in a row, outside of what is nested; 1 where it does not stand there.

    >>> place_of('{"a": "b", "c": {"b": 1}, "b": 2}', "b")
    27
    """
    depth = 0
    for mark in _MARKS.finditer(text):
        depth += (mark[0] in "{[") - (mark[0] in "}]")
        if depth == 1 and mark[1] and json.loads(mark[0].rstrip(": \t")) == name:
            return mark.start() + 1
    return 1
