"""Methods under JAX's transformations: functions with derivatives of their own, second derivatives, vmapped streams."""

import dataclasses
import importlib
import inspect
import itertools
import pkgutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx


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
def test_a_custom_derivative_survives_vmap(way, streams):
    """In either order of `vmap` and `grad`."""
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(streams, 4, 2)), rng.normal(size=(streams, 4))

    def total(q, x, y):
        method = fx.method("LG+C-ACI(q=0.1)", model=fx.models.linear(noise=lambda x: way(q * x[0] ** 2) + 0.1))
        return method.scan(method.init(mean=jnp.zeros(2)), x, y, keep=("log_evidence",))[1].log_evidence.sum()

    each = jax.jit(jax.grad(total))
    alone = sum(each(0.33, x, y) for x, y in zip(X, Y, strict=True))
    both = lambda q: jax.vmap(lambda x, y: total(q, x, y))(X, Y).sum()
    np.testing.assert_allclose([jax.grad(both)(0.33), jax.grad(jax.jit(both))(0.33)], alone, rtol=1e-9)


@pytest.mark.x64
def test_second_derivatives_in_every_mode():
    X, Y = np.random.default_rng(6).normal(size=(6, 3)), np.ones(6)

    def total(q):
        method = fx.method("LG+C-ACI", model=fx.models.linear(noise=0.3), prior=fx.priors.additive_inflation(q))
        return method.scan(method.init(mean=jnp.zeros(3)), X, Y, keep=("log_evidence",))[1].log_evidence.sum()

    ways = [jax.hessian(total), jax.grad(jax.grad(total)), jax.jacfwd(jax.jacfwd(total))]
    step, slope = 1e-5, jax.jit(jax.grad(total))
    near = (slope(0.1 + step) - slope(0.1 - step)) / (2 * step)
    np.testing.assert_allclose([way(0.1) for way in ways], near, rtol=1e-6)


def subclasses(cls):
    below = cls.__subclasses__()
    return set(below).union(*map(subclasses, below))


def test_structures_of_two_classes_differ():
    """Otherwise JAX runs the program of one for the other, whenever their hashes collide: one pair in a hundred."""
    for package in (fx.models, fx.auxiliary, fx.priors, fx.posteriors, fx.weighting, fx.beliefs, fx.distributions):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    structures = []
    for part in subclasses(fx.protocols.Module):
        if part.__module__.startswith("filtax.") and not inspect.isabstract(part):
            one = object.__new__(part)
            vars(one).update({each.name: getattr(part, each.name, None) for each in dataclasses.fields(part)})
            vars(one)["_class"] = part
            structures.append(jax.tree.structure(one))
    assert len(structures) > 100
    assert not any(one == other for one, other in itertools.combinations(structures, 2))
    assert fx.priors.additive_inflation(1.0) != fx.priors.ornstein_uhlenbeck(1.0)
