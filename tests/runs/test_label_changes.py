"""Changes of labels that are never certain: found by the race with the elders, and with the row they began with."""

import math

import equinox as eqx
import jax
import numpy as np
import pytest

import filtax as fx
from filtax.runs import Config, carry_on, open_run
from filtax.runs.engine import Learner
from filtax.runs.onset import Onset

pytestmark = pytest.mark.x64
NAME = "LG(form=covariance)+RL[1]-OUPR(hazard=0.001)"
LIMIT = 2.0 * math.log(1000.0)


def draw(labels, seed, rows, turn, slope):
    """Labels as probable as a softmax of weights says; from a row on, each is called as the next one was."""
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(rows, 3)), slope * rng.normal(size=(3, labels))
    code = np.argmax(X @ weights + rng.gumbel(size=(rows, labels)), axis=1)
    return X, np.where(np.arange(rows) < turn, code, (code + 1) % labels)


def changes(folder, X, code):
    path, root = folder / "t.csv", folder / "run"
    lines = [",".join([*map(repr, row), "abcde"[each]]) for row, each in zip(X.tolist(), code.tolist(), strict=True)]
    path.write_text("\n".join(["x0,x1,x2,y", *lines]) + "\n")
    carry_on(Config(str(path), "y", method=NAME, block=512), root)
    return [event for event in open_run(root).events() if event["event"] == "change"]


@pytest.mark.parametrize("labels", [2, 3])
def test_labels_that_change_places_show_when(labels, tmp_path):
    for seed, turn in ((0, 700), (1, 700), (2, 9999)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        told = changes(folder, *draw(labels, seed, 1000, turn, 1.5))
        assert len(told) == (turn < 1000)
        assert all(event["row"] <= 760 and abs(event["began"] - 701) <= 15 for event in told)


@pytest.mark.nightly
@pytest.mark.parametrize(("labels", "slope"), [(2, 1.5), (3, 0.7), (3, 2.0), (5, 0.7), (5, 2.0)])
def test_many_streams_have_one_alarm_each_or_none(labels, slope, tmp_path):
    off = []
    for seed in range(20):
        turn = 1500 if seed % 2 else 9999
        folder = tmp_path / str(seed)
        folder.mkdir()
        told = changes(folder, *draw(labels, seed, 3000, turn, slope))
        assert len(told) == seed % 2, seed
        off += [event["began"] - 1501 for event in told]
    assert np.median(np.abs(off)) <= 3
    assert np.abs(off).max() <= 40


def test_the_elders_of_several_heads_race_together():
    """The oracle: each head in the verbs of a method of two labels, and shares of what the heads say."""
    rows, heads = 400, 4
    X, code = draw(3, 3, rows, 250, 2.0)
    y = code.astype(float)
    y[[130, 255]] = np.nan
    known = np.array([len(set(code[:t].tolist())) for t in range(rows)], float)
    learner = Learner(NAME, columns=3, cov=1.0, heads=heads, limit=LIMIT, elder=True)
    _, _, told = learner.advance(learner.fresh(heads), np.zeros(rows, int), X, y, rows, None, known)
    model = fx.models.linear(likelihood=fx.models.bernoulli())
    method, plain = fx.method(NAME, model=model), fx.method("LG(form=covariance)+C-Static", model=model)
    copies = lambda state: jax.tree.map(lambda leaf: np.stack([leaf] * heads), state)
    state, static = (copies(one.init(mean=np.zeros(3), cov=1.0)) for one in (method, plain))

    @jax.jit
    @jax.vmap
    def step(state, static, y, x):
        chance = (method.predict(state, x).mean, plain.predict(static, x).mean)
        return *chance, method.step(state, x, y)[0], plain.step(static, x, y)[0]

    score, since, count, want, excess = 0.0, 0, 0, np.zeros(rows, int), np.zeros(rows)
    for t in range(rows):
        own = np.full(heads, np.nan) if np.isnan(y[t]) else (np.arange(heads) == y[t]).astype(float)
        p, q, state, static = step(state, static, own, np.stack([X[t]] * heads))
        met, gain = int(known[t]), 0.0
        if met > 1 and y[t] < met:
            p, q = (np.asarray(each)[:met] / np.asarray(each)[:met].sum() for each in (p, q))
            gain = math.log(p[code[t]] / q[code[t]])
            excess[t] = float(np.sum(q * np.log(q))) - math.log(q[code[t]])
        score = max(0.0, score + min(gain, LIMIT / 4))
        since = since + 1 if score > 0.0 else 0
        want[t] = since - 1 if score > LIMIT else 0
        if want[t] or count < 100 or since >= 500:
            best = np.argmax(state.hypotheses.log_weight, axis=1)
            belief = jax.tree.map(lambda leaf: leaf[np.arange(heads), best][:, None], state.hypotheses.belief)  # noqa: B023
            static = eqx.tree_at(lambda s: s.hypotheses.belief, static, belief)
            score, since = 0.0, 0
        count = 0 if want[t] else count + int(met > 1 and y[t] < met)
    assert np.flatnonzero(want).size == 1
    np.testing.assert_array_equal(told["alarm"], want)
    np.testing.assert_allclose(told["excess"], excess, rtol=1e-6, atol=1e-9)


def test_a_change_begins_where_rows_surprise_most_for_their_number():
    """Against all starts, whatever blocks the rows come in; an alarm ends what belongs to the change before it."""
    rng = np.random.default_rng(0)
    excess = rng.normal(size=1300) + np.repeat([0.0, 3.0, 0.0, 1.0, 0.0], [600, 100, 300, 100, 200])
    alarms = np.zeros(1300)
    alarms[[690, 1090]] = 1.0
    told = Onset().since(excess, alarms)
    for row, first in ((690, 191), (1090, 691)):
        starts = range(first, row)
        want = max(starts, key=lambda s: excess[s : row + 1].sum() / math.sqrt(row + 1 - s))
        assert told[row] == row - want
        assert abs(want - (row - 90)) <= 15
    assert np.flatnonzero(told).tolist() == [690, 1090]
    parts, onset = np.split(np.arange(1300), [1, 650, 691, 700]), Onset()
    again = np.concatenate([onset.since(excess[part], alarms[part]) for part in parts])
    np.testing.assert_array_equal(again, told)
