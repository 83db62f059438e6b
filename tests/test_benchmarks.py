"""The benchmark harness measures what it says, and one small case runs from end to end."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import bound, harness, lofi_protocol, run, tracking  # noqa: E402
from benchmarks.harness import Result, alternate  # noqa: E402


def test_contestants_take_turns_after_a_warm_up():
    calls = []
    times = alternate({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, repeats=5)
    assert "".join(calls) == "ab" + 5 * "aabb"  # one untimed call each, then an untimed and a timed one a turn
    assert {name: len(t) for name, t in times.items()} == {"a": 5, "b": 5}


def test_times_are_those_of_the_call(monkeypatch):
    """By a clock that only the call moves: a sleep takes as long as the machine is busy."""
    clock = [0.0]
    monkeypatch.setattr(harness.time, "perf_counter", lambda: clock[0])
    call = lambda: clock.__setitem__(0, clock[0] + 0.01)
    assert alternate({"call": call}, repeats=3)["call"] == pytest.approx([0.01] * 3)


def test_lofi_as_it_is_written_down_is_ours_with_a_cut_each_time():
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    import filtax as fx
    from benchmarks.scalable_peers import each_datum

    net, rng, rank = fx.models.mlp((3, 4, 3)), np.random.default_rng(0), 4
    X, Y = jnp.asarray(rng.normal(size=(6, 3)), "float32"), jnp.asarray(rng.integers(0, 3, size=6))
    params = net.init(jax.random.key(0), "float32")
    mean, _ = ravel_pytree(params)
    for form in ("diagonal", "spherical"):
        model = fx.models.nonlinear(net.apply, likelihood=fx.models.categorical())
        method = fx.method(f"LoFi(rank={rank}, spare=0, form={form})+C-Static", model=model)
        state, _ = method.scan(method.init(params=params, cov=0.5), X, Y.astype("float32"), keep=())
        upsilon = jnp.full(mean.shape if form == "diagonal" else (), 2.0, "float32")
        start = mean, upsilon, jnp.zeros((mean.size, rank), "float32")
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            (found, _, _), _ = jax.lax.scan(each_datum(net, rank, form), start, (X, Y))
        np.testing.assert_allclose(found, ravel_pytree(method.belief(state).mean)[0], atol=2e-5)


def test_compiled_bound_filters_as_numpy_does():
    (F, Q, H, R, m0, P0), Y = tracking.problem(trials=19, steps=30)  # 19: the last block of 16 is not full
    kind, call = bound.kalman((F, Q, H, R, m0, P0), Y, full=True)
    if call is None:  # neither a C compiler nor numba: then there is no bound, and no row that claims one
        assert kind == "none"
        return
    means, covs, loglik = call()
    for y, found_m, found_P, found_l in zip(Y, means, covs, loglik, strict=True):
        m, P, total = m0.astype(float), P0.astype(float), 0.0
        for t in range(30):
            m, P = F @ m, F @ P @ F.T + Q
            S, e = H @ P @ H.T + R, y[t] - H @ m
            K = np.linalg.solve(S, H @ P).T
            m, P = m + K @ e, P - K @ H @ P
            total -= 0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(2 * np.pi * S)[1])
            np.testing.assert_allclose(found_m[t], m, atol=2e-4)
            np.testing.assert_allclose(found_P[t], P, atol=2e-5)
        np.testing.assert_allclose(found_l, total, rtol=1e-4)
    np.testing.assert_array_equal(bound.kalman((F, Q, H, R, m0, P0), Y, full=False)[1]()[0], means)


def test_disagreement_stops_the_clock():
    right, wrong = np.zeros((2, 3, 4)), np.full((2, 3, 4), 0.01)
    found = [
        ("g", name, "peer", "covariance", "float32", lambda out=out: (out,))
        for name, out in (("a", right), ("b", wrong))
    ]
    with pytest.raises(AssertionError, match="final means of b"):
        tracking.agree(found, Result())


def test_a_small_case_runs_and_is_written_down(tmp_path, monkeypatch, capsys):
    """In one process of its own."""
    monkeypatch.setitem(run.CASES, "tracking", ("plain",))
    target = tmp_path / "bench.json"
    assert run.main(["tracking", "--quick", "--json", str(target)]) == 0
    report = json.loads(target.read_text())
    assert set(report["cases"]) == {"tracking-plain"}
    rows = report["cases"]["tracking-plain"]["rows"]
    assert {(r["form"], r["dtype"]) for r in rows if r["role"] == "ours"} == {
        ("covariance", "float32"),
        ("root", "float32"),
    }
    assert all(0 < r["low"] <= r["seconds"] <= r["high"] for r in rows)
    assert "bars met" in capsys.readouterr().out


SMALL = [
    pytest.param("--units 12 --rank 3 --size 150 --judged 50", 0.8, 2.0, id="150"),
    pytest.param("--units 20 --rank 5 --size 300 --judged 100", 0.5, 1.5, id="300", marks=pytest.mark.nightly),
]


@pytest.mark.x64
@pytest.mark.skipif(not os.environ.get("FILTAX_DATA"), reason="name the folder of data sets in FILTAX_DATA")
@pytest.mark.parametrize(("size", "wrong", "surprise"), SMALL)
def test_the_protocol_of_the_lofi_paper_in_small(capsys, size, wrong, surprise):
    """One pass over a few images, a small perceptron: far from chance, which errs on 0.9 with a likelihood of 2.3."""
    assert lofi_protocol.main(f"{size} --seeds 2 --variances 0.1".split()) == 0
    chosen, found = map(json.loads, capsys.readouterr().out.splitlines())
    assert (chosen["chosen"], found["seeds"]) == (0.1, 2)
    assert float(found["misclassification at the mean"].split()[0]) < wrong
    assert float(found["negative log-likelihood"].split()[0]) < surprise
