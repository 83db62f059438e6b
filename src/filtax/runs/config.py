"""What a run is asked to do: plain values, written as TOML beside what it found, and read back to repeat it."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from filtax.io import Damaged, Missing
from filtax.io._files import write_whole

__all__ = ["CONFIG", "TASKS", "Config", "settings_of"]

CONFIG = "config.toml"
SINCE = ("near", "home")  # what older runs do not have
TASKS = ("auto", "regress", "classify", "segment")
LIMITS = {  # of whole numbers; what looks further ahead, or waits longer, holds more than a memory
    "horizon": (1, 10_000, "steps"),
    "delay": (0, 1_000_000, "rows"),
    "block": (1, 1_000_000, "rows"),
    "every": (1, 10**12, "rows"),
}
WORDS = {
    "source": "what is read: a file, a pattern of files, or - for standard input",
    "target": "the column that is learned",
    "time": "the column of times",
    "key": "the column that tells one series from another",
    "features": "columns to learn from; all others if this line is missing",
    "task": "regress a number, classify a label, or segment a series",
    "method": "name of the filter; `filtax methods` explains it",
    "near": "name of the filter of the first step, which looks for changes, if it is another one",
    "prior": "variance of the weights before any row",
    "horizon": "steps ahead",
    "delay": "rows by which the target of a row comes late; with features made of time, steps",
    "made": "whether lags and calendar are made of the target and its times",
    "on_bad": "reject: bad rows are left out and counted; stop: the first one, or one without a target, ends the run",
    "level": "probability that the intervals hold",
    "false_alarms": "probability that a good row is called an outlier; a false alarm of a change is rarer still",
    "block": "rows that are computed together; the answer does not depend on it",
    "every": "rows between two checkpoints",
    "version": "of filtax, when the run began",
    "home": "the folder where the run began, seen from this one: a relative source is looked for there",
}


@dataclass(frozen=True)
class Config:
    """Everything needed to repeat a run; `WORDS` says what each entry is.

    Example:
        >>> import tempfile
        >>> from filtax.runs import Config
        >>> asked = Config(source="load.csv", target="load", time="when", features=("wind",))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     asked.write(Path(folder))
        ...     Config.read(Path(folder)) == asked
        True
    """

    source: str
    target: str
    time: str | None = None
    key: str | None = None
    features: tuple[str, ...] | None = None
    task: str = "auto"
    method: str | None = None
    prior: float | None = None
    horizon: int = 1
    delay: int = 0
    made: bool = True
    on_bad: str = "reject"
    level: float = 0.9
    false_alarms: float = 0.001
    block: int = 2048
    every: int = 65536
    version: str | None = None
    near: str | None = None
    home: str | None = None

    def __post_init__(self) -> None:
        """Refuse, in the words of the command line, what cannot be done."""
        if self.task not in TASKS:
            raise ValueError(f"--task {self.task:.40}: it must be one of {', '.join(TASKS)}.")
        if self.task == "segment" and self._idle:
            raise ValueError(
                f"--task segment takes SOURCE, --target, --time, --on-bad and --out; leave out {', '.join(self._idle)}."
            )
        if self.on_bad not in ("reject", "stop"):
            raise ValueError(f"--on-bad {self.on_bad:.40}: it must be reject or stop.")
        for name, (least, most, unit) in LIMITS.items():
            number = getattr(self, name)
            if number < least:
                raise ValueError(f"--{name} {number!s:.20}: it must be {least} or more {unit}.")
            if number > most:
                raise ValueError(f"--{name} {number!s:.20}: it must be at most {most} {unit}; give a smaller number.")
        if self.horizon > 1 and not (self.time and self.made):
            raise ValueError(
                f"--horizon {self.horizon} needs --time, and the features that are made of it: without times there is "
                "no step to look ahead by. Give --time, and leave out --no-features."
            )
        if self.prior is not None and not 0.0 < self.prior <= 1e100:
            raise ValueError(f"prior={self.prior!s:.20} must lie above 0 and at most at 1e100: it is a variance.")
        if not (0.0 < self.level < 1.0 and 0.0 < self.false_alarms < 1.0):
            raise ValueError(f"level={self.level} and false_alarms={self.false_alarms} must lie between 0 and 1.")

    @property
    def _idle(self) -> list[str]:
        """Options that were given and that mean nothing where a series is cut."""
        given = {"--features": self.features, "--method": self.method, "--key": self.key, "--delay": self.delay}
        given |= {"--horizon": self.horizon > 1, "--no-features": not self.made}
        return [name for name, value in given.items() if value]

    @property
    def late(self) -> int:
        """Labels of a series that are not known when a row is forecast, though their rows came before it."""
        return self.horizon - 1 + self.delay

    def to_json(self) -> dict[str, Any]:
        """Return the entries as plain values; those that older runs do not know of only where there is one."""
        plain = {**asdict(self), "features": None if self.features is None else list(self.features)}
        return {name: value for name, value in plain.items() if value or name not in SINCE}

    def to_toml(self, title: str) -> str:
        """The entries as TOML, each with what it means; one that is None is left out."""
        told = {name: value for name, value in self.to_json().items() if value is not None}
        return "".join([f"# {title}\n", *(f"{name} = {_toml(each)}  # {WORDS[name]}\n" for name, each in told.items())])

    def write(self, folder: Path) -> None:
        """Write config.toml."""
        write_whole(folder / CONFIG, self.to_toml("filtax run: everything needed to repeat it").encode())

    @classmethod
    def read(cls, folder: Path) -> "Config":
        """Read config.toml of a run; what is not one is refused in a sentence."""
        path = folder / CONFIG
        if not path.is_file():
            raise Missing(f"{folder} holds no run: there is no {CONFIG} in it. {_advice(folder)}")
        try:
            return cls.from_json(tomllib.loads(path.read_bytes().decode()))
        except (ValueError, TypeError, RecursionError) as problem:
            raise Damaged(
                f"{path} cannot be read ({str(problem).rstrip('.')}); bring it back, or start anew."
            ) from None

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Config":
        """Make one of plain values, each of its type.

        >>> Config.from_json({"source": "a.csv", "target": "y", "horizn": 3})
        Traceback (most recent call last):
        ValueError: there is no entry 'horizn'
        """
        _check_kinds(plain)
        features = plain.get("features")
        return cls(**{**plain, "features": None if features is None else tuple(map(str, features))})


def _check_kinds(plain: Mapping[str, Any]) -> None:
    known = {field.name for field in fields(Config)}
    for name, value in plain.items():
        if name not in known:
            raise ValueError(f"there is no entry {name!r:.40}")
        wanted = _KINDS.get(name, str)
        if value is not None and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))):
            raise ValueError(f"{name} = {value!r:.40} is of another kind")


def _advice(folder: Path) -> str:
    """What to do about a folder without a configuration; one that holds our lock was left before a row was learned."""
    if not (folder / "checkpoint" / "lock").is_file() or any((folder / "checkpoint").glob("*.json")):
        return "Name the folder of a run."
    return (
        f"One ended there before a row was learned; start it again with `filtax run SOURCE --target Y --out {folder}`."
    )


def settings_of(path: Path) -> dict[str, Any]:
    r"""Entries of a file as `Config.write` makes it, any of which may be missing; the version is left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.toml").write_text("target = 'load'\nhorizon = 24\n")
    ...     settings_of(Path(folder) / "a.toml")
    {'target': 'load', 'horizon': 24}
    """
    try:
        entries = tomllib.loads(path.read_bytes().decode())
        _check_kinds(entries)
    except (ValueError, TypeError, RecursionError) as problem:
        raise ValueError(f"--config {path}: it cannot be used ({str(problem).rstrip('.')}).") from None
    return {name: value for name, value in entries.items() if name not in ("version", "home")}


_KINDS: dict[str, Any] = {
    "features": list,
    "horizon": int,
    "delay": int,
    "block": int,
    "every": int,
    "made": bool,
    "level": float | int,
    "false_alarms": float | int,
    "prior": float | int,
}


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
