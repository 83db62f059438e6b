"""Tables in, checkpoints out: a user's own data as arrays, and states on disk that survive a crash.

open_table(path, target=...)                  read CSV, TSV, JSON lines or Parquet in chunks; bad rows are reported
columns(frame)                                a table in memory, of whatever library, as numpy arrays by name
save(folder, state, config=..., source=...)   write a generation of a state; the one before is kept
load(folder, like)                            the newest sound generation, bit for bit, and its manifest
lock(folder)                                  hold the folder against a second writer
"""

from typing import TYPE_CHECKING

from filtax import _lazy
from filtax.io._errors import Busy, Damaged, Foreign, InputError, Missing, Rejected

if TYPE_CHECKING:
    from filtax.io._arrow import columns
    from filtax.io._checkpoint import digest, generations, load, save
    from filtax.io._files import lock
    from filtax.io._table import Chunk, Position, Table, open_table

__all__ = [
    "Busy",
    "Chunk",
    "Damaged",
    "Foreign",
    "InputError",
    "Missing",
    "Position",
    "Rejected",
    "Table",
    "columns",
    "digest",
    "generations",
    "load",
    "lock",
    "open_table",
    "save",
]
__getattr__, __dir__ = _lazy(  # so that whether a folder is free is known without JAX
    __name__,
    __all__,
    _checkpoint="digest generations load save",
    _arrow="columns",
    _files="lock",
    _table="Chunk Position Table open_table",
)
