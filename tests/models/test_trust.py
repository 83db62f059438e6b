"""(M.1) Trust functions: the printed formulas at every size of residual, and the conditions of theorem:wolf-bounded."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.models import check_trust, huber, imq, mahalanobis, tempered, threshold

FORMULAS = {
    imq: lambda d, c: (1.0 + (d / c) ** 2) ** -0.5,
    mahalanobis: lambda d, c: (1.0 + (d / c) ** 2) ** -0.5,
    threshold: lambda d, c: np.where(d <= c, 1.0, 0.0),
    huber: lambda d, c: np.sqrt(np.minimum(1.0, c / d)),
}
each_trust = pytest.mark.parametrize("trust", FORMULAS, ids=lambda trust: trust.__name__)


@pytest.mark.x64
@each_trust
def test_formula(trust):
    """Against the formula as printed (a distance in every threshold: E22), for one and for several outputs."""
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 30.0, 1e8, 1e200):
        for O in (1, 3):
            r = scale * rng.normal(size=O)
            distance = np.sqrt(np.sum(r * r)) if scale < 1e10 else scale * np.sqrt(np.sum((r / scale) ** 2))
            with np.errstate(over="ignore"):
                want = FORMULAS[trust](distance, 2.5)
            want = 2.5 / distance if scale > 1e10 and trust in (imq, mahalanobis) else want
            np.testing.assert_allclose(trust(2.5)(jnp.asarray(r)), want, rtol=1e-14)


@pytest.mark.parametrize("c", [1e-3, 3.0, 5.0, 1e3, 1e20])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@each_trust
def test_every_size_of_residual_that_a_number_can_have(trust, dtype, c):
    """By the formula, up to where c/|r| is hardly a number: from there on it may be 0, and never inf or 1."""
    limits = np.finfo(dtype)
    powers = np.arange(limits.minexp + 1, limits.maxexp, 0.25)
    far = np.exp2(powers).astype(dtype)
    asked = jax.jit(jax.vmap(lambda r: trust(c)(jnp.stack([r, 0.5 * r, 1e-3 * r]))))
    found = np.asarray(asked(far), np.longdouble)
    distance = far.astype(np.longdouble) * np.sqrt(np.longdouble(1.250001))
    want = FORMULAS[trust](distance, np.longdouble(c))
    beyond = c / distance <= 8.0 * limits.tiny
    told = ~beyond & (abs(distance / c - 1.0) > 1e-5)  # on the gate itself rounding decides
    np.testing.assert_allclose(found[told], want[told], rtol=30 * limits.eps)
    assert np.all((found >= 0.0) & (found <= 1.0))
    assert np.all(found[beyond] <= 2.0 * want[beyond])
    assert asked(np.full(1, np.inf, dtype)).tolist() == [0.0]


@pytest.mark.x64
@each_trust
def test_slope_is_a_difference_and_finite_everywhere(trust):
    """In c and in r; zero and huge residuals have finite slopes."""
    for r in ([0.0], [0.0, 0.0], [0.7, -1.3], [40.0, 3.0], [1e30], [1e200, 1.0]):
        r = jnp.asarray(r)
        for of in (lambda c, r=r: trust(c)(r), lambda c, r=r: trust(2.0)(r * c / 2.0)):
            rise = (of(2.0 + 1e-6) - of(2.0 - 1e-6)) / 2e-6
            np.testing.assert_allclose(jax.grad(of)(2.0), rise, rtol=1e-5, atol=1e-9)
        assert np.all(np.isfinite(jax.grad(lambda r: trust(2.0)(r))(r)))
    assert float(jax.grad(lambda c: trust(c)(jnp.array([jnp.inf, 1.0])))(2.0)) == 0.0


@pytest.mark.parametrize("c", [0.0, -1.0, np.nan, np.inf, "four"])
@each_trust
def test_a_threshold_that_is_none_is_refused(trust, c):
    with pytest.raises(ValueError, match=rf"{trust.__name__}\(c=\.\.\.\) must be"):
        trust(c)


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
def test_the_conditions_of_robustness_hold(trust, pull, end, outputs):
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
def test_they_do_not_hold(trust, words):
    found = check_trust(trust)
    assert not found.bounded
    assert words in found.verdict
    assert found.verdict.endswith(".")


def test_what_cannot_be_checked_is_refused():
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
