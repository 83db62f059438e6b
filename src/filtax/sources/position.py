"""How far a source has been read, as plain values: kept in a checkpoint, given back to go on with the next row."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Position"]


@dataclass(frozen=True)
class Position:
    """The place behind a row.

    Attributes:
        files: Files read so far, the current one last; each with its size in bytes where it was read to the end.
        offset: Bytes of the current file behind the row (uncompressed); for Parquet, rows.
        line: The next line.
        digest: sha256 of the current file up to the offset; for Parquet, of the whole file.
        rows: Rows handed on so far.
        layout: The columns and their kinds.
        complete: Whether the row had a line end; one without may have grown since.
        latest: Time of the latest row, or of the latest row of each key.

    Example:
        >>> import json
        >>> from filtax.sources import Position
        >>> place = Position([["load.csv", None]], 1024, 33, "9f86d0", 31, {}, {})
        >>> Position.from_json(json.loads(json.dumps(place.to_json()))) == place
        True
    """

    files: list[list[Any]]
    offset: int
    line: int
    digest: str
    rows: int
    layout: dict[str, Any]
    latest: dict[str, Any] = field(default_factory=dict)
    complete: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the position as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Position":
        """Read it back; refuse what is not one."""
        try:
            return cls(**plain)
        except TypeError:
            raise ValueError(f"Position.from_json: not a position in a source: {str(dict(plain))[:80]}.") from None
