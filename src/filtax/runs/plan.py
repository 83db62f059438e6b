"""What the first rows decide: the task, the season, the method. Decided once, and written down with the run."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from filtax.runs.blocks import Block
from filtax.runs.config import Config
from filtax.runs.gaps import is_regular
from filtax.runs.inputs import WIDTH
from filtax.runs.large import power_of
from filtax.runs.nearer import nearer_steps
from filtax.streams import Season

__all__ = ["Plan", "decide", "label_of"]

FEW = 10  # different whole numbers that still count as labels
SAMPLE = 1000  # rows that decide
MOST = 2048  # weights of the columns: a belief has the square of it
SINCE = (
    "races",
    "elder",
    "together",
    "regular",
    "course",
    "hindsight",
    "patient",
    "early",
    "moves",
    "recurring",
    "levels",
    "wary",
    "growth",
    "hourly",
)  # what runs of before do not have
WIDE = 16  # columns from which on a method that looks for changes costs too much to be the default
# In 64 bits the covariance form agrees with the square root to 1e-11, also where columns are copies of each other, and
# takes a fifth of the time.
# A trust that falls to nothing: Huber's loss of a gross error grows without end, so that the method would begin anew at
# it, or the variance of the noise grow with it. A method that cannot begin anew and has no lags trusts more (c=8):
# after a change, rows are far off too.
TIMED = "WoLF-MD(c=4)+NIG(form=covariance)+RL[1]-OUPR(hazard=0.001)"
AHEAD = "WoLF-MD(c=4)+NIG(form=covariance)+C-Static"
PLAIN = "WoLF-MD(c=4)+NIG(form=covariance)+RL[1]-OUPR(hazard=0.0003)"
PLAIN_WIDE = "WoLF-MD(c=8)+NIG(form=covariance)+C-ACI(q=1e-05)"  # as dear as C-Static, and follows
LABELS, LABELS_WIDE = "LG(form=covariance)+RL[1]-OUPR(hazard=0.001)", "LG(form=covariance)+C-ACI(q=1e-05)"


@dataclass(frozen=True)
class Plan:
    """What was decided, besides the configuration.

    Attributes:
        config: With task, method and prior filled in.
        numbers: Columns of numbers to learn from.
        texts: Columns of text to learn from.
        season: The step and the cycles of the target; None where no features are made of it.
        heads: Labels that there is room for, 1 for two labels; 0 for numbers.
        steps: Steps before the horizon that are forecast beside it.
        powers: Columns of very large numbers, and the power of two that is their unit.
        races: Whether the belief before a change goes on beside the method; runs of before have none.
        elder: Whether it is a filter that never forgets, and races all the time; for labels, runs of before have none.
        together: Whether it does so for three and more labels too, and tells from which row on; runs of before do not.
        regular: Whether rows lie on a clock, so that missing steps are told of; runs of before do not.
        course: Whether averages over a day are watched for what changes slowly; runs of before have no such watch.
        hindsight: Whether the first rows are looked at once more; not where other columns explain them.
        patient: Whether a few absurd readings in a row may be errors; in runs of before only one.
        early: Whether levels that move among the first rows are looked for; not where other columns explain them.
        moves: Whether levels that move by less than forecasts call impossible are looked for; as `early`, in time.
        recurring: Whether of a target with few values one that keeps coming back is trusted; not in runs of before.
        levels: Whether that holds for levels with noise, and their switching is no change; not in runs of before.
        wary: Whether bands far ahead are wider until errors of their own are known; not in runs of before.
        growth: Whether a change of course must show in logarithms too; not in runs of before.
        hourly: Whether rows are judged by what forecasts of their hour were off by; not in runs of before.
        cycles: Those of the seasonal baselines where no features are made of the target; runs of before have none.

    >>> Plan(Config("a.csv", "y"), (), (), None, 0).heads
    0
    """

    config: Config
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    season: Season | None
    heads: int
    steps: tuple[int, ...] = ()
    powers: Mapping[str, int] = field(default_factory=dict)
    races: bool = False
    elder: bool = False
    together: bool = False
    regular: bool = False
    course: bool = False
    hindsight: bool = False
    patient: bool = False
    early: bool = False
    moves: bool = False
    recurring: bool = False
    levels: bool = False
    wary: bool = False
    growth: bool = False
    hourly: bool = False
    cycles: tuple[int, ...] = ()

    @property
    def limit(self) -> float | None:
        """Log of the odds at which a change is certain enough; None where no belief races."""
        races = self.races and not self.config.late and (self.heads <= 1 or self.together)
        return 2.0 * math.log(1.0 / self.config.false_alarms) if races else None

    @property
    def bends(self) -> bool:
        """Whether changes of course are looked for: not where labels come late."""
        return self.course and self.season is not None and not self.config.late

    @property
    def power(self) -> int:
        """That of the target; 0 for one of usual size."""
        return self.powers.get(self.config.target, 0)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        season = None if self.season is None else {**asdict(self.season), "cycles": list(self.season.cycles)}
        columns = {"numbers": list(self.numbers), "texts": list(self.texts)}
        found = {"config": self.config.to_json(), **columns, "season": season, "heads": self.heads}
        more: dict[str, Any] = {"steps": list(self.steps), "powers": dict(self.powers), "cycles": list(self.cycles)}
        more |= {name: getattr(self, name) for name in SINCE}
        return {**found, **{name: value for name, value in more.items() if value}}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Plan":
        """Read it back."""
        season = plain["season"] and Season(**{**plain["season"], "cycles": tuple(plain["season"]["cycles"])})
        columns = (tuple(plain["numbers"]), tuple(plain["texts"]))
        since = (plain.get(name, False) for name in SINCE)
        more = (tuple(plain.get("steps", ())), plain.get("powers", {}), *since)
        cycles = tuple(plain.get("cycles", ()))
        return cls(Config.from_json(plain["config"]), *columns, season, plain["heads"], *more, cycles=cycles)


def label_of(value: float | str) -> str:
    """The text of a label; a whole number is written as one.

    >>> label_of(3.0), label_of("spam")
    ('3', 'spam')
    """
    return value if isinstance(value, str) else f"{value:.17g}"


def decide(config: Config, block: Block) -> Plan:
    """Decide by the first rows.

    Args:
        config: As asked.
        block: The first rows of the source.

    >>> rows = Block({"y": np.array([0.5, 0.7]), "x": np.ones(2)}, {}, None, None, np.arange(2), np.zeros(2), [], None)
    >>> decide(Config("a.csv", "y"), rows).config.task
    'regress'
    """
    target = config.target
    _refuse(config)
    labels = _labels(block, target)
    task = config.task
    if task == "auto" and target in block.texts:
        _refuse_too_many(block.texts[target][:SAMPLE], target)
    if task == "auto":
        task = "classify" if labels is not None and not (config.time and target in block.numbers) else "regress"
    if task == "regress" and target in block.texts:
        raise ValueError(f"--task regress: the target {target} holds text; use --task classify, or another --target.")
    if task == "classify" and config.horizon > 1:
        raise ValueError(f"--horizon {config.horizon}: labels are forecast one row ahead; leave it out.")
    if task == "classify" and config.key:
        raise ValueError("--key: labels are learned from all rows together; leave it out, or make it a feature.")
    timed = config.time is not None and config.made and task == "regress"
    wanted = lambda names: tuple(n for n in names if n != target and (config.features is not None or not timed))  # noqa: E731
    numbers, texts = wanted(block.numbers), wanted(block.texts)
    weights = len(numbers) + WIDTH * len(texts)
    if weights > MOST:
        raise ValueError(
            f"{config.source}: its columns have {weights} weights, and {MOST} is the most; name those that matter with "
            "--features."
        )
    season = Season.of(_one_series(block)) if timed else None
    regular = season is not None and is_regular(season, _one_series(block))
    cycles = Season.of(_one_series(block)).cycles if config.time and not timed and task == "regress" else ()
    heads = 0 if task == "regress" else _heads(block, target, labels)
    usual = _usual(config, timed, len(numbers) >= WIDE, heads)
    steps = nearer_steps(config.horizon)
    config = replace(
        config,
        task=task,
        near=TIMED if steps and not config.delay and config.method is None else config.near,
        method=config.method or usual,
        prior=(0.1 if timed else 1.0) if config.prior is None else config.prior,
        version=version("filtax"),
    )
    measured = numbers if heads else (*numbers, target)
    since = _since(timed, regular, heads, weights)
    return Plan(config, numbers, texts, season, heads, steps, _powers(block, measured), **since, cycles=cycles)


def _since(timed: bool, regular: bool, heads: int, weights: int) -> dict[str, bool]:
    """What runs of before do not have."""
    return {
        "races": True,
        "elder": heads > 0,
        "together": heads > 0,
        "regular": regular,
        "course": timed,
        "hindsight": timed and not weights,
        "patient": timed,
        "early": not heads and not weights,
        "moves": timed and not weights,
        "recurring": timed,
        "levels": timed,
        "wary": not heads,
        "growth": timed,
        "hourly": timed,
    }


def _powers(block: Block, names: tuple[str, ...]) -> dict[str, int]:
    powers = {name: power_of(block.numbers[name]) for name in names}
    return {name: power for name, power in powers.items() if power}


def _usual(config: Config, timed: bool, wide: bool, heads: int) -> str:
    """The method of those who name none."""
    if heads:
        return LABELS_WIDE if wide else LABELS
    return (AHEAD if config.late else TIMED) if timed else (PLAIN_WIDE if wide else PLAIN)


def _refuse(config: Config) -> None:
    if config.task == "segment":
        raise ValueError("--task segment: a series is cut, and nothing is forecast; use `filtax segment`.")
    if config.target in (config.features or ()):
        raise ValueError(f"--features {config.target}: it is the target; leave it out.")


def _refuse_too_many(texts: np.ndarray, target: str) -> None:
    """Refuse a target of text of which most rows have a value of their own, unless labels were asked for."""
    texts = texts[texts.astype(str) != ""]
    values = np.unique(texts.astype(str))
    if len(values) <= max(FEW, len(texts) / 2):
        return
    comma = sum(bool(re.fullmatch(r"\s*[-+]?\d+,\d+\s*", value)) for value in values.tolist()) > len(values) / 2
    told = "write numbers as 1.5, not 1,5" if comma else "name another --target, or say --task classify if it is one"
    raise ValueError(
        f"the target {target} is text and takes {len(values)} values in the first {len(texts)} rows, such as "
        f"{str(values[0])!r:.60}: that is no label; {told}."
    )


def _labels(block: Block, target: str) -> set[str] | None:
    """The labels of the first rows; None if the target is a number that is measured."""
    if target in block.texts:
        return set(np.unique(block.texts[target][:SAMPLE].astype(str)).tolist()) - {""}
    values = block.numbers[target][:SAMPLE]
    values = np.unique(values[np.isfinite(values)])
    if not values.size or len(values) > FEW or np.any(values != np.rint(values)):
        return None
    return {label_of(value) for value in values.tolist()}


def _heads(block: Block, target: str, labels: set[str] | None) -> int:
    if labels is None:
        values = block.numbers[target][:SAMPLE]
        raise ValueError(
            f"--task classify: the target {target} takes {len(np.unique(values))} values in the first rows, too many "
            "for labels; use --task regress."
        )
    if len(labels) <= 2:
        return 1
    heads = 4
    while heads < len(labels) + 1:
        heads *= 2
    return heads


def _one_series(block: Block) -> np.ndarray:
    assert block.time is not None
    return block.time if block.key is None else block.time[block.key == block.key[0]]
