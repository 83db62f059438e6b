"""A loop whose streams lie side by side: the same numbers as `jax.lax.scan`, whatever is vmapped, kept or asked for."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax import lanes
from filtax.calls import apart, by_streams
from filtax.sideways import sideways

TESTS = Path(__file__).parent


def reached(body, carry, rows):
    """The loop by hand, one stream and one row at a time, in numpy."""
    kept = []
    for t in range(len(jax.tree.leaves(rows)[0])):
        carry, one = body(carry, jax.tree.map(lambda leaf, t=t: leaf[t], rows))
        kept.append(one)
    return carry, jax.tree.map(lambda *leaves: np.stack(leaves), *kept)


def everything(carry, row):
    """Operations of many kinds, on what is shared, what differs, and what begins alike and then differs."""
    shared, state, count, wide = carry
    x, y = row
    shared = 0.9 * shared + jnp.outer(x, x)
    seen = jnp.concatenate([x[:2], jnp.zeros(1), state[1:]])
    state = jnp.where(y > 0, state @ shared, jnp.flip(state)) + jnp.max(seen) * x
    place = jnp.argmin(state)
    picked = jax.lax.dynamic_index_in_dim(shared, count % 3, keepdims=False)
    late = jnp.sort(state)[place] + jnp.linalg.norm(picked) + state.reshape(3, 1).T[0, 0]
    kept = {"late": late, "shared": shared, "whole": jnp.stack([state, jnp.cumsum(seen)[:3]]), "count": count}
    wide = 0.5 * wide + y * jnp.outer(jnp.arange(4.0), state)
    return (shared, state / (1.0 + jnp.abs(late)), count + (y > 1.0).astype(jnp.int32), wide), kept


def problem(streams, steps=7):
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(steps, 3)), rng.normal(size=(streams, steps))
    start = jnp.eye(3), jnp.ones(3), jnp.zeros((), jnp.int32), jnp.zeros((4, 3))
    return start, jnp.asarray(X), jnp.asarray(Y)


@pytest.mark.x64
@pytest.mark.parametrize("streams", [3, 20])
def test_vmapped_streams_are_those_of_a_loop_by_hand(streams):
    start, X, Y = problem(streams)
    run = jax.jit(jax.vmap(lambda Y: lanes.scan(everything, start, (X, Y))))
    last, kept = run(Y)
    for i in (0, streams - 1):
        here, told = reached(everything, start, (X, Y[i]))
        for found, expected in zip(jax.tree.leaves((last, kept)), jax.tree.leaves((here, told)), strict=True):
            np.testing.assert_allclose(found[i], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.x64
def test_two_axes_of_streams_and_an_axis_in_the_middle():
    start, X, _ = problem(1)
    Y = jnp.asarray(np.random.default_rng(4).normal(size=(17, 7, 18)))
    one = lambda Y: lanes.scan(everything, start, (X, Y))[1]["late"]
    found = jax.vmap(jax.vmap(one, in_axes=1), in_axes=0, out_axes=1)(Y)
    plain = lambda Y: jax.lax.scan(everything, start, (X, Y))[1]["late"]
    np.testing.assert_allclose(found, jax.vmap(jax.vmap(plain, in_axes=1), in_axes=0, out_axes=1)(Y), rtol=1e-12)


@pytest.mark.x64
@pytest.mark.nightly
def test_slopes_are_those_of_the_plain_loop():
    start, X, Y = problem(20)

    def score(loop, scale, Y):
        (_, state, _, wide), kept = loop(everything, (start[0], scale * start[1], *start[2:]), (X, Y))
        return jnp.sum(state**2) + jnp.sum(kept["late"]) + jnp.sum(wide)

    for mode in (jax.grad, jax.jacfwd):
        found = jax.vmap(mode(lambda s, y: score(lanes.scan, s, y)), in_axes=(None, 0))(1.3, Y)
        plain = jax.vmap(mode(lambda s, y: score(jax.lax.scan, s, y)), in_axes=(None, 0))(1.3, Y)
        np.testing.assert_allclose(found, plain, rtol=1e-10)
    mean = lambda loop: jax.grad(lambda s: jax.vmap(lambda y: score(loop, s, y))(Y).mean())(1.3)
    np.testing.assert_allclose(mean(lanes.scan), mean(jax.lax.scan), rtol=1e-10)


def loops(program):
    """The primitives of a program, with those inside."""
    for eqn in program.eqns:
        yield eqn
        for part in jax.tree.leaves(list(eqn.params.values()), is_leaf=lambda part: hasattr(part, "jaxpr")):
            if hasattr(part, "jaxpr"):
                yield from loops(part.jaxpr)


def test_what_streams_share_is_carried_once_and_what_is_not_read_is_dropped():
    start, X, Y = problem(20)
    program = jax.make_jaxpr(jax.vmap(lambda Y: lanes.scan(everything, start, (X, Y))))(Y)
    (loop,) = [eqn for eqn in loops(program.jaxpr) if eqn.primitive.name == "rows"]
    carried = [var.aval.shape for var in loop.outvars[: loop.params["carried"]]]
    assert carried == [(3, 3), (3, 20), (20,), (4, 3, 20)]
    alike = lambda carry, row: ((carry[0] + 1.0, carry[1] * row), carry[0])
    program = jax.make_jaxpr(jax.vmap(lambda Y: lanes.scan(alike, (jnp.ones(3), jnp.ones(2)), Y)))(Y)
    apart = [eqn for eqn in loops(program.jaxpr) if eqn.primitive.name == "rows"]  # most of it is shared: it runs ahead
    assert [[var.aval.shape for var in loop.outvars] for loop in apart] == [[(3,), (7, 3)], [(2, 20)]]
    compiled = jax.jit(lambda Y: lanes.scan(lambda a, y: ((a[0] + y, a[1] * y), a[1]), (0.0, 1.0), Y)[0][1])
    text = compiled.lower(jnp.ones(5)).as_text()
    assert "add" in text  # the counter of the loop
    assert text.count("stablehlo.multiply") == 1
    assert "tensor<5xf32>" not in text.split("stablehlo.while")[1].split("do {")[0].split(":")[0]


def mostly_shared(scale):
    """As a filter whose streams share their covariance: the largest array never depends on the data."""
    blend = apart(lambda P, m: (P @ P / (1.0 + jnp.trace(P @ P)), P @ m, m))
    soft = jax.nn.softplus  # a function with a slope of its own

    def body(carry, row):
        P, state, late = carry
        x, y = row
        P = 0.9 * P + jnp.outer(x, x) + jnp.linalg.inv(jnp.eye(3) + scale)
        gain, moved, same = blend(P, state)
        state = moved * soft(P[0] * y) + jnp.broadcast_to(gain[:, 0], (3,)) * y + same
        late = jnp.where(x[0] > 0, late, late + state[0])
        return (P, state / (1.0 + jnp.max(jnp.abs(state))), late), {"P": P[1], "state": state, "late": late, "x": x}

    return body


@pytest.mark.x64
@pytest.mark.parametrize("differs", [False, True], ids=["one scale", "a scale each"])
def test_what_is_shared_runs_ahead_and_changes_nothing(differs):
    _, X, Y = problem(64)
    start = jnp.eye(3), jnp.ones(3), jnp.zeros(())
    scales = jnp.linspace(0.1, 1.0, 64)
    scale = (lambda i: scales[i]) if differs else (lambda i: 0.3)
    run = lambda loop, i, Y: loop(mostly_shared(scale(i)), start, (X, Y))
    if not differs:
        program = jax.make_jaxpr(jax.vmap(lambda Y: run(lanes.scan, 0, Y)))(Y)
        assert len([eqn for eqn in loops(program.jaxpr) if eqn.primitive.name == "rows"]) == 2
    found = jax.jit(jax.vmap(lambda i, Y: run(lanes.scan, i, Y)))(jnp.arange(64), Y)
    for i in (0, 63):
        expected = run(reached, i, Y[i])
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one[i], other, rtol=1e-12, atol=1e-12)


@pytest.mark.x64
def test_what_runs_ahead_has_slopes_and_a_second_axis_of_streams():
    _, X, _ = problem(1)
    Y = jnp.asarray(np.random.default_rng(6).normal(size=(17, 64, 7)))
    start = jnp.eye(3), jnp.ones(3), jnp.zeros(())

    def score(loop, scale):
        last = lambda Y: loop(mostly_shared(scale), start, (X, Y))[1]["late"]
        return jnp.mean(jax.vmap(jax.vmap(last))(Y) ** 2)

    for found, plain in (
        (mode(lambda s, loop=loop: score(loop, s)) for loop in (lanes.scan, jax.lax.scan))
        for mode in (jax.value_and_grad, lambda f: jax.jacfwd(f), lambda f: f)
    ):
        np.testing.assert_allclose(jax.jit(found)(0.3), jax.jit(plain)(0.3), rtol=1e-10)


def test_a_long_list_is_not_made():
    """Where streams would read more of what is shared than they bring along, one loop does both."""
    many = lambda carry, row: ((carry[0] + 1.0, carry[1] * row * jnp.sum(jnp.sin(carry[0]) * carry[1])), None)
    start = jnp.ones((10, 10)), jnp.ones(())
    program = jax.make_jaxpr(jax.vmap(lambda Y: lanes.scan(many, start, Y)))(jnp.ones((20, 3)))
    assert not [eqn for eqn in loops(program.jaxpr) if eqn.primitive.name == "rows"]


def test_what_differed_may_become_alike():
    body = lambda carry, row: ((jnp.ones(2), carry[1] + row), carry[0])
    A, Y = jnp.arange(40.0).reshape(20, 2), jnp.ones((20, 3))
    run = lambda loop: jax.vmap(lambda a, y: loop(body, (a, jnp.zeros(2)), y))(A, Y)
    for found, expected in zip(jax.tree.leaves(run(lanes.scan)), jax.tree.leaves(run(jax.lax.scan)), strict=True):
        assert np.array_equal(found, expected)


def test_ways_that_depend_on_the_number_of_streams_are_taken_as_for_many():
    double = by_streams(lambda a: a + a, lambda a: 2.0 * a, ())
    once = apart(lambda a, b: (a * b, a + b))
    body = lambda a, y: (once(double(a), y)[1], once(a, y)[0])
    Y = jnp.arange(60.0).reshape(20, 3)
    found = jax.jit(jax.vmap(lambda y: lanes.scan(body, jnp.ones(()), y)))(Y)
    plain = jax.vmap(lambda y: jax.lax.scan(body, jnp.ones(()), y))(Y)
    assert all(map(np.array_equal, found[1:], plain[1:]))
    assert np.array_equal(found[0], plain[0])


@pytest.mark.x64
@pytest.mark.parametrize("name", ["LG+RL[3]-PR(hazard=0.1)", "WoLF-IMQ(c=4)+RL[12]-PR(hazard=0.1)", "LG+C-ACI(q=0.1)"])
def test_streams_of_a_bank_are_those_of_each_alone(name):
    rng = np.random.default_rng(5)
    method = fx.method(name, model=fx.models.linear(noise=1.0))
    state, X, Y = (
        method.init(mean=jnp.zeros(3), cov=1.0),
        jnp.asarray(rng.normal(size=(9, 3))),
        rng.normal(size=(20, 9)),
    )
    keep = ("mean", "log_evidence", "belief_var")
    _, found = jax.vmap(lambda Y: method.scan(state, X, Y, keep=keep))(jnp.asarray(Y))
    _, alone = method.scan(state, X, Y[7], keep=keep)
    for field in keep:
        np.testing.assert_allclose(getattr(found, field)[7], getattr(alone, field), rtol=1e-12, atol=1e-14)


def test_streams_that_draw_are_those_of_each_alone():
    """Keys become bytes, and bytes keys: an axis at the end is in the way there."""
    method = fx.method("EnKF(size=8)+C-ACI(q=0.1)", model=fx.models.linear(noise=1.0))
    X, Y = jnp.ones((4, 2), "float32"), jnp.arange(4.0, dtype="float32")
    run = lambda key: method.scan(method.init(mean=jnp.zeros(2, "float32"), key=key), X, Y, keep=("log_evidence",))[1]
    keys = jax.random.split(jax.random.key(0), 20)
    np.testing.assert_allclose(jax.vmap(run)(keys).log_evidence[7], run(keys[7]).log_evidence, rtol=1e-5)


def test_an_operation_that_is_not_known_is_left_to_vmap():
    program = jax.make_jaxpr(lambda a, b: (jnp.linalg.cholesky(a), b[::2], jnp.sort(b)))(jnp.eye(3), jnp.ones(4))
    run, found = sideways(program, [True, False], 5)
    scale = jnp.arange(1.0, 6.0)
    root, rest, ordered = run(jnp.eye(3)[..., None] * scale[None, None] ** 2, jnp.arange(4.0))
    assert found == [True, False, False]
    np.testing.assert_allclose(root, jnp.eye(3)[..., None] * scale[None, None], rtol=1e-6)
    assert rest.tolist() == [0.0, 2.0]
    assert ordered.shape == (4,)


def kernels(body, carry, rows, platform="cpu"):
    """How many loops are to be one kernel each, and how many calls stay calls."""
    loop = jax.jit(lambda carry, rows: lanes.scan(lambda *given: body(*given), carry, rows))
    text = loop.trace(carry, rows).lower(lowering_platforms=(platform,)).as_text()
    return text.count('xla_cpu_small_call = "true"'), text.count('inlineable = "false"')


def test_a_small_loop_is_one_kernel():
    """Not so a large one, nor one that needs a library, and only for a CPU."""
    product = apart(lambda a, b: a * b)
    body = lambda a, y: (jnp.sin(product(a, y)), a)
    small, large = jnp.ones((5, 3)), jnp.ones((5, lanes.ONE + 1))
    assert kernels(body, small[0], small) == (1, 2)
    assert kernels(body, small[0], small, platform="cuda") == (0, 0)
    assert kernels(body, large[0], large)[0] == 0
    assert kernels(body, small[0], small[:0])[0] == 0
    for other in (jnp.sort, lambda a: jnp.eye(3) @ a, lambda a: a.at[jnp.argmax(a)].set(0.0)):
        assert kernels(lambda a, y, other=other: (jax.jit(other)(product(a, y)), a), small[0], small)[0] == 0


@pytest.mark.parametrize("total", [jnp.sum, jnp.max, jnp.min])
def test_long_sums_are_left_to_the_library_that_xla_asks(total):
    """From 4096 numbers on; inside of one kernel XLA's compiler knows no such thing, and says so."""
    ways = [lambda a: total(a), lambda a: by_streams(lambda b: total(b)[None], lambda b: total(b)[None], (1,))(a)[0]]
    for size, marked in ((lanes.SUMMED, 1), (lanes.SUMMED + 1, 0), (4096, 0)):
        for way in ways:
            rows = jnp.ones((3, size))
            body = lambda a, y, way=way: (a + y, way(a + y))
            assert kernels(body, rows[0], rows)[0] == marked
            _, kept = jax.jit(lambda rows, body=body: lanes.scan(body, rows[0], rows))(rows)
            assert kept.tolist() == [(t + 2.0) * (size if total is jnp.sum else 1) for t in range(3)]


@pytest.mark.parametrize("loops", ["0 20", pytest.param("20 1000", marks=pytest.mark.nightly)])
def test_random_loops_are_the_same_as_one_kernel(loops):
    """In a process of its own: what XLA's compiler cannot take, such as a number that nothing reads, ends it."""
    done = subprocess.run([sys.executable, TESTS / "loops.py", *loops.split()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made, _, of, *_ = done.stdout.split()
    assert int(made) > 0.8 * int(of)


def test_what_no_row_touches_does_not_pass_through_the_loop():
    body = lambda carry, y: ((carry[0], carry[1] + y), carry[0])
    still, rows = jnp.zeros(2), jnp.ones((5, 2))
    program = jax.make_jaxpr(lambda a, b: lanes.scan(body, (a, b), rows)[0])(still, still).jaxpr
    assert program.outvars[0] is program.invars[0]
    (first, last), kept = jax.vmap(lambda a: lanes.scan(body, (a, still), rows))(jnp.arange(40.0).reshape(20, 2))
    assert np.array_equal(first, np.arange(40.0).reshape(20, 2))
    assert np.array_equal(kept[:, 4], first)
    assert np.array_equal(last, np.full((20, 2), 5.0))
