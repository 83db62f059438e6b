"""The mixture cannot lose to any of its experts by more than its regret: ten thousand streams, most of them hostile."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.forecasting._aggregate import Aggregate

pytestmark = pytest.mark.x64
STREAMS, T, K = 2000, 200, 6
BOUND = 1.0  # of regret / (B sqrt(K T)), where B is the largest distance between a forecast and a target


def constants(rng):
    """Two constant experts among noise; the target is on the other side of the forecast, whatever that is."""
    forecasts = rng.uniform(-1, 1, (STREAMS, T, K))
    forecasts[:, :, 0], forecasts[:, :, 1] = 1.0, -1.0
    return forecasts, np.full((STREAMS, T), np.nan)


def alternating(rng):
    """The target flips at every row, or every few."""
    forecasts, _ = constants(rng)
    period = rng.integers(1, 50, (STREAMS, 1))
    return forecasts, np.where(np.arange(T) // period % 2 == 0, 1.0, -1.0)


def one_is_right(rng):
    """One expert is nearly exact, the others are noise of very different sizes."""
    y = np.cumsum(rng.normal(size=(STREAMS, T)), axis=1)
    forecasts = y[:, :, None] + rng.normal(size=(STREAMS, T, K)) * 10.0 ** rng.uniform(-3, 3, (STREAMS, 1, K))
    forecasts[:, :, 3] = y + 1e-3 * rng.normal(size=y.shape)
    return forecasts, y


def takes_turns(rng):
    """A stretch long one expert is right, then another."""
    y = rng.normal(size=(STREAMS, T))
    forecasts = y[:, :, None] + rng.normal(size=(STREAMS, T, K))
    best = rng.integers(K, size=(STREAMS, 1)) + np.arange(T) // 40
    np.put_along_axis(forecasts, (best % K)[:, :, None], y[:, :, None], axis=2)
    return forecasts, y


def heavy_tails(rng):
    """Targets and experts with Cauchy noise."""
    y = rng.standard_cauchy((STREAMS, T))
    return y[:, :, None] + rng.standard_cauchy((STREAMS, T, K)), y


@jax.jit
@jax.vmap
def losses(forecasts, y):
    """Absolute errors of the mixture and of each expert, and the largest of all."""

    def row(mixture, datum):
        said, target = datum
        mixture = mixture.settle(1)
        mixtures, issued, _ = mixture.mix(said[:, None])
        target = jnp.where(jnp.isnan(target), jnp.where(issued[0] > 0.0, -1.0, 1.0), target)
        mixture = mixture.issue(jnp.zeros((), jnp.int32), said[:, None], mixtures, issued, jnp.ones((), bool))
        errors = jnp.concatenate([issued, said]) - target
        return mixture.learn(jnp.zeros(1, jnp.int32), target), jnp.abs(errors)

    errors = jax.lax.scan(row, Aggregate.start(K, 1, 1), (forecasts, y))[1]
    return jnp.sum(errors, axis=0), jnp.max(errors)


@pytest.mark.parametrize("stream", [constants, alternating, one_is_right, takes_turns, heavy_tails])
def test_regret_is_bounded_on_hostile_streams(stream):
    total, largest = (np.asarray(part) for part in losses(*stream(np.random.default_rng(7))))
    regret = (total[:, 0] - total[:, 1:].min(axis=1)) / (largest * np.sqrt(K * T))
    assert np.all(np.isfinite(regret))
    assert regret.max() <= BOUND
    if stream is one_is_right:  # and where one expert is right it is found at once
        assert np.median(total[:, 0] / largest) < 3.0


def test_weights_do_not_depend_on_the_unit():
    forecasts, y = takes_turns(np.random.default_rng(1))
    one, _ = losses(forecasts[:50], y[:50])
    two, _ = losses(forecasts[:50] * 2.0**-30, y[:50] * 2.0**-30)
    np.testing.assert_allclose(np.asarray(two), np.asarray(one) * 2.0**-30, rtol=1e-12)
