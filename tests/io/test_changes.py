"""A file that changes while it is read: one that grows is fine; one that is cut short or written again is refused."""

import gzip
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from filtax.io import InputError, open_table

TEXT = "".join(["t,y\n", *(f"{i},{i}.5\n" for i in range(2000))])


def lines(path, change):
    """The lines of the rows, where the file is changed once some have been read."""
    chunks = iter(open_table(path, target="y", time="t", block=1000))
    found = next(chunks).line.tolist()
    change(path)
    return found + [line for chunk in chunks for line in chunk.line.tolist()]


def append(path):
    with path.open("a") as file:
        file.write("2000,1\n")


def replace_by(text):
    def change(path):
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").replace(path)

    return change


@pytest.mark.parametrize(
    "change", [append, os.utime, os.unlink, replace_by(TEXT), replace_by(TEXT + "2000,1\n")], ids=range(5)
)
def test_a_file_that_grows_or_is_the_same_is_read_to_its_end(tmp_path, change):
    path = tmp_path / "t.csv"
    path.write_text(TEXT)
    found = lines(path, change)
    assert found in (list(range(2, 2002)), list(range(2, 2003)))
    assert (len(found) == 2001) == (change is append)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: os.truncate(path, 9000), f"cut short while it was read: it had {len(TEXT)} bytes and has 9000"),
        (lambda path: path.write_text(""), "cut short while it was read"),
        (lambda path: path.write_text(TEXT.replace("3,3.5", "3,4.5")), "has changed since it was read up to line"),
        (replace_by(TEXT.replace("3,3.5", "3,4.5") + "2000,1\n"), "has changed since it was read up to line"),
    ],
    ids=["cut", "emptied", "altered", "replaced"],
)
def test_a_file_that_is_cut_short_or_altered_is_refused_with_what_to_do(tmp_path, change, said):
    path = tmp_path / "t.csv"
    path.write_text(TEXT)
    with pytest.raises(InputError, match=rf"t\.csv .*{said}.*[Ss]tart a new run") as refusal:
        lines(path, change)
    assert "\n" not in str(refusal.value)


def test_half_a_line_of_a_file_that_is_cut_short_is_no_row(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TEXT)
    seen = []

    def read():
        for chunk in open_table(path, target="y", block=1000):
            seen.extend(chunk.column("y").tolist())
            os.truncate(path, TEXT.index("400.5") + 3)

    with pytest.raises(InputError, match="cut short"):
        read()
    assert seen == [i + 0.5 for i in range(len(seen))]


@pytest.mark.parametrize("change", [lambda path: os.truncate(path, 20_000), lambda path: os.truncate(path, 0)])
def test_a_packed_file_that_is_cut_short_is_refused(tmp_path, change):
    path = tmp_path / "t.csv.gz"
    values = np.random.default_rng(0).normal(size=100_000)
    path.write_bytes(gzip.compress("".join(["t,y\n", *(f"{i},{y}\n" for i, y in enumerate(values))]).encode()))
    with pytest.raises(InputError, match=r"t\.csv\.gz was cut short while it was read"):
        lines(path, change)


def test_a_parquet_file_that_is_written_again_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    write = lambda path: pq.write_table(pa.table({"t": np.arange(50_000), "y": np.arange(50_000.0)}), path)
    write(path)
    assert len(lines(path, lambda path: None)) == 50_000
    with pytest.raises(InputError, match=r"t\.parquet was changed while it was read.* Start a new run"):
        lines(path, write)
    table = open_table(path, target="y", time="t", block=1000)
    chunk = next(iter(table))
    write(path)
    with pytest.raises(InputError, match="was changed while it was read"):  # a position of it would be that of another
        table.position(chunk)
