"""Where the files of a data set are: found on this machine, or fetched into the user's cache; checked, and read."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from filtax.datasets._content import damage, read_file
from filtax.datasets._registry import DATASETS, File


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
    return tuple(_checked(_at_hand(name, file), file, known) for file, known in DATASETS[name].files.items())


def whereabouts(name: str) -> str:
    """Return the folder of a data set; or "damaged" if a file is not whole, "public" if it can be fetched, "absent".

    >>> from filtax.datasets import whereabouts
    >>> whereabouts("fashion-mnist") != ""
    True
    """
    wanted = DATASETS[name]
    found = {file: path for file in wanted.files if (path := _found(file)) is not None}
    if any(damage(path, file, wanted.files[file]) for file, path in found.items()):
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
    X, y, X_test, y_test = (read_file(path, file)[""] for path, file in _pairs(name))
    return Images(X, y, X_test, y_test)


def read_table(name: str) -> dict[str, np.ndarray]:
    """Read a set of one file: the columns of a table, float64 (empty cells NaN) or text; or arrays by name.

    >>> from filtax.datasets import read_table
    >>> read_table("unheard-of")
    Traceback (most recent call last):
    ValueError: there is no data set 'unheard-of'; `filtax data` lists them.
    """
    ((path, file),) = _pairs(name)
    return read_file(path, file)


def _pairs(name: str) -> list[tuple[Path, str]]:
    return list(zip(find_dataset(name), DATASETS[name].files, strict=True))


def _found(file: str) -> Path | None:
    return next((home / file for home in data_homes() if (home / file).is_file()), None)


def _at_hand(name: str, file: str) -> Path:
    wanted, home = DATASETS[name], data_homes()[-1]
    address, known, found = wanted.address_of(file), wanted.files[file], _found(file)
    if found is not None:
        return found
    if address is not None:
        return _fetch(address, home / file, file, known)
    remade = f", or one made again with the same numbers: {known.described}" if known.described else ""
    raise FileNotFoundError(
        f"data set {name}: {file} is neither in $FILTAX_DATA nor in {home}; get it from {wanted.origin} and put it "
        f"there, the file with sha256 {known.sha256}{remade}. {wanted.how}".rstrip()
    )


def _fetch(address: str, path: Path, file: str, known: File) -> Path:
    """Fetch a file into the cache; it gets its name when it is whole."""
    from http.client import HTTPException
    from urllib.request import urlopen

    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        with urlopen(address, timeout=30) as source, part.open("wb") as target:
            while block := source.read(1 << 20):
                target.write(block)
        wrong = damage(part, file, known)
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


def _checked(path: Path, file: str, known: File) -> Path:
    if wrong := damage(path, file, known):
        raise DamagedDatasetError(f"{path} is damaged: {wrong}; remove it and get it again.")
    return path
