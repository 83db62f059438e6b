import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from command import filtax, sentence
from filtax.streams import datasets, find_dataset, read_arrays, read_images, read_table

HOME = Path(os.environ.get("FILTAX_DATA", "absent"))
at_hand = pytest.mark.skipif(not HOME.is_dir(), reason="name the folder of data sets in FILTAX_DATA")


def test_every_file_has_a_checksum_and_every_set_its_terms():
    for one in datasets.DATASETS.values():
        assert set(one.files) <= set(datasets.FILES)
        assert one.about
        assert one.licence
        assert one.origin


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
    one = datasets.Dataset(("five.bin",), "", "", "the source", (tmp_path / "public").as_uri() + "/")
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


def test_the_command_lists_the_sets_and_refuses_a_damaged_one(small):
    listed, same, odd = (filtax("data", *words, home=small) for words in ((), ("list",), ("lst",)))
    assert listed.returncode == 0
    assert same == listed
    assert "public" in listed.stdout
    assert "expected `list`" in sentence(odd, 2)
    home = small / "cache" / "filtax" / "data" / "finance"
    home.mkdir(parents=True)
    (home / "djia_daily_ohlcv_1992_2026.csv.gz").write_bytes(b"half")
    said = sentence(filtax("reproduce", "ewma", "--out", "out", home=small), 2)
    assert "is damaged: it has 4 bytes, not 184279" in said
    assert "fault of filtax" not in said
