"""The plan of a segmentation, where readings are taken in blocks: hazard, slope and cycle are counted in blocks."""

import jax.numpy as jnp
import numpy as np

from filtax.protocols import RunLengthValue
from filtax.segmentation._plan import Settings, build, finite_readings, rows_of


def test_a_block_is_as_long_as_its_readings():
    """It holds no change only if none of its readings is one; eight blocks of four are a third of the 96 readings."""
    method, state = build(Settings(hazard=0.02, unit=96.0), block=4)
    np.testing.assert_allclose(method.auxiliary.hazard.rate, 1.0 - 0.98 * 0.98 * 0.98 * 0.98, rtol=1e-6)
    at = method.model.predictor.linearise(
        jnp.zeros_like(state.initial.mean), jnp.zeros(4), RunLengthValue(jnp.asarray(8), None)
    )
    np.testing.assert_allclose(at.jacobian[0], [1.0, 8 * 4 / 96, 0.0, 0.0, 0.0, 0.0], rtol=1e-6)


def test_a_cycle_has_fewer_blocks_than_readings():
    """Twelve readings a turn, in blocks of two: the cosine is back after six blocks, and upside down after three."""
    X, Y = rows_of(np.arange(70.0)[:, None], 2, 12.0)
    assert (X.shape, Y.shape) == ((128, 4), (128, 1))
    np.testing.assert_allclose(X[6:], X[:-6], atol=1e-9)
    odd = np.abs(X[3:] + X[:-3]).max(axis=0) < 1e-9
    assert odd.sum() == 2  # the first order; the second has turned twice
    assert np.isnan(Y[70:]).all()


def test_a_constant_stream_does_not_make_its_first_change_absurd():
    stuck = np.r_[np.full(60, 0.3), np.full(60, 1e9)]
    assert np.isfinite(finite_readings("detect", stuck, 30)).all()
    stuck[100] = 1e30
    assert np.flatnonzero(np.isnan(finite_readings("segment", stuck))).tolist() == [100]
