"""What can go wrong with files: a source or a row that cannot be read, a checkpoint that cannot be used or written."""

from dataclasses import asdict, dataclass

NAMELESS = "the column has no name"


class InputError(ValueError):
    """The source cannot be read, or not any further; the message says where, why, and what to do."""


class RowError(Exception):
    """Trouble in one row, raised and caught inside this package: the character of the line, and why."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(reason)
        self.column, self.reason = column, reason


class Damaged(Exception):  # noqa: N818
    """A checkpoint that cannot be used: cut short, changed on disk, or not written by filtax."""


class Foreign(Damaged):
    """A sound checkpoint of something else: another configuration, another shape, or a newer format."""


class Missing(Damaged):
    """No checkpoint where one was expected."""


class Busy(OSError):  # noqa: N818
    """Another process is writing here."""


class Unwritten(OSError):  # noqa: N818
    """A file that could not be written because its folder is not there; it is no missing input."""


@dataclass(frozen=True)
class Rejected:
    """A row (or a column, or the rest of a file) that could not be read.

    Attributes:
        file: Its file, as the user named it; "-" for standard input.
        line: Line in the file, counted from 1; for Parquet, the row, counted from 1.
        column: Character in the line where the trouble begins, counted from 1; for Parquet, the column.
        reason: What is wrong, in words.

    Example:
        >>> from filtax.io import Rejected
        >>> row = Rejected("load.csv", 17, 12, "load: 'abc' is not a number")
        >>> print(row)
        load.csv:17:12: load: 'abc' is not a number
        >>> row.to_json()["line"]
        17
    """

    file: str
    line: int
    column: int
    reason: str

    @property
    def is_column(self) -> bool:
        """Whether it is a column without a name, which costs no row."""
        return self.reason == NAMELESS

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.reason}"

    def to_json(self) -> dict[str, str | int]:
        """Return where it is and what is wrong as plain values."""
        return asdict(self)
