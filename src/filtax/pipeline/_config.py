"""What a run is asked to do: plain values, written as TOML beside what it found, and read back to repeat it."""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from filtax.io import Damaged, InputError, Missing
from filtax.io._files import write_whole
from filtax.io._table import expand

CONFIG = "config.toml"
TASKS = ("auto", "regress", "classify", "segment")
STEPS = 48  # steps ahead that are forecast at most
LIMITS = {  # of whole numbers
    "horizon": (1, 10_000, "steps"),
    "delay": (0, 10_000, "rows"),
    "season": (1, 10_000, "rows"),
    "block": (1, 1_000_000, "rows"),
    "checkpoint_every": (1, 10**12, "rows"),
}
WORDS = {
    "source": "what is read: a file, a pattern of files, or - for standard input",
    "target": "the column that is forecast",
    "time": "the column of times",
    "key": "the column that names the series of a row",
    "features": "columns that are known when a row is forecast",
    "task": "regress a number, classify a label, or segment a series",
    "method": "name of a filter in place of the standard ones; `filtax methods` explains it",
    "season": "rows of a season, where there are no times",
    "horizon": "steps ahead",
    "delay": "rows by which the target of a row becomes known later",
    "on_error": "reject: rows that cannot be read are counted and skipped; stop: the first one ends the run",
    "level": "share of the targets that the intervals hold",
    "false_alarms": "probability that a good row is called an outlier",
    "block": "rows that are computed together; the numbers do not depend on it",
    "checkpoint_every": "rows between two checkpoints",
    "version": "of filtax, when the run began",
    "home": "the folder where the run began, seen from this one; a relative source is looked for there",
}


@dataclass(frozen=True)
class Config:
    """Everything needed to repeat a run; the file that it writes explains each entry.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from filtax.pipeline import Config
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
    season: int | None = None
    horizon: int = 1
    delay: int = 0
    on_error: str = "reject"
    level: float = 0.9
    false_alarms: float = 0.001
    block: int | None = None
    checkpoint_every: int = 65536
    version: str | None = None
    home: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be done, in the words of the command line."""
        if self.task not in TASKS:
            raise ValueError(f"--task {self.task:.40}: it must be one of {', '.join(TASKS)}.")
        if self.task == "segment" and self._idle:
            raise ValueError(
                f"--task segment takes SOURCE, --target, --time, --on-error and --out; omit {', '.join(self._idle)}."
            )
        if self.on_error not in ("reject", "stop"):
            raise ValueError(f"--on-error {self.on_error:.40}: it must be reject or stop.")
        for name, (least, most, unit) in LIMITS.items():
            number = self.to_json()[name]
            if number is not None and not least <= number <= most:
                raise ValueError(
                    f"--{name.replace('_', '-')} {number!s:.20}: it must be at least {least} and at most {most} {unit}."
                )
        if self.target in (self.features or ()):
            raise ValueError(f"--features {self.target}: it is the target; omit it.")
        if self.horizon > 1 and self.time is None and self.features is None:
            raise ValueError(
                f"--horizon {self.horizon} needs --time, or --features that are known ahead; without either there is "
                "one step to forecast."
            )
        if not (0.0 < self.level < 1.0 and 0.0 < self.false_alarms < 1.0):
            raise ValueError(f"level={self.level} and false_alarms={self.false_alarms} must lie between 0 and 1.")

    @property
    def _idle(self) -> list[str]:
        """Options that were given and that mean nothing where a series is segmented."""
        given = {"--features": self.features, "--method": self.method, "--key": self.key, "--delay": self.delay}
        given |= {"--horizon": self.horizon > 1, "--season": self.season}
        return [name for name, value in given.items() if value]

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps ahead that are forecast: all up to the horizon, or `STEPS` of a long one, close together where near.

        >>> Config("a.csv", "y", time="t", horizon=3).steps
        (1, 2, 3)
        >>> Config("a.csv", "y", time="t", horizon=1000).steps[-3:]
        (745, 863, 1000)
        """
        if self.horizon <= STEPS:
            return tuple(range(1, self.horizon + 1))
        return tuple(sorted(set(np.rint(np.geomspace(1.0, self.horizon, STEPS)).astype(int).tolist())))

    def to_json(self) -> dict[str, Any]:
        """Return the entries as plain values."""
        return {**asdict(self), "features": None if self.features is None else list(self.features)}

    def to_toml(self, title: str) -> str:
        """The entries as TOML, each with what it means."""
        given = {name: value for name, value in self.to_json().items() if value is not None}
        return "".join(
            [f"# {title}\n", *(f"{name} = {_toml(each)}  # {WORDS[name]}\n" for name, each in given.items())]
        )

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
            plain = tomllib.loads(path.read_bytes().decode())
            _check_kinds(plain)
            return cls.from_json(plain)
        except (ValueError, TypeError, RecursionError) as problem:
            raise Damaged(
                f"{path} cannot be used ({str(problem).rstrip('.')}): it was changed, or is of another version of "
                "filtax; bring it back, or start in another folder."
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

    def begun(self, root: Path) -> "Config":
        """The configuration of a run that begins now, with where its source lies, as seen from the folder of the run.

        >>> Config("load.csv", "load").begun(Path("out/load")).home
        '../..'
        """
        if self.source == "-" or Path(self.source).is_absolute():
            return self
        return replace(self, home=os.path.relpath(Path.cwd(), root.resolve()))

    def find_home(self, root: Path) -> Path | None:
        """The folder that the source is relative to: where the run began, or else the working one, which is None."""
        begun = None if self.home is None else Path(os.path.normpath(root.resolve() / self.home))
        if begun is None or begun == Path.cwd().resolve():
            return None
        for folder in (begun, None):
            try:
                expand(self.source, "" if folder is None else str(folder))
            except InputError:
                continue
            return folder
        raise Missing(
            f"{root}: its source, {self.source}, is neither in {os.path.relpath(begun)}, where the run began, nor "
            "here; bring it back, or resume from the folder that it is in."
        )


def settings_of(path: Path) -> dict[str, Any]:
    r"""Entries of a file as `Config.write` makes it, any of which may be missing; version and home are omitted.

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


def _check_kinds(plain: Mapping[str, Any]) -> None:
    known = {field.name for field in fields(Config)}
    kinds: dict[str, Any] = {"features": list, "level": float | int, "false_alarms": float | int}
    kinds |= dict.fromkeys(LIMITS, int)
    for name, value in plain.items():
        if name not in known:
            raise ValueError(f"there is no entry {name!r:.40}")
        wanted = kinds.get(name, str)
        if value is not None and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))):
            raise ValueError(f"{name} = {value!r:.40} is of another kind")


def _advice(folder: Path) -> str:
    """What to do about a folder without a configuration; one with our lock alone ended before a row was learned."""
    if not (folder / "checkpoint" / "lock").is_file() or any((folder / "checkpoint").glob("*.json")):
        return "Name the folder of a run."
    return (
        f"One ended there before a row was learned; start it again with `filtax run SOURCE --target Y --out {folder}`."
    )


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
