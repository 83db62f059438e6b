"""(A.1) Variational Gaussian filters within the contract: forecasts, memory, keys, names, refusals."""

import re

import jax
import numpy as np
import pytest

import filtax as fx
from filtax import bone
from filtax.posteriors import Variational

pytestmark = pytest.mark.x64
models = fx.models
PRIOR = np.array([[2.0, 0.6], [0.6, 1.0]])
X2 = np.array([1.0, -0.5])


def test_forecast_is_that_of_the_extended_filter():
    """How a datum is absorbed changes no forecast made before it."""
    lg, rvga = (fx.method(n + "+C-Static", model=models.linear(likelihood=models.bernoulli())) for n in ("LG", "RVGA"))
    state = lg.init(mean=np.array([1.0, 0.0]), cov=PRIOR)
    assert float(lg.predict(state, X2).log_prob(1.0)) == float(rvga.predict(state, X2).log_prob(1.0))
    np.testing.assert_allclose(
        rvga.step(state, X2, 1.0)[1].log_evidence, lg.predict(state, X2).log_prob(1.0), rtol=1e-12
    )


@pytest.mark.nightly
def test_samples_cost_memory_for_vectors_not_matrices():
    """S = 1000, D = 81, four iterations: no S x D x D in the program, nor in the bytes set aside."""
    net = models.mlp((2, 5, 5, 5, 1))
    assert net.size == 81
    model = models.nonlinear(net.apply, likelihood=models.bernoulli())
    method = fx.method("RVGA(iterations=4, samples=1000)+C-Static", model=model)
    state = method.init(params=net.init(jax.random.key(0), "float32"), cov=0.1, key=jax.random.key(1))
    x, y = np.ones(2, np.float32), np.float32(1.0)
    program = bone._step.lower(method, state, x, y, None, None, None).compile()
    sizes = {tuple(map(int, dims.split(","))) for dims in re.findall(r"f32\[([\d,]+)\]", program.as_text())}
    assert max(int(np.prod(size)) for size in sizes) <= 1000 * 90
    assert (1000, 81) in sizes
    assert program.memory_analysis().temp_size_in_bytes < 6 * 4 * 1000 * 81  # 3.2 arrays of S x D; S x D² is 81 of them
    state, info = method.step(state, x, y)
    assert bool(info.ok)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("RVGA(iterations=2.5)", "whole number"),
        ("RVGA(iterations=0)", "at least 1"),
        ("RVGA(samples=0)", "at least 2"),
        ("RVGA(samples=3)", "even"),
        ("BLR(step=0)", "above 0"),
        ("BLR(step=1.5)", "at most at 1"),
        ("RVGA(step=0.5)", "not a setting"),
        ("BONG(iterations=2)", "not a setting"),
        ("RVGA(expectation=exact)", "quadrature, linearised"),
        ("RVGA(expectation=linearised, samples=4)", "leave one"),
        ("RVGA(form=cube)", "must be one of"),
    ],
)
def test_wrong_settings_are_refused_with_a_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        fx.method(settings + "+C-Static", model=models.linear(noise=1.0))


def test_rules_refuse_what_they_do_not_take():
    for wrong in ({"rule": "explicit"}, {"step": 0.5}, {"rule": "best"}):
        with pytest.raises(ValueError, match=r"step|one of"):
            Variational(**wrong)


def test_sampling_without_a_key_is_refused():
    method = fx.method("RVGA(samples=4)+C-Static", model=models.linear(noise=1.0))
    with pytest.raises(ValueError, match=r"draws at random; give key=jax.random.key"):
        method.init(mean=np.zeros(2), cov=1.0)
