"""Fixed share against its two lines of arithmetic, and what it is for."""

import jax.numpy as jnp
import numpy as np
import pytest

from filtax.weighting import Exact, fixed_share

RAW = np.log(np.array([0.5, 2.0, 1e-30], "float32"))


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_spreads_a_share(share):
    weight = np.exp(RAW) / np.exp(RAW).sum()
    got = np.exp(fixed_share(share)(jnp.asarray(RAW)))
    np.testing.assert_allclose(got, (1 - share) * weight + share / 3, rtol=1e-5, atol=1e-9)


def test_nothing_spread_is_exact():
    np.testing.assert_allclose(fixed_share(0.0)(jnp.asarray(RAW)), Exact()(jnp.asarray(RAW)), rtol=1e-6)


@pytest.mark.nightly
def test_an_expert_comes_back():
    """After a thousand bad data, ten good ones are enough; exact weights would need a thousand."""
    weight, exact = jnp.zeros(2), jnp.zeros(2)
    for score in [1.0] * 1000 + [-1.0] * 10:
        step = jnp.array([score, 0.0])
        weight, exact = fixed_share(0.01)(weight + step), Exact()(exact + step)
    assert float(jnp.exp(weight[1])) > 0.9
    assert float(jnp.exp(exact[1])) < 1e-6


def test_refusals():
    with pytest.raises(ValueError, match=r"fixed_share\(share=\.\.\.\) must lie in \[0, 1\]"):
        fixed_share(-0.1)
