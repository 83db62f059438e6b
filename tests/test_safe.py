import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.safe import safe_log, safe_scale, safe_sqrt


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("traced", [True, False])
def test_lengths_of_every_size(dtype, traced):
    """By 80-bit arithmetic: direction and length are right, whatever the largest number is."""
    limits = np.finfo(dtype)
    far = np.exp2(np.arange(limits.minexp + 2, limits.maxexp - 1, 0.25)).astype(dtype)
    rows = np.stack([far, -0.5 * far], 1).astype(dtype)

    def polar(e):
        scale = safe_scale(e)
        size = safe_sqrt(jnp.sum(jnp.square(e / scale)))
        return e / scale / size, scale * size

    each = jax.vmap(polar)
    unit, length = (jax.jit(each) if traced else each)(rows)
    true = far.astype(np.longdouble) * np.sqrt(np.longdouble(1.25))
    np.testing.assert_allclose(np.asarray(length, np.longdouble), true, rtol=10 * limits.eps)
    np.testing.assert_allclose(unit, rows.astype(np.longdouble) / true[:, None], rtol=10 * limits.eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_borders(dtype):
    most = np.finfo(dtype).max
    assert safe_scale(jnp.zeros(3, dtype)) == 1.0
    assert safe_scale(jnp.asarray([-3.0, 2.0], dtype)) == 3.0
    assert safe_scale(jnp.asarray([0.1], dtype), 1.0) == 1.0
    assert most / safe_scale(jnp.asarray([most], dtype)) <= 16.0
    assert jax.grad(lambda a: safe_scale(jnp.asarray([a, 1.0], dtype)))(jnp.asarray(2.0, dtype)) == 0.0
    for root, at_zero in ((safe_sqrt, 0.0), (safe_log, -np.inf)):
        assert root(jnp.asarray(0.0, dtype)) == at_zero
        assert jax.grad(root)(jnp.asarray(0.0, dtype)) == 0.0
    np.testing.assert_allclose(safe_sqrt(jnp.asarray(2.0, dtype)) ** 2, 2.0, rtol=1e-6)
    np.testing.assert_allclose(jnp.exp(safe_log(jnp.asarray(2.0, dtype))), 2.0, rtol=1e-6)
