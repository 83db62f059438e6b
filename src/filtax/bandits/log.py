"""A log of decisions, in memory or from a file: rows of arm, reward, probability and context, all of them checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from filtax import boundary, checks
from filtax.sources import InputError, open_table

__all__ = ["Log", "read_log"]

COLUMNS = ("arm", "reward", "probability")
NUMBER = "id"  # of a decision, where the log has one: no part of the context, and never met twice


@dataclass(frozen=True, eq=False)
class Log:
    """Rows of decisions: index of the arm, reward, probability of the arm (T,), and contexts (T, M) or None.

    >>> log = Log(("a", "b"), np.array([0, 1]), np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    >>> len(log)
    2
    """

    arms: tuple[str, ...]
    arm: np.ndarray
    reward: np.ndarray
    probability: np.ndarray
    contexts: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("arm", "reward", "probability", "contexts"):
            value = getattr(self, name)
            given = value if value is None else boundary.arrays(**{f"Log({name}=...)": value})[0]
            object.__setattr__(self, name, given if given is None else np.asarray(given))
            if given is not None and (given.ndim == 0 or len(given) != len(self.arm)):
                raise ValueError(f"log: {name} has shape {given.shape} but there are {len(self.arm)} rows.")
        if len(set(self.arms)) < len(self.arms) or not self.arms:
            raise ValueError(f"log: the arms are {', '.join(self.arms) or 'none'}; name each of them once.")
        odd = ~np.isin(self.arm, np.arange(len(self.arms)))
        if odd.any():
            raise ValueError(
                f"log: row {_first(odd)} pulls arm number {self.arm[odd][0]}, but there are {len(self.arms)} arms, "
                "counted from 0."
            )
        odd = ~np.isfinite(self.reward)
        if odd.any():
            raise ValueError(
                f"log: row {_first(odd)} has the reward {self.reward[odd][0]}; leave it out or correct it."
            )
        odd = ~((self.probability > 0.0) & (self.probability <= 1.0))
        if odd.any():
            raise ValueError(f"log: row {_first(odd)}: {_improbable(self.probability[odd][0])}")
        seen = np.zeros((len(self), 1)) if self.contexts is None else self.contexts.reshape(len(self), -1)
        odd = np.any(~np.isfinite(seen), axis=1)
        if odd.any():
            raise ValueError(f"log: row {_first(odd)} has a context that is not finite; leave it out or correct it.")

    def __len__(self) -> int:
        return len(self.arm)


def read_log(
    path: Any, *, arms: Sequence[str] | None = None, context: Sequence[str] | None = None, uniform: bool = False
) -> Log:
    r"""Read a log with the columns arm, reward, probability, perhaps the `id` of a decision; others are the context.

    Args:
        path: As for `filtax.sources.open_table`: CSV, TSV, JSON lines or Parquet, packed with gzip or not.
        arms: All arms there are; those of the file, sorted, if left out.
        context: Columns of the context, in order; all other columns if left out, but for `id`.
        uniform: Every arm was pulled with the same probability: a column of probabilities is then not needed.

    Raises:
        InputError: At the first row that cannot be right, with its place: nothing is left out in silence.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = file.write_text("arm,reward,probability\na,1,0.5\nb,0,0.5\n")
    >>> read_log(file).arms
    ('a', 'b')
    """
    wanted = COLUMNS[:2] if uniform else COLUMNS
    types = {name: "text" if name == "arm" else "number" for name in (*wanted, *(context or ()))}
    features = None if context is None else [name for name in types if name != "reward"]
    try:
        table = open_table(path, target="reward", features=features, types=types)
    except InputError as error:
        if "no column 'probability'" in str(error):
            error = InputError(f"{str(error).rstrip('.')}. If all arms were equally probable, say so (uniform).")
        raise error from None
    chunks = []
    for chunk in table:
        if chunk.rejected:
            raise InputError(f"{chunk.rejected[0]}. Repair the row, or leave it out.")
        chunks.append(chunk)
    column = lambda name: np.concatenate([chunk.column(name) for chunk in chunks])  # noqa: E731
    names = table.layout.columns if table.layout else ()
    others = [name for name in names if name not in (*COLUMNS, NUMBER)] if context is None else list(context)
    if uniform and "probability" in names:
        raise InputError(f"{path}: it has a column 'probability', which uniform would ignore; say one or the other.")
    texts = [name for name in others if table.layout and name in table.layout.texts]
    if texts:
        raise InputError(f"{path}: {texts[0]!r:.40} holds text; name the columns of the context, all of them numbers.")
    lines, given = np.concatenate([chunk.line for chunk in chunks]), column("arm")
    if NUMBER in names and NUMBER not in others:
        _check_once(path, lines, column(NUMBER))
    known = tuple(sorted(set(given.tolist()) - {""}) if arms is None else map(str, arms))
    strange = ~np.isin(given, known)
    if strange.any():
        at = int(np.argmax(strange))
        raise InputError(
            f"{path}:{lines[at]}: the row pulls the unknown arm {given[at]!r:.40}. {checks.nearest(given[at], known)}"
        )
    for name in (*wanted[1:], *others):
        _check(path, lines, name, column(name))
    probability = np.full(len(given), 1.0 / len(known)) if uniform else column("probability")
    contexts = np.stack([column(name) for name in others], axis=1) if others else None
    return Log(known, np.array([known.index(arm) for arm in given]), column("reward"), probability, contexts)


def _check(path: Any, lines: np.ndarray, name: str, values: np.ndarray) -> None:
    """Refuse the first row without a number in this column, or with a probability that cannot be."""
    odd = np.isnan(values)
    if odd.any():
        line = lines[np.argmax(odd)]
        raise InputError(f"{path}:{line}: there is no number for {name!r:.40}; fill it in or leave the row out.")
    odd = ~((values > 0.0) & (values <= 1.0))
    if name == "probability" and odd.any():
        raise InputError(f"{path}:{lines[np.argmax(odd)]}: {_improbable(values[odd][0])}")


def _check_once(path: Any, lines: np.ndarray, ids: np.ndarray) -> None:
    """Refuse the second row of one decision: it would count twice."""
    _, first, which = np.unique(ids, return_index=True, return_inverse=True)
    again = first[which] != np.arange(len(ids))
    if again.any():
        at = int(np.argmax(again))
        raise InputError(
            f"{path}:{lines[at]}: the decision {ids[at]} was met before, at line {lines[first[which[at]]]}; leave one "
            "out, or rename the column if it is no number of a decision."
        )


def _improbable(value: float) -> str:
    return (
        f"an arm that was pulled had the probability {value}; it must lie in (0, 1]. Correct it or leave the row out."
    )


def _first(odd: np.ndarray) -> int:
    return int(np.argmax(odd)) + 1
