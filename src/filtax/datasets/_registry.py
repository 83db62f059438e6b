"""The registry of the public data sets, read from `registry.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


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
