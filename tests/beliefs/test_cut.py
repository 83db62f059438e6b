"""What a datum takes off a covariance: by the exact posterior, in rationals; and what is kept however it is rounded."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs.cut import Cut, cut


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_variance_falls_below_what_a_datum_can_leave(dtype):
    """Σ' >= Σ / (1 + tr S), though rounding takes off more than there was; where it does not, what is left counts."""
    var = jnp.asarray([1.0, 2.0, 8.0], dtype)
    U = jnp.asarray([[1.2], [1.0], [0.5]], dtype)  # the first takes 1.44 off 1
    zero = jnp.zeros((), dtype)
    done = Cut(jnp.zeros(3, dtype), U, jnp.asarray(4.0, dtype), zero, jnp.zeros(1, dtype), zero, jnp.asarray(True))
    np.testing.assert_allclose(done.left(var), [0.25, 1.0, 7.75], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_limit_is_that_of_all_outputs_together(dtype):
    """With independent parameters, each seen by an output of its own, in rationals: 1 + 3 + 8 = 12 at most."""
    var, noise = [Fraction(3), Fraction(8)], Fraction(1)
    J, eye = jnp.eye(2, dtype=dtype), jnp.eye(2, dtype=dtype)
    held = jnp.asarray([float(v) for v in var], dtype)
    done = cut(jnp.zeros(2, dtype), held, J, eye, jnp.ones(2, dtype), jnp.diag(held), jnp.diag(held))
    np.testing.assert_allclose(done.most, 12.0, rtol=1e-6)
    exact = [float(v * noise / (v + noise)) for v in var]
    np.testing.assert_allclose(done.left(held), exact, rtol=200 * np.finfo(dtype).eps)
    np.testing.assert_allclose(done.mean, [float(v / (v + noise)) for v in var], rtol=1e-6)
    assert bool(done.ok)
