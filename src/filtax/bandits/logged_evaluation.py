r"""What a policy would have earned, estimated from the log of another one.

A policy that learns is run along the log in two ways. *Replay*: it chooses for itself, and a row counts only where it
chose what was logged; it learns from those rows alone, so it sees a shorter stream that it could have met itself (Li et
al. 2011; rows of probable arms are thinned, so logs need not be uniform). *Off-policy*: it learns from every row, and
the probability that it gave to the logged arm before that row becomes an importance weight.

With the logged probability $p_t$ of the arm $a_t$ that was pulled, and $\pi_t(a)$ the policy's own,

$$\text{IPS} = \frac{1}{T}\sum_t w_t r_t, \quad w_t = \frac{\pi_t(a_t)}{p_t}, \qquad
  \text{SNIPS} = \frac{\sum_t w_t r_t}{\sum_t w_t}, \qquad
  \text{DR} = \frac{1}{T}\sum_t \Bigl(\sum_a \pi_t(a) \hat q_t(a) + w_t (r_t - \hat q_t(a_t))\Bigr).$$

IPS and DR are unbiased whenever the logged probabilities are right and $\hat q_t$ does not depend on $r_t$; SNIPS has a
bias of order 1/T and less variance. Intervals are those of the central limit theorem, for SNIPS by its linearisation:
with a few effective rows they are too narrow.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from filtax import _validation as checks
from filtax.bandits._bandit import default_method
from filtax.bandits._policies import policy_named
from filtax.bandits._validation import check_arms, checked_policy
from filtax.bandits.step import allocate_memory, allocate_slots, learn, reward_posterior, stack
from filtax.io import Chunk, InputError, Table, open_table
from filtax.state import State

__all__ = [
    "Estimate",
    "Log",
    "NamedEstimates",
    "doubly_robust",
    "evaluate_log",
    "evaluate_named_policy",
    "ips",
    "read_log",
    "replay",
    "snips",
]

COLUMNS = ("arm", "reward", "probability")
NUMBER = "id"  # of a decision, where the log has one: no part of the context, and never met twice


@dataclass(frozen=True, eq=False)
class Log:
    """A log of decisions: index of the arm, reward, probability of the arm (T,), and contexts (T, M) or None.

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
            value = vars(self)[name]
            if value is None:
                continue
            given = np.asarray(checks.arrays(**{f"Log({name}=...)": value})[0])
            object.__setattr__(self, name, given)
            if given.ndim == 0 or len(given) != len(self.arm):
                raise ValueError(f"log: {name} has shape {given.shape} but there are {len(self.arm)} rows.")
        if len(set(self.arms)) < len(self.arms) or not self.arms:
            raise ValueError(f"log: the arms are {', '.join(self.arms) or 'none'}; name each of them once.")
        _refuse(
            ~np.isin(self.arm, np.arange(len(self.arms))),
            _row,
            lambda at: f"arm number {self.arm[at]} was pulled, but there are {len(self.arms)} arms, counted from 0.",
        )
        contexts = np.zeros((len(self), 0)) if self.contexts is None else self.contexts.reshape(len(self), -1)
        columns = {f"context {i + 1}": column for i, column in enumerate(contexts.T)}
        _check_numbers(_row, {"reward": self.reward, "probability": self.probability} | columns)

    def __len__(self) -> int:
        return len(self.arm)


def read_log(
    path: Any, *, arms: Sequence[str] | None = None, context: Sequence[str] | None = None, uniform: bool = False
) -> Log:
    r"""Read a log with the columns arm, reward, probability and perhaps the `id` of a decision; others are the context.

    Args:
        path: As for `filtax.io.open_table`: CSV, TSV, JSON lines or Parquet, packed with gzip or not.
        arms: All arms there are; those of the file, sorted, by default.
        context: Columns of the context, in order; all other columns by default, but for `id`.
        uniform: Every arm was pulled with the same probability: a column of probabilities is then not needed.

    Raises:
        InputError: At the first invalid row, with its place: no row is omitted silently.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = file.write_text("arm,reward,probability\na,1,0.5\nb,0,0.5\n")
    >>> read_log(file).arms
    ('a', 'b')
    """
    table, chunks = _read(path, COLUMNS[:2] if uniform else COLUMNS, context)
    names = table.layout.columns if table.layout else ()
    if uniform and "probability" in names:
        raise InputError(f"{path}: it has a column 'probability', which uniform would ignore; say one or the other.")
    others = [name for name in names if name not in (*COLUMNS, NUMBER)] if context is None else list(context)
    texts = [name for name in others if table.layout and name in table.layout.texts]
    if texts:
        raise InputError(f"{path}: {texts[0]!r:.40} holds text; name the columns of the context, all of them numbers.")

    def column(name: str) -> np.ndarray:
        return np.concatenate([chunk.column(name) for chunk in chunks])

    def place(row: int) -> str:
        return f"{path}:{lines[row]}:"

    lines, given = np.concatenate([chunk.line for chunk in chunks]), column("arm")
    if NUMBER in names and NUMBER not in others:
        _check_once(place, lines, column(NUMBER))
    known = tuple(sorted(set(given.tolist()) - {""}) if arms is None else map(str, arms))
    _refuse(
        ~np.isin(given, known),
        place,
        lambda at: f"the row pulls the unknown arm {given[at]!r:.40}. {checks.nearest(given[at], known)}",
    )
    reward, features = column("reward"), {name: column(name) for name in others}
    probability = np.full(len(given), 1.0 / len(known)) if uniform else column("probability")
    _check_numbers(place, {"reward": reward, "probability": probability} | features)
    contexts = np.stack(list(features.values()), axis=1) if features else None
    return Log(known, np.array([known.index(arm) for arm in given]), reward, probability, contexts)


def _read(path: Any, wanted: Sequence[str], context: Sequence[str] | None) -> tuple[Table, list[Chunk]]:
    """The table of a log, and all of its chunks; no row may be rejected."""
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
    return table, chunks


def _row(row: int) -> str:
    return f"log: row {row + 1}:"


def _refuse(odd: np.ndarray, place: Callable[[int], str], problem: Callable[[int], str]) -> None:
    """Refuse the first odd row, by its place and with what is wrong with it."""
    if odd.any():
        at = int(np.argmax(odd))
        raise InputError(f"{place(at)} {problem(at)}")


def _check_numbers(place: Callable[[int], str], columns: Mapping[str, np.ndarray]) -> None:
    """Check that each row has a number in these columns, and a possible probability."""
    for name, values in columns.items():
        missing = f"there is no number for {name!r:.40}; fill it in or leave the row out."
        _refuse(~np.isfinite(values), place, lambda at, missing=missing: missing)
    p = columns["probability"]
    _refuse(
        ~((p > 0.0) & (p <= 1.0)),
        place,
        lambda at: (
            f"an arm that was pulled had the probability {p[at]}; it must lie in (0, 1]. Correct it or leave "
            "the row out."
        ),
    )


def _check_once(place: Callable[[int], str], lines: np.ndarray, ids: np.ndarray) -> None:
    """Check that no decision has two rows, which would count twice."""
    _, first, which = np.unique(ids, return_index=True, return_inverse=True)
    _refuse(
        first[which] != np.arange(len(ids)),
        place,
        lambda at: (
            f"the decision {ids[at]} was met before, at line {lines[first[which[at]]]}; leave one out, or "
            "rename the column if it is no number of a decision."
        ),
    )


class Estimate(NamedTuple):
    """A mean reward, an interval for it, and its number of rows: the effective number if they are weighted.

    >>> Estimate(0.5, 0.4, 0.6, 100.0).value
    0.5
    """

    value: float
    low: float
    high: float
    rows: float


def evaluate_log(
    log: Log,
    method: Any,
    policy: Any,
    state: State,
    *,
    key: Array,
    level: float = 0.95,
    unit: tuple[float, float] = (0.0, 1.0),
) -> dict[str, Estimate]:
    """Estimate the mean reward of a policy in all ways, beside the mean reward of the log.

    Args:
        log: The decisions of another policy, and their rewards.
        method: From `filtax.method`.
        policy: From this package.
        state: How it begins, as for `play`.
        key: Random key.
        level: Of the intervals.
        unit: (shift, scale): the method learns from (reward - shift) / scale. Estimates are of the rewards themselves.

    Returns:
        "logged", "replay", "ips", "snips" and "dr". For a policy that learns, the last three are the mean over rows of
        the value of the policy at that row, which has learned from all rows before.

    >>> from filtax.bandits import default_method, stack, thompson
    >>> method, start = default_method()
    >>> log = Log(("a", "b"), np.array([0, 1] * 50), np.array([1.0, 0.0] * 50), np.full(100, 0.5))
    >>> estimates = evaluate_log(log, method, thompson(), stack([method.init(**start)] * 2), key=jax.random.key(0))
    >>> list(estimates)
    ['logged', 'replay', 'ips', 'snips', 'dr']
    """
    policy, ready, rows = _ready(log, method, policy, state, key, unit)
    probabilities, expected, ok = _follow(method, policy, ready, rows, key)
    if not np.all(ok):
        at = int(np.argmin(ok))
        raise ValueError(
            f"log: row {at + 1} has the reward {log.reward[at]:g}, which {method.name} cannot take; give a method "
            "whose likelihood allows it."
        )
    probabilities = np.asarray(probabilities, np.float64)
    expected = unit[0] + unit[1] * np.asarray(expected, np.float64)
    at = np.arange(len(log))
    own, predicted = np.clip(probabilities[at, log.arm], 0.0, 1.0), expected[at, log.arm]
    baseline = np.sum(probabilities * expected, axis=1)
    return {
        "logged": _interval(log.reward, level=level),
        "replay": replay(log, method, policy, state, key=key, level=level, unit=unit),
        "ips": ips(log.reward, log.probability, own, level=level),
        "snips": snips(log.reward, log.probability, own, level=level),
        "dr": doubly_robust(log.reward, log.probability, own, predicted, baseline, level=level),
    }


def replay(
    log: Log,
    method: Any,
    policy: Any,
    state: State,
    *,
    key: Array,
    level: float = 0.95,
    unit: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """Estimate the mean reward of a learning policy by replay: it learns from the rows where it agrees with the log.

    The arguments are those of `evaluate_log`.

    >>> from filtax.bandits import default_method, stack, thompson
    >>> method, start = default_method()
    >>> log = Log(("a", "b"), np.array([0, 1] * 50), np.array([1.0, 0.0] * 50), np.full(100, 0.5))
    >>> replay(log, method, thompson(), stack([method.init(**start)] * 2), key=jax.random.key(0)).value > 0.8
    True
    """
    policy, state, rows = _ready(log, method, policy, state, key, unit)
    counted = _replay(method, policy, state, rows, float(log.probability.min()), key)
    return _interval(log.reward[np.asarray(counted)], level=level)


def _ready(
    log: Log, method: Any, policy: Any, state: State, key: Any, unit: tuple[float, float]
) -> tuple[Any, State, tuple]:
    """Check that the parts fit together, allocate memory and slots, and return the columns of the log for a loop."""
    policy = checked_policy("log", method, policy)
    checks.key("log(key=...)", key)
    checks.positive("unit=(shift, scale): the scale", unit[1])
    if not len(log):
        raise ValueError("log: it has no rows; give one or more.")
    X = None if log.contexts is None else jnp.asarray(log.contexts)
    x = None if X is None else X[0]
    check_arms("log", method, state, x, len(log.arms), shared=state.t.ndim == 0)
    state = allocate_slots(method, allocate_memory(method, state, x), len(log))
    reward = jnp.asarray((log.reward - unit[0]) / unit[1])
    return policy, state, (jnp.asarray(log.arm, jnp.int32), reward, jnp.asarray(log.probability), X)


@jax.jit
def _replay(method: Any, policy: Any, state: State, rows: tuple, least: Any, key: Any) -> Array:
    """Rows that count: where the policy, which learns from them alone, chooses the logged arm."""

    def body(carry: tuple, row: tuple) -> tuple[tuple, Array]:
        state, t = carry
        arm, reward, p, x, key = row
        of_noise, of_tie, of_thinning = jax.random.split(key, 3)
        posterior = reward_posterior(method, state, x, draw=policy.draw)
        u = jax.random.uniform(of_tie, (), posterior.expected.dtype)
        chosen = policy.choose(posterior, policy.noise(posterior, of_noise), u, t)
        agrees = (chosen == arm) & (jax.random.uniform(of_thinning, (), p.dtype) * p < least)
        later, _ = learn(method, state, x, arm, reward)
        state = state.after(*jax.tree.map(partial(jnp.where, agrees), later.carry, state.carry))
        return (state, t + agrees.astype(t.dtype)), agrees

    rows = (*rows, jax.random.split(key, len(rows[0])))
    return jax.lax.scan(body, (state, jnp.zeros((), jnp.int32)), rows)[1]


@jax.jit
def _follow(method: Any, policy: Any, state: State, rows: tuple, key: Any) -> tuple[Array, Array, Array]:
    """Probabilities of all arms and expected rewards before each row, (T, A), and whether its reward was taken."""

    def body(carry: tuple, row: tuple) -> tuple[tuple, tuple]:
        state, t = carry
        arm, reward, _, x, key = row
        of_noise, of_chance = jax.random.split(key)
        posterior = reward_posterior(method, state, x, draw=policy.draw)
        probabilities = policy.probabilities(posterior, policy.noise(posterior, of_noise), of_chance, t)
        state, ok = learn(method, state, x, arm, reward)
        return (state, t + 1), (probabilities, posterior.expected, ok)

    rows = (*rows, jax.random.split(key, len(rows[0])))
    return jax.lax.scan(body, (state, jnp.zeros((), jnp.int32)), rows)[1]


class NamedEstimates(NamedTuple):
    """The estimates, and the name of the method that learned along the log.

    >>> NamedEstimates("Cj+C-OU(rate=0.999)", {"ips": Estimate(0.5, 0.4, 0.6, 100.0)}).rows
    [('ips', '0.5000', '0.4000', '0.6000', '100')]
    """

    method: str
    estimates: dict[str, Estimate]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The table, one row for each estimate; a dash where it is not known."""
        digits = (4, 4, 4, 0)
        return [
            (name, *("-" if np.isnan(value) else f"{value:.{n}f}" for value, n in zip(one, digits, strict=True)))
            for name, one in self.estimates.items()
        ]


def evaluate_named_policy(
    log: Log, policy: str = "ts", *, rewards: str = "auto", rate: float = 0.999, seed: int = 0, level: float = 0.95
) -> NamedEstimates:
    """Estimate the mean reward of a policy with the default method for separate arms; a context gets a constant added.

    Args:
        log: From `read_log`.
        policy: Name of a policy, such as "ts".
        rewards: "binary", "number", or "auto": binary if all rewards are 0 or 1. Numbers are brought to mean 0 and
            variance 1 for the method; the estimates are of the rewards themselves.
        rate: Share of the learned information that a step keeps.
        seed: Of the policy's draws.
        level: Of the intervals.

    >>> log = Log(("a", "b"), np.array([0, 1] * 50), np.array([1.0, 0.0] * 50), np.full(100, 0.5))
    >>> evaluate_named_policy(log).estimates["logged"].value
    0.5
    """
    if rewards not in ("auto", "binary", "number"):
        raise ValueError(f"rewards={rewards!r}: expected auto, binary or number.")
    checks.share("rate", rate)
    zero_or_one = bool(np.all((log.reward == 0.0) | (log.reward == 1.0)))
    if rewards == "binary" and not zero_or_one:
        raise ValueError("rewards=binary: the log has rewards other than 0 and 1; say rewards=number.")
    kind = "binary" if zero_or_one and rewards != "number" else "number"
    with np.errstate(over="ignore", invalid="ignore"):
        shift, scale = (0.0, 1.0) if kind == "binary" else (float(log.reward.mean()), float(log.reward.std()) or 1.0)
    if not np.isfinite(scale):
        raise ValueError(
            f"the rewards reach {np.abs(log.reward).max():.3g}, too far to be squared; give smaller units."
        )
    contexts = log.contexts
    if contexts is None and kind == "number":
        contexts = np.ones((len(log), 1))
    elif contexts is not None:
        spread = contexts.std(axis=0)
        contexts = (contexts - contexts.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        contexts = np.concatenate([contexts, np.ones((len(log), 1))], axis=1)
    method, start = default_method(kind, 0 if contexts is None else contexts.shape[1], rate=rate)
    state = stack([method.init(**start)] * len(log.arms))
    given = Log(log.arms, log.arm, log.reward, log.probability, contexts)
    options = {"key": jax.random.key(seed), "level": level, "unit": (shift, scale)}
    return NamedEstimates(method.name, evaluate_log(given, method, policy_named(policy), state, **options))


def ips(reward: Any, logged: Any, own: Any, *, level: float = 0.95) -> Estimate:
    """Compute the inverse propensity score (IPS).

    All arrays are (T,): the rewards, and the logged and the policy's own probability of the arm that was pulled.

    >>> ips([1.0, 0.0, 1.0, 0.0], [0.5] * 4, [1.0, 0.0, 1.0, 0.0]).value
    1.0
    """
    reward, weight = _weights("ips", reward, logged, own)
    return _interval(weight * reward, level, _effective(weight))


def snips(reward: Any, logged: Any, own: Any, *, level: float = 0.95) -> Estimate:
    """Compute the self-normalised inverse propensity score (SNIPS).

    >>> snips([1.0, 0.0, 1.0, 1.0], [0.25] * 4, [1.0, 1.0, 0.0, 0.0]).value
    0.5
    """
    reward, weight = _weights("snips", reward, logged, own)
    total = float(np.sum(weight))
    if total <= 0.0:
        return Estimate(np.nan, np.nan, np.nan, 0.0)
    value = float(np.sum(weight * reward)) / total
    half = _quantile(level) * float(np.sqrt(np.sum((weight * (reward - value)) ** 2))) / total
    half = half if np.count_nonzero(weight) > 1 else np.nan  # one row has no interval
    return Estimate(value, value - half, value + half, _effective(weight))


def doubly_robust(
    reward: Any, logged: Any, own: Any, predicted: Any, baseline: Any, *, level: float = 0.95
) -> Estimate:
    """Compute the doubly robust estimate (DR): that of a model of the rewards, plus its weighted errors.

    Besides what `ips` takes: `predicted` is the model's expected reward of the arm that was pulled, and `baseline` that
    under the policy, the sum over arms of probability times prediction; both (T,).

    >>> doubly_robust([1.0, 1.0], [0.5, 0.5], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]).value
    1.0
    """
    reward, weight = _weights("doubly_robust", reward, logged, own)
    predicted, baseline = np.asarray(predicted, np.float64), np.asarray(baseline, np.float64)
    for name, values in (("predicted", predicted), ("baseline", baseline)):
        checks.finite(f"doubly_robust({name}=...)", values)
        if values.shape != reward.shape:
            raise ValueError(f"doubly_robust: {name} has shape {values.shape} but there are {reward.size} rows.")
    return _interval(baseline + weight * (reward - predicted), level, _effective(weight))


def _weights(call: str, reward: Any, logged: Any, own: Any) -> tuple[np.ndarray, np.ndarray]:
    reward, logged, own = (np.asarray(part, np.float64) for part in (reward, logged, own))
    if not reward.shape == logged.shape == own.shape or reward.ndim != 1:
        raise ValueError(
            f"{call}: reward, logged and own have shapes {reward.shape}, {logged.shape} and {own.shape}; give one "
            "number of each for every row."
        )
    checks.finite(f"{call}(reward=...)", reward)
    if not (np.all(logged > 0.0) and np.all(logged <= 1.0)):
        raise ValueError(
            f"{call}(logged=...) must lie in (0, 1], got {logged[~((logged > 0.0) & (logged <= 1.0))][0]}: an arm that "
            "was pulled had a probability; leave such rows out, or correct them."
        )
    checks.share(f"{call}(own=...)", own)
    return reward, own / logged


def _effective(weight: np.ndarray) -> float:
    squares = float(np.sum(weight * weight))
    return float(np.sum(weight)) ** 2 / squares if squares > 0.0 else 0.0


def _interval(each: np.ndarray, level: float, rows: float | None = None) -> Estimate:
    """The mean of some numbers and its interval; `rows` is their effective number, where they are weighted."""
    each = np.asarray(each, np.float64)
    rows = float(each.size) if rows is None else rows
    if each.size < 2:
        return Estimate(float(each[0]) if each.size else np.nan, np.nan, np.nan, rows)
    value, half = float(np.mean(each)), _quantile(level) * float(np.std(each, ddof=1)) / np.sqrt(each.size)
    return Estimate(value, value - half, value + half, rows)


def _quantile(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ValueError(f"the level of an interval must lie between 0 and 1, got {level}; 0.95 is usual.")
    return NormalDist().inv_cdf(0.5 + 0.5 * level)
