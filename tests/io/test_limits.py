"""Reading in bounded memory and time: endless lines, damaged archives, many rows."""

import gzip
import json
import time
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from filtax.io import InputError, open_table
from tables import read, written


@pytest.mark.parametrize("block", [50, 1000, 1 << 20])
def test_a_line_beyond_the_limit_is_skipped(tmp_path, block):
    path = written(tmp_path, b"a,b\n1,2\n" + b"9" * 5000 + b",1\n3,4\n" + b"8" * 300)
    numbers, rejected, chunks = read(path, line_limit=200, block=block)
    assert numbers.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert [(each.line, each.column, each.reason) for each in rejected] == [
        (3, 201, "the line is longer than 200 bytes"),
        (5, 201, "the line is longer than 200 bytes"),
    ]
    assert np.concatenate([chunk.line for chunk in chunks]).tolist() == [2, 4]


@pytest.mark.parametrize("block", [5, 1 << 20])
def test_the_limit_is_that_of_the_line_without_its_end(tmp_path, block):
    path = written(tmp_path, b"a,b\r\n11111,22222\r\n1,2\r333333333,4444444444\r5,6")
    numbers, rejected, _ = read(path, line_limit=11, block=block)
    assert numbers.tolist() == [[11111.0, 22222.0], [1.0, 2.0], [5.0, 6.0]]
    assert [(each.line, each.column) for each in rejected] == [(4, 12)]


def test_a_huge_line_needs_no_memory(tmp_path):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(b"a,b\n1,2\n")
        for _ in range(64):
            stream.write(b"9" * (1 << 20))
        stream.write(b",1\n3,4\n")
    tracemalloc.start()
    numbers, rejected, _ = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert numbers.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert [each.line for each in rejected] == [3]
    assert peak < 32 << 20  # for a line of 64 MiB


def test_a_truncated_gzip_ends_with_a_record_and_without_half_a_row(tmp_path):
    rows = b"".join(b"%d,%d\n" % (i, i * i) for i in range(30000))
    packed = gzip.compress(b"a,b\n" + rows)
    numbers, rejected, _ = read(written(tmp_path, packed[: len(packed) // 2], "t.csv.gz"))
    assert 0 < len(numbers) < 30000
    np.testing.assert_array_equal(numbers[:, 1], np.arange(len(numbers)) ** 2.0)
    assert [each.line for each in rejected] == [len(numbers) + 2]
    assert "end too early" in rejected[0].reason


def test_memory_does_not_grow_with_the_rows(tmp_path):
    row = b"1.25,2.5,abc\n"
    peaks = []
    for rows in (20_000, 20_000, 80_000):  # the first time pays for imports
        path = written(tmp_path, b"a,b,c\n" + rows * row)
        tracemalloc.start()
        assert sum(len(chunk) for chunk in open_table(path, target="a", block=1 << 16)) == rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.25 * peaks[1] < 4 << 20


def test_a_hundred_thousand_columns_are_refused_at_once_unless_some_are_named(tmp_path):
    names = [f"c{i}" for i in range(100_000)]
    path = tmp_path / "wide.csv"
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    with pytest.raises(InputError, match=r"wide\.csv:1:1: there are 100000 columns to read, and 4096 is the most"):
        open_table(path, target="c7")
    [chunk] = open_table(path, target="c7", features=["c9"])
    assert chunk.numbers.tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "no names"])
def test_the_time_to_read_is_linear_in_the_columns(tmp_path, form):
    """Twice the columns took four times as long, and more."""
    spent = []
    for count in (500, 500, 4000):  # the first is to warm up
        names = [f"c{i}" for i in range(count)] if form != "no names" else ["c0", *[""] * count]
        path = tmp_path / f"{count}.{form}"
        if form == "parquet":
            pq.write_table(pa.table({name: [1.0] for name in names}), path)
        elif form == "jsonl":
            path.write_text(30 * (json.dumps(dict.fromkeys(names, 1)) + "\n"))
        else:
            path.write_text("".join(",".join(row) + "\n" for row in [names, *30 * [["1"] * len(names)]]))
        tries = []
        for _ in range(3):  # the least: a busy machine makes any of them longer
            start = time.process_time()
            assert sum(len(chunk) for chunk in open_table(path, target="c0", block=1 << 14)) in (1, 30)
            tries.append(time.process_time() - start)
        spent.append(min(tries))
    assert spent[2] < 16 * spent[1] + 0.5  # it took 16 s and more


@pytest.mark.parametrize("bad", ["1\n", "1,1\n", "x,2\r"])
def test_few_records_of_bad_rows_are_held_at_once(tmp_path, bad):
    """All of a block were held, each with its reason, and those of all blocks up to a good row: 500 MB for 4 MB."""
    path = written(tmp_path, f"y,t{bad[-1]}1,1{bad[-1]}" + 100_000 * bad)
    held = [len(chunk.rejected) for chunk in open_table(path, target="y", time="t", types={"y": "number"})]
    assert sum(held) == 100_000
    assert max(held) < 40_000
