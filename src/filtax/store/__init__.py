"""Checkpoints: what a run has learned and where in its source it stands, kept so that a crash loses nothing.

save(folder, state, config=..., source=...)   write a generation; the one before is kept
load(folder, like)                            the newest sound generation, bit for bit, and its manifest
lock(folder)                                  hold the folder against a second writer for a whole run
"""

from filtax.store.checkpoint import generations, load, save
from filtax.store.digest import digest
from filtax.store.errors import Busy, Damaged, Foreign, Missing
from filtax.store.locking import lock

__all__ = ["Busy", "Damaged", "Foreign", "Missing", "digest", "generations", "load", "lock", "save"]
