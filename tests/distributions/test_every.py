"""What every forecast promises, whatever its law: one answer for a row and for many, quantiles, samples, masks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from filtax.distributions import Bernoulli, Categorical, Mixture, NegativeBinomial, Normal, Poisson, StudentT

H, DRAWS = 3, 10_000


def spd(rng, *lead, size):
    A = rng.normal(size=(*lead, size, size))
    return A @ np.swapaxes(A, -1, -2) + 0.5 * np.eye(size)


def normal(rng, O):
    return Normal, rng.normal(size=(H, O)), spd(rng, H, size=O)


def student(rng, O):
    return StudentT, rng.normal(size=(H, O)), spd(rng, H, size=O), np.array([9.0, 30.0, 400.0])


def bernoulli(rng, O):
    p = rng.uniform(0.02, 0.98, size=(H, O))
    return Bernoulli, np.log(p), np.log1p(-p)


def poisson(rng, O):
    return Poisson, rng.normal(1.0, 1.0, size=(H, O)), rng.uniform(0.0, 0.6, size=(H, O))


def negative_binomial(rng, O):
    return NegativeBinomial, rng.uniform(0.5, 9.0, size=(H, O)), rng.uniform(0.5, 3.0, size=(H, O))


LAWS = [normal, student, bernoulli, poisson, negative_binomial]
COUNTED = (Bernoulli, Poisson, NegativeBinomial)
laws = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)


def make(law, O):
    """Forecasts of H rows, and an outcome of each."""
    rng = np.random.default_rng(O)
    kind, *numbers = law(rng, O)
    dist = kind(*(jnp.asarray(part, "float32") for part in numbers), O == 1)
    y = rng.integers(0, 2, size=dist.mean.shape) if isinstance(dist, COUNTED) else rng.normal(size=dist.mean.shape)
    return dist, jnp.asarray(y, "float32")


def row(tree, h):
    return jax.tree.map(lambda leaf: leaf[h], tree)


def describe(dist, y):
    return dist.mean, dist.var, dist.cov, dist.log_prob(y)


@jax.jit
def look(dist, y):
    low, high = dist.interval(0.8)
    return *describe(dist, y), jax.vmap(dist.cdf)(jnp.stack([y, low, low - 1.0, high, high - 1.0]))


@laws
def test_many_rows_are_the_rows_one_by_one(law):
    dist, y = make(law, 2)
    many = look(dist, y)
    one = jax.jit(lambda dist, y: (*describe(dist, y), dist.cdf(y)))(row(dist, 1), y[1])
    assert [part.shape for part in one] == [(2,), (2,), (2, 2), (), (2,)]
    for single, rows in zip(one, (*many[:-1], many[-1][0]), strict=True):
        assert rows.shape == (H, *single.shape)
        np.testing.assert_allclose(single, rows[1], rtol=1e-5)
    np.testing.assert_allclose(many[1], np.diagonal(many[2], 0, -2, -1), rtol=1e-6)
    alone, one = (row(part, 0) for part in make(law, 1))
    assert [part.shape for part in jax.eval_shape(describe, alone, one)] == [()] * 4
    assert [end.shape for end in jax.eval_shape(lambda dist: dist.interval(), alone)] == [(), ()]


@laws
def test_the_interval_holds_its_level(law):
    dist, y = make(law, 2)
    seen = look(dist, y)
    assert {part.dtype for part in seen} == {np.dtype("float32")}
    at_low, below_low, at_high, below_high = seen[-1][1:]
    if isinstance(dist, COUNTED):  # the smallest whole numbers that reach the tails
        assert (below_low < 0.1).all()
        assert (at_low >= 0.1).all()
        assert (below_high < 0.9).all()
        assert (at_high >= 0.9).all()
    else:
        np.testing.assert_allclose(at_low, 0.1, rtol=1e-5)
        np.testing.assert_allclose(at_high, 0.9, rtol=1e-5)


def test_counts_have_the_moments_and_probabilities_of_their_laws():
    """Poisson averaged over the rate on a fine grid, and scipy's negative binomial: samples would miss a tenth."""
    log_rate, sd, y = np.array([0.3, 1.1]), np.array([0.6, 1.2]), np.array([2.0, 3.0])
    z = np.linspace(-12.0, 12.0, 4001)[:, None]
    rate, weight = np.exp(log_rate + sd * z), scipy.stats.norm.pdf(z) / scipy.stats.norm.pdf(z).sum()
    mean = (weight * rate).sum(axis=0)
    dist = Poisson(jnp.asarray(log_rate, "float32"), jnp.asarray(sd, "float32"))
    np.testing.assert_allclose(dist.mean, mean, rtol=1e-5)
    np.testing.assert_allclose(dist.var, mean + (weight * (rate - mean) ** 2).sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(dist.cdf(y), (weight * scipy.stats.poisson.cdf(y, rate)).sum(axis=0), rtol=1e-4)


@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_a_negative_binomial_is_that_of_scipy(scale):
    """Also for a million events, of which a float32 knows no gamma function."""
    count, exposure, y = scale * np.array([0.5, 7.0]), np.array([0.5, 3.0]), np.floor(scale * np.array([1.0, 2.34]))
    law = scipy.stats.nbinom(count, exposure / (1.0 + exposure))
    dist = NegativeBinomial(jnp.asarray(count, "float32"), jnp.asarray(exposure, "float32"))
    for got, want in ((dist.mean, law.mean()), (dist.var, law.var()), (dist.cdf(y), law.cdf(y))):
        np.testing.assert_allclose(got, want, rtol=1e-4)
    np.testing.assert_allclose(dist.log_prob(y), law.logpmf(y).sum(), rtol=1e-5)


def test_counts_beyond_an_integer_are_drawn_too():
    drawn = jax.jit(Poisson(jnp.full(1, np.log(1e13), "float32"), None, scalar=True).sample)(jax.random.key(0))
    np.testing.assert_allclose(drawn, 1e13, rtol=1e-4)


@laws
def test_samples_have_the_moments(law):
    """Means and covariances of 10 000 draws, each within 5 standard errors: a false alarm in 10⁶ comparisons."""
    dist, _ = make(law, 2)
    dist = row(dist, 1)
    drawn = jax.jit(jax.vmap(dist.sample))(jax.random.split(jax.random.key(0), DRAWS))
    assert drawn.shape == (DRAWS, 2)
    gap = np.asarray(drawn, "float64") - np.asarray(dist.mean)
    products = gap[:, :, None] * gap[:, None, :]
    for values, want in ((gap, 0.0), (products, np.asarray(dist.cov))):
        error = values.std(axis=0) / np.sqrt(DRAWS)
        assert (np.abs(values.mean(axis=0) - want) < 5.0 * error).all()
    assert jax.eval_shape(lambda many: many.sample(jax.random.key(1)), make(law, 2)[0]).shape == (H, 2)


@laws
def test_masks_leave_outputs_out(law):
    """What is masked may be anything, NaN too; a wholly masked y gives exactly 0."""
    dist, y = make(law, 2)
    score = jax.jit(lambda dist, y, mask: dist.log_prob(y, mask))
    np.testing.assert_allclose(score(dist, y, jnp.ones(y.shape, bool)), look(dist, y)[3], rtol=1e-5)
    first = jnp.zeros(y.shape, bool).at[:, 0].set(True)
    parts = [score(dist, jnp.where(mask, y, jnp.nan), mask) for mask in (first, ~first)]
    assert np.isfinite(parts).all()
    assert score(dist, jnp.full_like(y, jnp.nan), jnp.zeros(y.shape, bool)).tolist() == [0.0] * H
    if isinstance(dist, COUNTED):  # independent outputs; the marginals of the others are tested beside scipy
        np.testing.assert_allclose(parts[0] + parts[1], look(dist, y)[3], rtol=1e-5)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 1.1, 90.0, float("nan")])
@laws
def test_levels_outside_of_zero_to_one_are_refused(law, level):
    with pytest.raises(ValueError, match=r"interval\(level=.*\) must lie strictly between 0 and 1"):
        make(law, 1)[0].interval(level)


def test_labels_have_no_order():
    labels = Categorical(jnp.log(jnp.array([0.5, 0.5])))
    for ask in (lambda: labels.interval(0.9), lambda: labels.cdf(0)):
        with pytest.raises(ValueError, match="labels have no order; use"):
            ask()


@pytest.mark.parametrize("law", [normal, bernoulli], ids=lambda law: law.__name__)
def test_mixture_of_one_law_with_itself_is_that_law(law):
    dist, y = make(law, 2)
    twice = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf], axis=1), dist)
    mixed = Mixture(twice, jnp.log(jnp.array([[0.25, 0.75]] * H, "float32")))
    for got, want in zip(look(mixed, y), look(dist, y), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_a_part_without_weight_does_not_count_even_if_its_variance_is_infinite():
    zero, one = jnp.zeros((2, 1), "float32"), jnp.ones((2, 1, 1), "float32")
    parts = StudentT(zero, one, jnp.array([2.0, 4.0], "float32"), True)
    mixed = Mixture(parts, jnp.array([-jnp.inf, 0.0], "float32"))
    assert float(mixed.var) == 2.0
    assert float(mixed.mean) == 0.0


@pytest.mark.x64
def test_a_hypothesis_that_is_impossible_has_no_slope_however_wide_it_is():
    parts = Normal(jnp.array([[0.0], [2.0]]), jnp.array([[[1.0]], [[jnp.inf]]]), scalar=True)
    slope = jax.grad(lambda log_weight: Mixture(parts, log_weight).var)(jnp.array([0.0, -jnp.inf]))
    assert slope.tolist() == [1.0, 0.0]
