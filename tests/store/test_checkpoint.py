"""Checkpoints: every bit comes back or the file is refused, and whatever fails, what was there before survives."""

import errno
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax import store
from filtax.growth import grown
from filtax.store import writing

GOLDEN = Path(__file__).parent / "golden" / "format-1"
SMALL = {"mean": np.array([0.5, -np.inf, np.nan]), "t": 7, "on": True}


def bits(leaf):
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf).dtype, np.asarray(leaf).shape, np.asarray(leaf).tobytes()


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert type(left) is type(right)
        assert bits(left) == bits(right)


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
    state = eqx.tree_at(lambda s: (s.t, s.strain), fresh, (fresh.t + 20_000_001, fresh.strain - jnp.inf))
    store.save(tmp_path, state, config={"method": method.name}, source={"row": 1})
    loaded, manifest = store.load(tmp_path, fresh, config={"method": method.name})
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
    store.save(tmp_path, state)
    loaded, _ = store.load(tmp_path, method.step(fresh, jnp.zeros(2), 0.0)[0])
    same(loaded, state)
    same(method.step(loaded, X[0], y[0])[0], method.step(state, X[0], y[0])[0])
    with pytest.raises(store.Foreign, match="of one that remembers data a state that has seen a datum"):
        store.load(tmp_path, fresh)


def test_a_bank_that_has_grown_comes_back(tmp_path):
    runs = fx.method("LG+RL[inf](capacity=2)-PR(hazard=0.1)", model=fx.models.linear(noise=1.0))
    fresh = runs.init(mean=jnp.zeros(1), cov=1.0)
    state = grown(runs, fresh, 5)
    assert state.bank.log_weight.size == 8
    store.save(tmp_path, state)
    same(store.load(tmp_path, fresh)[0], state)


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
    store.save(tmp_path, tree)
    same(store.load(tmp_path, jax.tree.map(lambda leaf: leaf, tree))[0], tree)


@pytest.mark.parametrize("leaf", [object(), "text", 2**63, np.array(["a"]), np.array([None])])
def test_what_is_no_number_is_not_stored(tmp_path, leaf):
    with pytest.raises(ValueError, match="state"):
        store.save(tmp_path, {"a": leaf})
    assert not list(tmp_path.iterdir())


def test_notes_must_be_json(tmp_path):
    for odd in (object(), float("nan"), {1, 2}):
        with pytest.raises(ValueError, match="plain JSON"):
            store.save(tmp_path, SMALL, source=odd)
    assert not list(tmp_path.iterdir())


def damage(folder, change):
    """Apply a change of bytes to each file in turn; `change` yields the damaged contents."""
    for path in sorted([*folder.glob("*.json"), *folder.glob("*.safetensors")]):
        whole = path.read_bytes()
        for content in change(whole):
            path.write_bytes(content)
            yield path, content
        path.write_bytes(whole)


def flips(whole):
    for at in range(len(whole)):
        for bit in (0, at % 7 + 1):
            yield whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :]


def cuts(whole):
    yield from (whole[:length] for length in range(len(whole)))
    yield from (whole + b"\0", whole + b"\n", whole * 2, b"hello", b"\x80\x04K\x01.")


@pytest.mark.parametrize("change", [cuts, flips])
def test_every_truncation_and_every_bit_flip_is_refused(tmp_path, change):
    store.save(tmp_path, SMALL, config={"c": 1}, source={"row": 3})
    tried = 0
    for path, _ in damage(tmp_path, change):
        with pytest.raises(store.Damaged) as refusal:
            store.load(tmp_path, SMALL, config={"c": 1})
        assert not isinstance(refusal.value, store.Foreign), path
        text = str(refusal.value)
        assert "000001" in text
        assert "\n" not in text
        tried += 1
    assert tried > 700
    same(store.load(tmp_path, SMALL, config={"c": 1})[0], SMALL)


def test_the_generation_before_is_used_and_told_of(tmp_path):
    for row in range(4):
        store.save(tmp_path, {**SMALL, "t": row}, source={"row": row})
    assert store.generations(tmp_path) == [3, 4]
    assert len(list(tmp_path.glob("*.safetensors"))) == 2
    (tmp_path / "000004.safetensors").write_bytes(b"")
    state, manifest = store.load(tmp_path, SMALL)
    assert (state["t"], manifest["source"], manifest["generation"]) == (2, {"row": 2}, 3)
    assert len(manifest["skipped"]) == 1
    assert "000004" in manifest["skipped"][0]
    (tmp_path / "000003.json").unlink()
    with pytest.raises(store.Damaged, match="no older checkpoint is sound"):
        store.load(tmp_path, SMALL)


def test_something_else_is_refused(tmp_path):
    store.save(tmp_path, SMALL, config={"hazard": 0.1})
    load = lambda like=SMALL, config=None: store.load(tmp_path, like, config=config or {"hazard": 0.1})
    load()
    with pytest.raises(store.Foreign, match="another configuration"):
        load(config={"hazard": 0.2})
    with pytest.raises(store.Foreign, match="shape"):
        load({**SMALL, "mean": np.zeros(2)})
    with pytest.raises(store.Foreign, match="float32"):
        load({**SMALL, "mean": np.zeros(3, np.float32)})
    with pytest.raises(store.Foreign, match="one side only"):
        load({"mean": SMALL["mean"], "t": 1, "off": True})
    with pytest.raises(store.Foreign, match="of int64 was expected"):
        load({**SMALL, "on": 1})
    with pytest.raises(store.Missing, match="holds no checkpoint"):
        store.load(tmp_path / "none", SMALL)


def test_another_arrangement_of_parameters_is_refused(tmp_path):
    net = fx.method("LG+C-Static", model=fx.models.nonlinear(lambda p, x: p["w"] @ x, noise=1.0))
    store.save(tmp_path, net.init(params={"w": jnp.ones((2, 3))}, cov=1.0))
    with pytest.raises(store.Foreign, match="arranged"):
        store.load(tmp_path, net.init(params={"w": jnp.ones((3, 2))}, cov=1.0))


def test_a_newer_format_is_refused_clearly(tmp_path):
    store.save(tmp_path, SMALL)
    path = tmp_path / "000001.json"
    manifest = json.loads(path.read_bytes())
    manifest.pop("digest")
    manifest["format"] = 2
    manifest["digest"] = store.digest(manifest)
    path.write_bytes(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode())
    with pytest.raises(store.Foreign, match=r"format 2 .* reads 1"):
        store.load(tmp_path, SMALL)


def test_arrays_may_not_be_swapped(tmp_path):
    """Two sound files that do not belong together; and a file made of one more array than was promised."""
    store.save(tmp_path / "a", SMALL)
    store.save(tmp_path / "b", {**SMALL, "t": 8})
    shutil.copy(tmp_path / "b" / "000001.safetensors", tmp_path / "a" / "000001.safetensors")
    with pytest.raises(store.Damaged, match="checksum"):
        store.load(tmp_path / "a", SMALL)


def test_a_header_that_promises_too_much_costs_nothing(tmp_path):
    """A foreign safetensors file whose header claims 8 EiB, in a manifest forged to fit it."""
    store.save(tmp_path, SMALL)
    bomb = struct.pack("<Q", 2**60) + b"{}"
    (tmp_path / "000001.safetensors").write_bytes(bomb)
    path = tmp_path / "000001.json"
    manifest = json.loads(path.read_bytes())
    manifest.pop("digest")
    manifest |= {"bytes": len(bomb), "sha256": hashlib.sha256(bomb).hexdigest()}
    manifest["digest"] = store.digest(manifest)
    path.write_bytes(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode())
    with pytest.raises(store.Damaged, match="cannot be read"):
        store.load(tmp_path, SMALL)


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "open"])
@pytest.mark.parametrize("at", range(4))
def test_a_full_or_failing_disk_leaves_what_was_there(tmp_path, monkeypatch, call, at):
    """Each system call of a save fails in turn, as with a full disk."""
    store.save(tmp_path, SMALL, source={"row": 1})
    real, calls = getattr(os, call), iter(range(100))

    def fail(*arguments, **options):
        if call == "open" and not str(arguments[0]).endswith(writing.PARTIAL) and Path(arguments[0]) != tmp_path:
            return real(*arguments, **options)
        if next(calls) == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments, **options)

    happens = call not in ("write", "replace") or at < 2  # two files, each written and renamed once
    with monkeypatch.context() as patch:
        patch.setattr(writing.os, call, fail)
        with pytest.raises(OSError, match=r"bytes are needed.*intact") if happens else nullcontext():
            store.save(tmp_path, {**SMALL, "t": 8}, source={"row": 2})
    state, manifest = store.load(tmp_path, SMALL)
    assert not manifest["skipped"]
    assert (state["t"], manifest["source"]) in [(7, {"row": 1}), (8, {"row": 2})]
    assert not list(tmp_path.glob(f"*{writing.PARTIAL}"))
    store.save(tmp_path, {**SMALL, "t": 9}, source={"row": 3})
    assert store.load(tmp_path, SMALL)[0]["t"] == 9


def test_short_writes_are_finished(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(writing.os, "write", lambda file, content: real(file, bytes(content[:7])))
    store.save(tmp_path, SMALL)
    same(store.load(tmp_path, SMALL)[0], SMALL)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_folder_is_refused_in_words(tmp_path):
    store.save(tmp_path, SMALL)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OSError, match="could not be written"):
            store.save(tmp_path, SMALL)
        same(store.load(tmp_path, SMALL)[0], SMALL)
    finally:
        tmp_path.chmod(0o700)


def test_a_read_only_disk_is_refused_in_words(tmp_path, monkeypatch):
    store.save(tmp_path, SMALL)

    def refuse(path, *arguments):
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(writing.os, "open", refuse)
        with pytest.raises(OSError, match="Read-only file system"), store.lock(tmp_path.parent / "elsewhere"):
            store.save(tmp_path, SMALL, held=True)
    same(store.load(tmp_path, SMALL)[0], SMALL)


def test_a_second_writer_is_refused_and_told_who_holds_it(tmp_path):
    with store.lock(tmp_path):
        with pytest.raises(store.Busy, match=f"process {os.getpid()} on"):
            store.save(tmp_path, SMALL)
        assert store.save(tmp_path, SMALL, held=True) == 1
        store.load(tmp_path, SMALL)  # readers need no lock
    assert store.save(tmp_path, SMALL) == 2


KILLS = """
import os, random, select, signal, sys, tempfile, time
import numpy as np
from filtax import store

like = {"row": 0, "values": np.zeros(2000)}
random.seed(int(sys.argv[2]))
for trial in range(int(sys.argv[1])):
    with tempfile.TemporaryDirectory() as folder:
        acknowledged, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(acknowledged)
            row = 0
            while True:
                row += 1
                store.save(folder, {"row": row, "values": np.full(2000, float(row))}, source={"row": row})
                os.write(tell, b".")
        os.close(tell)
        os.read(acknowledged, 1)
        time.sleep(random.random() * 0.03)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        rows = 1
        while got := os.read(acknowledged, 65536):
            rows += len(got)
        os.close(acknowledged)
        state, manifest = store.load(folder, like)
        assert manifest["skipped"] == [], manifest["skipped"]
        assert state["row"] == manifest["source"]["row"] >= rows, (state["row"], rows)
        assert state["row"] <= rows + 1
        assert np.array_equal(state["values"], np.full(2000, float(state["row"])))
        store.save(folder, like)  # the lock of the dead is free
print("survived")
"""


def survive(kills, seed):
    command = [sys.executable, "-W", "ignore", "-c", KILLS, str(kills), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.stdout.strip(), done.returncode) == ("survived", 0), done.stderr


def test_twenty_kills():
    survive(20, seed=0)


@pytest.mark.nightly
def test_a_thousand_kills():
    survive(1000, seed=1)


def test_the_golden_checkpoint_is_still_read():
    """Written once by format 1. What it holds is said here in plain numbers, not computed."""
    like = {
        "bank": {"root": np.zeros((2, 2)), "log_weight": np.zeros(3), "short": jnp.zeros(2, jnp.bfloat16)},
        "key": jax.random.key(0),
        "t": 0,
        "on": False,
    }
    state, manifest = store.load(GOLDEN, like, config={"method": "LG+RL[3]-PR(hazard=0.01)", "capacity": 3})
    assert state["bank"]["root"].tolist() == [[1.5, 0.0], [-0.25, 0.1]]
    assert state["bank"]["log_weight"].tolist() == [0.0, -float("inf"), -1e-300]
    assert state["bank"]["short"].tolist() == [0.5, -2.0]
    assert jax.random.key_data(state["key"]).tolist() == [0, 42]
    assert (state["t"], state["on"]) == (20000000, True)
    assert (manifest["source"], manifest["generation"]) == ({"offset": 123456, "row": 77}, 1)
