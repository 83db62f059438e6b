"""What OUPR mixes in, against the formulas in numpy: one datum, one parameter."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from thesis.electricity import Shocked


def density(y, mean, var):
    return np.exp(-0.5 * (y - mean) ** 2 / var) / np.sqrt(2 * np.pi * var)


@pytest.mark.x64
@pytest.mark.parametrize("y", [0.4, 30.0])
def test_it_widens_about_its_own_mean_or_starts_anew(y):
    plain = fx.method("LG(form=covariance)+RL[1]-OUPR(hazard=0.3)", model=fx.models.linear(noise=1.0))
    shocked = eqx.tree_at(lambda m: m.prior, plain, Shocked(plain.prior, 7.0))
    state = shocked.init(mean=jnp.array([0.5]), cov=1.0)
    x = jnp.ones(1)
    mean, var = 0.5, 1.0
    for datum in (0.1, y):
        on = 0.7 * density(datum, mean, var + 1.0)
        share = on / (on + 0.3 * density(datum, 0.5, 2.0))
        mean, var = (mean, share**2 * var + (1 - share**2) * 7.0) if share > 0.5 else (0.5, 1.0)
        gain = var / (var + 1.0)
        mean, var = mean + gain * (datum - mean), (1 - gain) * var
        state, _ = shocked.step(state, x, jnp.asarray(datum))
    belief = shocked.belief(state)
    np.testing.assert_allclose([belief.mean[0], belief.cov[0, 0]], [mean, var], rtol=1e-10)
