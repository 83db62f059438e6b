"""A program as one kernel that is handed its constants, against the same program as it stands."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from catalogue import ROWS
from filtax.kernel import one_kernel
from filtax.lanes import SMALL

FLAGS = jnp.asarray([[True, False], [False, True]])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", pytest.param("float64", marks=pytest.mark.x64)])
def test_constants_lie_behind_the_row(dtype):
    """Of the row's own dtype and flags; single numbers of any kind stay in the program."""
    held, three, scale = jnp.arange(4.0, dtype=dtype).reshape(2, 2), jnp.asarray(3), jnp.asarray(0.1, "float32")

    def run(packed, row):
        return packed + jnp.where(FLAGS, held, row[0]).ravel() * three.astype(dtype) + scale.astype(dtype)

    packed, row = jnp.ones(4, dtype), jnp.asarray([0.3, 0.7], dtype)
    tail, kernel = one_kernel(run, packed, row)
    assert sorted(tail.tolist()) == sorted([0.0, 1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 1.0])
    assert tail.dtype == row.dtype
    found = jax.jit(kernel)(packed, jnp.concatenate([row, tail]))
    eps = float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(*(np.asarray(a, float) for a in (found, run(packed, row))), rtol=4 * eps)


def test_what_is_large_or_needs_a_library_stays_as_it_is():
    few, many, row = jnp.ones(2), jnp.ones(SMALL + 1), jnp.ones(3)
    places, key = jnp.arange(2), jax.random.key(0)
    for run, packed in (
        (lambda packed, row: packed + row[0], many),
        (lambda packed, row: packed + row[0] + many[:2], few),
        (lambda packed, row: jnp.sort(packed) + row[0], few),
        (lambda packed, row: packed * places.astype(packed.dtype) + row[0], few),
        (lambda packed, row: packed + row[0] * jax.random.normal(key, dtype=packed.dtype), few),
    ):
        tail, kernel = one_kernel(run, packed, row)
        assert (tail.size, kernel) == (0, run)


@pytest.mark.x64
@pytest.mark.parametrize("name", ["tracker-covariance", "wolf-tmd", "coin", "unknown-noise"])
def test_events_are_those_of_step(name):
    row = ROWS[name]
    method, state = row.start()
    x = lambda t: None if row.X is None else row.X[t]
    fast = fx.compile(method, state, x(0), row.Y[0])
    assert (jax.default_backend() != "cpu") or "small_call" in fast._kernel.lower(fast._packed, fast._given).as_text()
    for t, y in enumerate(row.Y):
        event = fast.step(x(t), y)
        state, info = method.step(state, x(t), y)
        for field in ("mean", "var", "log_evidence", "residual", "trust"):
            np.testing.assert_allclose(getattr(event, field), getattr(info, field), rtol=1e-10, atol=1e-12)
    for left, right in zip(*(jax.tree.leaves(end.bank) for end in (fast.state, state)), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-12)


def test_the_row_is_read_whatever_the_model_makes_of_it():
    """XLA ends the process where a kernel does not read what it is given."""
    kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    fast = fx.compile(kf, kf.init(mean=jnp.zeros(2)))
    fast.step([3.0, 4.0], 5.0)
    assert float(fast._packed[-1]) == 3.0
