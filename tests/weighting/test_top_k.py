"""Bounded weights against a sort in numpy."""

import jax.numpy as jnp
import numpy as np
import pytest

from filtax.weighting import bounded


@pytest.mark.parametrize("keep", [1, 2, 4, 5, 6])
def test_keeps_the_best_and_normalises(keep):
    raw = np.log([0.1, 0.3, 0.05, 0.15, 0.4]).astype("float32")
    got = np.exp(bounded(keep)(jnp.asarray(raw)))
    want = np.where(np.argsort(np.argsort(-raw)) < keep, np.exp(raw), 0.0)
    np.testing.assert_allclose(got, want / want.sum(), rtol=1e-5)


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_equal_weights_leave_exactly_as_many_as_asked(keep):
    got = np.exp(bounded(keep)(jnp.zeros(4)))
    assert (got > 0).sum() == keep


def test_dead_slots_stay_dead():
    got = bounded(3)(jnp.array([0.0, -jnp.inf, -jnp.inf, -jnp.inf]))
    np.testing.assert_array_equal(np.isfinite(got), [True, False, False, False])


@pytest.mark.parametrize("keep", [0, 1.5, -1])
def test_refusals(keep):
    with pytest.raises(ValueError, match=r"DA\[K\] must be a whole number of at least 1"):
        bounded(keep)
