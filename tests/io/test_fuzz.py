"""Files that nobody would write: whatever the bytes, rows or a sentence; and each number is the one that stands there.

The oracle reads a line with the csv and json modules of Python and a number with Decimal, and shares no code.
"""

import csv
import gzip
import json
import math
import re
import sys
from decimal import Decimal, InvalidOperation

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from filtax.io import InputError, open_table

MANY = settings(
    max_examples=10 * settings.default.max_examples,  # 200 every day, 5000 in `make nightly`
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
LINE_END = re.compile(rb"\r\n|\n|\r")
NUMERAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NOTHING = {"", "na", "n/a", "nan", "null", "none"}
TYPES = {"a": "number", "b": "number", "c": "text"}

CSV = b"a,b,c\n" + b"".join(b"%d.5,-%de-3,w%d\n" % (i, i, i) for i in range(8)) + b'1e5,,"x y"\n7,NA,z\n'
JSON = b"".join(json.dumps({"a": i + 0.5, "b": -i, "c": f"w{i}"}).encode() + b"\n" for i in range(8))
ODD = [
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n\n", b"\x85", b"\x0b", b"\x0c", b"\x1c", b"\x1f\x8b", b"PAR1",
    b'"', b'""', b",", b"e", b"E400", b"e-400", b"_", b"-", b"+", b"inf", b"nan", b"1.", b".5", b" ", b"0x1",
    b"a,b,c\n", b"{", b"}", b"\\", b"[" * 9, b"Infinity", b"true", b"1" * 400, b"0" * 400 + b"1",
    *("\uff11".encode(), "\u2028".encode(), "\u00a0".encode()),
]  # fmt: skip
TOKENS = [
    b"1e400", b"-1e400", b"1e-400", b"-0.0", b"5e-324", b"0." + b"0" * 330 + b"7", b"9007199254740993", b"0.1", b"1E+2",
    b"", b"nan", b"NaN", b"-nan", b"inf", b"null", b"NA", b"1_000", b"1 000", b"0x10", b"1,5", b'"3"', b'"1e400"',
    b"true", b" 7 ", b"\t7", b"7\r", b"+7", b"007", b"1e", b"--1", b'"4', b'4"5', b'"6"7', b"1.2.3",
    *("\uff11".encode(), "\u0661\u0662".encode()),
]  # fmt: skip
NUMBER = re.compile(rb"(?<=[,\n:] )[-0-9.e]+|(?<=[,\n])[-0-9.e]+")


@st.composite
def mutated(draw, start):
    """A sound file with a few edits: a number replaced, or bytes taken out, put in, or doubled, somewhere."""
    data = start
    for _ in range(draw(st.integers(0, 3))):
        numbers = list(NUMBER.finditer(data))
        old = draw(st.sampled_from(numbers)) if numbers else None
        if old is not None:
            data = data[: old.start()] + draw(st.sampled_from(TOKENS)) + data[old.end() :]
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 6)))
        new = draw(st.one_of(st.sampled_from(ODD), st.binary(max_size=3), st.just(data[at:end] * 2)))
        data = data[:at] + new + data[end:]
    return data


FILES = st.one_of(st.binary(max_size=200), mutated(CSV), mutated(JSON), mutated(gzip.compress(CSV, mtime=0)))
NAMES = st.sampled_from(["t.csv", "t.tsv", "t.jsonl", "t.csv.gz", "t.parquet", "t"])


def read(path, **options):
    """Rows by line, rejected lines, or the sentence of a refusal."""
    try:
        chunks = list(open_table(path, target="a", **options))
    except InputError as refusal:
        return None, sentence(str(refusal))
    rows = {}
    for chunk in chunks:
        for i, line in enumerate(chunk.line.tolist()):
            assert line not in rows
            rows[line] = ({name: chunk.column(name)[i] for name in (*chunk.names, *chunk.texts)}, chunk)
    rejected = [each for chunk in chunks for each in chunk.rejected]
    assert all(each.line >= 1 and each.column >= 1 and each.reason for each in rejected)
    return rows, rejected


def sentence(said):
    assert said.endswith((".", "?"))
    assert "\n" not in said
    return said


def value_of(text):
    """The nearest float to a numeral, NaN where it is missing; None for what is no number."""
    text = text.strip(" \t")
    if text.lower() in NOTHING:
        return math.nan
    if NUMERAL.fullmatch(text) is None:
        return None
    if not re.search("[1-9]", re.split("[eE]", text)[0]):
        return math.copysign(0.0, -1.0 if text.startswith("-") else 1.0)  # whatever its exponent
    try:
        exact = Decimal(text)
        value = float(exact)
    except (InvalidOperation, OverflowError, ValueError):
        return None
    return None if math.isinf(value) or (value == 0.0 and exact != 0) else value


def lines_of(data):
    data = data.removeprefix(b"\xef\xbb\xbf")
    found = LINE_END.split(data)
    return found[:-1] if found[-1] == b"" else found


def csv_row(line, width):
    """A line as the csv module reads it, strictly; None where it has another number of fields."""
    fields = next(csv.reader([line.decode()], strict=True))
    return fields if len(fields) == width else None


def same(got, want):
    return want is not None and (got == want or (math.isnan(got) and math.isnan(want)))


@MANY
@given(data=mutated(CSV), packed=st.booleans(), block=st.sampled_from([7, 64, 1 << 20]))
@example(data=CSV + b"1e-400,2,x\n1,1e400,x\n", packed=False, block=7)
@example(data=CSV + b"\n1,2,x\n", packed=False, block=1 << 20)
@example(data=CSV + b'1,2,"x\n3,4,y"\n5,6,z\n', packed=False, block=1 << 20)
def test_no_number_of_a_damaged_csv_is_changed(tmp_path, data, packed, block):
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(data) if packed else data)
    rows, rejected = read(path, types=TYPES, block=block, separator=",", format="csv")
    if rows is None:
        return
    lines = lines_of(gzip.decompress(path.read_bytes()) if packed else data)
    names = [name.strip() for name in csv_row(lines[0], len(next(csv.reader([lines[0].decode()]))))]
    for number, (row, _) in rows.items():
        fields = csv_row(lines[number - 1], len(names))
        assert fields is not None, lines[number - 1]
        for name, text in zip(names, fields, strict=True):
            if not name:
                continue
            got = row[name]
            if isinstance(got, str):
                assert got == text
            else:
                assert same(float(got), value_of(text)), (name, text, got)
    told = {each.line for each in rejected}
    for number, line in enumerate(lines[1:], 2):  # nothing is lost: a line is a row, rejected, or blank
        assert number in rows or number in told or not line.strip(b"\r\n"), line


@MANY
@given(data=mutated(JSON), block=st.sampled_from([7, 64, 1 << 20]))
@example(data=JSON + b'{"a": 1}\n{"a": 1e400}\n{"a": 1e-400}\n{"a": "1_0"}\n{"b": -Infinity}\n', block=7)
@example(data=JSON + b'{"a": ' + b"9" * 5000 + b'}\n{"a": ' + b"[" * 100_000 + b"\n", block=1 << 20)
def test_no_number_of_damaged_json_lines_is_changed(tmp_path, data, block):
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    rows, rejected = read(path, types=TYPES, block=block, format="json")
    if rows is None:
        return
    lines = lines_of(data)
    sys.set_int_max_str_digits(0)
    for number, (row, _) in rows.items():
        want = json.loads(lines[number - 1], parse_float=str, parse_int=str, parse_constant=lambda name: name)
        for name in ("a", "b"):
            text = want.get(name)
            if name in row:
                assert same(float(row[name]), math.nan if text is None else value_of(text)), (name, text, row[name])
    told = {each.line for each in rejected}
    for number, line in enumerate(lines, 1):
        assert number in rows or number in told or not line.strip(), line


@MANY
@given(
    FILES, NAMES, st.sampled_from([None, "b", "c"]), st.sampled_from([None, "c"]), st.sampled_from(["stop", "reject"])
)
@example(JSON + b'{"a": 1, "b": 1e400}\n{"a": 2, "b": -1e999}\n', "t.jsonl", "b", None, "reject")
def test_any_bytes_are_rows_or_a_sentence(tmp_path, data, name, time, key, on_error):
    path = tmp_path / name
    path.write_bytes(data)
    rows, _ = read(path, time=time, key=key, on_error=on_error)
    for row, chunk in (rows or {}).values():
        assert not np.isinf(chunk.numbers).any()
        assert chunk.time is None or not (np.isinf(chunk.time).any() if chunk.time.dtype.kind == "f" else False)
        assert len(row) == len(chunk.names) + len(chunk.texts)
