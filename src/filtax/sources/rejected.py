"""What could not be read, and where: a record of each row that is left out, a sentence for a source that is refused."""

from dataclasses import asdict, dataclass

__all__ = ["KEPT", "NAMELESS", "InputError", "Rejected", "RowError"]

KEPT = 1000  # records that are held at once, where there are many
NAMELESS = "the column has no name"


class InputError(ValueError):
    """The source cannot be read, or not any further; the message says where, why, and what to do."""


@dataclass(frozen=True)
class Rejected:
    """A row (or a column, or the rest of a file) that was left out.

    Attributes:
        file: Its file, as the user named it; "-" for standard input.
        line: Line in the file, counted from 1; for Parquet, the row, counted from 1.
        column: Character in the line where the trouble begins, counted from 1; for Parquet, the column.
        reason: What is wrong, in words.
        unended: Whether it is the last line of its file and has no end: it may not be written to its end yet.

    Example:
        >>> from filtax.sources import Rejected
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
    unended: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.reason}"

    def to_json(self) -> dict[str, str | int]:
        """Return where it is and what is wrong as plain values."""
        return {name: value for name, value in asdict(self).items() if name != "unended"}


class RowError(Exception):
    """Trouble in one row, raised and caught inside this package: where in the line, and why."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(reason)
        self.column, self.reason = column, reason
