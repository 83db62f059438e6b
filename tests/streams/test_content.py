"""A table or arrays made anew are known by their numbers; what differs is said."""

import csv
import gzip
import io
import os
from pathlib import Path

import numpy as np
import pytest

from filtax.streams import content, datasets, find_dataset, read_arrays, read_table
from filtax.streams.forms import FORMS, Form

HOME = Path(os.environ.get("FILTAX_DATA", "absent"))
at_hand = pytest.mark.skipif(not HOME.is_dir(), reason="name the folder of data sets in FILTAX_DATA")
TABLE = "a,b,when\n0.1,2,mon\n-3,,tue\n"
OTHER = "a,b,when\r\n1e-1,2.00,mon\r\n-3.0,nan,tue\r\n"  # the same numbers, written by another


@pytest.fixture
def home(monkeypatch, tmp_path):
    """A table and a file of arrays, both of them known."""
    made = {"ratings": np.array([[1.5, np.nan]], np.float32), "arm": np.array([3], np.int8)}
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    np.savez(tmp_path / "a.npz", allow_pickle=False, **made)
    table = content.digest_of_numbers(content.read_file(tmp_path / "t.csv.gz"))
    monkeypatch.setitem(FORMS, "t.csv.gz", Form(2, "a b when", "0.1,2,mon", table))
    monkeypatch.setitem(FORMS, "a.npz", Form(1, "ratings arm", "", content.digest_of_numbers(made, ordered=False)))
    for name, file in (("table", "t.csv.gz"), ("arrays", "a.npz")):
        monkeypatch.setitem(datasets.FILES, file, (1, "0" * 64))
        monkeypatch.setitem(datasets.DATASETS, name, datasets.Dataset((file,), "", "", "the source", how="By hand."))
    monkeypatch.setenv("FILTAX_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_other_digits_and_line_ends_are_the_same_table(home):
    first = read_table("table")
    (home / "t.csv.gz").write_bytes(gzip.compress(OTHER.encode()))
    again = read_table("table")
    assert list(again) == ["a", "b", "when"]
    for name, values in first.items():
        np.testing.assert_array_equal(again[name], values)
    assert datasets.whereabouts("table") == str(home)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TABLE.replace("0.1", "0.10000000000000002"), "its numbers are others"),
        (TABLE.replace("mon", "Mon"), "its numbers are others"),
        (TABLE.replace("-3,,", "-3,0,"), "its numbers are others"),
        (TABLE + "1,1,wed\n", "it has 3 rows, not 2"),
        (TABLE.replace("a,b,when", "a,c,when"), "it lacks b and it has c more"),
        ("b,a,when\n2,0.1,mon\n,-3,tue\n", "its columns are not in the order a, b, when"),
    ],
)
def test_another_table_is_refused_with_what_differs(home, text, says):
    (home / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(datasets.DamagedDatasetError, match=f"its sha256 is .*, and {says}; remove it"):
        find_dataset("table")
    assert datasets.whereabouts("table") == "damaged"


@pytest.mark.parametrize(
    "bytes_",
    [
        b"",
        b"half",
        gzip.compress(b"", mtime=0),
        gzip.compress(b"a,b\n1\n", mtime=0),
        gzip.compress(b"\xff,\n1,2", mtime=0),
    ],
)
def test_what_is_no_table_is_refused(home, bytes_):
    for name, file in (("table", "t.csv.gz"), ("arrays", "a.npz")):
        (home / file).write_bytes(bytes_)
        with pytest.raises(datasets.DamagedDatasetError, match="its sha256 is"):
            find_dataset(name)


def test_arrays_are_known_by_dtype_and_numbers_in_any_order(home):
    right = read_arrays("arrays")
    np.savez_compressed(home / "a.npz", allow_pickle=False, arm=right["arm"], ratings=right["ratings"])
    assert set(read_arrays("arrays")) == {"arm", "ratings"}
    for wrong in ({**right, "arm": np.array([4], np.int8)}, {**right, "ratings": right["ratings"].astype(float)}):
        np.savez(home / "a.npz", allow_pickle=False, **wrong)
        with pytest.raises(datasets.DamagedDatasetError, match="its numbers or dtypes are others"):
            find_dataset("arrays")
    with (home / "a.npz").open("wb") as file:
        np.save(file, right["ratings"])
    with pytest.raises(datasets.DamagedDatasetError):
        find_dataset("arrays")


def test_what_is_absent_is_described(home):
    (home / "t.csv.gz").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"2 rows under the columns a,b,when, the first row 0\.1,2,mon\. By hand\."
    ):
        find_dataset("table")


@at_hand
def test_forms_are_those_of_the_files():
    """Each table read by the csv of Python alone, of the large ones the first rows."""
    assert set(FORMS) == {file for file in datasets.FILES if file.endswith((".csv.gz", ".npz"))}
    for file, form in FORMS.items():
        if file.endswith(".csv.gz"):
            rows = gzip.decompress((HOME / file).read_bytes()).decode().splitlines()
            assert tuple(next(csv.reader(io.StringIO(rows[0])))) == form.columns
            assert (rows[1], len(rows) - 1) == (form.first, form.rows)
        else:
            with np.load(HOME / file) as arrays:
                assert form.first == "; ".join(f"{name} {arrays[name].dtype} {arrays[name].shape}" for name in arrays)
        if form.rows < 2000 or file.endswith(".npz"):
            assert content.strangeness(HOME / file, file) == ""


@at_hand
@pytest.mark.nightly
def test_every_digest_is_that_of_the_numbers():
    assert [file for file in FORMS if content.strangeness(HOME / file, file) != ""] == []
