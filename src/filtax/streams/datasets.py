"""Public data sets by name: found in `$FILTAX_DATA`, then in the user's cache, then fetched from where they are public.

Every file is checked before it is read, by its sha256; a table or arrays that were made anew are also whole if their
numbers are those of the file. What cannot be found is said, with how to get it. Most sets have no address from which
these very files can be had: `how` says what to do with what their origin offers, and `FORMS` what it is to become; put
them where `$FILTAX_DATA` points.
"""

import gzip
import hashlib
import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from filtax.streams.checksums import CONTENTS, FILES
from filtax.streams.content import described, read_file, strangeness
from filtax.streams.sets import DATASETS, Dataset

__all__ = [
    "DATASETS",
    "DamagedDatasetError",
    "Dataset",
    "Images",
    "data_homes",
    "find_dataset",
    "missing_files",
    "read_arrays",
    "read_images",
    "read_table",
    "whereabouts",
]


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
    """Where a data set is: a folder; or "damaged" if a file is not whole, "public" if it can be fetched, "absent".

    >>> whereabouts("fashion-mnist") != ""
    True
    """
    one = DATASETS[name]
    found = {file: path for file in one.files if (path := _found(file)) is not None}
    try:
        for file, path in found.items():
            _checked(path, file)
    except DamagedDatasetError:
        return "damaged"
    if len(found) < len(one.files):
        return "public" if one.address else "absent"
    return str(found[one.files[0]])[: -len(one.files[0]) - 1]


def missing_files(name: str) -> dict[str, str]:
    """The files of a data set that are not on this machine, each with the sha256 it must have.

    >>> set(missing_files("tcpd")) <= set(DATASETS["tcpd"].files)
    True
    """
    return {file: FILES[file][1] for file in DATASETS[name].files if _found(file) is None}


def data_homes() -> tuple[Path, ...]:
    """Folders in which files are looked for, in turn: that of `$FILTAX_DATA` if it is set, and the user's cache.

    >>> data_homes()[-1].name
    'data'
    """
    given = os.environ.get("FILTAX_DATA")
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = (base if base.is_absolute() else Path.home() / ".cache") / "filtax" / "data"
    return (Path(given), cache) if given else (cache,)


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
    return read_file(path)


def read_arrays(name: str) -> dict[str, np.ndarray]:
    """Read a set that is one file of arrays.

    >>> read_arrays("unheard-of")
    Traceback (most recent call last):
    ValueError: there is no data set 'unheard-of'; `filtax data` lists them.
    """
    (path,) = find_dataset(name)
    return read_file(path)


def _found(file: str) -> Path | None:
    return next((home / file for home in data_homes() if (home / file).is_file()), None)


def _at_hand(name: str, file: str) -> Path:
    found, address = _found(file), DATASETS[name].address_of(file)
    if found is not None:
        return found
    if address is None:
        holds = described(file)
        raise FileNotFoundError(
            f"data set {name}: {file} is neither in $FILTAX_DATA nor in {data_homes()[-1]}; get it from "
            f"{DATASETS[name].origin} and put it there, the file with sha256 {FILES[file][1]}"
            f"{f', or one made anew with the same numbers: {holds}' if holds else ''}. {DATASETS[name].how}".rstrip()
        )
    return _fetch(address, data_homes()[-1] / file, file)


def _fetch(address: str, path: Path, file: str) -> Path:
    """Bring a file into the cache; one that is not whole never has its name."""
    from http.client import HTTPException
    from urllib.request import urlopen

    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        with urlopen(address, timeout=30) as source, part.open("wb") as target:
            while block := source.read(1 << 20):
                target.write(block)
        if wrong := _damage(part, file):
            raise FileNotFoundError(
                f"{address} gave a file that is not the one that was published: {wrong}; nothing was kept: try again, "
                f"or fetch it by hand into {path}."
            )
        os.replace(part, path)
    except FileNotFoundError:
        raise
    except (OSError, HTTPException) as error:
        raise FileNotFoundError(f"{address} could not be read ({error}); fetch it by hand into {path}.") from None
    finally:
        part.unlink(missing_ok=True)
    return path


def _checked(path: Path, file: str) -> Path:
    if wrong := _damage(path, file):
        raise DamagedDatasetError(f"{path} is damaged: {wrong}; remove it and get it again.")
    return path


def _damage(path: Path, file: str) -> str:
    """What is wrong with a file, in words; none if it is whole."""
    size, wanted = FILES[file]
    with path.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest == wanted or (file in CONTENTS and _content_digest(path) == CONTENTS[file]):
        return ""
    strange = strangeness(path, file)
    if strange == "":
        return ""
    found = path.stat().st_size
    half = "" if found == size else f"it has {found} bytes, not {size}; "
    return f"{half}its sha256 is {digest}, not {wanted}{f', and {strange}' if strange else ''}"


def _content_digest(path: Path) -> str:
    """sha256 of what is compressed in a file; none if it is not whole."""
    try:
        with gzip.open(path, "rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except (OSError, EOFError, zlib.error):
        return ""


def _idx(path: Path) -> np.ndarray:
    """Bytes in the IDX form: four bytes of which the last counts the axes, the lengths, then the numbers."""
    data = gzip.decompress(path.read_bytes())
    axes = data[3]
    shape = struct.unpack(f">{axes}I", data[4 : 4 + 4 * axes])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)
