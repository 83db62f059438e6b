"""Public data sets by name: found in `$FILTAX_DATA`, then in the user's cache, then fetched from where they are public.

Every file is checked against its size and sha256 before it is read. What cannot be found is said, with how to get it.
Most sets have no address from which these very files can be had: put them where `$FILTAX_DATA` points.
"""

import csv
import gzip
import hashlib
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from filtax.streams.checksums import FILES

__all__ = [
    "DATASETS",
    "DamagedDatasetError",
    "Dataset",
    "Images",
    "find_dataset",
    "read_arrays",
    "read_images",
    "read_table",
    "whereabouts",
]

IDX = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
FASHION = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"


@dataclass(frozen=True)
class Dataset:
    """A data set: its files, what it is, under which terms, where it comes from.

    >>> DATASETS["electricity"].files[0]
    'electricity_postcovid/actuals_2017_2020.csv.gz'
    """

    files: tuple[str, ...]
    about: str
    licence: str
    origin: str
    address: str | None = None


def _uci(name: str, about: str) -> Dataset:
    licence = "none stated" if name in ("boston", "kin8nm") else "CC BY 4.0"
    return Dataset((f"uci/{name}.csv.gz",), about, licence, "UCI Machine Learning Repository")


def _images(folder: str, about: str, licence: str, origin: str, address: str | None = None) -> Dataset:
    return Dataset(tuple(f"{folder}/{part}-ubyte.gz" for part in IDX), about, licence, origin, address)


DATASETS = {
    "electricity": Dataset(
        ("electricity_postcovid/actuals_2017_2020.csv.gz",),
        "31,912 hourly loads with six weather columns, 2017 to 2020",
        "IEEE DataPort terms",
        "IEEE DataPort, Day-Ahead Electricity Demand Forecasting: Post-COVID Paradigm",
    ),
    "fashion-mnist": _images("fashion_mnist", "70,000 images of clothes, 28 x 28", "MIT", "Zalando Research", FASHION),
    "mnist": _images("mnist", "70,000 images of digits, 28 x 28", "CC BY-SA 3.0", "LeCun, Cortes and Burges"),
    "djia": Dataset(
        ("finance/djia_daily_ohlcv_1992_2026.csv.gz",), "Dow Jones index, daily, 1992 to 2026", "none stated", "Yahoo"
    ),
    "well-log": Dataset(("well_log.csv.gz",), "4,050 readings of a well log with outliers", "MIT", "Turing Institute"),
    "elec2": Dataset(
        ("streams/elec2.csv.gz",), "45,312 half-hours of electricity prices, up or down", "none stated", "Harries 1999"
    ),
    "mushroom": Dataset(("bandits/mushroom.csv.gz",), "8,124 mushrooms, 22 letters each", "CC BY 4.0", "UCI"),
    "shuttle": Dataset(("bandits/statlog_shuttle.csv.gz",), "58,000 states of a shuttle", "CC BY 4.0", "UCI Statlog"),
    "stock": Dataset(("bandits/showdown_stock.npz",), "3,713 days of 21 stocks, 8 portfolios", "MIT", "probml/bandits"),
    "jester": Dataset(("bandits/jester5k.npz",), "5,000 users' ratings of 100 jokes", "not checked", "Goldberg 2001"),
    "adult": Dataset(("bandits/adult.csv.gz",), "48,842 people and their income, two classes", "CC BY 4.0", "UCI"),
    "covertype": Dataset(
        ("bandits/showdown_covertype.npz",), "5,000 patches of forest, 7 kinds, standardised", "MIT", "probml/bandits"
    ),
    "boston": _uci("boston", "506 suburbs, 13 features"),
    "concrete": _uci("concrete", "1,030 mixtures, 8 features"),
    "energy": _uci("energy", "768 buildings, 8 features"),
    "kin8nm": _uci("kin8nm", "8,192 poses of a robot arm, 8 features"),
    "naval": _uci("naval", "11,934 states of a propulsion plant, 16 features"),
    "power": _uci("power", "9,568 hours of a power plant, 4 features"),
    "protein": _uci("protein", "45,730 protein decoys, 9 features"),
    "wine": _uci("wine_red", "1,599 red wines, 11 features"),
    "yacht": _uci("yacht", "308 hulls, 6 features"),
}


class DamagedDatasetError(ValueError):
    """A file is not the one that was published; the message has its name, its sha256, and the one it should have.

    >>> isinstance(DamagedDatasetError("five.bin is damaged"), ValueError)
    True
    """


class Images(NamedTuple):
    """Images (N, 28, 28) and labels (N,) as bytes, to learn from and to test on.

    >>> Images(np.zeros((2, 28, 28), np.uint8), np.zeros(2, np.uint8), np.zeros((1, 28, 28)), np.zeros(1)).X.shape
    (2, 28, 28)
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def find_dataset(name: str) -> tuple[Path, ...]:
    """The files of a data set, checked.

    Args:
        name: As in `DATASETS`.

    Raises:
        ValueError: There is no such set.
        DamagedDatasetError: A file is not whole.
        FileNotFoundError: It is not on this machine; the message says how to get it.

    >>> find_dataset("unheard-of")
    Traceback (most recent call last):
    ValueError: there is no data set 'unheard-of'; `filtax data` lists them.
    """
    if name not in DATASETS:
        raise ValueError(f"there is no data set {name!r}; `filtax data` lists them.")
    return tuple(_checked(_at_hand(name, file), file) for file in DATASETS[name].files)


def whereabouts(name: str) -> str:
    """Where a data set is: a folder, "public" if it can be fetched, "absent" if not.

    >>> whereabouts("fashion-mnist") != ""
    True
    """
    homes = [home for home in _homes() if all((home / file).is_file() for file in DATASETS[name].files)]
    return str(homes[0]) if homes else "public" if DATASETS[name].address else "absent"


def read_images(name: str) -> Images:
    """Read "fashion-mnist" or "mnist".

    >>> read_images("unheard-of")
    Traceback (most recent call last):
    ValueError: there is no data set 'unheard-of'; `filtax data` lists them.
    """
    X, y, X_test, y_test = (_idx(path) for path in find_dataset(name))
    return Images(X, y, X_test, y_test)


def read_table(name: str) -> dict[str, np.ndarray]:
    """Read a set that is one table: a column by its name, float64 where all are numbers, else text; "" is NaN.

    >>> read_table("unheard-of")
    Traceback (most recent call last):
    ValueError: there is no data set 'unheard-of'; `filtax data` lists them.
    """
    (path,) = find_dataset(name)
    with gzip.open(path, "rt", newline="") as file:
        rows = csv.reader(file)
        head = next(rows)
        columns = zip(*rows, strict=True)
        return dict(zip(head, map(_column, columns), strict=True))


def read_arrays(name: str) -> dict[str, np.ndarray]:
    """Read a set that is one file of arrays.

    >>> read_arrays("unheard-of")
    Traceback (most recent call last):
    ValueError: there is no data set 'unheard-of'; `filtax data` lists them.
    """
    (path,) = find_dataset(name)
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def _homes() -> list[Path]:
    given = os.environ.get("FILTAX_DATA")
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = (base if base.is_absolute() else Path.home() / ".cache") / "filtax" / "data"
    return [Path(given), cache] if given else [cache]


def _at_hand(name: str, file: str) -> Path:
    for home in _homes():
        if (home / file).is_file():
            return home / file
    address = DATASETS[name].address
    if address is None:
        raise FileNotFoundError(
            f"data set {name}: {file} is neither in $FILTAX_DATA nor in {_homes()[-1]}; get it from "
            f"{DATASETS[name].origin} and put it there."
        )
    return _fetch(address + Path(file).name, _homes()[-1] / file)


def _fetch(address: str, path: Path) -> Path:
    """Bring a file into the cache; a half file never has its name."""
    from urllib.request import urlopen

    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        with urlopen(address, timeout=30) as source, part.open("wb") as target:
            while block := source.read(1 << 20):
                target.write(block)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise FileNotFoundError(f"{address} could not be read ({error}); fetch it by hand into {path}.") from None
    os.replace(part, path)
    return path


def _checked(path: Path, file: str) -> Path:
    size, wanted = FILES[file]
    with path.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest != wanted:
        found = path.stat().st_size
        half = "" if found == size else f"it has {found} bytes, not {size}; "
        raise DamagedDatasetError(
            f"{path} is damaged: {half}its sha256 is {digest}, not {wanted}; remove it and get it again."
        )
    return path


def _idx(path: Path) -> np.ndarray:
    """Bytes in the IDX form: four bytes of which the last counts the axes, the lengths, then the numbers."""
    data = gzip.decompress(path.read_bytes())
    axes = data[3]
    shape = struct.unpack(f">{axes}I", data[4 : 4 + 4 * axes])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _column(cells: tuple[str, ...]) -> np.ndarray:
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.array(cells)
