"""What the first rows decide: the task, the clock, and the columns that are read. Decided once, kept with the run."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from filtax.forecasting import Clock
from filtax.forecasting._clock import detect_season
from filtax.pipeline._config import Config
from filtax.pipeline._rows import Block

FEW = 10  # different whole numbers that count as labels
SAMPLE = 1000  # rows that decide
WIDTH = 12  # indicators of a column of text
MOST = 2048  # known columns


@dataclass(frozen=True)
class Plan:
    """What was decided, besides the configuration.

    Attributes:
        task: "regress" or "classify".
        numbers: Known columns of numbers.
        texts: Known columns of text.
        clock: The clock of the series; its season is that of the seasonal baseline.
    """

    task: str
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    clock: Clock

    @property
    def width(self) -> int:
        """Number of known columns, indicators included."""
        return len(self.numbers) + WIDTH * len(self.texts)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {**asdict(self), "numbers": list(self.numbers), "texts": list(self.texts)}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Plan":
        """Read it back."""
        columns = tuple(plain["numbers"]), tuple(plain["texts"])
        return cls(plain["task"], *columns, Clock(**plain["clock"]))


def decide(config: Config, block: Block) -> Plan:
    """Decide by the first rows of a source.

    >>> rows = Block({"y": np.array([0.5, 0.7]), "x": np.ones(2)}, {}, None, None, np.arange(2), np.zeros(2), [], None)
    >>> plan = decide(Config("a.csv", "y"), rows)
    >>> plan.task, plan.numbers
    ('regress', ('x',))
    """
    task = _task(config, block)
    if task == "classify":
        for name, given in (("--horizon", config.horizon > 1), ("--key", config.key), ("--season", config.season)):
            if given:
                raise ValueError(f"{name}: it means nothing for labels; omit it, or say --task regress.")
    numbers, texts = (tuple(n for n in part if n != config.target) for part in (block.numbers, block.texts))
    plan = Plan(task, numbers, texts, _clock(config, block, task))
    if plan.width > MOST:
        raise ValueError(
            f"{config.source}: its columns have {plan.width} weights, and {MOST} is the most; name those that matter "
            "with --features."
        )
    return plan


def label_of(value: float | str) -> str:
    """The text of a label; a whole number is written as one.

    >>> label_of(3.0), label_of("spam")
    ('3', 'spam')
    """
    return value if isinstance(value, str) else f"{value:.17g}"


def _clock(config: Config, block: Block, task: str) -> Clock:
    """The clock of the first series."""
    own = slice(None) if block.key is None else block.key == block.key[0]
    if task == "classify":
        return Clock.by_index(1)
    if block.time is not None and block.time.dtype.kind == "M":
        return Clock.of(block.time[own][:SAMPLE])
    clock = Clock.by_index(config.season or detect_season(block.numbers[config.target][own][:SAMPLE]))
    if block.time is None or len(block.time[own]) < 2:
        return clock
    return replace(clock, step=float(np.median(np.diff(block.time[own][:SAMPLE]))))


def _task(config: Config, block: Block) -> str:
    target = config.target
    text = target in block.texts
    values = (block.texts if text else block.numbers)[target][:SAMPLE]
    values = values[values.astype(str) != ""] if text else values[np.isfinite(values)]
    found = np.unique(values.astype(str) if text else values)
    labels = text or (0 < len(found) <= FEW and not np.any(found != np.rint(found)))
    if config.task == "regress" and text:
        raise ValueError(f"--task regress: the target {target} holds text; use --task classify, or another --target.")
    if config.task == "classify" and not labels:
        raise ValueError(
            f"--task classify: the target {target} takes {len(found)} values in the first rows, too many for labels; "
            "use --task regress."
        )
    if config.task != "auto":
        return config.task
    if text and len(found) > max(FEW, len(values) / 2):
        comma = sum(bool(re.fullmatch(r"\s*[-+]?\d+,\d+\s*", each)) for each in found.tolist()) > len(found) / 2
        advice = "write numbers as 1.5, not 1,5" if comma else "name another --target, or say --task classify"
        raise ValueError(
            f"the target {target} is text and takes {len(found)} values in the first {len(values)} rows, such as "
            f"{str(found[0])!r:.60}: that is no label; {advice}."
        )
    return "classify" if labels and (text or not config.time) else "regress"


class Columns:
    """Known columns as numbers: of a text, an indicator for each of the first texts met, and one for all others.

    >>> columns = Columns(Plan("regress", (), ("day",), Clock.by_index(1)))
    >>> X = columns.read({}, {"day": np.array(["fri", "sat", "fri", ""], object)})
    >>> X[:3, :2].tolist(), bool(np.isnan(X[3]).all())
    ([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], True)
    """

    def __init__(self, plan: Plan, met: Mapping[str, list[str]] | None = None) -> None:
        self.plan = plan
        self.met: dict[str, list[str]] = {name: [] for name in plan.texts} | dict(met or {})

    def read(self, numbers: Mapping[str, np.ndarray], texts: Mapping[str, np.ndarray]) -> np.ndarray:
        """The columns of some rows, (T, F), NaN where missing; texts met for the first time take the next indicator."""
        parts = [numbers[name][:, None] for name in self.plan.numbers]
        for name in self.plan.texts:
            values, first, at = np.unique(texts[name].astype(str), return_index=True, return_inverse=True)
            met = self.met[name]
            for value in values[np.argsort(first)].tolist():
                if value and value not in met and len(met) < WIDTH - 1:
                    met.append(value)
            slots = np.array([met.index(v) if v in met else WIDTH - 1 for v in values.tolist()], int)
            shares = np.where((values == "")[:, None], np.nan, slots[:, None] == np.arange(WIDTH))
            parts.append(shares[at])
        return np.concatenate(parts, axis=1) if parts else np.zeros((0, 0))

    def names(self) -> list[str]:
        """A name of each column."""
        kinds = [f"{name}={text}" for name in self.plan.texts for text in [*self.met[name], "others"]]
        return [*self.plan.numbers, *kinds]
