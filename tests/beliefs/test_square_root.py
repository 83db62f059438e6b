"""The Gaussian held as a square root: roots of what a user may give. What all forms share is in test_gaussian_forms."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filtax.beliefs import SquareRoot
from filtax.beliefs._gaussian import one_by_one
from filtax.beliefs._square_root import two_sum
from filtax.posteriors._extended import Extended

pytestmark = pytest.mark.x64


NUMBERS = st.floats(-(2.0**50), 2.0**50, width=32, allow_subnormal=False).filter(
    lambda number: abs(number) > 1e-15 or not number
)
both = jax.jit(two_sum)


@given(a=NUMBERS, b=NUMBERS)
def test_what_a_sum_is_rounded_by_is_exact(a, b):
    total, lost = (Fraction(float(part)) for part in both(np.float32(a), np.float32(b)))
    assert total + lost == Fraction(a) + Fraction(b)


def test_the_tail_goes_where_the_mean_goes():
    """A datum that tells nothing leaves it; a mean set again has none; a static float32 filter has it."""
    belief = SquareRoot(jnp.ones(2, "float32"), jnp.eye(2, dtype="float32"), jnp.array([3e-8, -2e-8], "float32"))
    J, B = jnp.ones((1, 2), "float32"), jnp.ones((1, 1), "float32")
    still = belief.condition(J, 0.0 * B, jnp.zeros(1, "float32")).belief
    jax.tree.map(np.testing.assert_array_equal, still, belief)
    wide = SquareRoot(belief.mean, 100.0 * belief.root, belief.mean_residual)
    refused = wide.condition(J, B * 1e-2, jnp.full(1, 3e38, "float32"))  # the step would be infinite
    assert not refused.ok
    np.testing.assert_array_equal(
        refused.belief.mean + refused.belief.mean_residual, belief.mean + belief.mean_residual
    )
    np.testing.assert_array_equal(belief.inflate(jnp.float32(2.0)).mean_residual, belief.mean_residual)
    np.testing.assert_array_equal(belief.affine(None, jnp.ones(2, "float32"), None).mean_residual, [0.0, 0.0])
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), belief)
    np.testing.assert_array_equal(
        SquareRoot.moment_match(batch, jnp.log(jnp.full(2, 0.5, "float32"))).mean_residual, [0.0, 0.0]
    )
    moved = belief.condition(J, B, jnp.full(1, 0.1, "float32")).belief
    exact = np.asarray(belief.mean, float) + np.asarray(belief.mean_residual) + 0.1 / 3.0  # P J / (J P J + 1) r
    np.testing.assert_allclose(np.asarray(moved.mean, float) + np.asarray(moved.mean_residual), exact, rtol=4e-9)
    for dtype, has_dynamics, kept in (("float32", False, True), ("float32", True, False), ("float64", False, False)):
        assert (
            Extended().start(jnp.zeros(2, dtype), jnp.ones(2, dtype), has_dynamics).mean_residual is not None
        ) == kept


@pytest.mark.parametrize("D", [1, 2, 4, 5])
def test_a_single_number_is_taken_in_as_by_dense_algebra(D):
    """By rotations up to D = 4, by reducing the whole array from there on: neither shows."""
    rng = np.random.default_rng(D)
    A, J, B, r = rng.normal(size=(D, D)), rng.normal(size=(1, D)), np.array([[1.7]]), np.array([0.6])
    mean = rng.normal(size=D)
    done = SquareRoot(jnp.asarray(mean), jnp.asarray(A)).condition(jnp.asarray(J), jnp.asarray(B), jnp.asarray(r))
    P, H = A @ A.T, B @ J
    S = 1.0 + H @ P @ H.T
    gain = P @ H.T / S
    np.testing.assert_allclose(done.belief.mean, mean + gain[:, 0] * r[0], rtol=1e-12)
    np.testing.assert_allclose(done.belief.cov, P - gain @ H @ P, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(done.innovation, r / np.sqrt(S[0]), rtol=1e-12)
    np.testing.assert_allclose(done.log_det, np.log(S[0, 0]), rtol=1e-12)
    assert bool(done.ok)


@pytest.mark.parametrize("size", [0.0, np.inf, np.nan])
def test_a_number_that_says_nothing_or_too_much_leaves_two_parameters_as_they_are(size):
    belief = SquareRoot(jnp.array([1.0, -2.0]), jnp.array([[3.0, 0.5], [1.0, 2.0]]))
    J, r = jnp.ones((1, 2)), jnp.zeros(1)
    done = belief.condition(J, jnp.full((1, 1), size), r)
    for old, new in zip(jax.tree.leaves(belief), jax.tree.leaves(done.belief), strict=True):
        np.testing.assert_array_equal(old, new)
    assert bool(done.ok) == (size == 0.0)


@pytest.mark.parametrize(("D", "O", "prior"), [(2, 3, 1e6), (10, 4, 1e6), (10, 12, 1e6), (40, 50, 1e4)])
def test_more_precise_outputs_than_vague_directions_leave_the_mean_right(D, O, prior):
    """In float32, against the batch answer in float64: the gain made of its parts was thousands of deviations off."""
    noise, T = 1e-4, 20
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(T, O, D)).astype("float32")
        Y = (X @ rng.normal(size=D) + np.sqrt(noise) * rng.normal(size=(T, O))).astype("float32")
        B = jnp.eye(O, dtype="float32") / np.float32(np.sqrt(noise))

        def take(belief, row, B=B):
            H, y = row
            done = belief.condition(H, B, B @ (y - H @ belief.mean))
            return done.belief, done.ok

        start = SquareRoot.start(jnp.zeros(D, "float32"), jnp.full(D, prior, "float32"))
        last, ok = jax.jit(lambda X, Y, take=take, start=start: jax.lax.scan(take, start, (X, Y)))(X, Y)
        assert last.mean.dtype == "float32"
        assert np.asarray(ok).all()
        rows, y = X.reshape(-1, D).astype("float64"), Y.ravel().astype("float64")
        cov = np.linalg.inv(rows.T @ rows / noise + np.eye(D) / prior)
        gap = np.asarray(last.mean, "float64") - cov @ rows.T @ y / noise
        assert (np.abs(gap) <= 0.2 * np.sqrt(np.diag(cov))).all()
        np.testing.assert_allclose(np.sum(np.asarray(last.root, "float64") ** 2, axis=1), np.diag(cov), rtol=0.02)


def test_of_several_outputs_all_are_taken_or_none():
    """One by one, the first would be taken and the second, which overflows, would not."""
    D = 40  # more than are reduced at once
    belief = SquareRoot.start(jnp.zeros(D, "float32"), jnp.full(D, 1e6, "float32"))
    G = jnp.stack([jnp.ones(D, "float32"), jnp.full(D, 1e30, "float32")])
    done = jax.jit(one_by_one)(belief, G, jnp.ones(2, "float32"))
    assert not bool(done.ok)
    for old, new in zip(jax.tree.leaves(belief), jax.tree.leaves(done.belief), strict=True):
        np.testing.assert_array_equal(old, new)
