"""Changes of what the columns say: told once each, at the right row, and not where a reading is grossly wrong."""

import math

import equinox as eqx
import jax
import numpy as np
import pytest

import filtax as fx
from filtax.runs import Config, carry_on, open_run
from filtax.runs.engine import Learner
from filtax.runs.surprise import Once

pytestmark = pytest.mark.x64
RL = "WoLF-Huber(c=2.5)+NIG(form=covariance)+RL[1]-OUPR(hazard=0.001)"
LIMIT = 2.0 * math.log(1000.0)


def write(path, X, y):
    head = ",".join([*(f"x{i}" for i in range(X.shape[1])), "y"])
    lines = [",".join([*(repr(v) for v in row), str(told)]) for row, told in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join([head, *lines]) + "\n")
    return str(path)


def changes(root):
    return [event for event in open_run(root).events() if event["event"] == "change"]


@pytest.mark.parametrize(("columns", "flipped"), [(4, 4), (20, 1)])
def test_weights_that_change_sign_are_one_change(columns, flipped, tmp_path):
    """Few columns are learned by a method that begins anew, many by one that follows: both tell of it once."""
    rng = np.random.default_rng(columns)
    X, weights = rng.normal(size=(1500, columns)), rng.choice([-1.0, 1.0], columns) * rng.uniform(1, 3, columns)
    after = np.where(np.arange(columns) < flipped, -weights, weights)
    y = np.where(np.arange(1500) < 900, X @ weights, X @ after) + 0.3 * rng.normal(size=1500)
    carry_on(Config(write(tmp_path / "t.csv", X, y.tolist()), "y", block=512), tmp_path / "run")
    [told] = changes(tmp_path / "run")
    assert 901 <= told["began"] <= 905
    assert told["row"] <= 930


@pytest.mark.parametrize("labels", [2, 3])
def test_labels_that_change_places_are_one_change(labels, tmp_path):
    rng = np.random.default_rng(labels)
    X = rng.normal(size=(2500, 3))
    code = np.argmax(3.0 * X[:, :labels] if labels == 3 else X[:, :2], axis=1)
    code = np.where(np.arange(2500) < 1500, code, (code + 1) % labels)
    source = write(tmp_path / "t.csv", X, ["abc"[each] for each in code])
    carry_on(Config(source, "y", block=512), tmp_path / "run")
    [told] = changes(tmp_path / "run")
    assert 1501 <= told["began"] <= 1510
    assert told["row"] <= 1560


def world(rng, weights, after, rows, change):
    """Two labels, as probable as their weights say; from a row on, as others say."""
    X = rng.normal(size=(rows, 2))
    level = np.where(np.arange(rows) < change, X @ weights, X @ after)
    return X, np.where(rng.random(rows) < 1.0 / (1.0 + np.exp(-level)), "a", "b").tolist()


@pytest.mark.nightly
def test_two_labels_that_are_never_certain_show_a_change_and_no_other(tmp_path):
    """Half of them surprise at any time: what tells is the filter that never forgets."""
    for seed in range(4):
        turned = seed % 2 == 0
        given = world(np.random.default_rng(seed), [2.0, 0.0], [-2.0, 0.0] if turned else [2.0, 0.0], 2000, 1200)
        root = tmp_path / str(seed)
        carry_on(Config(write(tmp_path / f"{seed}.csv", *given), "y", block=512), root)
        told = [event["row"] for event in changes(root)]
        assert len(told) == turned
        assert all(1200 < row <= 1260 for row in told)


def test_the_elder_races_the_method_all_the_time():
    """The oracle: the same posterior and nothing else, in the verbs of a method that never forgets."""
    rng = np.random.default_rng(3)
    X, labels = world(rng, [2.0, 1.0], [-2.0, 1.0], 400, 250)
    y = np.array([0.0 if label == "a" else 1.0 for label in labels])
    y[[130, 255]] = np.nan
    name = "LG(form=covariance)+RL[1]-OUPR(hazard=0.001)"
    learner = Learner(name, columns=2, cov=1.0, heads=1, limit=LIMIT, elder=True)
    _, _, told = learner.advance(learner.fresh(1), np.zeros(400, int), X, y, 400)
    model = fx.models.linear(likelihood=fx.models.bernoulli())
    method, plain = fx.method(name, model=model), fx.method("LG(form=covariance)+C-Static", model=model)
    state, static = method.init(mean=np.zeros(2), cov=1.0), plain.init(mean=np.zeros(2), cov=1.0)

    @jax.jit
    def step(state, static, x, y):
        chance = (method.predict(state, x).mean, plain.predict(static, x).mean)
        return *chance, method.step(state, x, y)[0], plain.step(static, x, y)[0]

    score, since, count, want = 0.0, 0, 0, np.zeros(400, int)
    for t in range(400):
        own = np.nan if np.isnan(y[t]) else float(y[t] == 0.0)
        p, q, state, static = step(state, static, X[t], own)
        gain = 0.0 if own != own else float(np.log(p / q) if own else np.log((1.0 - p) / (1.0 - q)))
        score = max(0.0, score + min(gain, LIMIT / 4))
        since = since + 1 if score > 0.0 else 0
        want[t] = since - 1 if score > LIMIT else 0
        if want[t] or count < 100 or since >= 500:
            best = int(np.argmax(state.hypotheses.log_weight))
            belief = jax.tree.map(lambda leaf, best=best: leaf[best : best + 1], state.hypotheses.belief)
            static = eqx.tree_at(lambda s: s.hypotheses.belief, static, belief)
            score, since = 0.0, 0
        count = 0 if want[t] else count + (own == own)
    assert want.any()
    assert not want[:250].any()
    np.testing.assert_array_equal(told["alarm"], want)


def hours(path, y):
    times = np.datetime64("2024-01-01T00:00") + 60 * np.arange(len(y))
    path.write_text("t,y\n" + "".join(f"{when},{value!r}\n" for when, value in zip(times, y.tolist(), strict=True)))
    return str(path)


@pytest.mark.parametrize("turned", [True, False])
def test_a_cycle_that_turns_round_is_one_change(turned, tmp_path):
    """The method follows it within a day; only what it believed before shows that it had to."""
    hour = np.arange(24 * 90)
    sign = np.where((hour >= 24 * 60) & turned, -3.0, 3.0)
    for seed in range(3):
        noise = np.random.default_rng(seed).normal(size=hour.size)
        y = 10.0 + sign * np.sin(2 * np.pi * hour / 24) + 0.3 * noise
        root = tmp_path / str(seed)
        carry_on(Config(hours(tmp_path / "t.csv", y), "y", time="t", block=4096), root)
        told = changes(root)
        assert len(told) == turned
        assert all(1441 <= event["began"] <= event["row"] <= 1460 for event in told)


def test_a_change_that_another_watch_tells_of_shows_as_probable(tmp_path):
    """With a robust method in front the run lengths are never surprised; what told of the jump is sure of it."""
    y = 10.0 + np.random.default_rng(3).normal(size=700) + np.where(np.arange(700) < 600, 0.0, 12.0)
    carry_on(Config(hours(tmp_path / "t.csv", y), "y", time="t", block=512), tmp_path / "run")
    [told] = changes(tmp_path / "run")
    sure = np.concatenate([part["change_probability"] for part in open_run(tmp_path / "run").records()])
    assert 601 <= told["began"] <= told["row"] <= 625
    assert sure[told["row"] - 1] >= 0.999
    assert np.nanmax(np.delete(sure, told["row"] - 1)) < 0.999


def test_gross_errors_are_no_changes(tmp_path):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=2000)
    bad = np.arange(200, 2000, 150)
    y[bad] += rng.choice([-1.0, 1.0], 12) * rng.uniform(20, 60, 12)
    done = carry_on(Config(write(tmp_path / "t.csv", X, y.tolist()), "y", block=512), tmp_path / "run")
    assert done.changes == 0
    told = {event["row"] - 1 for event in open_run(tmp_path / "run").events() if event["event"] == "distrusted"}
    assert set(bad.tolist()) <= told


def test_the_race_is_that_of_the_method_against_itself_of_before():
    """The oracle: the method's own verbs, and a copy of its state whose hypotheses learn on in a method of one."""
    rng, rows, D = np.random.default_rng(7), 480, 11
    X = np.concatenate([np.ones((rows, 1)), rng.normal(size=(rows, D - 1))], axis=1)
    sign = np.where(np.arange(rows) < 250, 1.0, -1.0)
    y = 1.0 + 4.0 * sign * X[:, 1] + 0.5 * rng.normal(size=rows)
    y[[107, 108, 109, 258]] = np.nan
    y[[106, 130, 330, 420]] += 4.0, 20.0, 9.0, 9.0  # too early; gross; at rest; rested
    y[421:] = np.nan  # time passes, and neither wins
    learner = Learner(RL, columns=D, cov=1.0, limit=LIMIT)
    carry, told, ages = learner.fresh(1), [], []
    for part in (slice(start, start + 5) for start in range(0, rows, 5)):
        carry, _, seen = learner.advance(carry, np.zeros(5, int), X[part], y[part], 5)
        told += seen["alarm"].tolist()
        ages.append((bool(carry[5].racing[0]), int(carry[5].age[0])))
    model = fx.models.linear(noise=1.0)
    method, plain = fx.method(RL, model=model), fx.method(RL.split("+RL")[0] + "+C-Static", model=model)
    state, static = method.init(mean=np.zeros(D), cov=1.0), plain.init(mean=np.zeros(D), cov=1.0)
    step, learn = jax.jit(method.step), jax.jit(plain.step)
    score = jax.jit(lambda state, x, y: method.predict(state, x).log_prob(y))
    below = jax.jit(lambda state, x, y: method.predict(state, x).cdf(y))

    def taught(state, x, y):
        of = lambda c: jax.tree.map(lambda leaf: leaf[c : c + 1], state.hypotheses.belief)
        slots = range(state.hypotheses.log_weight.size)
        after = [
            learn(eqx.tree_at(lambda s: s.hypotheses.belief, static, of(c)), x, y)[0].hypotheses.belief for c in slots
        ]
        return eqx.tree_at(
            lambda s: s.hypotheses.belief, state, jax.tree.map(lambda *each: np.concatenate(each), *after)
        )

    old, total, since, length, rest, want, trace = None, 0.0, 0, 0, 0, np.zeros(rows, int), []
    for t in range(rows):
        before, known = state, np.isfinite(y[t])
        state, info = step(state, X[t], y[t])
        was, rest = old is not None, rest - 1
        if old is not None:
            since += 1
            if known:
                gain = float(score(before, X[t], y[t]) - score(old, X[t], y[t]))
                total, old = total + min(gain, LIMIT / 4), taught(old, X[t], y[t])
            if total > LIMIT:
                want[t], old, rest = since, None, 100
            elif total < -LIMIT or since >= 50:
                old = None
        tail = float(below(before, X[t], y[t])) if known else 0.5
        odd = 2.0 * min(tail, 1.0 - tail) < 0.001 and (was or rest < 0) and length >= 10 * D
        if old is None and not want[t] and (float(info.change_probability) > 0.5 or odd) and length >= 100:
            old, total, since = before, 0.0, 0
        length = int(info.runlength)
        trace.append((True, since) if old is not None else (False, -max(rest, 0)))
    [at] = np.flatnonzero(want)
    assert 250 <= at < 300
    np.testing.assert_array_equal(told, want)
    assert ages == trace[4::5]
    assert max(age for _, age in trace) == 49


def test_each_series_has_its_changes_told_once():
    once = Once()
    once.make_room(2)
    assert once.tell(np.array([0, 1, 0, 1]), [(3, "change", 1), (2, "change", 1)]) == [
        (2, "change", 1),
        (3, "change", 1),
    ]
    again = once.tell(np.array([0, 1]), [(0, "change", 1), (1, "change", 2), (1, "distrusted", 0.0)])
    assert again == [(1, "distrusted", 0.0)]
    assert once.tell(np.array([0]), [(0, "change", 0)]) == [(0, "change", 0)]
