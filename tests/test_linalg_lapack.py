"""Factorisations by LAPACK: values by numpy, derivatives by JAX's own rules, batches one after another."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.linalg import solve_triangular

from filtax import linalg

rng = np.random.default_rng(0)
N = 5
ROOT = np.tril(rng.normal(size=(N, N))) + 3.0 * np.eye(N)
SYMMETRIC, WIDE = ROOT @ ROOT.T, rng.normal(size=(3, N))
RIGHT = rng.normal(size=(N, 2))
signed = lambda U, s, Vt: (jnp.abs(U), s, jnp.abs(Vt))  # each pair of vectors has a free sign
lower = jnp.tril

CASES = {  # ours, JAX's own, arguments
    "cholesky": (lambda A: linalg.cholesky(0.5 * (A + A.T)), jnp.linalg.cholesky, (SYMMETRIC,)),
    "forwards": (linalg.solve_lower, lambda L, b: solve_triangular(L, b, lower=True), (ROOT, RIGHT)),
    "vector": (linalg.solve_lower, lambda L, b: solve_triangular(L, b, lower=True), (ROOT, RIGHT[:, 0])),
    "backwards": (
        linalg.solve_upper,
        lambda L, b: solve_triangular(L, b, lower=True, trans="T"),
        (ROOT, RIGHT),
    ),
    "eigh": (
        lambda A: jax.tree.map(jnp.abs, linalg.eigh(A)),
        lambda A: jax.tree.map(jnp.abs, tuple(jnp.linalg.eigh(A))),
        (SYMMETRIC,),
    ),
    "svd wide": (
        lambda A: signed(*linalg.svd(A)),
        lambda A: signed(*jnp.linalg.svd(A, full_matrices=False)),
        (WIDE,),
    ),
    "svd tall": (
        lambda A: signed(*linalg.svd(A)),
        lambda A: signed(*jnp.linalg.svd(A, full_matrices=False)),
        (WIDE.T,),
    ),
}
every_case = pytest.mark.parametrize("case", CASES)
pytestmark = pytest.mark.x64


def close(found, expected, rtol=1e-8):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-10)


def test_values_are_those_of_numpy():
    close(linalg.cholesky(jnp.asarray(SYMMETRIC)), np.linalg.cholesky(SYMMETRIC))
    close(linalg.solve_lower(jnp.asarray(ROOT), jnp.asarray(RIGHT)), np.linalg.solve(ROOT, RIGHT))
    close(linalg.solve_upper(jnp.asarray(ROOT), jnp.asarray(RIGHT)), np.linalg.solve(ROOT.T, RIGHT))
    close(linalg.eigh(jnp.asarray(SYMMETRIC))[0], np.linalg.eigvalsh(SYMMETRIC))
    close(linalg.svd(jnp.asarray(WIDE))[1], np.linalg.svd(WIDE, compute_uv=False))
    value, V = linalg.eigh(jnp.asarray(SYMMETRIC))
    close(V @ jnp.diag(value) @ V.T, SYMMETRIC)
    U, s, Vt = linalg.svd(jnp.asarray(WIDE))
    close(U @ jnp.diag(s) @ Vt, WIDE)


@every_case
def test_derivatives_of_both_orders_and_modes_are_those_of_jax(case):
    ours, theirs, args = CASES[case]
    args = tuple(map(jnp.asarray, args))

    def total(function):
        return lambda *args: sum(jnp.sum(jnp.sin(leaf + 0.1)) for leaf in jax.tree.leaves(function(*args)))

    every = tuple(range(len(args)))
    close(jax.grad(total(ours), every)(*args), jax.grad(total(theirs), every)(*args))
    close(jax.jacfwd(total(ours), every)(*args), jax.grad(total(theirs), every)(*args))
    second = [jax.jit(jax.jacfwd(jax.grad(total(function))))(*args) for function in (ours, theirs)]
    close(*second, rtol=1e-6)


@every_case
def test_a_batch_is_its_members(case):
    ours, _, args = CASES[case]
    many = tuple(jnp.stack([scale * jnp.asarray(arg) for scale in (1.0, 0.5, 2.0)]) for arg in args)
    for axes in {(0,) * len(args), (0,) + (None,) * (len(args) - 1)}:
        given = tuple(arg if axis == 0 else arg[0] for arg, axis in zip(many, axes, strict=True))
        member = lambda i, given=given, axes=axes: tuple(
            arg[i] if axis == 0 else arg for arg, axis in zip(given, axes, strict=True)
        )
        found = jax.jit(jax.vmap(ours, axes))(*given)
        close(jax.tree.map(lambda leaf: leaf[1], found), ours(*member(1)))
        first = lambda *args: jnp.sum(jax.tree.leaves(ours(*args))[0])
        close(jax.vmap(jax.grad(first), axes)(*given)[2], jax.grad(first)(*member(2)))


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="of LAPACK on a CPU")
@every_case
def test_no_program_calls_lapack_for_a_batch(case):
    """Two such calls at once can wait for each other for ever, also in derivatives and under two axes of `vmap`."""
    ours, _, args = CASES[case]
    first = lambda *args: jnp.sum(jax.tree.leaves(ours(*args))[0])
    many = tuple(jnp.stack([jnp.stack([jnp.asarray(arg)] * 3)] * 2) for arg in args)
    text = jax.jit(jax.vmap(jax.vmap(jax.value_and_grad(first)))).lower(*many).compile().as_text()
    calls = [line for line in text.splitlines() if 'custom_call_target="lapack' in line]
    assert calls
    shapes = [shape for line in calls for shape in re.findall(r"f64\[([\d,]+)\]", line)]
    assert all(len(shape.split(",")) <= 2 or set(shape.split(",")[:-2]) == {"1"} for shape in shapes), shapes


def test_the_root_of_wide_matrices_is_taken_one_by_one():
    from filtax.linalg import triangular_root

    text = jax.jit(jax.vmap(triangular_root)).lower(jnp.ones((3, 7, 9))).compile().as_text()
    shapes = re.findall(r'f64\[([\d,]+)\].*custom_call_target="lapack', text)
    assert shapes
    assert not any(shape.startswith("3,") for shape in shapes)
