"""The public data sets: their registry, where their files are or come from, whether they are whole, and their content.

A table that is made again from its origin has its numbers written otherwise, and is compressed otherwise; the numbers
are the same. So a table is recognised by its columns, in order, and by the float64 of its cells; arrays by names,
dtypes and numbers.
"""

import csv
import gzip
import hashlib
import os
import shutil
import struct
import tomllib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

UNREADABLE = (OSError, EOFError, IndexError, TypeError, ValueError, csv.Error, struct.error, zlib.error, BadZipFile)


@dataclass(frozen=True)
class File:
    """A file of a data set: its sha256, and what is in it.

    Attributes:
        sha256: Of the file.
        numbers: sha256 of the numbers in it; empty where only the file itself can be checked.
        rows: How many, without the names of the columns.
        columns: Their names in order, or those of the arrays, with blanks between.
        first: The first row of a table as it stands there.
        arrays: Names, dtypes and shapes of arrays.

    >>> from filtax.datasets import DATASETS
    >>> DATASETS["well-log"].files["well_log.csv.gz"].described
    '4050 rows under the columns nmr, the first row 1.3353060e+05'
    """

    sha256: str
    numbers: str = ""
    rows: int = 0
    columns: str = ""
    first: str = ""
    arrays: str = ""

    @property
    def described(self) -> str:
        """The content in words; empty where nothing is known of it."""
        if self.first:
            return f"{self.rows} rows under the columns {','.join(self.columns.split())}, the first row {self.first}"
        return f"arrays {self.arrays}" if self.arrays else ""


@dataclass(frozen=True)
class Dataset:
    """A data set: its files, what it is, under which terms, where it comes from, its address or how it was made.

    >>> from filtax.datasets import DATASETS
    >>> list(DATASETS["electricity"].files)
    ['electricity_postcovid/actuals_2017_2020.csv.gz']
    """

    files: Mapping[str, File]
    about: str
    licence: str
    origin: str
    address: str | None = None
    how: str = ""

    def address_of(self, file: str) -> str | None:
        """Return where a file is public, if it is.

        >>> from filtax.datasets import DATASETS
        >>> DATASETS["tcpd"].address_of("tcpd/series/nile.json")[-23:]
        'datasets/nile/nile.json'
        """
        path = PurePosixPath(file)
        return self.address and self.address.replace("{name}", path.name).replace("{stem}", path.stem)


def _read(path: Path) -> dict[str, Dataset]:
    sets = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: Dataset(**{**entry, "files": {file: File(**known) for file, known in entry["files"].items()}})
        for name, entry in sets.items()
    }


DATASETS = _read(Path(__file__).with_name("registry.toml"))


class DamagedDatasetError(ValueError):
    """A file is not the one that was published; the message has its name, its sha256, and the one it should have.

    >>> from filtax.datasets import DamagedDatasetError
    >>> isinstance(DamagedDatasetError("five.bin is damaged"), ValueError)
    True
    """


class Images(NamedTuple):
    """Images (N, 28, 28) and labels (N,) as bytes, to learn from and to test on.

    >>> import numpy as np
    >>> from filtax.datasets import Images
    >>> Images(np.zeros((2, 28, 28), np.uint8), np.zeros(2, np.uint8), np.zeros((1, 28, 28)), np.zeros(1)).X.shape
    (2, 28, 28)
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def find_dataset(name: str) -> tuple[Path, ...]:
    """Return the paths of the files of a data set, checked; what is public and absent is fetched.

    Args:
        name: As in `DATASETS`.

    Raises:
        ValueError: There is no such set.
        DamagedDatasetError: A file is not whole.
        FileNotFoundError: It is not on this machine; the message says how to get it.

    >>> from filtax.datasets import find_dataset
    >>> find_dataset("unheard-of")
    Traceback (most recent call last):
    ValueError: there is no data set 'unheard-of'; `filtax data` lists them.
    """
    if name not in DATASETS:
        raise ValueError(f"there is no data set {name!r}; `filtax data` lists them.")
    paths = tuple(_at_hand(name, file) for file in DATASETS[name].files)
    for path, known in zip(paths, DATASETS[name].files.values(), strict=True):
        if wrong := damage(path, known):
            raise DamagedDatasetError(f"{path} is damaged: {wrong}; remove it and get it again.")
    return paths


def whereabouts(name: str) -> str:
    """Return the folder of a data set; or "damaged" if a file is not whole, "public" if it can be fetched, "absent".

    >>> from filtax.datasets import whereabouts
    >>> whereabouts("fashion-mnist") != ""
    True
    """
    wanted = DATASETS[name]
    found = {file: path for file in wanted.files if (path := _found(file)) is not None}
    if any(damage(path, wanted.files[file]) for file, path in found.items()):
        return "damaged"
    if len(found) < len(wanted.files):
        return "public" if wanted.address else "absent"
    file, path = next(iter(found.items()))
    return str(path).removesuffix(str(Path(file))).rstrip("/\\")


def missing_files(name: str) -> dict[str, str]:
    """Return the files of a data set that are not on this machine, each with the sha256 it must have.

    >>> from filtax.datasets import DATASETS, missing_files
    >>> set(missing_files("tcpd")) <= set(DATASETS["tcpd"].files)
    True
    """
    return {file: known.sha256 for file, known in DATASETS[name].files.items() if _found(file) is None}


def data_homes() -> tuple[Path, ...]:
    """Return the folders in which files are looked for: that of `$FILTAX_DATA` if it is set, and the user's cache.

    >>> from filtax.datasets import data_homes
    >>> data_homes()[-1].name
    'data'
    """
    given = os.environ.get("FILTAX_DATA")
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = (base if base.is_absolute() else Path.home() / ".cache") / "filtax" / "data"
    return (Path(given), cache) if given else (cache,)


def read_images(name: str) -> Images:
    """Read "fashion-mnist" or "mnist".

    >>> from filtax.datasets import read_images
    >>> read_images("unheard-of")
    Traceback (most recent call last):
    ValueError: there is no data set 'unheard-of'; `filtax data` lists them.
    """
    X, y, X_test, y_test = (read_file(path)[""] for path in find_dataset(name))
    return Images(X, y, X_test, y_test)


def read_table(name: str) -> dict[str, np.ndarray]:
    """Read a set of one file: the columns of a table, float64 (empty cells NaN) or text; or arrays by name.

    >>> from filtax.datasets import read_table
    >>> read_table("unheard-of")
    Traceback (most recent call last):
    ValueError: there is no data set 'unheard-of'; `filtax data` lists them.
    """
    (path,) = find_dataset(name)
    return read_file(path)


def _found(file: str) -> Path | None:
    return next((home / file for home in data_homes() if (home / file).is_file()), None)


def _at_hand(name: str, file: str) -> Path:
    wanted, home = DATASETS[name], data_homes()[-1]
    address, known, found = wanted.address_of(file), wanted.files[file], _found(file)
    if found is not None:
        return found
    if address is not None:
        return _fetch(address, home / file, known)
    remade = f", or one made again with the same numbers: {known.described}" if known.described else ""
    raise FileNotFoundError(
        f"data set {name}: {file} is neither in $FILTAX_DATA nor in {home}; get it from {wanted.origin} and put it "
        f"there, the file with sha256 {known.sha256}{remade}. {wanted.how}".rstrip()
    )


def _fetch(address: str, path: Path, known: File) -> Path:
    """Fetch a file into the cache; it gets its name when it is whole."""
    from http.client import HTTPException
    from urllib.request import urlopen

    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{os.getpid()}.part.{path.name}")
    try:
        with urlopen(address, timeout=30) as source, part.open("wb") as target:
            shutil.copyfileobj(source, target)
        wrong = damage(part, known)
        if not wrong:
            os.replace(part, path)
    except (OSError, HTTPException) as error:
        raise FileNotFoundError(f"{address} could not be read ({error}); fetch it by hand into {path}.") from None
    finally:
        part.unlink(missing_ok=True)
    if wrong:
        raise FileNotFoundError(
            f"{address} gave a file that is not the one that was published: {wrong}; nothing was kept: try again, or "
            f"fetch it by hand into {path}."
        )
    return path


def read_file(path: Path) -> dict[str, np.ndarray]:
    """Read a table, `.csv.gz`, by columns, float64 or text; arrays, `.npz`, by name; images, `-ubyte.gz`, as one array.

    Images are in the IDX format, and their array has no name.
    """
    if path.name.endswith(".npz"):
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    if path.name.endswith("-ubyte.gz"):
        data = gzip.decompress(path.read_bytes())
        start = 4 + 4 * data[3]  # behind the length of each axis
        return {"": np.frombuffer(data, np.uint8, offset=start).reshape(struct.unpack(f">{data[3]}I", data[4:start]))}
    with gzip.open(path, "rt", newline="", encoding="utf-8") as opened:
        rows = csv.reader(opened)
        head = next(rows, [])
        return dict(zip(head, map(_column, zip(*rows, strict=True)), strict=True))


def damage(path: Path, wanted: File) -> str:
    """Return what is wrong with a file, in words; empty if it is whole."""
    with path.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest == wanted.sha256:
        return ""
    wrong = f"its sha256 is {digest}, not {wanted.sha256}"
    if not wanted.numbers:
        return wrong
    is_table = path.name.endswith(".csv.gz")
    try:
        content = read_file(path)
    except UNREADABLE:
        return wrong
    if _digest(content, ordered=is_table) == wanted.numbers:
        return ""
    return f"{wrong}, and {_difference(content, wanted, is_table)}"


def _digest(content: Mapping[str, np.ndarray], ordered: bool) -> str:
    """The sha256 of names, dtypes and numbers, perhaps in their order; -0.0 counts as 0.0, every NaN as the same."""
    total = hashlib.sha256()
    for name in content if ordered else sorted(content):
        values = np.asarray(content[name])
        is_text = values.dtype.kind == "U"
        total.update(f"{name}\n{'text' if is_text else values.dtype.str} {values.shape}\n".encode())
        if is_text:
            total.update("\n".join(values.tolist()).encode())
        else:
            plain = np.where(np.isnan(values), np.nan, values + 0.0) if values.dtype.kind == "f" else values
            total.update(np.ascontiguousarray(plain, values.dtype).tobytes())
    return total.hexdigest()


def _difference(content: Mapping[str, np.ndarray], wanted: File, is_table: bool) -> str:
    names = tuple(wanted.columns.split()) or ("",)
    lacks, more = ([n for n in a if n not in b] for a, b in ((names, content), (content, names)))
    if lacks or more:
        return " and ".join([*(f"it lacks {n}" for n in lacks[:3]), *(f"it has {n} more" for n in more[:3])])
    if is_table and tuple(content) != names:
        return f"its columns are not in the order {', '.join(names)}"
    count = len(next(iter(content.values())))
    if wanted.rows not in (0, count):
        return f"it has {count} rows, not {wanted.rows}"
    return "its numbers differ" if is_table else "its numbers or dtypes differ"


def _column(cells: tuple[str, ...]) -> np.ndarray:
    """One column: float64 where all cells are numbers or empty (NaN), else text."""
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.array(cells)
