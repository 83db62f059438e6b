"""What a policy would have earned, told from the log of another one.

A policy that learns is run along the log in two ways. *Replay*: it chooses for itself, and a row counts only where it
chose what was logged; it learns from those rows alone, so it lives through a shorter stream that it could have met
itself (Li et al. 2011; rows of probable arms are thinned, so logs need not be uniform). *Off-policy*: it learns from
every row, and the probability it gave to the logged arm before that row becomes an importance weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from filtax import boundary, checks
from filtax.bandits.border import check_arms, check_key, check_method, check_pair, check_policy
from filtax.bandits.estimates import Estimate, doubly_robust, ips, mean_of, snips
from filtax.bandits.play import with_room
from filtax.bandits.rounds import furnish, learn, look
from filtax.sources import InputError, open_table
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
        for name in ("arm", "reward", "probability", "contexts"):
            value = getattr(self, name)
            given = value if value is None else boundary.arrays(**{f"Log({name}=...)": value})[0]
            object.__setattr__(self, name, given if given is None else np.asarray(given))
            if given is not None and (given.ndim == 0 or len(given) != len(self.arm)):
                raise ValueError(f"log: {name} has shape {given.shape} but there are {len(self.arm)} rows.")
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
    r"""Read a log with the columns arm, reward, probability; all others are the context.

    Args:
        path: As for `filtax.sources.open_table`: CSV, TSV, JSON lines or Parquet, packed with gzip or not.
        arms: All arms there are; those of the file, sorted, if left out.
        context: Columns of the context, in order; all other columns if left out.
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
    others = [name for name in names if name not in COLUMNS] if context is None else list(context)
    if uniform and "probability" in names:
        raise InputError(f"{path}: it has a column 'probability', which uniform would ignore; say one or the other.")
    texts = [name for name in others if table.layout and name in table.layout.texts]
    if texts:
        raise InputError(f"{path}: {texts[0]!r:.40} holds text; name the columns of the context, all of them numbers.")
    lines, given = np.concatenate([chunk.line for chunk in chunks]), column("arm")
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


def replay(
    log: Log,
    method: Any,
    policy: Any,
    state: State,
    *,
    key: Array,
    shared: bool = False,
    level: float = 0.95,
    unit: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """Mean reward of a learning policy by replay: it counts, and learns from, the rows where it agrees with the log.

    The arguments are those of `evaluate_log`.

    >>> from filtax.bandits import stack, thompson, usual
    >>> method, start = usual()
    >>> log = Log(("a", "b"), np.array([0, 1] * 50), np.array([1.0, 0.0] * 50), np.full(100, 0.5))
    >>> replay(log, method, thompson(), stack([method.init(**start)] * 2), key=jax.random.key(0)).value > 0.8
    True
    """
    policy, state = _ready(log, method, policy, state, key, shared, unit)
    counted = _replay(method, policy, state, *_rows(log, unit), float(log.probability.min()), key, shared=shared)
    return mean_of(log.reward[np.asarray(counted)], level=level)


def evaluate_log(
    log: Log,
    method: Any,
    policy: Any,
    state: State,
    *,
    key: Array,
    shared: bool = False,
    level: float = 0.95,
    unit: tuple[float, float] = (0.0, 1.0),
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
        unit: (shift, scale): the method learns from (reward - shift) / scale. Estimates are of the rewards themselves.

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
    policy, ready = _ready(log, method, policy, state, key, shared, unit)
    *told, ok = _follow(method, policy, ready, *_rows(log, unit), key, shared=shared)
    if not np.all(ok):
        at = int(np.argmin(ok))
        raise ValueError(
            f"log: row {at + 1} has the reward {log.reward[at]:g}, which {method.name} cannot take; give a method "
            "whose likelihood allows it."
        )
    chances, expected = (np.asarray(part, np.float64) for part in told)
    expected = unit[0] + unit[1] * expected
    at = np.arange(len(log))
    own, predicted = np.clip(chances[at, log.arm], 0.0, 1.0), expected[at, log.arm]
    baseline = np.sum(chances * expected, axis=1)
    return {
        "logged": mean_of(log.reward, level=level),
        "replay": replay(log, method, policy, state, key=key, shared=shared, level=level, unit=unit),
        "ips": ips(log.reward, log.probability, own, level=level),
        "snips": snips(log.reward, log.probability, own, level=level),
        "dr": doubly_robust(log.reward, log.probability, own, predicted, baseline, level=level),
    }


def _ready(
    log: Log, method: Any, policy: Any, state: State, key: Any, shared: bool, unit: tuple[float, float]
) -> tuple[Any, State]:
    """Check what is put together, and give the state room for the rows."""
    policy = check_policy("log", policy)
    check_method("log", method)
    check_pair("log", method, policy)
    check_key("log", key)
    checks.positive("unit=(shift, scale): the scale", unit[1])
    if not len(log):
        raise ValueError("log: there is not one row; nothing can be told from it.")
    x = None if log.contexts is None else jnp.asarray(log.contexts[0])
    check_arms("log", method, state, x, len(log.arms), shared=shared)
    return policy, with_room(method, furnish(method, state, x, arms=len(log.arms) if shared else 1), len(log))


def _rows(log: Log, unit: tuple[float, float]) -> tuple:
    context = None if log.contexts is None else jnp.asarray(log.contexts)
    reward = (log.reward - unit[0]) / unit[1]
    return jnp.asarray(log.arm, jnp.int32), jnp.asarray(reward), jnp.asarray(log.probability), context


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
) -> tuple[Array, Array, Array]:
    def body(carry: tuple, row: tuple) -> tuple[tuple, tuple]:
        state, t = carry
        arm, reward, x, key = row
        of_noise, of_chance = jax.random.split(key)
        outlook = look(method, state, x, shared=shared, draw=policy.draw)
        chances = policy.chances(outlook, policy.noise(outlook, of_noise), of_chance, t)
        state, ok = learn(method, state, x, arm, reward, shared=shared)
        return (state, t + 1), (chances, outlook.expected, ok)

    rows = (arm, reward, X, jax.random.split(key, len(arm)))
    return jax.lax.scan(body, (state, jnp.zeros((), jnp.int32)), rows)[1]


def _check(path: Any, lines: np.ndarray, name: str, values: np.ndarray) -> None:
    """Refuse the first row without a number in this column, or with a probability that cannot be."""
    odd = np.isnan(values)
    if odd.any():
        line = lines[np.argmax(odd)]
        raise InputError(f"{path}:{line}: there is no number for {name!r:.40}; fill it in or leave the row out.")
    odd = ~((values > 0.0) & (values <= 1.0))
    if name == "probability" and odd.any():
        raise InputError(f"{path}:{lines[np.argmax(odd)]}: {_improbable(values[odd][0])}")


def _improbable(value: float) -> str:
    return (
        f"an arm that was pulled had the probability {value}; it must lie in (0, 1]. Correct it or leave the row out."
    )


def _first(odd: np.ndarray) -> int:
    return int(np.argmax(odd)) + 1
