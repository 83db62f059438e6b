"""Checkpoints: what a run has learned and where in its source it stands, kept so that a crash loses nothing.

save(folder, state, config=..., source=...)   write a generation; the one before is kept
load(folder, like)                            the newest sound generation, bit for bit, and its manifest
lock(folder)                                  hold the folder against a second writer for a whole run
"""

from typing import TYPE_CHECKING, Any

from filtax.store.digest import digest
from filtax.store.errors import Busy, Damaged, Foreign, Missing
from filtax.store.locking import lock

if TYPE_CHECKING:
    from filtax.store.checkpoint import generations, load, save

__all__ = ["Busy", "Damaged", "Foreign", "Missing", "digest", "generations", "load", "lock", "save"]


def __getattr__(name: str) -> Any:
    """What needs JAX comes when asked for: whether a folder is free is told without, and at once."""
    if name not in ("generations", "load", "save"):
        raise AttributeError(f"filtax.store has no {name!r}; it has {', '.join(__all__)}.")
    from filtax.store import checkpoint

    return getattr(checkpoint, name)
