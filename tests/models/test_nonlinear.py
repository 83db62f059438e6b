"""Any differentiable predictor: its value, and its Jacobian against central differences in numpy."""

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.models import nonlinear, poisson
from filtax.models._nonlinear import Function
from filtax.ravel import flatten
from moments import normal

pytestmark = pytest.mark.x64
X = normal(5, 3)


def decay(theta, x, lib=jnp):
    return theta[0] * lib.exp(-theta[1] * x[0])


def pair(theta, x, lib=jnp):
    return lib.stack([lib.sin(theta[0] * x[0]) + theta[1] ** 2, theta[0] * theta[1] * x[1]])


def single(theta, x, lib=jnp):
    return decay(theta, x, lib)[None]


def tall(theta, x, lib=jnp):
    return lib.tanh(theta[0] * x)


def slope(h, theta, step=1e-6):
    columns = [np.atleast_1d(h(theta + e, X, np) - h(theta - e, X, np)) for e in step * np.eye(len(theta))]
    return np.stack(columns, axis=1) / (2 * step)


@pytest.mark.parametrize(
    ("h", "D", "scalar"), [(decay, 2, True), (single, 2, False), (pair, 2, False), (tall, 1, False)]
)
def test_value_and_jacobian(h, D, scalar):
    """A number without an axis, one with, two, and more outputs than parameters."""
    theta = normal(0, D)
    got = Function(h).linearise(jnp.asarray(theta), jnp.asarray(X), None)
    np.testing.assert_allclose(got.eta, np.atleast_1d(h(theta, X, np)), rtol=1e-13)
    np.testing.assert_allclose(got.jacobian, slope(h, theta), rtol=1e-8, atol=1e-9)
    assert got.scalar is (h is decay)
    assert got.eta.dtype == got.jacobian.dtype == theta.dtype


def test_parameters_in_a_pytree():
    """A tiny network: its Jacobian lies as the flat vector does."""
    params = {"inner": normal(0, 3, 2), "outer": normal(1, 2)}
    h = lambda p, x, lib=jnp: lib.tanh(x @ p["inner"]) @ p["outer"]
    theta, layout = flatten(params)
    got = Function(h).bind(layout).linearise(theta, jnp.asarray(X), None)
    flat = lambda t, x, lib: h({"inner": t[:6].reshape(3, 2), "outer": t[6:]}, x, lib)
    np.testing.assert_allclose(got.eta, [h(params, X, np)], rtol=1e-13)
    np.testing.assert_allclose(got.jacobian, slope(flat, np.asarray(theta)), rtol=1e-8, atol=1e-9)
    assert Function(h).bind(layout) == Function(h).bind(flatten(params)[1])  # equal methods share a compilation


def test_a_gpu_writes_the_same_jacobian_leaf_by_leaf(monkeypatch):
    theta, layout = flatten({"a": jnp.array([1.0, 2.0]), "b": jnp.array([[3.0, -1.0], [0.5, 2.0]])})
    model = Function(lambda p, x: jnp.sin(p["b"] @ p["a"]) * x + p["a"], layout)
    want = model.linearise(theta, jnp.asarray(0.3), None).jacobian
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "device_count", lambda: 1)
    np.testing.assert_array_equal(model.linearise(theta, jnp.asarray(0.3), None).jacobian, want)


def test_the_output_takes_the_type_of_the_parameters():
    """A network in half precision, or one that returns a Python number, is still used in the belief's type."""
    for h in (lambda theta, x: theta[0].astype("float16") * 2, lambda theta, x: 2.0):
        got = Function(h).linearise(jnp.ones(1, "float32"), jnp.asarray(X), None)
        assert (got.eta.dtype, got.jacobian.dtype) == ("float32", "float32")
        assert float(got.eta[0]) == 2.0


def test_refusals():
    with pytest.raises(ValueError, match=r"h returned an array of shape \(2, 1\); it must return a scalar or \(O,\)"):
        Function(lambda theta, x: theta[:, None]).linearise(jnp.zeros(2), jnp.asarray(X), None)
    with pytest.raises(ValueError, match=r"must be a function h\(params, x\), got int"):
        inspect.unwrap(nonlinear)(3, noise=0.1)  # without the type checks of the test run, which refuse it first
    with pytest.raises(ValueError, match=r"nonlinear: give noise=... or likelihood=..., got neither"):
        nonlinear(decay)
    assert nonlinear(decay, likelihood=poisson()).likelihood == poisson()


def test_a_function_must_take_two_arguments():
    """Its own, not those of what it wraps; what cannot be asked passes."""
    with pytest.raises(ValueError, match=r"two arguments, h\(params, x\), got one of \(params\)"):
        nonlinear(lambda params: params, noise=1.0)

    @functools.wraps(np.sin)
    def wrapper(params, x):
        return params[0] * x

    for h in (wrapper, jax.jit(wrapper), functools.partial(lambda a, params, x: a * x, 1.0), lambda *args: args[0]):
        assert nonlinear(h, noise=1.0).predictor is not None
