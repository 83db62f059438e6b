"""Public tables as bandits, in the protocol of the Deep Bayesian Bandits Showdown (Riquelme, Tucker and Snoek 2018).

Contexts end with a constant; measurements are standardised, letters one-hot, ratings and price moves as they are. What
the protocol draws again in each trial the seed draws: the harm of a poisonous mushroom, portfolios, the jokes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from filtax.datasets import read_images, read_table


class Table(NamedTuple):
    """Contexts (N, M), rewards (N, A), and their means where the rewards are drawn."""

    contexts: np.ndarray
    rewards: np.ndarray
    means: np.ndarray


def load_table(name: str, *, seed: int = 0) -> Table:
    """Read one of `TABLES`; `seed` draws what the protocol draws again in each trial, which four of them do not."""
    return TABLES[name](np.random.default_rng(seed))


def _mushroom(rng: np.random.Generator) -> Table:
    """Eat (+5; of a poisonous one +5 or -35, each every second time) or leave it (0)."""
    columns = read_table("mushroom")
    poison = columns.pop("class") == "p"
    hot = np.concatenate([_one_hot(letters) for letters in columns.values()], axis=1)
    eat = np.where(poison & (rng.random(len(poison)) < 0.5), -35.0, 5.0)
    mean = np.where(poison, -15.0, 5.0)
    zero = np.zeros(len(poison))
    return Table(_with_constant(hot), np.stack([zero, eat], 1), np.stack([zero, mean], 1))


def _statlog(rng: np.random.Generator) -> Table:
    """Seven kinds of shuttle states; a right guess pays 1."""
    columns = read_table("shuttle")
    used, label = columns.pop("split") == "train", columns.pop("label").astype(int) - 1
    return _guess(_standard(np.stack(list(columns.values()), axis=1)[used]), label[used], 7)


def _adult(rng: np.random.Generator) -> Table:
    """Guess which of two incomes; a right guess pays 1."""
    columns = read_table("adult")
    rich = np.char.startswith(columns.pop("income"), ">")
    del columns["split"]
    parts = [_standard(part[:, None]) if part.dtype.kind == "f" else _one_hot(part) for part in columns.values()]
    return _guess(np.concatenate(parts, axis=1), rich.astype(int), 2)


def _covertype(rng: np.random.Generator) -> Table:
    held = read_table("covertype")
    return Table(_with_constant(held["contexts"]), held["rewards"].astype(float), held["rewards"].astype(float))


def _stock(rng: np.random.Generator) -> Table:
    """Eight portfolios of 21 stocks with weights of length 1; the payoff of portfolio i has noise of sd 0.01 i."""
    moves = read_table("stock")["contexts"]
    weights = rng.uniform(-1.0, 1.0, (moves.shape[1], 8))
    means = moves @ (weights / np.linalg.norm(weights, axis=0))
    rewards = means + 0.01 * np.arange(1, 9) * rng.normal(size=means.shape)
    return Table(_with_constant(moves), rewards, means)


def _jester(rng: np.random.Generator) -> Table:
    """Of the 40 jokes that most people rated, eight are arms; the ratings of the other 32 are the context."""
    ratings = read_table("jester")["ratings"].astype(float)
    often = np.argsort(-np.isfinite(ratings).sum(axis=0), kind="stable")[:40]
    chosen = ratings[:, rng.permutation(often)]
    chosen = chosen[np.isfinite(chosen).all(axis=1)]
    return Table(_with_constant(chosen[:, :32]), chosen[:, 32:], chosen[:, 32:])


def _mnist(rng: np.random.Generator) -> Table:
    """Ten digits, in the order of the file; a right guess pays 1. Pixels lie in [0, 1], and there is no constant."""
    held = read_images("mnist")
    rewards = np.eye(10, dtype=np.float32)[held.y]
    return Table((held.X.reshape(len(held.X), -1) / 255.0).astype(np.float32), rewards, rewards)


TABLES: dict[str, Callable[[np.random.Generator], Table]] = {
    "mushroom": _mushroom,
    "statlog": _statlog,
    "adult": _adult,
    "covertype": _covertype,
    "stock": _stock,
    "jester": _jester,
    "mnist": _mnist,
}


def _one_hot(letters: np.ndarray) -> np.ndarray:
    return (letters[:, None] == np.unique(letters)[None]).astype(float)


def _standard(features: np.ndarray) -> np.ndarray:
    spread = features.std(axis=0)
    return (features - features.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def _with_constant(features: np.ndarray) -> np.ndarray:
    return np.concatenate([features, np.ones((len(features), 1))], axis=1)


def _guess(features: np.ndarray, label: np.ndarray, arms: int) -> Table:
    rewards = np.eye(arms)[label]
    return Table(_with_constant(features), rewards, rewards)
