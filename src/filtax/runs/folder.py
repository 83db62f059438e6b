"""The folder of a run: held against a second writer, and gone again where nothing was begun in it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filtax import store
from filtax.runs.config import CONFIG
from filtax.store.locking import LOCK

__all__ = ["CHECKPOINT", "hold"]

CHECKPOINT = "checkpoint"


@contextmanager
def hold(root: Path) -> Iterator[Path]:
    """Hold the folder of a run for as long as the block runs; hands on the one of its checkpoints.

    What was made for it and not used is removed: a name that was mistyped leaves no empty folder behind.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     root = Path(folder) / "out" / "run"
    ...     try:
    ...         with hold(root):
    ...             raise ValueError("there is no such method")
    ...     except ValueError:
    ...         root.exists(), root.parent.exists()
    (False, False)
    """
    made = [each for each in (root / CHECKPOINT, root, *root.parents) if not each.exists()]
    with store.lock(root / CHECKPOINT) as folder:
        try:
            yield folder
        except BaseException:
            if made and made[0] == folder and not (root / CONFIG).exists():
                _remove(made)
            raise


def _remove(made: list[Path]) -> None:
    """Remove folders, the innermost first, that hold nothing but a lock; one that holds more stays, and those above."""
    if {each.name for each in made[0].iterdir()} <= {LOCK}:
        with suppress(OSError):
            (made[0] / LOCK).unlink(missing_ok=True)
            for each in made:
                each.rmdir()
