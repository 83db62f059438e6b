"""A run without times follows a change within a few rows, and neither gross errors nor noise."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from filtax.runs import Config, carry_on, open_run
from filtax.runs.blocks import Block
from filtax.runs.carry import moved
from filtax.runs.engine import Learner
from filtax.runs.inputs import Pool
from filtax.runs.plan import Plan, decide
from filtax.runs.streams import make_stream

pytestmark = pytest.mark.x64
ROWS, AT = 700, 500


def rows_of(columns, key=None):
    n = len(columns["y"])
    return Block(columns, {}, None, key, np.arange(n), np.zeros(n, int), [], None)


def cut(block, start, stop):
    key = None if block.key is None else block.key[start:stop]
    return rows_of({name: values[start:stop] for name, values in block.numbers.items()}, key)


def stream(seed, weights, change, rows=ROWS):
    """Columns with unit weights and noise of 1, in which something changes at row `AT`; and y without noise."""
    rng = np.random.default_rng(seed)
    X, level, turned = rng.normal(size=(rows, weights)), np.full(rows, 3.0), np.ones((rows, weights))
    late = np.arange(rows) >= AT
    noise = rng.normal(size=rows) * np.where(late & (change == "noise"), 4.0, 1.0)
    level[late] += {"level": 5.0, "far": 300.0}.get(change, 0.0)
    if change == "weight":
        turned[late, 0] += 3.0
    if change == "weights":
        turned[late] *= -1.0
    truth = level + (turned * X).sum(axis=1)
    columns = {"y": truth + noise, **{f"x{i}": X[:, i] for i in range(weights)}}
    return rows_of(columns), truth


def learned(block, follows=True):
    plan = decide(Config("-", "y", task="regress"), block)
    assert plan.follows
    return make_stream(replace(plan, follows=follows)).learn(block)


def changes(found):
    return [(row, row - since) for row, kind, since in found if kind == "change"]


def off(said, truth, start, stop):
    return float(np.sqrt(np.mean((said["forecast"] - truth)[start:stop] ** 2)))


@pytest.mark.parametrize(
    ("change", "weights", "soon", "later"),
    [
        ("level", 0, 1.3, 0.5),
        ("level", 3, 1.3, 0.6),
        ("level", 8, 1.6, 0.7),
        ("far", 3, 130.0, 0.7),  # two rows more, as it might be gross errors
        ("weight", 8, 2.6, 0.7),
        ("weights", 3, 2.6, 1.2),
        ("weights", 8, 4.5, 1.2),
    ],
)
def test_a_change_is_followed_and_told_of_once(change, weights, soon, later):
    """In noises; without following, 1.8 and more in rows 20 to 40 behind it."""
    errors = []
    for seed in range(4):
        block, truth = stream(seed, weights, change)
        said, found = learned(block)
        errors.append([off(said, truth, AT + 5, AT + 20), off(said, truth, AT + 20, AT + 40)])
        [(row, began)] = changes(found)
        assert AT + 3 <= row <= AT + 25
        assert AT - 15 <= began <= AT + 10  # where rows began to surprise, by chance a few before
    both = np.sqrt(np.mean(np.square(errors), axis=0))
    assert both[0] < soon
    assert both[1] < later


@pytest.mark.parametrize("weights", [0, 3])
@pytest.mark.parametrize(("errors", "size"), [(1, 12.0), (3, 12.0), (1, 1000.0), (2, 1000.0), (4, 1000.0), (5, 1000.0)])
def test_gross_errors_are_not_followed(weights, errors, size):
    for seed in range(3):
        block, _ = stream(seed, weights, "nothing")
        block.numbers["y"][AT : AT + errors] += size
        said, found = learned(block)
        plain, told = learned(block, follows=False)
        assert said["forecast"].tobytes() == plain["forecast"].tobytes()
        assert found == told


@pytest.mark.parametrize(("change", "weights"), [("nothing", 3), ("noise", 3), ("noise", 8)])
def test_where_nothing_or_the_noise_changes_forecasts_are_as_they_were(change, weights):
    for seed in range(4):
        block, truth = stream(seed, weights, change, rows=1500)
        (said, found), (plain, told) = learned(block), learned(block, follows=False)
        assert off(said, truth, AT, 600) <= 1.05 * off(plain, truth, AT, 600)
        assert len(changes(found)) <= len(changes(told))


def test_heavy_tails_are_no_change():
    for seed in range(3):
        block, truth = stream(seed, 3, "nothing", rows=4000)
        block.numbers["y"][:] = truth + np.random.default_rng(seed).standard_t(2, 4000)
        assert not changes(learned(block)[1])


def test_however_rows_are_cut_and_whatever_series_lie_between_the_numbers_are_the_same():
    block, _ = stream(1, 2, "level")
    said, found = learned(block)
    parts = make_stream(decide(Config("-", "y", task="regress"), block))
    edges = [0, 400, 501, 502, 503, 504, 505, 512, 600, ROWS]
    cuts = [parts.learn(cut(block, a, b)) for a, b in pairwise(edges)]
    assert np.concatenate([part["forecast"] for part, _ in cuts]).tobytes() == said["forecast"].tobytes()
    assert changes([(a + row, *rest) for a, (_, some) in zip(edges, cuts, strict=False) for row, *rest in some]) == (
        changes(found)
    )


def test_each_series_follows_its_own_changes():
    block, _ = stream(2, 0, "level")
    still, _ = stream(3, 0, "nothing")
    both = np.stack([block.numbers["y"], still.numbers["y"]], axis=1).ravel()
    mixed = rows_of({"y": both}, np.array(["a", "b"] * ROWS))
    found = make_stream(decide(Config("-", "y", key="k", task="regress"), mixed)).learn(mixed)[1]
    assert [row % 2 for row, _ in changes(found)] == [0]
    assert 2 * (AT + 3) <= changes(found)[0][0] <= 2 * (AT + 8)


def test_a_run_that_ends_under_suspicion_goes_on_bit_for_bit(tmp_path):
    block, _ = stream(5, 2, "level")
    lines = [",".join(f"{float(block.numbers[name][t])!r}" for name in block.numbers) for t in range(ROWS)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["y,x0,x1", *lines]) + "\n")
    config = Config(str(path), "y", block=64, every=64)
    carry_on(config, tmp_path / "whole")
    path.write_text("\n".join(["y,x0,x1", *lines[: AT + 3]]) + "\n")
    carry_on(config, tmp_path / "parted")
    doubt = open_run(tmp_path / "parted").stream.carry[-1]
    assert bool(doubt.racing[0])
    path.write_text("\n".join(["y,x0,x1", *lines]) + "\n")
    carry_on(Config.read(tmp_path / "parted"), tmp_path / "parted")
    whole, parted = (np.concatenate(list(open_run(tmp_path / name).records())) for name in ("whole", "parted"))
    assert whole.tobytes() == parted.tobytes()
    assert np.abs(whole["forecast"] - whole["y"])[AT + 8 : AT + 30].mean() < 2.0


def test_what_is_learned_beside_goes_over_to_new_units_with_the_method():
    name = "WoLF-MD(c=4)+NIG(form=covariance)+RL[1]-OUPR(hazard=0.0003)"
    learner = Learner(name, columns=2, cov=1.0, limit=14.0, follows=True)
    rng = np.random.default_rng(0)
    X, y = np.stack([np.ones(60), rng.normal(size=60)], axis=1), rng.normal(size=60)
    y[50:] += 6.0
    carry = learner.advance(learner.fresh(1), np.zeros(60, int), X, y, 53)[0]
    assert bool(carry[-1].racing[0])
    old, new = [Pool(*np.ones((3, 1))) for _ in range(2)], [Pool(*np.array([[1.0], [3.0], [4.0]])) for _ in range(2)]
    after = moved(carry, old, new, 1, target=True)
    for way in range(4):  # the forecast of a row is the same in either unit: a column of 5, then 4 and 1
        before, now = (
            np.array([1.0, 4.0]) @ carry[-1].bank.unit.mean[0, way],
            np.ones(2) @ after[-1].bank.unit.mean[0, way],
        )
        np.testing.assert_allclose(1.0 + before, 3.0 + 2.0 * now, rtol=1e-12)


def test_runs_of_before_and_methods_that_never_begin_anew_do_not():
    block, _ = stream(0, 2, "level")
    plan = decide(Config("-", "y", task="regress"), block)
    old = {name: value for name, value in plan.to_json().items() if name != "follows"}
    methods = [plan.config.method, "NIG+C-Static", "LG+RL[1]-OUPR(hazard=0.001)"]
    plans = [Plan.from_json(old), *(replace(plan, config=replace(plan.config, method=name)) for name in methods[1:])]
    for each in plans:
        assert not any(hasattr(part, "worth") for part in make_stream(each).carry)
    assert hasattr(make_stream(plan).carry[-1], "worth")
