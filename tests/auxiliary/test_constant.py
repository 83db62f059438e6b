"""The constant auxiliary variable: one hypothesis of weight one that no step and no datum changes."""

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.auxiliary import Constant
from filtax.protocols import Hypotheses


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_start(dtype):
    """No value, and the log of one in the belief's type."""
    aux, log_weight = Constant().start(jnp.dtype(dtype))
    assert aux is None
    assert (log_weight.tolist(), log_weight.dtype) == ([0.0], dtype)
    assert (Constant().slots, Constant().name, Constant().shown) == (1, "C", {})


@pytest.mark.parametrize("dt", [None, 2.0])
def test_a_step_proposes_the_same_bank(dt):
    hypotheses = Hypotheses(jnp.ones((1, 3)), None, jnp.zeros(1))
    proposed = Constant().expand(hypotheses, None, None if dt is None else jnp.asarray(dt))
    assert proposed.hypotheses is hypotheses
    assert proposed.is_new.tolist() == [False]
    assert proposed.log_reset.tolist() == [-np.inf]  # the log of no chance at all
    assert proposed.log_reset.dtype == hypotheses.log_weight.dtype


def test_what_is_reported():
    """The run is as old as the stream, gaps included, and a change is never suspected."""
    change, runlength = Constant().report(Hypotheses(None, None, jnp.zeros(1, "float32")), jnp.asarray(7))
    assert (change, int(runlength)) == (None, 7)
    kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    state, infos = kf.scan(kf.init(mean=jnp.zeros(1)), np.ones((4, 1)), np.array([1.0, np.nan, 0.0, 50.0]))
    assert infos.runlength.tolist() == [1, 2, 3, 4]
    assert infos.change_probability.tolist() == [0.0] * 4
    assert infos.trust.tolist() == [1.0] * 4
    assert state.hypotheses.log_weight.tolist() == [0.0]
