"""(M.1) The two conditions of theorem:wolf-bounded, found in numbers and known on paper."""

import jax.numpy as jnp
import numpy as np
import pytest

from filtax.models import check_trust, huber, imq, mahalanobis, tempered, threshold


@pytest.mark.parametrize(
    ("trust", "pull", "end"),
    [
        (imq(4.0), 2.0, "vanishes"),
        (mahalanobis(3.0), 1.5, "vanishes"),
        (mahalanobis(1e6), 5e5, "vanishes"),
        (threshold(2.0), 2.0, "vanishes"),
        (huber(2.0), 2.0, "stays 2"),
        (lambda r: jnp.exp(-0.5 * jnp.sum(r * r)), np.exp(-0.5) / np.sqrt(2.0), "vanishes"),
    ],
)
@pytest.mark.parametrize("outputs", [1, 3])
def test_robust_ones(trust, pull, end, outputs):
    """IMQ reaches c/2 at |r| = c; a gate c on itself; exp(-r²/2) its w² r at 1/sqrt(2)."""
    found = check_trust(trust, outputs)
    assert found.bounded
    np.testing.assert_allclose(found.sup_trust, 1.0, rtol=1e-6)
    np.testing.assert_allclose(found.sup_pull, pull, rtol=0.1)
    assert found.verdict.startswith("Robust: W is at most 1;")
    assert end in found.verdict


@pytest.mark.parametrize(
    ("trust", "words"),
    [
        (tempered(0.5), "W²|r| still grows"),
        (lambda r: jnp.sqrt(jnp.log1p(jnp.sum(jnp.abs(r))) / (1.0 + jnp.sum(jnp.abs(r)))), "W²|r| still grows"),
        (lambda r: jnp.log1p(jnp.sum(jnp.abs(r))), "W still grows"),
        (lambda r: (1.0 + jnp.sum(jnp.abs(r))) ** -0.25, "W²|r| still grows"),
        (lambda r: -jnp.sum(r * r), "No trust: W is negative or NaN at |r| = 1e-06"),
        (lambda r: jnp.nan * r[0], "No trust: W is negative or NaN at |r| = 0"),
        (lambda r: jnp.sqrt(1.0 - jnp.sum(jnp.abs(r))), "No trust: W is negative or NaN at |r| = 1."),
    ],
)
def test_others(trust, words):
    found = check_trust(trust)
    assert not found.bounded
    assert words in found.verdict
    assert found.verdict.endswith(".")


def test_refusals():
    with pytest.raises(ValueError, match="must be a function of the whitened residual"):
        check_trust(0.5)
    with pytest.raises(ValueError, match=r"W returned an array of shape \(2,\) for 2 outputs"):
        check_trust(lambda r: r, outputs=2)
    for outputs in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match=r"check_trust\(outputs=...\) must be a whole number of at least 1, got"):
            check_trust(mahalanobis(2.0), outputs=outputs)
    for W in (lambda r: 1.0 if abs(r[0]) < 3.0 else 0.0, lambda r: np.exp(-np.abs(np.asarray(r)[0]))):
        with pytest.raises(ValueError, match=r"W must be written with jax.numpy"):
            check_trust(W)
