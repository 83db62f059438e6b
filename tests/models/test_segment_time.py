"""A line for each segment: its features, its evidence against a batch regression, and its refusals."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx
from filtax.models import since_change
from filtax.protocols import RunLengthValue

pytestmark = pytest.mark.x64


def test_features_are_one_the_run_and_x_for_each_output():
    theta = jnp.arange(8.0)  # rows: intercepts, slopes, two weights; two outputs
    at = since_change(1.0, unit=10.0).linearise(theta, jnp.array([3.0, -1.0]), RunLengthValue(jnp.asarray(5), None))
    want = np.array([1.0, 0.5, 3.0, -1.0]) @ np.arange(8.0).reshape(4, 2)
    np.testing.assert_allclose(at.eta, want)
    np.testing.assert_allclose(at.jacobian @ theta, want)


def test_without_a_run_length_it_is_a_constant():
    at = since_change(1.0).linearise(jnp.array([2.0, 5.0]), None, None)
    assert at.eta.tolist() == [2.0]


def test_without_a_change_the_evidence_is_that_of_one_regression():
    """Hazard 0: the run that began with the stream is 1 old at the first datum."""
    rng = np.random.default_rng(0)
    y = 3.0 + 0.2 * np.arange(9) + rng.normal(size=9)
    rl = fx.method("NIG(shape=2.0,rate=1.5)+RL[4]-PR(hazard=0.0)", model=since_change(1.0, unit=10.0))
    _, info = rl.scan(rl.init(mean=jnp.zeros(2), cov=4.0), None, y, keep=("log_evidence",))
    X = np.column_stack([np.ones(9), np.arange(1, 10) / 10.0])
    law = scipy.stats.multivariate_t(np.zeros(9), 0.75 * (np.eye(9) + 4.0 * X @ X.T), df=4.0)
    np.testing.assert_allclose(info.log_evidence.sum(), law.logpdf(y), rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: since_change(1.0, unit=0.0), r"since_change\(unit=\.\.\.\) must be finite and above 0"),
        (lambda: since_change(), r"since_change: give noise=\.\.\. or likelihood=\.\.\., got neither"),
        (
            lambda: since_change(1.0).linearise(jnp.zeros(2), jnp.ones((1, 2)), None),
            r"since_change: x has shape \(1, 2\); give features \(M,\)",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
