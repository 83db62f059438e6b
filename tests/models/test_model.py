"""A model is a predictor and a likelihood: what it hands on, to whom, and what is known from shapes alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.models import Direct, Linearised, Model, Whitened, bernoulli, categorical, gaussian, linear, nonlinear
from filtax.ravel import flatten

THETA = jnp.array([0.5, -1.0, 2.0])


def test_direct_looks_at_the_parameters_themselves():
    at = Direct().linearise(THETA, None, None)
    np.testing.assert_array_equal(at.eta, THETA)
    np.testing.assert_array_equal(at.jacobian, np.eye(3))
    assert not at.scalar
    assert Direct().linearise(THETA[:1], None, None).scalar
    assert at.jacobian.dtype == THETA.dtype
    assert Direct().bind(None) == Direct()


def test_a_model_asks_its_predictor():
    model = Model(Direct(), gaussian(0.5))
    np.testing.assert_array_equal(model.linearise(THETA, None).eta, THETA)
    np.testing.assert_array_equal(linear(0.5).linearise(THETA, jnp.array([1.0, 2.0, 3.0])).eta, [4.5])


def test_a_bound_model_predicts_from_the_pytree():
    """The likelihood stays; the predictor sees the parameters as they were given."""
    theta, layout = flatten({"slope": jnp.array([2.0, 3.0]), "offset": jnp.array(1.0)})
    model = nonlinear(lambda params, x: params["slope"] @ x + params["offset"], noise=0.5)
    bound = model.bind(layout)
    at = bound.linearise(theta, jnp.array([10.0, 100.0]))
    assert float(at.eta[0]) == 2.0 * 10.0 + 3.0 * 100.0 + 1.0
    np.testing.assert_array_equal(at.jacobian, [[1.0, 10.0, 100.0]])  # keys by the alphabet: the offset comes first
    assert bound.likelihood is model.likelihood
    assert linear(0.5).bind(layout).predictor == linear(0.5).predictor


@pytest.mark.parametrize(
    ("model", "D", "shape", "outputs", "width"),
    [
        (linear(0.5), 3, (3,), 1, 1),
        (linear(0.5), 6, (3,), 2, 2),
        (linear(0.5), 3, (5, 3), 5, 5),
        (linear(likelihood=categorical()), 12, (3,), 4, 1),
        (nonlinear(lambda theta, x: theta[0] * x, noise=0.5), 1, (), 1, 1),
        (Model(Direct(), bernoulli()), 2, None, 2, 2),
    ],
)
def test_outputs_are_known_from_shapes_alone(model, D, shape, outputs, width):
    """No number is computed: abstract arrays are enough."""
    theta = jax.ShapeDtypeStruct((D,), jnp.float32)
    x = None if shape is None else jax.ShapeDtypeStruct(shape, jnp.float32)
    found = []
    jax.eval_shape(lambda theta, x: found.append(model.outputs(theta, x)), theta, x)
    assert found == [outputs]
    assert model.likelihood.width(outputs) == width


def test_what_a_datum_may_leave_out():
    """A plain likelihood has no trust, one without a density of its own no scale; both are data that jit can return."""
    plain = jax.jit(lambda: Whitened(jnp.eye(2), jnp.zeros(2)))()
    assert plain.trust is None
    assert plain.log_scale is None
    at = jax.jit(lambda theta: Linearised(theta, jnp.eye(3), scalar=False))(THETA)
    assert at.scalar is False
