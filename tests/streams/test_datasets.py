import gzip
import hashlib
import os
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from command import filtax, sentence
from filtax.streams import content, datasets, find_dataset, read_arrays, read_images, read_table

HOME = Path(os.environ.get("FILTAX_DATA", "absent"))
at_hand = pytest.mark.skipif(not HOME.is_dir(), reason="name the folder of data sets in FILTAX_DATA")


def test_every_file_has_a_checksum_and_every_set_its_terms():
    for one in datasets.DATASETS.values():
        assert set(one.files) <= set(datasets.FILES)
        assert one.about
        assert one.licence
        assert one.origin.startswith(("https://", "http://"))
        assert bool(one.address) != bool(one.how)  # fetched, or a sentence that says how
        assert not one.how or one.how.endswith(".")


@at_hand
def test_every_set_is_whole():
    for name in datasets.DATASETS:
        assert all(path.is_relative_to(HOME) for path in find_dataset(name))


@at_hand
def test_images_tables_and_arrays():
    clothes = read_images("fashion-mnist")
    assert clothes.X.shape == (60000, 28, 28)
    assert np.bincount(clothes.y_test).tolist() == [1000] * 10
    load = read_table("electricity")
    assert load["time"][0].startswith("2017-03-18")
    assert load["load_kw"].dtype == float
    assert len(load) == 8
    assert np.isnan(read_arrays("jester")["ratings"]).sum() == 136791


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A set of one file of five bytes, public at an address, on a machine that has nothing."""
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "five.bin").write_bytes(b"12345")
    one = datasets.Dataset(("five.bin",), "", "", "the source", (tmp_path / "public").as_uri() + "/{name}")
    monkeypatch.setitem(datasets.DATASETS, "five", one)
    monkeypatch.setitem(datasets.FILES, "five.bin", (5, hashlib.sha256(b"12345").hexdigest()))
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


def test_the_given_folder_comes_first(small, monkeypatch):
    monkeypatch.setenv("FILTAX_DATA", str(small / "public"))
    assert find_dataset("five") == (small / "public" / "five.bin",)


def test_what_is_nowhere_is_said(small, monkeypatch):
    (small / "public" / "five.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"could not be read .*; fetch it by hand into"):
        find_dataset("five")
    assert not list((small / "cache").rglob("*.part"))
    monkeypatch.setitem(datasets.DATASETS, "five", datasets.Dataset(("five.bin",), "", "", "the source"))
    with pytest.raises(FileNotFoundError, match="get it from the source and put it there"):
        find_dataset("five")
    assert datasets.whereabouts("five") == "absent"


@pytest.mark.parametrize(("sent", "said"), [(b"12", "it has 2 bytes, not 5"), (b"1234x", "its sha256 is ")])
def test_a_file_that_came_half_or_wrong_is_not_kept(small, sent, said):
    public = small / "public" / "five.bin"
    public.write_bytes(sent)
    for _ in range(2):
        with pytest.raises(FileNotFoundError, match=f"{said}.*nothing was kept: try again"):
            find_dataset("five")
        assert datasets.whereabouts("five") == "public"
        assert not [path for path in (small / "cache").rglob("*") if path.is_file()]
    public.write_bytes(b"12345")
    assert find_dataset("five")[0].read_bytes() == b"12345"


def test_what_others_compressed_is_whole_if_its_content_is(small, monkeypatch):
    """The same bytes, compressed anew: fetched and kept; other bytes, or a half, are neither."""
    public = small / "public" / "five.gz"
    one = datasets.Dataset(("five.gz",), "", "", "the source", public.as_uri())
    monkeypatch.setitem(datasets.DATASETS, "five", one)
    monkeypatch.setitem(datasets.FILES, "five.gz", (1, "0" * 64))
    monkeypatch.setitem(datasets.CONTENTS, "five.gz", hashlib.sha256(b"12345").hexdigest())
    for sent in (gzip.compress(b"12346"), gzip.compress(b"12345")[:-9], b"12345"):
        public.write_bytes(sent)
        with pytest.raises(FileNotFoundError, match="nothing was kept"):
            find_dataset("five")
    for level in (1, 9):
        public.write_bytes(gzip.compress(b"12345", level))
        (path,) = find_dataset("five")
        assert gzip.decompress(path.read_bytes()) == b"12345"
        path.unlink()


@at_hand
def test_contents_are_those_of_the_files():
    for file, wanted in datasets.CONTENTS.items():
        assert hashlib.sha256(gzip.decompress((HOME / file).read_bytes())).hexdigest() == wanted


def test_a_server_that_hangs_up_leaves_nothing(small, monkeypatch):
    """It promises five bytes, sends two and closes: `http.client` may raise an error that is no OSError."""
    from http.server import BaseHTTPRequestHandler, HTTPServer

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
    monkeypatch.setitem(datasets.DATASETS, "five", datasets.Dataset(("five.bin",), "", "", "the source", address))
    try:
        with pytest.raises(FileNotFoundError, match=r"fetch it by hand into"):
            find_dataset("five")
    finally:
        server.shutdown()
        server.server_close()
    assert datasets.whereabouts("five") == "public"


@pytest.mark.parametrize(("bytes_", "said"), [(b"12x45", "its sha256 is {}, not {}"), (b"123", "3 bytes, not 5")])
def test_a_damaged_file_is_named_with_both_hashes(small, bytes_, said):
    (path,) = find_dataset("five")
    path.write_bytes(bytes_)
    found, wanted = (hashlib.sha256(one).hexdigest() for one in (bytes_, b"12345"))
    with pytest.raises(datasets.DamagedDatasetError) as refused:
        find_dataset("five")
    assert isinstance(refused.value, ValueError)
    for part in (str(path), said.format(found, wanted), found, wanted):
        assert part in str(refused.value)


def test_every_file_that_has_a_checksum_is_in_a_set_or_lists_others():
    told = [file for one in datasets.DATASETS.values() for file in one.files]
    assert len(told) == len(set(told))
    assert set(datasets.FILES) - set(told) == {"uci/index.json"}
    assert {len(datasets.DATASETS[name].files) for name in ("tcpd", "tcpd-restricted")} == {32, 10}


def test_the_address_of_a_file_is_made_of_its_name():
    of = lambda name, file: str(datasets.DATASETS[name].address_of(file))
    assert of("tcpd", "tcpd/series/nile.json").endswith("/TCPD/master/datasets/nile/nile.json")
    assert of("tcpd-annotations", "tcpd/annotations.json").endswith("/TCPD/master/annotations.json")
    assert of("fashion-mnist", datasets.DATASETS["fashion-mnist"].files[1]).endswith("/train-labels-idx1-ubyte.gz")
    assert of("mnist", datasets.DATASETS["mnist"].files[0]).endswith("/mnist/train-images-idx3-ubyte.gz")
    assert datasets.DATASETS["boston"].address_of("uci/boston.csv.gz") is None


def test_a_set_is_where_its_files_are_be_it_in_two_folders(small, monkeypatch):
    given, cache = small / "public", datasets.data_homes()[-1]
    two = datasets.Dataset(("five.bin", "more/six.bin"), "", "", "the source")
    monkeypatch.setitem(datasets.DATASETS, "two", two)
    monkeypatch.setitem(datasets.FILES, "more/six.bin", (6, hashlib.sha256(b"123456").hexdigest()))
    monkeypatch.setenv("FILTAX_DATA", str(given))
    assert datasets.whereabouts("two") == "absent"
    assert datasets.missing_files("two") == {"more/six.bin": hashlib.sha256(b"123456").hexdigest()}
    (cache / "more").mkdir(parents=True)
    (cache / "more" / "six.bin").write_bytes(b"123456")
    assert find_dataset("two") == (given / "five.bin", cache / "more" / "six.bin")
    assert datasets.whereabouts("two") == str(given)
    assert datasets.missing_files("two") == {}
    (cache / "more" / "six.bin").write_bytes(b"12345x")
    assert datasets.whereabouts("two") == "damaged"
    (given / "five.bin").unlink()
    assert datasets.whereabouts("two") == "damaged"


def test_the_command_lists_the_sets_and_refuses_a_damaged_one(small):
    listed, same, odd = (filtax("data", *words, home=small) for words in ((), ("list",), ("lst",)))
    assert listed.returncode == 0
    assert same == listed
    rows, _, below = listed.stdout.partition("\n\n")
    told = dict(line.split()[:2] for line in rows.splitlines()[1:])
    assert told == {name: "public" if one.address else "absent" for name, one in datasets.DATASETS.items()}
    assert all(one.licence in rows for one in datasets.DATASETS.values())
    assert "What is public is fetched into" in below
    assert all(one.origin in rows and one.how in below for one in datasets.DATASETS.values())
    for name, one in datasets.DATASETS.items():
        for file in one.files:
            line = next((line.split() for line in below.splitlines() if f" {file} " in line), None)
            assert line == (None if one.address else [name, file, datasets.FILES[file][1]])
            assert one.address or content.described(file) in below
    assert "expected `list`" in sentence(odd, 2)
    home = small / "cache" / "filtax" / "data" / "finance"
    home.mkdir(parents=True)
    (home / "djia_daily_ohlcv_1992_2026.csv.gz").write_bytes(b"half")
    damaged = filtax("data", home=small).stdout
    for said in (sentence(filtax("reproduce", "ewma", "--out", "out", home=small), 2), damaged):
        assert "is damaged: it has 4 bytes, not 184279" in said
        assert hashlib.sha256(b"half").hexdigest() in said
        assert "fault of filtax" not in said
    said = sentence(filtax("reproduce", "electricity", "--out", "out", home=small), 2)
    assert "actuals_2017_2020.csv.gz is neither in $FILTAX_DATA nor in" in said
    assert datasets.FILES["electricity_postcovid/actuals_2017_2020.csv.gz"][1] in said
