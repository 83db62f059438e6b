"""The folder of a run: locked against a second writer, and removed again where nothing was begun in it."""

import glob
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filtax.io import lock
from filtax.io._files import LOCK, PARTIAL
from filtax.pipeline._config import CONFIG

CHECKPOINT = "checkpoint"
OUTPUTS = {"predictions.parquet", "metrics.json", "report.html"}  # written after a checkpoint


@contextmanager
def hold(root: Path) -> Iterator[Path]:
    """Lock the folder of a run, and give the folder of its checkpoints; a folder that stayed empty is removed.

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
    refuse_foreign(root, CONFIG, {CHECKPOINT, f"{CHECKPOINT}/{LOCK}"})
    found = sorted(each for each in OUTPUTS if (root / each).exists())
    if found and not any((root / CHECKPOINT).glob("*.json")):
        raise ValueError(f"{root} holds {found[0]} and no checkpoint that it came from; name a folder that is new.")
    made = [each for each in (root / CHECKPOINT, root, *root.parents) if not each.exists()]
    with lock(root / CHECKPOINT) as folder:
        try:
            yield folder
        except BaseException:
            if made and made[0] == folder and not (root / CONFIG).exists():
                _remove(made)
            raise


def refuse_foreign(folder: Path, mark: str, begun: set[str]) -> None:
    """Refuse a folder that holds files of somebody else: what is written there would replace them.

    Args:
        folder: Where files are to be written.
        mark: File that says that they are ours.
        begun: What may stand there before the mark does.

    >>> refuse_foreign(Path("/"), CONFIG, set())
    Traceback (most recent call last):
    ValueError: / holds files, such as ..., and nothing that filtax began; name a folder that is empty or new.
    """
    if not (folder / mark).is_file():
        found = [name for form in ("*", f"{CHECKPOINT}/*") for name in glob.glob(form, root_dir=folder)]
        if others := sorted(set(found) - begun - {mark + PARTIAL}):
            raise ValueError(
                f"{folder} holds files, such as {others[0]}, and nothing that filtax began; name a folder that is "
                "empty or new."
            )


def _remove(made: list[Path]) -> None:
    """Remove folders, the innermost first, that hold nothing but a lock; one that holds more stays, and those above."""
    if {each.name for each in made[0].iterdir()} <= {LOCK}:
        with suppress(OSError):
            (made[0] / LOCK).unlink(missing_ok=True)
            for each in made:
                each.rmdir()
