"""The folder of a run: its lock, its checkpoints, and the files that grow with it.

A checkpoint holds a mark (length, CRC-32) of each file that grows. A run that goes on cuts off what lies behind, so
that a row is neither lost nor written twice; what was changed on disk is refused.
"""

import errno
import glob
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from filtax import io as store
from filtax.io import Damaged, Position, lock
from filtax.io._files import LOCK, PARTIAL, open_no_link, unwritten
from filtax.pipeline._config import CONFIG, Config
from filtax.pipeline._learner import Classes, Learned, Learner, head_type

CHECKPOINT = "checkpoint"
FILES = {"rows": "checkpoint/rows.bin", "chances": "checkpoint/chances.bin", "events": "events.jsonl"}
OUTPUTS = {"predictions.parquet", "metrics.json", "report.html"}  # written after a checkpoint
ARRAY = "\0array"  # marks an array among plain values
STEP = 1 << 20  # bytes read at once
SCAN = 1 << 14  # rows read at once to find those of a series
Mark = list[int]  # length and CRC-32
EMPTY: dict[str, Mark] = {name: [0, 0] for name in FILES}


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
    if (root / CHECKPOINT).is_symlink():
        raise ValueError(f"{root / CHECKPOINT} is a link, and what it names may be somebody else's; remove the link.")
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


def load_state(
    folder: Path, config: Config, warn: Callable[[str], object] | None
) -> tuple[Any, dict[str, Any], Position | None]:
    """The state, note and position of the newest sound checkpoint; a sentence to `warn` for each newer one."""

    def like(manifest: dict) -> dict[str, np.ndarray]:
        return {name[2:-2]: np.zeros(each["shape"], each["dtype"]) for name, each in manifest["arrays"].items()}

    stored, manifest = store.load(folder, like, config=config.to_json())
    if set(stored) != {"tree", "arrays"}:
        raise Damaged(f"{folder} was written by another version of filtax; start in another folder.")
    (state, place), note, skipped = of_bytes(stored), manifest["note"], manifest["skipped"]
    position = None if place is None else Position.from_json(place)
    for number, reason in enumerate(skipped, 1):
        where = ""
        if number == len(skipped) and position is not None:
            where = f", which stands behind row {note['read']}, line {position.line - 1} of {position.files[-1][0]}"
        if warn is not None:
            warn(f"{reason.rstrip('.')}; the checkpoint before it is used{where}.")
    return state, note, position


def to_bytes(tree: Any) -> dict[str, np.ndarray]:
    """Plain values and arrays, nested in dicts and lists, as two arrays of bytes: JSON, and what its arrays hold.

    >>> of_bytes(to_bytes({"a": [1, "b"], "x": np.arange(3.0)}))
    {'a': [1, 'b'], 'x': array([0., 1., 2.])}
    """
    parts: list[bytes] = []

    def put(array: Any) -> dict[str, Any]:
        array = np.asarray(array)
        parts.append(array.tobytes())
        return {ARRAY: [array.dtype.descr if array.dtype.names else array.dtype.str, array.shape]}

    text = zlib.compress(json.dumps(tree, default=put).encode())
    return {"tree": np.frombuffer(text, np.uint8), "arrays": np.frombuffer(b"".join(parts), np.uint8)}


def of_bytes(stored: Mapping[str, np.ndarray]) -> Any:
    """What `to_bytes` was given."""
    content, at = stored["arrays"].tobytes(), 0

    def take(found: dict[str, Any]) -> Any:
        nonlocal at
        if ARRAY not in found:
            return found
        kind, shape = found[ARRAY]
        kind = [tuple(field) for field in kind] if isinstance(kind, list) else kind
        array = np.ndarray(shape, kind, content, at).copy()
        at += array.nbytes
        return array

    return json.loads(zlib.decompress(stored["tree"].tobytes()), object_hook=take)


class Log:
    """A file that grows, open at the place where it was left.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.bin")
    ...     log = Log(path, [0, 0])
    ...     log.append(b"one")
    ...     log.flush()
    ...     mark = [log.size, log.sum]
    ...     log.append(b"and more")
    ...     log.close()  # as if the process had ended here
    ...     Log(path, mark).close()
    ...     path.read_bytes()
    b'one'
    """

    def __init__(self, path: Path, mark: Mark) -> None:
        self.path, (self.size, self.sum) = path, mark
        try:
            self._file = open(path, "r+b" if path.exists() else "w+b", opener=open_no_link)
        except OSError as problem:
            raise unwritten(path, problem) from problem
        try:
            check(path, mark)
        except BaseException:
            self.close()
            raise
        self._file.truncate(self.size)
        self._file.seek(self.size)

    def append(self, content: bytes) -> None:
        """Write more."""
        with self._named(len(content)):
            self._file.write(content)
        self.size, self.sum = self.size + len(content), zlib.crc32(content, self.sum)

    def flush(self) -> None:
        """Put all on disk."""
        with self._named():
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; what was not flushed may be lost, and no checkpoint counts on it."""
        with suppress(OSError):
            self._file.close()

    @contextmanager
    def _named(self, added: int = 0) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            grown = problem.errno == errno.EFBIG  # then the file is too large, not what was to be added
            waiting = self.size + added - os.fstat(self._file.fileno()).st_size
            needed = f"at least {self.size + added}" if grown else max(waiting, 1)
            raise unwritten(self.path, problem, needed, "then resume the run, which is intact") from problem


def check(path: Path, mark: Mark) -> None:
    """Refuse a file whose first bytes are not those of its mark."""
    size, wanted = mark
    if not size:
        return
    if not path.is_file() or path.stat().st_size < size:
        raise Damaged(f"{path} is shorter than its checkpoint says ({size} bytes); start in another folder.")
    found = 0
    with open(path, "rb") as file:
        for start in range(0, size, STEP):
            found = zlib.crc32(file.read(min(STEP, size - start)), found)
    if found != wanted:
        raise Damaged(
            f"{path}: its checksum does not agree: it was changed on disk; bring it back, or start in another folder."
        )


def record_type(learner: Learner) -> np.dtype:
    """The type of a record: the head of a row, and the columns of the learner."""
    labels = [("classes", "<i4")] if isinstance(learner, Classes) else []
    return np.dtype([*head_type(learner.plan.dated).descr, *((name, "<f8") for name in learner.names), *labels])


class Records:
    """The files of a run, open for writing at the place where they were left."""

    def __init__(self, root: Path, kind: np.dtype, marks: Mapping[str, Mark]) -> None:
        self.kind, self.logs = kind, dict[str, Log]()
        try:
            for name, file in FILES.items():
                self.logs[name] = Log(root / file, marks[name])
        except BaseException:
            self.close()
            raise

    @property
    def count(self) -> int:
        """Rows that were written."""
        return self.logs["rows"].size // self.kind.itemsize

    def append(self, learned: Learned) -> None:
        """Write the records of rows."""
        head, records = learned.rows.head, np.zeros(len(learned.rows), self.kind)
        names = [name for name in (self.kind.names or ()) if name != "classes"]
        for name in head.dtype.names or ():
            records[name] = head[name]
            names.remove(name)
        for name, column in zip(names, learned.columns.T, strict=True):
            records[name] = column
        if "classes" in (self.kind.names or ()):
            positive = learned.chances > 0.0
            classes = positive.shape[1] - np.argmax(positive[:, ::-1], axis=1) if positive.size else 0
            records["classes"] = np.where(positive.any(axis=1), classes, 0)
            kept = np.arange(positive.shape[1]) < records["classes"][:, None]
            self.logs["chances"].append(learned.chances[kept].astype("<f8").tobytes())
        self.logs["rows"].append(records.tobytes())

    def event(self, event: Mapping[str, Any]) -> None:
        """Write an event."""
        text = json.dumps(event, ensure_ascii=False).encode("utf-8", "backslashreplace")
        self.logs["events"].append(text + b"\n")

    def earlier(self, record: int, back: int) -> int:
        """Number of the row `back` rows earlier in the same series, or its first."""
        self.logs["rows"].flush()
        whole = np.memmap(self.logs["rows"].path, self.kind, "r", shape=(self.count,))
        mine, own = whole["series"][record], np.zeros(0, np.int64)
        for end in range(record + 1, 0, -SCAN):
            start = max(0, end - SCAN)
            own = np.concatenate([own, start + np.flatnonzero(whole["series"][start:end] == mine)[::-1]])
            if len(own) > back:
                break
        return int(whole["row"][own[min(back, len(own) - 1)]]) + 1

    def marks(self) -> dict[str, Mark]:
        """Length and CRC-32 of all that was written."""
        return {name: [log.size, log.sum] for name, log in self.logs.items()}

    def flush(self) -> dict[str, Mark]:
        """Put all on disk, and return the marks of what is there."""
        for log in self.logs.values():
            log.flush()
        return self.marks()

    def close(self) -> None:
        """Close the files."""
        for log in self.logs.values():
            log.close()


def read_records(root: Path, kind: np.dtype, marks: Mapping[str, Mark], step: int = 65536) -> Iterator[np.ndarray]:
    """Read the records of a run, some at a time, after their checksum was found right."""
    check(root / FILES["rows"], marks["rows"])
    count = marks["rows"][0] // kind.itemsize
    if count:
        with open(root / FILES["rows"], "rb") as file:
            for start in range(0, count, step):
                yield np.frombuffer(file.read(min(step, count - start) * kind.itemsize), kind)


def read_chances(root: Path, marks: Mapping[str, Mark], records: Iterator[np.ndarray]) -> Iterator[tuple]:
    """Read records together with the probabilities of their labels, (T, C), 0 for labels that were not met yet."""
    check(root / FILES["chances"], marks["chances"])
    with open(root / FILES["chances"], "rb") as file:
        for part in records:
            chances = np.zeros((len(part), int(part["classes"].max(initial=0))))
            kept = np.arange(chances.shape[1]) < part["classes"][:, None]
            chances[kept] = np.frombuffer(file.read(8 * int(part["classes"].sum())), "<f8")
            yield part, chances


def read_events(root: Path, marks: Mapping[str, Mark]) -> Iterator[dict[str, Any]]:
    """Read the events of a run, as far as its checkpoint knows of them."""
    path, size = root / FILES["events"], marks["events"][0]
    check(path, marks["events"])
    if size:
        with open(path, "rb") as lines:
            while lines.tell() < size:
                try:
                    yield json.loads(lines.readline())
                except ValueError:
                    raise Damaged(f"{path} holds a line that is no event; start in another folder.") from None
