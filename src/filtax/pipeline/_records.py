"""What a run writes as it goes: a record of each row, the probabilities of its labels, a line for each event."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from filtax.io import Damaged
from filtax.pipeline._learner import Classes, Learned, Learner
from filtax.pipeline._log import Log, Mark, check

FILES = {"rows": "checkpoint/rows.bin", "chances": "checkpoint/chances.bin", "events": "events.jsonl"}
EMPTY: dict[str, Mark] = {name: [0, 0] for name in FILES}
SCAN = 1 << 14  # rows read at once to find those of a series


def record_type(learner: Learner, dated: bool) -> np.dtype:
    """The type of a record: where a row stood, its target, and the columns of the learner."""
    head = [("row", "<i8"), ("line", "<i8"), ("file", "<i4"), ("series", "<i4"), ("time", "<i8" if dated else "<f8")]
    labels = [("classes", "<i4")] if isinstance(learner, Classes) else []
    return np.dtype([*head, ("y", "<f8"), *((name, "<f8") for name in learner.names), *labels])


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
        rows, records = learned.rows, np.zeros(len(learned.rows), self.kind)
        for name, column in zip(("row", "line", "file", "series"), rows.place.T, strict=False):
            records[name] = column
        records["time"] = rows.place[:, 4] if self.kind["time"].kind == "i" else rows.time
        records["y"] = rows.y
        names = [name for name in (self.kind.names or ())[6:] if name != "classes"]
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

    def flush(self) -> dict[str, Mark]:
        """Put all on disk, and return the marks of what is there."""
        return {name: log.flush() for name, log in self.logs.items()}

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
