"""What every forecast promises, whatever its law: one answer for a row and for many, quantiles, samples, masks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.distributions import Bernoulli, Categorical, Mixture, NegativeBinomial, Normal, Poisson, StudentT

H, DRAWS = 3, 40_000


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
dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])


def make(law, O, dtype="float32"):
    """Forecasts of H rows, and an outcome of each."""
    rng = np.random.default_rng(O)
    kind, *numbers = law(rng, O)
    dist = kind(*(jnp.asarray(part, dtype) for part in numbers), O == 1)
    y = rng.integers(0, 2, size=dist.mean.shape) if isinstance(dist, COUNTED) else rng.normal(size=dist.mean.shape)
    return dist, jnp.asarray(y, dtype)


def row(tree, h):
    return jax.tree.map(lambda leaf: leaf[h], tree)


@jax.jit
def look(dist, y):
    low, high = dist.interval(0.8)
    ends = dist.cdf(low), dist.cdf(low - 1), dist.cdf(high), dist.cdf(high - 1)
    return dist.mean, dist.var, dist.cov, dist.cdf(y), low, high, dist.log_prob(y), *ends


@dtypes
@laws
@pytest.mark.parametrize("O", [1, 2])
def test_many_rows_are_the_rows_one_by_one_and_the_interval_holds_its_level(law, O, dtype):
    dist, y = make(law, O, dtype)
    many = look(dist, y)
    one = look(row(dist, 1), y[1])
    shape = () if O == 1 else (O,)
    assert [part.shape for part in one] == [shape, shape, shape * 2, *[shape] * 3, (), *[shape] * 4]
    for single, rows in zip(one, many, strict=True):
        assert rows.shape == (H, *single.shape)
        assert rows.dtype == single.dtype == dtype
        np.testing.assert_allclose(single, rows[1], rtol=1e-12 if dtype == "float64" else 1e-5)
    np.testing.assert_allclose(
        np.asarray(many[1]).ravel(), np.diagonal(many[2], 0, -2, -1).ravel() if O > 1 else many[2]
    )
    at_low, below_low, at_high, below_high = many[-4:]
    if isinstance(dist, COUNTED):  # the smallest whole numbers that reach the tails
        assert (below_low < 0.1).all()
        assert (at_low >= 0.1).all()
        assert (below_high < 0.9).all()
        assert (at_high >= 0.9).all()
    else:
        np.testing.assert_allclose(at_low, 0.1, rtol=1e-9 if dtype == "float64" else 1e-4)
        np.testing.assert_allclose(at_high, 0.9, rtol=1e-9 if dtype == "float64" else 1e-4)


@laws
def test_samples_have_the_moments(law):
    """Means and covariances of 40 000 draws, each within 5 standard errors: a false alarm in 10⁶ comparisons."""
    dist, _ = make(law, 2)
    dist = row(dist, 1)
    drawn = jax.jit(jax.vmap(dist.sample))(jax.random.split(jax.random.key(0), DRAWS))
    assert drawn.shape == (DRAWS, 2)
    gap = np.asarray(drawn, "float64") - np.asarray(dist.mean)
    products = gap[:, :, None] * gap[:, None, :]
    for values, want in ((gap, 0.0), (products, np.asarray(dist.cov))):
        error = values.std(axis=0) / np.sqrt(DRAWS)
        assert (np.abs(values.mean(axis=0) - want) < 5.0 * error).all()
    path = jax.jit(lambda many: many.sample(jax.random.key(1)))(make(law, 2)[0])
    assert path.shape == (H, 2)


@laws
def test_masks_leave_outputs_out(law):
    """What is masked may be anything, NaN too; a wholly masked y gives exactly 0, and a scalar's mask has no axis."""
    dist, y = make(law, 2)
    score = jax.jit(lambda dist, y, mask: dist.log_prob(y, mask))
    both = score(dist, y, jnp.ones(y.shape, bool))
    np.testing.assert_allclose(both, jax.jit(lambda dist: dist.log_prob(y))(dist), rtol=1e-6)
    mask = jnp.array([[True, False], [False, True], [False, False]])
    got = score(dist, jnp.where(mask, y, jnp.nan), mask)
    assert float(got[2]) == 0.0
    for h, o in ((0, 0), (1, 1)):
        part = jax.tree.map(lambda leaf: leaf[h], dist)  # noqa: B023
        marginal = jax.tree.map(
            lambda leaf: leaf if leaf.ndim == 0 else leaf[o : o + 1] if leaf.ndim == 1 else leaf[o : o + 1, o : o + 1],  # noqa: B023
            part,
        )
        np.testing.assert_allclose(got[h], marginal.log_prob(y[h, o : o + 1]), rtol=1e-5)
    alone, one = make(law, 1)
    np.testing.assert_allclose(score(row(alone, 0), one[0], jnp.array(True)), row(alone, 0).log_prob(one[0]), rtol=1e-6)
    assert float(score(row(alone, 0), one[0], jnp.array(False))) == 0.0


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


@dtypes
@laws
def test_mixture_of_one_law_with_itself_is_that_law(law, dtype):
    dist, y = make(law, 2, dtype)
    twice = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf], axis=1), dist)
    mixed = Mixture(twice, jnp.log(jnp.array([[0.25, 0.75]] * H, dtype)))
    for got, want in zip(look(mixed, y)[:7], look(dist, y)[:7], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9 if dtype == "float64" else 1e-4, atol=1e-6)
