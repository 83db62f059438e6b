"""Checkpoints: every bit comes back, of every kind of state, and what is something else is refused by name."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax import io
from filtax.state import with_slots
from stored import SMALL, same

GOLDEN = Path(__file__).parent / "golden" / "format-1"


def states():
    """A state of each kind: run lengths with dead slots, a network's layout, keys in the state and in the belief."""
    linear = fx.models.linear(noise=1.0)
    runs = fx.method("NIG+RL[4]-PR(hazard=0.1)", model=linear)
    yield "runs", runs, runs.init(mean=jnp.zeros(2), cov=1.0)
    net = fx.method("LG+C-ACI(q=0.1)", model=fx.models.nonlinear(lambda p, x: p["w"] @ x + p["b"], noise=1.0))
    yield "net", net, net.init(params={"w": jnp.ones(2), "b": jnp.zeros(())}, cov=1.0)
    drawn = fx.method("EnKF(size=4)+C-ACI(q=0.1)", model=linear)
    yield "drawn", drawn, drawn.init(mean=jnp.zeros(2), cov=1.0, key=jax.random.key(3))
    single = fx.method("LG+C-Static", model=linear)
    yield "single", single, single.init(mean=jnp.zeros(2, jnp.float32), cov=1.0, key=jax.random.key(1))


@pytest.mark.parametrize("name", ["runs", "net", "drawn", "single"])
def test_states_come_back_bit_for_bit(tmp_path, name):
    method, fresh = next((m, s) for n, m, s in states() if n == name)
    state = eqx.tree_at(
        lambda s: (s.t, s.conditioning_ratio), fresh, (fresh.t + 20_000_001, fresh.conditioning_ratio - jnp.inf)
    )
    io.save(tmp_path, state, config={"method": method.name}, source={"row": 1})
    loaded, manifest = io.load(tmp_path, fresh, config={"method": method.name})
    same(loaded, state)
    assert manifest["source"] == {"row": 1}
    assert loaded.layout == state.layout
    assert not manifest["skipped"]


@pytest.mark.parametrize(
    "name", ["CPV(rate=0.9, memory=2)-Sub", "CPL[1](belong=1.0, memory=2, fold=True)-Sub", "OGD(rate=0.1)+C-Static"]
)
def test_a_memory_of_data_comes_back(tmp_path, name):
    """Its shape is that of the data, so a state that has seen one says what to expect; a fresh one does not."""
    method = fx.method(name, model=fx.models.linear(noise=1.0))
    fresh = method.init(mean=jnp.zeros(2), cov=1.0)
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    state, _ = method.scan(fresh, X, y, keep=("ok",))
    io.save(tmp_path, state)
    loaded, _ = io.load(tmp_path, method.step(fresh, jnp.zeros(2), 0.0)[0])
    same(loaded, state)
    same(method.step(loaded, X[0], y[0])[0], method.step(state, X[0], y[0])[0])
    with pytest.raises(io.Foreign, match="of one that remembers data a state that has seen a datum"):
        io.load(tmp_path, fresh)


def test_a_bank_that_has_grown_comes_back(tmp_path):
    runs = fx.method("LG+RL[inf](capacity=2)-PR(hazard=0.1)", model=fx.models.linear(noise=1.0))
    fresh = runs.init(mean=jnp.zeros(1), cov=1.0)
    state = with_slots(runs, fresh, 5)
    assert state.hypotheses.log_weight.size == 8
    io.save(tmp_path, state)
    same(io.load(tmp_path, fresh)[0], state)


def test_other_leaves_come_back(tmp_path):
    tree = {
        "short": jnp.asarray([1.0, 2.0], jnp.bfloat16),
        "complex": np.array([1 + 2j]),
        "numpy": np.float32(0.1),
        "none": None,
        "negative": np.int8([-1]),
        "empty": np.zeros((0, 3)),
        "transposed": np.arange(6.0).reshape(2, 3).T,
        "large": 2**62,
        "third": 1 / 3,
        "no": False,
    }
    io.save(tmp_path, tree)
    same(io.load(tmp_path, jax.tree.map(lambda leaf: leaf, tree))[0], tree)


@pytest.mark.parametrize("leaf", [object(), "text", 2**63, np.array(["a"]), np.array([None])])
def test_what_is_no_number_is_not_stored_nor_notes_that_are_not_json(tmp_path, leaf):
    with pytest.raises(ValueError, match="state"):
        io.save(tmp_path, {"a": leaf})
    for odd in (object(), float("nan"), {1, 2}):
        with pytest.raises(ValueError, match="plain JSON"):
            io.save(tmp_path, SMALL, source=odd)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("like", "config", "words"),
    [
        (SMALL, {"hazard": 0.2}, "another configuration"),
        ({**SMALL, "mean": np.zeros(2)}, {}, "shape"),
        ({**SMALL, "mean": np.zeros(3, np.float32)}, {}, "float32"),
        ({"mean": SMALL["mean"], "t": 1, "off": True}, {}, "one side only"),
        ({**SMALL, "on": 1}, {}, "of int64 was expected"),
    ],
)
def test_something_else_is_refused(tmp_path, like, config, words):
    io.save(tmp_path, SMALL, config={})
    io.load(tmp_path, SMALL, config={})
    with pytest.raises(io.Foreign, match=words):
        io.load(tmp_path, like, config=config)
    with pytest.raises(io.Missing, match="holds no checkpoint"):
        io.load(tmp_path / "none", SMALL)


def test_another_arrangement_of_parameters_is_refused(tmp_path):
    net = fx.method("LG+C-Static", model=fx.models.nonlinear(lambda p, x: p["w"] @ x, noise=1.0))
    io.save(tmp_path, net.init(params={"w": jnp.ones((2, 3))}, cov=1.0))
    with pytest.raises(io.Foreign, match="arranged"):
        io.load(tmp_path, net.init(params={"w": jnp.ones((3, 2))}, cov=1.0))


def test_the_golden_checkpoint_is_still_read():
    """Written once by format 1. What it holds is said here in plain numbers, not computed."""
    like = {
        "bank": {"root": np.zeros((2, 2)), "log_weight": np.zeros(3), "short": jnp.zeros(2, jnp.bfloat16)},
        "key": jax.random.key(0),
        "t": 0,
        "on": False,
    }
    state, manifest = io.load(GOLDEN, like, config={"method": "LG+RL[3]-PR(hazard=0.01)", "capacity": 3})
    assert state["bank"]["root"].tolist() == [[1.5, 0.0], [-0.25, 0.1]]
    assert state["bank"]["log_weight"].tolist() == [0.0, -float("inf"), -1e-300]
    assert state["bank"]["short"].tolist() == [0.5, -2.0]
    assert jax.random.key_data(state["key"]).tolist() == [0, 42]
    assert (state["t"], state["on"]) == (20000000, True)
    assert (manifest["source"], manifest["generation"]) == ({"offset": 123456, "row": 77}, 1)
