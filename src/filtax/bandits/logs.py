"""What a policy would have earned, told from the log of another one.

A policy that learns is run along the log in two ways. *Replay*: it chooses for itself, and a row counts only where it
chose what was logged; it learns from those rows alone, so it lives through a shorter stream that it could have met
itself (Li et al. 2011; rows of probable arms are thinned, so logs need not be uniform). *Off-policy*: it learns from
every row, and the probability it gave to the logged arm before that row becomes an importance weight.
"""

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from filtax import checks
from filtax.bandits.estimates import Estimate, doubly_robust, ips, mean_of, snips
from filtax.bandits.rounds import learn, look
from filtax.state import State

__all__ = ["Log", "evaluate_log", "read_log", "replay"]

COLUMNS = ("arm", "reward", "probability")


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
        odd = ~np.isfinite(self.reward)
        if odd.any():
            raise ValueError(
                f"log: row {_first(odd)} has the reward {self.reward[odd][0]}; leave it out or correct it."
            )
        odd = ~((self.probability > 0.0) & (self.probability <= 1.0))
        if odd.any():
            raise ValueError(
                f"log: row {_first(odd)} has the probability {self.probability[odd][0]} of an arm that was pulled; it "
                "must lie in (0, 1]. Leave the row out or correct it."
            )

    def __len__(self) -> int:
        return len(self.arm)


def read_log(
    path: Any, *, arms: Sequence[str] | None = None, context: Sequence[str] | None = None, uniform: bool = False
) -> Log:
    r"""Read a log from a CSV file (also .gz) with the columns arm, reward, probability; all others are the context.

    Args:
        path: The file.
        arms: All arms there are; those of the file, sorted, if left out.
        context: Columns of the context, in order; all other columns if left out.
        uniform: Every arm was pulled with the same probability: a column of probabilities is then not needed.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = file.write_text("arm,reward,probability\na,1,0.5\nb,0,0.5\n")
    >>> read_log(file).arms
    ('a', 'b')
    """
    opened = gzip.open(path, "rt", newline="") if str(path).endswith(".gz") else Path(path).open(newline="")
    with opened as file:
        reader = csv.DictReader(file)
        names, rows = list(reader.fieldnames or []), list(reader)
    for name in COLUMNS[:2] if uniform else COLUMNS:
        if name not in names:
            more = "; if all arms were equally probable, say so (uniform)" if name == "probability" else ""
            raise ValueError(f"{path}: there is no column {name!r}, only {', '.join(names) or 'none'}{more}.")
    if not rows:
        raise ValueError(f"{path}: there are no rows below the header.")
    given = [row["arm"] for row in rows]
    known = tuple(sorted(set(given)) if arms is None else map(str, arms))
    strange = [arm not in known for arm in given]
    if any(strange):
        at = strange.index(True)
        raise ValueError(
            f"{path}: row {at + 1} pulls the unknown arm {given[at]!r}. {checks.nearest(given[at], known)}"
        )
    chosen = [name for name in names if name not in COLUMNS] if context is None else list(context)
    for name in chosen:
        if name not in names:
            raise ValueError(f"{path}: there is no context column {name!r}. {checks.nearest(name, names)}")
    column = lambda name: np.array([_number(path, at, name, row[name]) for at, row in enumerate(rows)])  # noqa: E731
    probability = np.full(len(rows), 1.0 / len(known)) if uniform else column("probability")
    contexts = np.stack([column(name) for name in chosen], axis=1) if chosen else None
    if contexts is not None and not np.isfinite(contexts).all():
        at = _first(np.isnan(contexts.sum(axis=1) * 0.0))
        raise ValueError(f"{path}: row {at} has a context that is not finite; fill it in or leave the row out.")
    return Log(known, np.array([known.index(arm) for arm in given]), column("reward"), probability, contexts)


def replay(
    log: Log, method: Any, policy: Any, state: State, *, key: Array, shared: bool = False, level: float = 0.95
) -> Estimate:
    """Mean reward of a learning policy by replay: it counts, and learns from, the rows where it agrees with the log.

    >>> from filtax.bandits import stack, thompson, usual
    >>> method, start = usual()
    >>> log = Log(("a", "b"), np.array([0, 1] * 50), np.array([1.0, 0.0] * 50), np.full(100, 0.5))
    >>> replay(log, method, thompson(), stack([method.init(**start)] * 2), key=jax.random.key(0)).value > 0.8
    True
    """
    counted = _replay(method, policy, state, *_rows(log), float(log.probability.min()), key, shared=shared)
    return mean_of(log.reward[np.asarray(counted)], level=level)


def evaluate_log(
    log: Log, method: Any, policy: Any, state: State, *, key: Array, shared: bool = False, level: float = 0.95
) -> dict[str, Estimate]:
    """All estimates for one policy, beside the mean reward of what was logged.

    Args:
        log: What another policy did.
        method: From `filtax.method`.
        policy: From this package.
        state: How it begins, as for `play`.
        key: Random key.
        shared: As for `Bandit`.
        level: Of the intervals.

    Returns:
        "logged", "replay", "ips", "snips" and "dr". For a policy that learns, the last three are the mean over rows of
        the value of what it was at that row, after it had learned from all rows before.

    >>> from filtax.bandits import stack, thompson, usual
    >>> method, start = usual()
    >>> log = Log(("a", "b"), np.array([0, 1] * 50), np.array([1.0, 0.0] * 50), np.full(100, 0.5))
    >>> told = evaluate_log(log, method, thompson(), stack([method.init(**start)] * 2), key=jax.random.key(0))
    >>> list(told)
    ['logged', 'replay', 'ips', 'snips', 'dr']
    """
    chances, expected = (
        np.asarray(part, np.float64) for part in _follow(method, policy, state, *_rows(log), key, shared=shared)
    )
    at = np.arange(len(log))
    own, predicted = np.clip(chances[at, log.arm], 0.0, 1.0), expected[at, log.arm]
    baseline = np.sum(chances * expected, axis=1)
    return {
        "logged": mean_of(log.reward, level=level),
        "replay": replay(log, method, policy, state, key=key, shared=shared, level=level),
        "ips": ips(log.reward, log.probability, own, level=level),
        "snips": snips(log.reward, log.probability, own, level=level),
        "dr": doubly_robust(log.reward, log.probability, own, predicted, baseline, level=level),
    }


def _rows(log: Log) -> tuple:
    context = None if log.contexts is None else jnp.asarray(log.contexts)
    return jnp.asarray(log.arm, jnp.int32), jnp.asarray(log.reward), jnp.asarray(log.probability), context


@partial(jax.jit, static_argnames=("shared",))
def _replay(
    method: Any, policy: Any, state: State, arm: Any, reward: Any, p: Any, X: Any, least: Any, key: Any, *, shared: bool
) -> Array:
    def body(carry: tuple, row: tuple) -> tuple[tuple, Array]:
        state, t = carry
        arm, reward, p, x, key = row
        of_noise, of_tie, of_thinning = jax.random.split(key, 3)
        outlook = look(method, state, x, shared=shared, draw=policy.draw)
        u = jax.random.uniform(of_tie, (), outlook.expected.dtype)
        chosen = policy.choose(outlook, policy.noise(outlook, of_noise), u, t)
        agrees = (chosen == arm) & (jax.random.uniform(of_thinning, (), p.dtype) * p < least)
        later, _ = learn(method, state, x, arm, reward, shared=shared)
        keep = lambda new, old: jnp.where(agrees, new, old)  # noqa: E731
        names = ("bank", "t", "began", "refused", "strain")
        state = state.after(*(jax.tree.map(keep, getattr(later, n), getattr(state, n)) for n in names))
        return (state, t + agrees.astype(t.dtype)), agrees

    rows = (arm, reward, p, X, jax.random.split(key, len(arm)))
    return jax.lax.scan(body, (state, jnp.zeros((), jnp.int32)), rows)[1]


@partial(jax.jit, static_argnames=("shared",))
def _follow(
    method: Any, policy: Any, state: State, arm: Any, reward: Any, p: Any, X: Any, key: Any, *, shared: bool
) -> tuple[Array, Array]:
    def body(carry: tuple, row: tuple) -> tuple[tuple, tuple]:
        state, t = carry
        arm, reward, x, key = row
        of_noise, of_chance = jax.random.split(key)
        outlook = look(method, state, x, shared=shared, draw=policy.draw)
        chances = policy.chances(outlook, policy.noise(outlook, of_noise), of_chance, t)
        state, _ = learn(method, state, x, arm, reward, shared=shared)
        return (state, t + 1), (chances, outlook.expected)

    rows = (arm, reward, X, jax.random.split(key, len(arm)))
    return jax.lax.scan(body, (state, jnp.zeros((), jnp.int32)), rows)[1]


def _number(path: Any, at: int, name: str, text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        raise ValueError(f"{path}: row {at + 1} has {text!r} in the column {name!r}; expected a number.") from None


def _first(odd: np.ndarray) -> int:
    return int(np.argmax(odd)) + 1
