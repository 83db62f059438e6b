"""A level that moves among the first rows: told of, by odds that are checked by integration; else nothing is."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from filtax.runs.blocks import Block
from filtax.runs.config import Config
from filtax.runs.early import ROWS, SIZE, Early, log_odds
from filtax.runs.numbers import NumberStream
from filtax.runs.plan import decide

T = np.arange(100)
KINDS = {"level": 0, "walk": 0, "ar": 0, "t3": 0, "line": 0, "day": 24, "week": 7, "machines": 24}


def series(kind, seed):
    rng = np.random.default_rng(seed)
    e = rng.normal(size=T.size)
    if kind == "ar":
        return 30.0 + np.convolve(e, 0.8 ** np.arange(50))[: T.size]
    return {
        "level": 10.0 + e,
        "walk": np.cumsum(e),
        "t3": rng.standard_t(3, T.size),
        "line": 0.1 * T + e,
        "day": 50.0 + 5.0 * np.sin(2 * np.pi * T / 24) + e,
        "week": 100.0 - 15.0 * (T % 7 >= 5) + e,
        "machines": 10.0 + 8.0 * ((T % 24 >= 8) & (T % 24 < 18)) + 0.5 * e,
    }[kind]


def told(y, cycle, cuts=()):
    watch, found = Early(0.001, cycle), []
    for rows in np.split(T, cuts):
        found += [(int(rows[0]) + row, since) for row, _, since in watch.look(np.zeros(len(rows), int), y[rows])]
        kept, watch = [each.copy() for each in watch.arrays], Early(0.001, cycle)
        watch.restore(kept)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_moves_hardly_anything_is_told(kind):
    """None in 40 series each; machines that run by day: one at most."""
    assert sum(len(told(series(kind, seed), KINDS[kind])) for seed in range(40)) <= (kind == "machines")


@pytest.mark.parametrize(
    ("kind", "at", "size"), [("level", 15, 12), ("level", 25, 10), ("day", 30, 10), ("week", 37, 20)]
)
def test_a_level_that_moves_is_told_of_once(kind, at, size):
    for seed in range(20):
        [(row, since)] = told(series(kind, seed) + size * (T >= at), KINDS[kind], [at, at + 5])
        assert row - since == at
        assert since in (10, 16, 24)


@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("kind", ["level", "day"])
def test_gross_errors_are_no_level(kind, rows):
    for seed in range(20):
        y = series(kind, seed)
        y[30 : 30 + rows], y[5], y[45] = 9999.0, -1e6, np.inf
        assert not told(y, KINDS[kind])


def test_a_gross_error_hides_no_level():
    for seed in range(20):
        y = series("level", seed) + 12.0 * (T >= 30)
        y[[12, 33]] = 9999.0, -9999.0
        assert [row - since for row, since in told(y, 0)] == [30]


def test_missing_readings_only_let_time_pass():
    y = series("level", 0) + 20.0 * (T >= 30)
    y[[12, 29, 33, 34]] = np.nan
    assert told(y, 0) == [(42, 12)]


def test_a_series_that_stood_still_has_no_unit_and_only_first_rows_are_kept():
    assert told(np.repeat([1.0, 2.0], 50), 0) == []
    watch = Early(0.001, 0)
    watch.look(np.zeros(T.size, int), series("level", 0))
    assert watch.count.tolist() == [ROWS]


def test_the_odds_are_those_of_integrals():
    """Of the likelihood over the size of the step, the weights and the noise; weights by a wide normal belief."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=30) + 1.5 * (np.arange(30) >= 18)
    later = np.arange(30) >= 18
    middle = np.where(later, np.median(y[18:]), np.median(y[:18]))
    z = (y - np.median(y)) / (1.4826 * np.median(np.abs(y - middle)))
    X = np.stack([np.ones(29), np.arange(1, 30) / 29, z[:-1]], axis=1)

    def evidence(columns, variance):
        cov = np.eye(29) + columns * np.array(variance) @ columns.T
        root = np.linalg.cholesky(cov)
        square = float(np.sum(np.linalg.solve(root, z[1:]) ** 2))

        def density(s):  # of log sigma; a flat belief in three weights takes three degrees of freedom
            return math.exp(-(29 - 3) * s - 0.5 * square * math.exp(-2 * s))

        return math.log(quad(density, -3.0, 4.0, limit=200)[0]) - float(np.log(np.diag(root)).sum())

    wide = [1e8] * 3
    want = evidence(np.column_stack([X, later[1:]]), [*wide, SIZE**2]) - evidence(X, wide)
    assert log_odds(y, np.arange(30), 18, 0) == pytest.approx(want, abs=1e-3)


@pytest.mark.x64
@pytest.mark.parametrize("timed", [True, False])
def test_a_run_tells_of_it(timed):
    y = series("level", 0) + 10.0 * (T >= 25)
    rows = Block({"y": y}, {}, T.astype(float) if timed else None, None, T, np.zeros(T.size), [], None)
    config = Config("-", "y", time="t" if timed else None, method="WoLF-MD(c=4)+NIG+C-Static", block=128)
    _, found = NumberStream(decide(config, rows)).learn(rows)
    assert [(row, value) for row, kind, value in found if kind == "change"] == [(35, 10)]
