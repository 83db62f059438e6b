"""Slopes of a loop whose streams lie side by side, and functions in it that have slopes of their own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax import lanes


@jax.custom_vjp
def rounded(a):
    """As if it were not rounded, for its slope."""
    return jnp.round(4.0 * a) / 4.0


rounded.defvjp(lambda a: (rounded(a), None), lambda _, slope: (slope,))


@jax.custom_jvp
def floored(a, b):
    return jnp.floor(4.0 * a) / 4.0 + b


floored.defjvp(lambda given, slopes: (floored(*given), 3.0 * slopes[0] + slopes[1]))


@pytest.mark.x64
@pytest.mark.parametrize("streams", [3, 20])
@pytest.mark.parametrize("way", [rounded, lambda a: floored(a, 1.0), lambda a: floored(a, jnp.asarray(2.0))])
def test_a_function_that_has_a_slope_of_its_own_keeps_it(way, streams):
    """Whether streams are mapped before or after: once it was lost from 16 streams on, and nothing said so."""
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(streams, 4, 2)), rng.normal(size=(streams, 4))

    def total(q, x, y):
        method = fx.method("LG+C-ACI(q=0.1)", model=fx.models.linear(noise=lambda x: way(q * x[0] ** 2) + 0.1))
        return method.scan(method.init(mean=jnp.zeros(2)), x, y, keep=("log_evidence",))[1].log_evidence.sum()

    each = jax.jit(jax.grad(total))
    alone = sum(each(0.33, x, y) for x, y in zip(X, Y, strict=True))
    both = lambda q: jax.vmap(lambda x, y: total(q, x, y))(X, Y).sum()
    np.testing.assert_allclose([jax.grad(both)(0.33), jax.grad(jax.jit(both))(0.33)], alone, rtol=1e-9)


@jax.custom_jvp
def with_a_number(a):
    return jnp.floor(a), 1.5


with_a_number.defjvp(lambda given, slopes: (with_a_number(*given), (3.0 * slopes[0], 0.0 * slopes[0])))


@pytest.mark.parametrize("streams", [15, 16])
def test_numbers_that_stand_in_the_program_are_shared_by_all_streams(streams):
    """As a result of a function with a slope of its own, and as what a loop begins with."""
    body = lambda c, r: (c + jnp.prod(jnp.stack(with_a_number(r))), c)
    begun = lambda x: lanes.scan(body, jnp.asarray(0.5), x)[0]
    rows = jnp.ones((streams, 2))
    for run in (begun, jax.jit(begun)):
        assert jax.vmap(run)(rows).tolist() == [3.5] * streams


@pytest.mark.x64
def test_slopes_of_slopes_in_either_direction():
    X, Y = np.random.default_rng(6).normal(size=(6, 3)), np.ones(6)

    def total(q):
        method = fx.method("LG+C-ACI", model=fx.models.linear(noise=0.3), prior=fx.priors.additive_inflation(q))
        return method.scan(method.init(mean=jnp.zeros(3)), X, Y, keep=("log_evidence",))[1].log_evidence.sum()

    ways = [jax.hessian(total), jax.grad(jax.grad(total)), jax.jacfwd(jax.jacfwd(total))]
    step, slope = 1e-5, jax.jit(jax.grad(total))
    near = (slope(0.1 + step) - slope(0.1 - step)) / (2 * step)
    np.testing.assert_allclose([way(0.1) for way in ways], near, rtol=1e-6)


def test_nothing_needs_a_compiler():
    """`jax.disable_jit` is how people look into a program; here it went round in circles."""
    method = fx.method("LG+C-ACI(q=0.1)", model=fx.models.linear(noise=0.3))
    run = lambda: method.scan(method.init(mean=jnp.zeros(2)), jnp.ones((3, 2)), jnp.ones(3))[1].mean
    with jax.disable_jit():
        seen = run()
    np.testing.assert_allclose(seen, run(), rtol=1e-6)
