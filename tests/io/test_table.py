"""Reading a table: each kind of trouble has one outcome, with its place; no number changes; nothing is a traceback."""

import gzip
import io
import json
import os
import threading
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from filtax.io import InputError, open_table
from tables import read, written

# a bad second row between two good ones: (bytes, line, column, words of the reason)
BAD_ROWS = {
    "too few fields": (b"5", 3, 2, "1 field where the header has 2"),
    "too many fields": (b"5,6,7", 3, 5, "3 fields where the header has 2"),
    "decimal comma": (b"1,5,2", 3, 5, "3 fields"),
    "quoted decimal comma": (b'"1,5",2', 3, 1, "a: '1,5' is not a number; write decimals with a point"),
    "text": (b"5,abc", 3, 3, "b: 'abc' is not a number"),
    "NUL": (b"5,6\0", 3, 4, "NUL"),
    "bad UTF-8": (b"5,\xff6", 3, 3, "byte 0xff is not UTF-8"),
    "unclosed quote": (b'5,"6', 3, 3, "a quote is not closed on its line"),
    "stray quote": (b'5,6"7', 3, 4, "a quote stands inside a field"),
    "text behind a quote": (b'5,"6"7', 3, 6, "something follows a closing quote"),
    "overflow": (b"5,1e400", 3, 3, "too large for a 64-bit number"),
    "underflow": (b"5,1e-400", 3, 3, "too small for a 64-bit number"),
    "underflow without exponent": (b"5,0." + b"0" * 330 + b"1", 3, 3, "too small for a 64-bit number"),
    "infinity": (b"5,inf", 3, 3, "'inf' is not a number that is finite"),
    "signed nan": (b"5,-nan", 3, 3, "'-nan' is not a number"),
    "underscore": (b"5,1_000", 3, 3, "'1_000' is not a number; write it without marks between the thousands"),
    "spaced thousands": (b"5,1 000", 3, 3, "without marks"),
    "hexadecimal": (b"5,0x10", 3, 3, "'0x10' is not a number"),
    "full-width digit": ("5,１".encode(), 3, 3, "'１' is not a number"),
    "Arabic digits": ("5,١٢".encode(), 3, 3, "is not a number"),
    "boolean": (b"5,TRUE", 3, 3, "'TRUE' is not a number"),
    "dash": (b"5,-", 3, 3, "'-' is not a number"),
    "empty exponent": (b"5,1e", 3, 3, "'1e' is not a number"),
    "no-break space": ("5,\u00a06".encode(), 3, 3, "is not a number"),
}
# what is read, and as what
NUMBERS = {
    " 3 ": 3.0, "\t3": 3.0, "+5": 5.0, "1e5": 1e5, "1E+05": 1e5, "5.": 5.0, ".5": 0.5, "-0": -0.0, "007": 7.0,
    '"3"': 3.0, "": np.nan, "nan": np.nan, "NaN": np.nan, "NA": np.nan, "n/a": np.nan, "null": np.nan, " ": np.nan,
    "nAn": np.nan, "None": np.nan, "5e-324": 5e-324, "0e-999": 0.0, "1.7976931348623157e308": 1.7976931348623157e308,
    "9007199254740993": 9007199254740992.0, "0.1": 0.1,
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_rejected_with_its_place(tmp_path, case):
    row, line, column, reason = BAD_ROWS[case]
    path = written(tmp_path, b"a,b\n1,2\n" + row + b"\n3,4\n")
    numbers, rejected, _ = read(path, types={"a": "number", "b": "number"})
    assert numbers.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert [(each.file, each.line, each.column) for each in rejected] == [(str(path), line, column)]
    assert reason in rejected[0].reason
    with pytest.raises(InputError, match=f"t.csv:{line}:{column}: "):
        read(path, types={"a": "number", "b": "number"}, on_error="stop")


@pytest.mark.parametrize("text", NUMBERS)
def test_what_reads_as_a_number(tmp_path, text):
    path = written(tmp_path, f"a,b\n1,{text}\n")
    numbers, rejected, _ = read(path, types={"b": "number"})
    assert not rejected
    np.testing.assert_array_equal(numbers[-1], [1.0, NUMBERS[text]])
    assert np.signbit(numbers[-1, 1]) == np.signbit(NUMBERS[text])


def test_numbers_are_those_of_another_library(tmp_path):
    """Against numpy's own reader: digits, exponents and rounding."""
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(300, 3)) * 10.0 ** rng.integers(-300, 300, size=(300, 3))
    np.savetxt(tmp_path / "t.csv", numbers, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    read = np.concatenate([chunk.numbers for chunk in open_table(tmp_path / "t.csv", target="a", separator=",")])
    np.testing.assert_array_equal(read, np.loadtxt(tmp_path / "t.csv", delimiter=",", skiprows=1))


def test_a_byte_order_mark_at_the_start_of_a_later_line_is_no_number(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a\n\xef\xbb\xbf2.5\n3\n")
    numbers, rejected, _ = read(path, types={"a": "number"})
    assert numbers.tolist() == [[3.0]]
    assert [each.line for each in rejected] == [2]


def test_stop_hands_on_the_rows_before_the_bad_one(tmp_path):
    table = open_table(written(tmp_path, "a,b\n1,2\nx,y\nz,6\n"), target="a", types={"a": "number"}, on_error="stop")
    first = next(chunks := iter(table))
    assert first.numbers.tolist() == [[1.0, 2.0]]
    assert [each.line for each in first.rejected] == [3]
    with pytest.raises(InputError, match=r"t.csv:3:1: a: 'x' is not a number. Repair it"):
        next(chunks)
    chunks = iter(open_table(written(tmp_path, '{"a": 1}\n{"a": "x"}\n{"a": 5}\n', "t.jsonl"), on_error="stop"))
    assert next(chunks).numbers.tolist() == [[1.0]]
    with pytest.raises(InputError, match=r"t.jsonl:2:2: a: 'x' is not a number. Repair it"):
        next(chunks)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_byte_order_mark_blank_lines_and_a_last_line_without_end(tmp_path, end):
    path = written(tmp_path, "\ufeff" + end.join(["a,b", "1,2", "", "3,4"]))
    for block in (1, 2, 3, 4, 5, 1 << 20):  # \r\n may come in two parts
        numbers, rejected, chunks = read(path, block=block)
        assert numbers.tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert not rejected
        assert np.concatenate([chunk.line for chunk in chunks]).tolist() == [2, 4]


def test_mixed_line_ends(tmp_path):
    numbers, rejected, chunks = read(written(tmp_path, b"a,b\r\n1,2\n3,4\r5,6\r\n7\n"))
    assert numbers.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert [(each.line, each.column) for each in rejected] == [(5, 2)]
    assert chunks[0].line.tolist() == [2, 3, 4]


REFUSED = {
    "empty": (b"", "is empty"),
    "blank header": (b"\n1,2\n", ":1:1: the first line is empty"),
    "numbers for a header": (b"1,2\n3,4\n", ":1:1: the first line holds only numbers"),
    "duplicate names": (b"a,b,a\n1,2,3\n", ":1:5: two columns are called 'a'; rename one"),
    "missing target": (b"aa,b\n1,2\n", ":1:1: there is no column 'a' for target. Did you mean 'aa'"),
    "only a header": (b"a,b\n", "there is a header and not one row below it"),
    "binary": (bytes(range(256)), "binary"),
    "bad header": (b"a,\xe4\n1,2\n", ":1:3: the header cannot be read: byte 0xe4 is not UTF-8"),
    "spreadsheet": (b"PK\x03\x04xxxx", "spreadsheet"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "UTF-16"),
    "header quote": (b'a,"b\n1,2\n', ":1:3: the header cannot be read: a quote is not closed"),
    "truncated gzip": (gzip.compress(b"a,b\n1,2\n")[:12], "end too early"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_source_that_cannot_be_read_is_refused_in_a_sentence(tmp_path, case):
    data, words = REFUSED[case]
    with pytest.raises(InputError, match=r"t\.csv") as caught:
        list(open_table(written(tmp_path, data), target="a"))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there(tmp_path):
    written(tmp_path, "a\n1\n", "load.csv")
    for source, words in [
        (tmp_path, "is a folder"),
        (tmp_path / "laod.csv", "does not exist. Did you mean"),
        (tmp_path / "*.tsv", "no file fits"),
        ("", "is not the name of a file"),
    ]:
        with pytest.raises(InputError, match=words):
            open_table(source, target="a")


def test_a_column_without_a_name_is_rejected_and_reported(tmp_path):
    numbers, rejected, _ = read(written(tmp_path, b"a,,b\n1,2,3\n"))
    assert numbers.tolist() == [[1.0, 3.0]]
    assert [str(each) for each in rejected] == [f"{tmp_path}/t.csv:1:3: the column has no name"]
    with pytest.raises(InputError, match=r"t\.csv:1:3: the column has no name\. Repair it"):
        list(open_table(tmp_path / "t.csv", target="b", on_error="stop"))


def test_separators_and_texts(tmp_path):
    path = written(tmp_path, 'a;b;c\n1;x;"p; q"\n2;NA;""\n')
    _, _, [chunk] = read(path)
    assert chunk.texts["b"].tolist() == ["x", "NA"]  # in a column of text only nothing is missing
    assert chunk.column("c").tolist() == ["p; q", ""]
    numbers, _, _ = read(written(tmp_path, "a\tb\n1\t\n", "t.tsv"))
    np.testing.assert_array_equal(numbers, [[1.0, np.nan]])


def test_files_of_a_pattern_follow_one_another_and_have_the_same_columns(tmp_path):
    for i in (10, 2, 1):
        written(tmp_path, f"b,a\n{i},{i}\n" if i == 2 else f"a,b\n{i},{i}\n", f"part{i}.csv")
        pq.write_table(pa.table({"load_kw" if i == 10 else "load": [i], "wind": [i]}), tmp_path / f"part{i}.parquet")
    numbers, _, chunks = read(tmp_path / "part*.csv")
    assert numbers[:, 0].tolist() == [1.0, 2.0, 10.0]
    assert [chunk.file[-6:] for chunk in chunks] == ["t1.csv", "t2.csv", "10.csv"]
    written(tmp_path, "b\n1\n", "part3.csv")
    said = r"part3.csv:1:1: there is no column 'a', which \S*part2.csv has; files .* same columns. Its columns: b."
    with pytest.raises(InputError, match=said):
        read(tmp_path / "part*.csv")
    said = r"part10.parquet:1:1: there is no column 'load', which \S*part2.parquet has; .* Did you mean 'load_kw'\?"
    with pytest.raises(InputError, match=said):
        read(tmp_path / "part*.parquet", target="load")


def test_decimals_of_parquet_are_the_nearest_numbers(tmp_path):
    """As Python reads their digits; Arrow multiplies by a power of ten, which rounds twice."""
    values = [Decimal(int(n)).scaleb(-6) for n in np.random.default_rng(0).integers(-(10**12), 10**12, size=400)]
    column = pa.array([*values, None], pa.decimal128(18, 6))
    pq.write_table(pa.table({"a": column}), tmp_path / "t.parquet")
    [chunk] = open_table(tmp_path / "t.parquet", target="a")
    np.testing.assert_array_equal(chunk.column("a"), [*map(float, values), np.nan])


def test_parquet_that_is_packed_with_gzip_is_to_be_unpacked(tmp_path):
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "t.parquet")
    path = tmp_path / "t.parquet.gz"
    path.write_bytes(gzip.compress((tmp_path / "t.parquet").read_bytes()))
    with pytest.raises(InputError, match=r"t.parquet.gz:1:1: the Parquet file is packed with gzip; unpack it first"):
        read(path)


def test_standard_input_hands_a_line_on_when_it_arrives(monkeypatch):
    source, sink = os.pipe()
    stdin = io.TextIOWrapper(os.fdopen(source, "rb"))
    monkeypatch.setattr("sys.stdin", stdin)
    seen, arrived = [], threading.Event()

    def watch():
        for chunk in open_table("-", target="a"):
            seen.append(chunk.numbers.tolist())
            arrived.set()

    reader = threading.Thread(target=watch)
    reader.start()
    for row in (b"a,b\n1,2\n3,", b"4\n"):
        os.write(sink, row)
        assert arrived.wait(10)
        arrived.clear()
    assert seen == [[[1.0, 2.0]], [[3.0, 4.0]]]
    os.close(sink)
    reader.join(10)
    assert not reader.is_alive()
    stdin.close()


def test_json_lines(tmp_path):
    rows = ['{"a": 1, "b": 2.5, "c": "x"}', '{"b": null, "a": 3}', '{"a": NaN, "c": true}', '{"a": "4", "c": 7.0}']
    bad = {
        '{"a": 1e400}': 2, '{"a": 1e-400}': 2, '{"a": [1]}': 2, '{"a": 1, "a": 2}': 2, "[1]": 1, '{"a": ': 7,
        '{"a": "x"}': 2, '{"a": true}': 2, '{"a": -Infinity}': 2, '{"a": 1, "c": {"a": 2}}': 10,
    }  # fmt: skip
    path = written(tmp_path, "\n".join([*rows, *bad]) + "\n", "t.jsonl")
    numbers, rejected, [chunk] = read(path)
    np.testing.assert_array_equal(numbers, [[1, 2.5], [3, np.nan], [np.nan, np.nan], [4, np.nan]])
    assert chunk.texts["c"].tolist() == ["x", "", "true", "7.0"]
    assert [each.line for each in rejected] == list(range(5, 15))
    assert [each.column for each in rejected] == list(bad.values())
    assert rejected[1].reason == "a: '1e-400' is too small for a 64-bit number"


def test_half_of_a_surrogate_pair_is_rejected_with_its_row(tmp_path):
    """No output could be written after all was learned. Where nobody reads it, it does no harm."""
    rows = [
        '{"y": "a", "k": "\\ud83d\\ude00", "x": "\\ud800"}',
        '{"y": "\\ud800", "k": "b"}',
        '{"y": "a", "k": "b\\udfff"}',
        '{"y": "a", "k": "b", "x\\udfff": 1}',
        '{"y": "é", "k": "b"}',
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(rows) + "\n")
    [chunk] = open_table(path, target="y", key="k", features=[], types={"y": "text"})
    assert chunk.column("y").tolist() == ["a", "é"]
    assert chunk.key is not None
    assert chunk.key.tolist() == ["😀", "b"]
    assert [(each.line, each.column) for each in chunk.rejected] == [(2, 2), (3, 12), (4, 1)]
    assert all("half of a surrogate pair" in each.reason for each in chunk.rejected)
    assert json.dumps(str(chunk.rejected[0]), ensure_ascii=False).encode()


def test_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    when = np.array(["2024-01-01", "2024-01-02", "2024-01-02", "2024-01-04"], "datetime64[us]")
    columns = {"when": when, "a": [1, None, 3, 4], "b": [0.5, np.nan, 1.0, np.inf], "c": ["x", None, "y", "z"]}
    pq.write_table(pa.table({**columns, "d": [[1]] * 4}), path)
    numbers, rejected, [chunk] = read(path, time="when")
    np.testing.assert_array_equal(numbers, [[1.0, 0.5], [np.nan, np.nan]])
    assert chunk.texts["c"].tolist() == ["x", ""]
    assert chunk.time.tolist() == when[:2].tolist()
    assert [(each.line, each.column) for each in rejected] == [(3, 1), (4, 3)]
    with pytest.raises(InputError, match="holds neither numbers nor text"):
        open_table(path, target="d")
    with pytest.raises(InputError, match="not a Parquet file that can be read"):
        open_table(written(tmp_path, path.read_bytes()[:100], "cut.parquet"), target="a")


@pytest.mark.parametrize("kind", ["date32", "timestamp"])
def test_a_time_of_parquet_that_microseconds_do_not_reach_is_rejected(tmp_path, kind):
    """It came out as a time of another era."""
    path = tmp_path / "t.parquet"
    days = pa.array([0, 2**31 - 1, 19000], pa.date32())
    times = pa.array([0, 9 * 10**17, 10**12], pa.timestamp("ms"))
    pq.write_table(pa.table({"y": [1.0, 2.0, 3.0], "when": days if kind == "date32" else times}), path)
    [chunk] = open_table(path, target="y", time="when")
    assert chunk.numbers[:, 0].tolist() == [1.0, 3.0]
    assert [str(each) for each in chunk.rejected] == [f"{path}:2:2: when: the time is too far from 1970"]


def test_a_flipped_bit_of_parquet_is_refused_with_the_name_of_the_file_or_rejected(tmp_path):
    path = tmp_path / "t.parquet"
    written = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(pa.table({"y": np.arange(9.0), "s": list("abcdefghi")}), path, **written)
    whole = path.read_bytes()
    begin, refused = whole.index(np.arange(9.0).tobytes()), []
    for at in range(4, len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        try:
            chunks = list(open_table(path, target="y", key="s"))
        except InputError as problem:
            refused.append(str(problem))
        else:
            assert any(chunk.rejected for chunk in chunks) or not begin <= at < begin + 72
    assert len(refused) > 50
    assert all(str(path) in sentence for sentence in refused)


def test_messages_stay_short_and_printable(tmp_path):
    path = written(tmp_path, "a,b\n1,2\n1,\x1b[31m" + "x" * 500 + "\n")
    _, rejected, _ = read(path, types={"b": "number"})
    assert "\x1b" not in rejected[0].reason
    assert len(rejected[0].reason) < 120
    assert json.loads(json.dumps(rejected[0].to_json()))["line"] == 3
