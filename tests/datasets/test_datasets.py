"""Data sets are found, fetched and checked; a file made again from its origin is recognised by its numbers."""

import csv
import gzip
import hashlib
import io
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from command import filtax, sentence
from filtax import datasets
from filtax.datasets import DATASETS, DamagedDatasetError, Dataset, File, find_dataset, read_images, read_table

HOME = Path(os.environ.get("FILTAX_DATA", "absent"))
at_hand = pytest.mark.skipif(not HOME.is_dir(), reason="name the folder of data sets in FILTAX_DATA")
FIVE = File(hashlib.sha256(b"12345").hexdigest())
FILES = {file: known for one in DATASETS.values() for file, known in one.files.items()}


def test_every_set_has_its_terms_and_every_file_a_checksum():
    assert len(FILES) == sum(len(one.files) for one in DATASETS.values()) == 80
    assert {len(DATASETS[name].files) for name in ("tcpd", "tcpd-restricted")} == {32, 10}
    for one in DATASETS.values():
        assert one.about
        assert one.licence
        assert one.origin.startswith(("https://", "http://"))
        assert bool(one.address) != bool(one.how)  # fetched, or a sentence that says how
        assert not one.how or one.how.endswith(".")
    for file, known in FILES.items():
        assert len(known.sha256) == 64
        assert len(known.numbers) == (0 if file.endswith(".json") else 64)


def test_the_address_of_a_file_is_made_of_its_name():
    assert DATASETS["tcpd"].address_of("tcpd/series/nile.json").endswith("/TCPD/master/datasets/nile/nile.json")
    assert DATASETS["mnist"].address_of("mnist/train-labels-idx1-ubyte.gz").endswith("train-labels-idx1-ubyte.gz")
    assert DATASETS["boston"].address_of("uci/boston.csv.gz") is None


@at_hand
def test_every_set_is_whole_and_has_the_form_that_the_registry_says():
    """Tables read by the csv of Python alone."""
    for name, one in DATASETS.items():
        assert all(path.is_relative_to(HOME) for path in find_dataset(name))
        for file, known in one.files.items():
            if file.endswith(".csv.gz"):
                rows = gzip.decompress((HOME / file).read_bytes()).decode().splitlines()
                assert next(csv.reader(io.StringIO(rows[0]))) == known.columns.split()
                assert (rows[1], len(rows) - 1) == (known.first, known.rows)
            elif file.endswith(".npz"):
                with np.load(HOME / file) as arrays:
                    assert known.arrays == "; ".join(f"{of} {arrays[of].dtype} {arrays[of].shape}" for of in arrays)
                    assert known.columns.split() == list(arrays)


@at_hand
@pytest.mark.parametrize("name", ["well-log", "yacht", "keystroke", "jester", "adult", "mnist"])
def test_a_set_that_was_compressed_again_is_recognised_by_its_numbers(name, tmp_path, monkeypatch):
    for file in DATASETS[name].files:
        (tmp_path / file).parent.mkdir(exist_ok=True, parents=True)
        if file.endswith(".gz"):
            again = gzip.compress(gzip.decompress((HOME / file).read_bytes()), 1)
            (tmp_path / file).write_bytes(again)
        else:
            with np.load(HOME / file) as arrays:
                np.savez(tmp_path / file, allow_pickle=False, **arrays)
    monkeypatch.setenv("FILTAX_DATA", str(tmp_path))
    assert all(path.is_relative_to(tmp_path) for path in find_dataset(name))


@at_hand
def test_images_tables_and_arrays():
    clothes = read_images("fashion-mnist")
    assert clothes.X.shape == (60000, 28, 28)
    assert np.bincount(clothes.y_test).tolist() == [1000] * 10
    load = read_table("electricity")
    assert load["time"][0].startswith("2017-03-18")
    assert load["load_kw"].dtype == float
    assert len(load) == 8
    assert np.isnan(read_table("jester")["ratings"]).sum() == 136791


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A set of one file of five bytes, public at an address, on a machine that has nothing."""
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "five.bin").write_bytes(b"12345")
    address = (tmp_path / "public").as_uri() + "/{name}"
    monkeypatch.setitem(DATASETS, "five", Dataset({"five.bin": FIVE}, "", "", "the source", address))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FILTAX_DATA", raising=False)
    return tmp_path


def test_what_is_public_is_fetched_once(small):
    assert datasets.whereabouts("five") == "public"
    (path,) = find_dataset("five")
    assert path.read_bytes() == b"12345"
    (small / "public" / "five.bin").unlink()
    assert find_dataset("five") == (path,)
    assert datasets.whereabouts("five") == str(path.parent)
    assert [file.name for file in path.parent.iterdir()] == ["five.bin"]


def test_what_is_nowhere_is_said(small, monkeypatch):
    (small / "public" / "five.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"could not be read .*; fetch it by hand into"):
        find_dataset("five")
    assert not list((small / "cache").rglob("*.part.*"))
    monkeypatch.setitem(DATASETS, "five", Dataset({"five.bin": FIVE}, "", "", "the source"))
    with pytest.raises(FileNotFoundError, match="get it from the source and put it there"):
        find_dataset("five")
    assert datasets.whereabouts("five") == "absent"


@pytest.mark.parametrize("sent", [b"12", b"1234x"])
def test_a_file_that_came_half_or_wrong_is_not_kept(small, sent):
    public = small / "public" / "five.bin"
    public.write_bytes(sent)
    for _ in range(2):
        with pytest.raises(FileNotFoundError, match=r"its sha256 is .*nothing was kept: try again"):
            find_dataset("five")
        assert datasets.whereabouts("five") == "public"
        assert not [path for path in (small / "cache").rglob("*") if path.is_file()]
    public.write_bytes(b"12345")
    assert find_dataset("five")[0].read_bytes() == b"12345"


def test_a_server_that_hangs_up_leaves_nothing(small, monkeypatch):
    """It promises five bytes, sends two and closes: `http.client` may raise an error that is no OSError."""

    class Half(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"12")

        def log_message(self, format, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Half)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/{{name}}"
    monkeypatch.setitem(DATASETS, "five", Dataset({"five.bin": FIVE}, "", "", "the source", address))
    try:
        with pytest.raises(FileNotFoundError, match=r"fetch it by hand into"):
            find_dataset("five")
    finally:
        server.shutdown()
        server.server_close()
    assert datasets.whereabouts("five") == "public"


def test_the_given_folder_comes_first_and_a_set_may_lie_in_two(small, monkeypatch):
    given, cache = small / "public", datasets.data_homes()[-1]
    six = hashlib.sha256(b"123456").hexdigest()
    two = Dataset({"five.bin": FIVE, "more/six.bin": File(six)}, "", "", "the source")
    monkeypatch.setitem(DATASETS, "two", two)
    monkeypatch.setenv("FILTAX_DATA", str(given))
    assert find_dataset("five") == (given / "five.bin",)
    assert datasets.whereabouts("two") == "absent"
    assert datasets.missing_files("two") == {"more/six.bin": six}
    (cache / "more").mkdir(parents=True)
    (cache / "more" / "six.bin").write_bytes(b"123456")
    assert find_dataset("two") == (given / "five.bin", cache / "more" / "six.bin")
    assert datasets.whereabouts("two") == str(given)
    assert datasets.missing_files("two") == {}
    (cache / "more" / "six.bin").write_bytes(b"12345x")
    assert datasets.whereabouts("two") == "damaged"
    with pytest.raises(DamagedDatasetError, match=rf"its sha256 is .{{64}}, not {six}; remove it and get it again"):
        find_dataset("two")


TABLE = "a,b,when\n0.1,2,mon\n-3,,tue\n"
OTHER = "a,b,when\r\n1e-1,2.00,mon\r\n-3.0,nan,tue\r\n"  # the same numbers, written by another program
ARRAYS = {"ratings": np.array([[1.5, np.nan]], np.float32), "arm": np.array([3], np.int8)}


def digest(*parts):
    """The documented digest by hand: name, dtype and shape, then the numbers."""
    return hashlib.sha256(b"".join(parts)).hexdigest()


@pytest.fixture
def home(monkeypatch, tmp_path):
    """A table and a file of arrays, both of them known by their numbers alone."""
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    np.savez(tmp_path / "a.npz", allow_pickle=False, **ARRAYS)
    a, b = np.array([0.1, -3.0]).tobytes(), np.array([2.0, np.nan]).tobytes()
    table = digest(b"a\n<f8 (2,)\n", a, b"b\n<f8 (2,)\n", b, b"when\ntext (2,)\n", b"mon\ntue")
    arm, ratings = ARRAYS["arm"].tobytes(), ARRAYS["ratings"].tobytes()
    arrays = digest(b"arm\n|i1 (1,)\n", arm, b"ratings\n<f4 (1, 2)\n", ratings)
    for name, file, known in (
        ("table", "t.csv.gz", File("0" * 64, table, 2, "a b when", "0.1,2,mon")),
        ("arrays", "a.npz", File("0" * 64, arrays, 1, "ratings arm", arrays="ratings")),
    ):
        monkeypatch.setitem(DATASETS, name, Dataset({file: known}, "", "", "the source", how="By hand."))
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
        (TABLE.replace("0.1", "0.10000000000000002"), "its numbers differ"),
        (TABLE.replace("mon", "Mon"), "its numbers differ"),
        (TABLE.replace("-3,,", "-3,0,"), "its numbers differ"),
        (TABLE + "1,1,wed\n", "it has 3 rows, not 2"),
        (TABLE.replace("a,b,when", "a,c,when"), "it lacks b and it has c more"),
        ("b,a,when\n2,0.1,mon\n,-3,tue\n", "its columns are not in the order a, b, when"),
    ],
)
def test_another_table_is_refused_with_what_differs(home, text, says):
    (home / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(DamagedDatasetError, match=f"its sha256 is .*, and {says}; remove it"):
        find_dataset("table")
    assert datasets.whereabouts("table") == "damaged"


PACKED = [gzip.compress(text, mtime=0) for text in (b"", b"a,b\n1\n", b"\xff,\n1,2", b"abcd")]


@pytest.mark.parametrize("content", [b"", b"half", *PACKED])
def test_what_is_no_table_is_refused(home, content, monkeypatch):
    monkeypatch.setitem(DATASETS, "idx", Dataset({"i-ubyte.gz": File("0" * 64, "0" * 64)}, "", "", "the source"))
    for name, file in (("table", "t.csv.gz"), ("arrays", "a.npz"), ("idx", "i-ubyte.gz")):
        (home / file).write_bytes(content)
        with pytest.raises(DamagedDatasetError, match="its sha256 is"):
            find_dataset(name)


def test_arrays_are_known_by_dtype_and_numbers_in_any_order(home):
    np.savez_compressed(home / "a.npz", allow_pickle=False, arm=ARRAYS["arm"], ratings=ARRAYS["ratings"])
    assert set(read_table("arrays")) == {"arm", "ratings"}
    for wrong in ({"arm": np.array([4], np.int8)}, {"ratings": ARRAYS["ratings"].astype(float)}):
        np.savez(home / "a.npz", allow_pickle=False, **{**ARRAYS, **wrong})
        with pytest.raises(DamagedDatasetError, match="its numbers or dtypes differ"):
            find_dataset("arrays")
    with (home / "a.npz").open("wb") as file:
        np.save(file, ARRAYS["ratings"])
    with pytest.raises(DamagedDatasetError):
        find_dataset("arrays")


def test_what_is_absent_is_described(home):
    (home / "t.csv.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"2 rows under the columns a,b,when, the first row 0\.1,2,mon\. By h"):
        find_dataset("table")


def test_the_command_lists_the_sets_and_refuses_a_damaged_one(small):
    listed, same, odd = (filtax("data", *words, home=small) for words in ((), ("list",), ("lst",)))
    assert listed.returncode == 0
    assert same == listed
    rows, _, below = listed.stdout.partition("\n\n")
    places = dict(line.split()[:2] for line in rows.splitlines()[1:])
    assert places == {name: "public" if one.address else "absent" for name, one in DATASETS.items()}
    assert all(one.licence in rows for one in DATASETS.values())
    assert "What is public is fetched into" in below
    assert all(one.origin in rows and one.how in below for one in DATASETS.values())
    for name, one in DATASETS.items():
        for file, known in one.files.items():
            line = next((line.split() for line in below.splitlines() if f" {file} " in line), None)
            assert line == (None if one.address else [name, file, known.sha256])
            assert one.address or known.described in below
    assert "expected `list`" in sentence(odd, 2)
    home = small / "cache" / "filtax" / "data" / "finance"
    home.mkdir(parents=True)
    (home / "djia_daily_ohlcv_1992_2026.csv.gz").write_bytes(b"half")
    damaged = filtax("data", home=small).stdout
    for said in (sentence(filtax("reproduce", "ewma", "--out", "out", home=small), 2), damaged):
        assert f"is damaged: its sha256 is {hashlib.sha256(b'half').hexdigest()}, not" in said
        assert "fault of filtax" not in said
    said = sentence(filtax("reproduce", "electricity", "--out", "out", home=small), 2)
    assert "actuals_2017_2020.csv.gz is neither in $FILTAX_DATA nor in" in said
    assert FILES["electricity_postcovid/actuals_2017_2020.csv.gz"].sha256 in said
