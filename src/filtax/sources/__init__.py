"""A user's own table into arrays: every row is read as it is written, or left out with the place and the reason."""

from filtax.sources.clock import read_times
from filtax.sources.position import Position
from filtax.sources.rejected import InputError, Rejected
from filtax.sources.table import Chunk, Table, open_table

__all__ = ["Chunk", "InputError", "Position", "Rejected", "Table", "open_table", "read_times"]
