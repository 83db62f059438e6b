"""Public tables as bandits, in the protocol of the Deep Bayesian Bandits Showdown (Riquelme, Tucker and Snoek 2018).

Contexts are standardised (one-hot letters are left as they are) and end with a constant. Nothing is downloaded.
"""

import csv
import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from filtax import checks

__all__ = ["TABLES", "Table", "load_table"]


class Table(NamedTuple):
    """Contexts (N, M), rewards (N, A), and their means where the rewards are drawn.

    >>> Table(np.ones((2, 3)), np.eye(2), np.eye(2)).means.shape
    (2, 2)
    """

    contexts: np.ndarray
    rewards: np.ndarray
    means: np.ndarray


def load_table(name: str, folder: Path | str, *, seed: int = 0) -> Table:
    """Read a table by its name from the folder of public data sets.

    Args:
        name: One of `TABLES`.
        folder: The folder that holds `bandits/` and `mnist/`, usually that of FILTAX_DATA.
        seed: For rewards that are drawn: a poisonous mushroom harms every second time.

    >>> load_table("mushrooms", "nowhere")
    Traceback (most recent call last):
        ...
    ValueError: no table 'mushrooms'. Did you mean "mushroom"?
    """
    if name not in TABLES:
        raise ValueError(f"no table {name!r}. {checks.nearest(name, TABLES)}")
    return TABLES[name](Path(folder), np.random.default_rng(seed))


def _mushroom(folder: Path, rng: np.random.Generator) -> Table:
    """Eat (+5; of a poisonous one +5 or -35, each every second time) or leave it (0)."""
    header, rows = _csv(folder / "bandits" / "mushroom.csv.gz")
    letters = np.array([row[1:] for row in rows])
    hot = np.concatenate([letters[:, [j]] == np.unique(letters[:, j])[None] for j in range(letters.shape[1])], axis=1)
    poison = np.array([row[header.index("class")] == "p" for row in rows])
    eat = np.where(poison & (rng.random(len(rows)) < 0.5), -35.0, 5.0)
    mean = np.where(poison, -15.0, 5.0)
    zero = np.zeros(len(rows))
    return Table(_with_constant(hot.astype(float)), np.stack([zero, eat], 1), np.stack([zero, mean], 1))


def _statlog(folder: Path, rng: np.random.Generator) -> Table:
    """Seven kinds of shuttle states; a right guess pays 1."""
    header, rows = _csv(folder / "bandits" / "statlog_shuttle.csv.gz")
    split, label = header.index("split"), header.index("label")
    rows = [row for row in rows if row[split] == "train"]
    features = np.array([row[:label] for row in rows], float)
    return _guess(_standard(features), np.array([int(row[label]) - 1 for row in rows]), 7)


def _adult(folder: Path, rng: np.random.Generator) -> Table:
    """Guess which of two incomes; a right guess pays 1."""
    header, rows = _csv(folder / "bandits" / "adult.csv.gz")
    used = [j for j, name in enumerate(header) if name not in ("income", "split")]
    parts = []
    for j in used:
        column = np.array([row[j] for row in rows])
        try:
            parts.append(_standard(column.astype(float)[:, None]))
        except ValueError:
            parts.append((column[:, None] == np.unique(column)[None]).astype(float))
    rich = np.array([row[header.index("income")].startswith(">") for row in rows])
    return _guess(np.concatenate(parts, axis=1), rich.astype(int), 2)


def _covertype(folder: Path, rng: np.random.Generator) -> Table:
    held = np.load(folder / "bandits" / "showdown_covertype.npz")
    return Table(_with_constant(held["contexts"]), held["rewards"].astype(float), held["rewards"].astype(float))


def _stock(folder: Path, rng: np.random.Generator) -> Table:
    """Eight portfolios that are linear in the price moves, with noise; the means are the fit of that line."""
    held = np.load(folder / "bandits" / "showdown_stock.npz")
    contexts, rewards = held["contexts"], held["rewards"]
    means = contexts @ np.linalg.lstsq(contexts, rewards, rcond=None)[0]
    return Table(_with_constant(_standard(contexts)), rewards, means)


def _jester(folder: Path, rng: np.random.Generator) -> Table:
    """Of the 40 jokes that most people rated, the ratings of 32 are the context and those of 8 the rewards."""
    ratings = np.load(folder / "bandits" / "jester5k.npz")["ratings"].astype(float)
    often = np.argsort(-np.isfinite(ratings).sum(axis=0), kind="stable")[:40]
    chosen = ratings[:, often]
    chosen = chosen[np.isfinite(chosen).all(axis=1)]
    return Table(_with_constant(chosen[:, :32]), chosen[:, 32:], chosen[:, 32:])


def _mnist(folder: Path, rng: np.random.Generator) -> Table:
    """Ten digits, in the order of the file; a right guess pays 1. Pixels lie in [0, 1], and there is no constant."""
    images = _idx(folder / "mnist" / "train-images-idx3-ubyte.gz")
    labels = _idx(folder / "mnist" / "train-labels-idx1-ubyte.gz")
    rewards = np.eye(10, dtype=np.float32)[labels]
    return Table((images.reshape(len(images), -1) / 255.0).astype(np.float32), rewards, rewards)


TABLES: dict[str, Callable[[Path, np.random.Generator], Table]] = {
    "mushroom": _mushroom,
    "statlog": _statlog,
    "adult": _adult,
    "covertype": _covertype,
    "stock": _stock,
    "jester": _jester,
    "mnist": _mnist,
}


def _csv(path: Path) -> tuple[list[str], list[list[str]]]:
    with gzip.open(path, "rt", newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def _idx(path: Path) -> np.ndarray:
    data = gzip.decompress(path.read_bytes())
    axes = data[3]
    shape = struct.unpack(">" + "I" * axes, data[4 : 4 + 4 * axes])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _standard(features: np.ndarray) -> np.ndarray:
    spread = features.std(axis=0)
    return (features - features.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def _with_constant(features: np.ndarray) -> np.ndarray:
    return np.concatenate([features, np.ones((len(features), 1))], axis=1)


def _guess(features: np.ndarray, label: np.ndarray, arms: int) -> Table:
    rewards = np.eye(arms)[label]
    return Table(_with_constant(features), rewards, rewards)
