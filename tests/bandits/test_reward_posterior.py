"""Propensities: against the normal-CDF formula, adaptive quadrature of scipy, and counts of many draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

from filtax.bandits import bayes_ucb, epsilon_greedy, thompson, ucb
from filtax.bandits._reward_posterior import (
    IndependentBetas,
    IndependentGaussians,
    JointGaussian,
    argmax_at_random,
    larger_of_two,
    largest_of_betas,
    largest_of_normals,
)

pytestmark = pytest.mark.x64
KEY = jax.random.key(0)


def integral(laws):
    """P(arm is largest) by scipy: one adaptive integral an arm, over the quantile of that arm."""
    values = []
    for a, law in enumerate(laws):
        rest = [other for b, other in enumerate(laws) if b != a]
        inside = lambda u, law=law, rest=rest: np.prod([other.cdf(law.ppf(u)) for other in rest])
        values.append(scipy.integrate.quad(inside, 0.0, 1.0, limit=400, epsabs=1e-10)[0])
    return np.array(values)


def test_two_gaussian_arms_are_the_normal_cdf_formula():
    m, v = np.array([0.3, -0.2]), np.array([0.5, 2.0])
    formula = scipy.stats.norm.cdf((m[0] - m[1]) / np.sqrt(v.sum()))
    ours = largest_of_normals(jnp.array(m)[:, None], jnp.array(v)[:, None], jnp.zeros((2, 1)))
    np.testing.assert_allclose(ours, [formula, 1.0 - formula], rtol=1e-13)


def test_two_arms_that_share_are_the_formula_with_their_covariance():
    C = np.array([[0.5, 0.3], [0.3, 2.0]])
    formula = scipy.stats.norm.cdf(0.5 / np.sqrt(0.5 + 2.0 - 0.6))
    joint = JointGaussian(jnp.zeros(2), jnp.array([[0.3, -0.2]]), jnp.array(C)[None], jnp.zeros(1))
    np.testing.assert_allclose(joint.probabilities(KEY, 1), [formula, 1.0 - formula], rtol=1e-13)
    np.testing.assert_allclose(larger_of_two(jnp.zeros(2), jnp.ones((2, 2))), 0.5)  # one number, twice


@pytest.mark.parametrize("scale", [(1.0, 1.0, 1.0, 1.0), (1.0, 1e-3, 0.3, 2.0), (1e-4, 3.0, 1e-2, 1.0)])
def test_several_gaussian_arms_of_any_widths(scale):
    m, s = np.array([0.1, 0.4, -0.3, 0.35]), np.array(scale)
    want = integral([scipy.stats.norm(a, b) for a, b in zip(m, s, strict=True)])
    for dtype, atol in (("float64", 2e-8), ("float32", 1e-5)):
        mean, var = (jnp.asarray(part, dtype)[:, None] for part in (m, s**2))
        np.testing.assert_allclose(largest_of_normals(mean, var, jnp.zeros_like(mean)), want, atol=atol)


@pytest.mark.parametrize(
    ("a", "b"), [((1.0, 1.0), (1.0, 1.0)), ((3.0, 40.5, 1.0), (2.0, 30.0, 1.0)), ((900, 1), (99, 9))]
)
def test_beta_arms(a, b):
    """In 32 bits too: the cosine of the 32-bit right angle is below 0, and its logarithm no number."""
    want = integral([scipy.stats.beta(*pair) for pair in zip(a, b, strict=True)])
    for dtype, atol in (("float64", 1e-7), ("float32", 1e-5)):
        ones, zeros = (jnp.asarray(part, dtype)[:, None] for part in (a, b))
        ours = largest_of_betas(ones, zeros, jnp.zeros_like(ones))
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, want, atol=atol)


class Mixed:
    """A mixture of two laws, for scipy's integral."""

    def __init__(self, parts, weights):
        self.parts, self.weights = parts, weights

    def cdf(self, z):
        return sum(w * part.cdf(z) for w, part in zip(self.weights, self.parts, strict=True))

    def pdf(self, z):
        return sum(w * part.pdf(z) for w, part in zip(self.weights, self.parts, strict=True))


def test_mixtures_and_slots_that_no_hypothesis_uses():
    m = np.array([[0.0, 1.0, 50.0], [0.4, 0.6, 0.0]])
    v = np.array([[1.0, 0.04, 1.0], [0.09, 1.0, 1.0]])
    w = np.array([[0.3, 0.7, 0.0], [0.5, 0.5, 0.0]])
    with np.errstate(divide="ignore"):
        ours = largest_of_normals(jnp.array(m), jnp.array(v), jnp.array(np.log(w)))
    laws = [Mixed([scipy.stats.norm(*p) for p in zip(m[i], np.sqrt(v[i]), strict=True)], w[i]) for i in range(2)]
    first = scipy.integrate.quad(lambda z: laws[0].pdf(z) * laws[1].cdf(z), -8, 8, limit=400, epsabs=1e-11)[0]
    np.testing.assert_allclose(ours, [first, 1.0 - first], atol=1e-7)


def test_arms_that_are_certain_and_equal_are_drawn_alike():
    np.testing.assert_allclose(largest_of_normals(*jnp.zeros((3, 3, 1))), 1 / 3, atol=1e-12)


LAW = jnp.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]])
HALVES = jnp.log(jnp.full((2, 2), 0.5))
POSTERIORS = {
    "separate": IndependentGaussians(
        jnp.array([0.1, 0.25]), jnp.array([[0.0, 0.2], [0.1, 0.4]]), jnp.full((2, 2), 0.3), HALVES
    ),
    "counted": IndependentBetas(
        jnp.array([0.6, 0.5]), jnp.array([[3.0], [2.0]]), jnp.full((2, 1), 2.0), jnp.zeros((2, 1))
    ),
    "joint": JointGaussian(jnp.array([0.0, 0.3, 0.1]), jnp.array([[0.0, 0.3, 0.1]]), LAW[None], jnp.zeros(1)),
}
POLICIES = {"ts": thompson(count=8000), "ucb": ucb(1.5), "bayes": bayes_ucb(), "eps": epsilon_greedy(0.3)}


@pytest.mark.parametrize(
    ("policy", "posterior"),
    [
        ("ts", "separate"),
        ("ts", "counted"),
        pytest.param("ts", "joint", marks=pytest.mark.nightly),
        ("eps", "separate"),
        pytest.param("bayes", "counted", marks=pytest.mark.nightly),
    ],
)
def test_probabilities_calibrate(policy, posterior):
    """How often each arm is chosen in 8,000 rounds against the probability that was told, in standard errors."""
    chosen, seen, n, t = POLICIES[policy], POSTERIORS[posterior], 8000, jnp.asarray(3, jnp.int32)
    one = lambda key: chosen.choose(seen, chosen.noise(seen, key), jax.random.uniform(jax.random.fold_in(key, 1)), t)
    arms = jax.jit(jax.vmap(one))(jax.random.split(KEY, n))
    told = np.asarray(jax.jit(lambda: chosen.probabilities(seen, chosen.noise(seen, KEY), KEY, t))())
    often = np.bincount(np.asarray(arms), minlength=len(told)) / n
    error = np.sqrt(told * (1 - told) / n) * (np.sqrt(2.0) if posterior == "joint" else 1.0)
    assert np.all(np.abs(often - told) <= 4.0 * error)


def test_quantiles_and_upper_bounds_are_those_of_scipy():
    tail = jnp.asarray(0.1)
    counted, separate = POSTERIORS["counted"], POSTERIORS["separate"]
    expected = [scipy.stats.beta(3, 2).ppf(0.9), scipy.stats.beta(2, 2).ppf(0.9)]
    np.testing.assert_allclose(jax.nn.sigmoid(counted.upper_quantile(tail, KEY, 1)), expected, rtol=1e-9)
    expected = [scipy.stats.beta(3, 2).ppf(0.05), scipy.stats.beta(2, 2).ppf(0.05)]  # below a half, the other branch
    np.testing.assert_allclose(jax.nn.sigmoid(counted.upper_quantile(jnp.asarray(0.95), KEY, 1)), expected, rtol=1e-9)
    upper = [law.mean() + 2 * law.std() for law in (scipy.stats.beta(3, 2), scipy.stats.beta(2, 2))]
    np.testing.assert_allclose(counted.upper_bound(2.0, KEY, 1), upper, rtol=1e-12)
    at = separate.upper_quantile(tail, KEY, 1)
    law = Mixed([scipy.stats.norm(0.0, np.sqrt(0.3)), scipy.stats.norm(0.2, np.sqrt(0.3))], [0.5, 0.5])
    assert abs(law.cdf(float(at[0])) - 0.9) < 1e-12
    np.testing.assert_allclose(separate.upper_bound(2.0, KEY, 1)[0], 0.1 + 2 * np.sqrt(0.3 + 0.01), rtol=1e-12)


def test_quantiles_go_on_after_many_decisions_with_32_bits():
    """1 - 1/t is 1 in 32 bits from 34 million decisions on: all quantiles would be infinite, and the choice blind."""
    t = jnp.asarray(2_000_000_000, jnp.int32)
    small = lambda *values: jnp.asarray(values, jnp.float32)[:, None]
    normals = IndependentGaussians(small(0.0, 0.1)[:, 0], small(0.0, 0.1), small(1.0, 1.0), small(0.0, 0.0))
    expected = scipy.stats.norm([0.0, 0.1], 1.0).isf(1 / 2e9)
    np.testing.assert_allclose(bayes_ucb().scores(normals, t), expected, rtol=1e-5)
    betas = IndependentBetas(small(0.6, 0.5)[:, 0], small(3.0, 0.5), small(2.0, 0.5), small(0.0, 0.0))
    told = np.asarray(bayes_ucb().scores(betas, t), np.float64)  # log odds: near 1 there are no numbers left
    for z, (a, b) in zip(told, ((3.0, 2.0), (0.5, 0.5)), strict=True):
        assert scipy.special.betainc(b, a, 1 / (1 + np.exp(z))) == pytest.approx(1 / 2e9, rel=1e-3)


def log_odds_integral(a, b):
    """P(arm is largest) of Betas in plain numpy: trapezium over the log odds, as fine as small counts need."""
    a, b = np.asarray(a, float)[:, None], np.asarray(b, float)[:, None]
    z = np.sinh(np.linspace(-np.arcsinh(60 / a.min()), np.arcsinh(60 / b.min()), 200_001))
    pdf = np.exp(-a * np.logaddexp(0, -z) - b * np.logaddexp(0, z) - scipy.special.betaln(a, b))
    cdf = scipy.integrate.cumulative_trapezoid(pdf, z, axis=1, initial=0.0)
    return np.array([np.trapezoid(pdf[i] * np.prod(np.delete(cdf, i, 0), 0), z) for i in range(len(a))])


@pytest.mark.parametrize(
    ("a", "b"), [((0.1, 0.3), (0.2, 0.2)), ((0.01, 0.02), (0.03, 0.01)), ((0.05, 1.0, 3.0), (0.05, 1.0, 3.0))]
)
def test_beta_arms_of_counts_below_a_half_are_right_and_drawn_as_told_with_32_bits(a, b):
    ones, zeros = (jnp.asarray(part, jnp.float32)[:, None] for part in (a, b))
    ours = np.asarray(largest_of_betas(ones, zeros, jnp.zeros_like(ones)))
    np.testing.assert_allclose(ours, log_odds_integral(a, b), atol=2e-6)
    seen, n = IndependentBetas(ones[:, 0], ones, zeros, jnp.zeros_like(ones)), 20_000
    drawn = np.asarray(jax.jit(jax.vmap(seen.draw))(seen.noise(KEY, (n,))))
    often = np.bincount(drawn.argmax(axis=1), minlength=len(a)) / n
    assert np.all(np.abs(often - ours) <= 4.0 * np.sqrt(ours * (1 - ours) / n))
    assert np.mean(np.sum(drawn == drawn.max(axis=1, keepdims=True), axis=1) > 1) == 0.0  # no ties by rounding


def test_ties_are_broken_evenly():
    scores = jnp.array([2.0, 1.0, 2.0, 2.0])
    u = (jnp.arange(3000.0) + 0.5) / 3000
    counts = np.bincount(np.asarray(jax.vmap(lambda u: argmax_at_random(scores, u))(u)), minlength=4)
    assert counts.tolist() == [1000, 0, 1000, 1000]
