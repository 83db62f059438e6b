"""A function kept apart is the same function, to every transformation, and a call in what XLA compiles."""

import jax
import jax.numpy as jnp
import numpy as np

from filtax.calls import MANY, apart, by_streams
from filtax.tuning import SMALL_LOOP


def plain(a, b):
    return jnp.sin(a) * b, a - b


kept = apart(plain)
A, B = jnp.linspace(0.1, 1.0, 3), jnp.linspace(2.0, 3.0, 3)


def total(function):
    return lambda a, b: jnp.sum(function(a, b)[0] * function(b, a)[1])


def same(left, right):
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_values_slopes_and_batches_are_those_of_the_function():
    same(kept(A, B), plain(A, B))
    both = jnp.stack([A, B])
    same(jax.vmap(kept, (0, None))(both, A), jax.vmap(plain, (0, None))(both, A))
    same(jax.vmap(kept, (None, 0), out_axes=1)(A, both), jax.vmap(plain, (None, 0), out_axes=1)(A, both))
    for slope in (jax.grad, jax.jacfwd):
        same(slope(total(kept))(A, B), slope(total(plain))(A, B))
    same(jax.vmap(jax.grad(total(kept)), (0, None))(both, A), jax.vmap(jax.grad(total(plain)), (0, None))(both, A))


def test_a_linear_function_can_be_turned_round():
    """Rules for slopes multiply by what is linear in them."""
    double = jax.linear_transpose(apart(lambda a: (2.0 * a, 3.0 * a)), A)
    same(double((A, B)), (2.0 * A + 3.0 * B,))


def twice(a, b):
    return kept(*kept(a, b))


def looped(function):
    """The function within a loop."""
    return lambda a, b: jax.lax.scan(lambda carry, _: (function(*carry), None), (a, b), None, 2)[0]


def marks(function, *given, platform="cpu"):
    lowered = jax.jit(lambda *given: function(*given)).trace(*given).lower(lowering_platforms=(platform,))
    return lowered.as_text().count('inlineable = "false"')


def test_the_call_stays_one_for_many_streams_on_a_cpu_and_nowhere_else(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    many = jax.vmap(looped(twice))
    rows, others = (jnp.tile(a, (MANY, 1)) for a in (A, B))
    assert marks(many, rows, others) == 2
    assert marks(many, rows[1:], others[1:]) == 0
    assert marks(many, rows, others, platform="cuda") == 0
    mixed = apart(lambda A, b: jnp.sum(A * b[None, :], axis=1))  # nothing much differs between these
    assert marks(jax.vmap(mixed, (None, 0)), jnp.eye(3), rows) == 0
    aside = jax.vmap(apart(lambda A, b: A @ b), (None, 0))  # but here what it makes has them side by side
    assert marks(aside, jnp.eye(3), rows) == 1
    if jax.default_backend() == "cpu":
        compiled = jax.jit(jax.vmap(twice)).lower(rows, others).compile()
        assert str(compiled.as_text()).count(" call(") == 2


def test_a_single_stream_is_called_where_that_costs_nothing(monkeypatch):
    """At the top of a program, unless nothing goes to another thread."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    alone = apart(plain, single=True)
    rows, others = (jnp.tile(a, (MANY, 1)) for a in (A, B))
    assert marks(twice, A, B) == 2
    assert marks(alone, A, B) == 1
    assert marks(jax.vmap(alone), rows, others) == 0
    assert marks(looped(alone), A, B) == 0
    monkeypatch.setenv("XLA_FLAGS", f"--xla_backend_extra_options={SMALL_LOOP}")
    assert marks(looped(alone), A, B) == marks(alone, A, B) == 0


def test_a_function_that_holds_arrays_of_its_own_stays_a_call_too():
    """What it holds becomes an argument of the call, and so does what a slope needs."""

    def hold(a, extra):
        return apart(lambda a: jnp.sin(a) * extra * jnp.asarray(np.arange(3.0)))(a)

    rows = jnp.tile(A, (MANY, 1))
    held, slope = jax.vmap(hold, (0, None)), jax.vmap(jax.grad(lambda a, b: jnp.sum(hold(a, b))), (0, None))
    scale = np.arange(3.0) * np.asarray(B)
    same(jax.jit(held)(rows, B), np.sin(rows) * scale)
    same(jax.jit(slope)(rows, B), np.cos(rows) * scale)


def test_the_way_is_that_for_as_many_streams_as_there_are():
    few, many = (lambda a: jnp.stack([a[0], a[1]])), (lambda a: 2.0 * a[:2])
    either = by_streams(few, many, (2,))
    one = jnp.arange(3.0)
    batch = jnp.arange(3.0 * MANY).reshape(MANY, 3)
    same(either(one), one[:2])
    same(jax.vmap(either)(batch[1:]), batch[1:, :2])
    same(jax.vmap(either)(batch), 2.0 * batch[:, :2])
    same(jax.vmap(either, in_axes=1, out_axes=1)(batch.T), 2.0 * batch[:, :2].T)
    same(jax.vmap(jax.vmap(either))(batch.reshape(2, -1, 3)), 2.0 * batch[:, :2].reshape(2, -1, 2))
    many_elsewhere = jax.jit(either).trace(one).lower(lowering_platforms=("cuda",)).as_text()
    assert "multiply" in many_elsewhere
