"""The array form of a Gaussian update, against rational numbers, which have no rounding."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import SquareRoot
from filtax.beliefs._square_root import FEW_OUTPUTS, SMALL, reduced

pytestmark = pytest.mark.x64
reduce = jax.jit(reduced)
every_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])
SIZES = [(1, 1), (2, 5), (3, 2), (4, 2), (4, FEW_OUTPUTS), (3, FEW_OUTPUTS + 1), (10, 1), (SMALL // 4, 4), (32, 5)]


def rational(A):
    return np.vectorize(Fraction, otypes=[object])(np.asarray(A, "float64"))


def solved(S, B):
    """S⁻¹ B by elimination, of positive definite rational numbers."""
    S, B = S.copy(), B.copy()
    for k in range(len(S)):
        B[k], S[k] = B[k] / S[k, k], S[k] / S[k, k]
        for i in range(len(S)):
            if i != k:
                B[i], S[i] = B[i] - S[i, k] * B[k], S[i] - S[i, k] * S[k]
    return B


def exact(root, V):
    """I + V Vᵀ and the covariance that is left, as they are."""
    A, V = rational(root), rational(V)
    S, AV = rational(np.eye(len(V))) + V @ V.T, A @ V.T
    return S, A @ A.T - AV @ solved(S, AV.T)


def numbers(A):
    return np.asarray(A, "float64")


def precise(d, dtype):
    """Two outputs of three parameters that differ by d in one of them, with noise of deviation d."""
    root = np.asarray([[1.0, 0.0, 0.0], [0.25, 1.0, 0.0], [-0.5, 0.125, 1.0]], dtype)
    H = np.asarray([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0 + d]], dtype)
    return root, (H @ root / np.asarray(d, dtype)).astype(dtype)


@every_dtype
@pytest.mark.parametrize(("D", "O"), SIZES)
def test_a_reduction_is_that_of_dense_algebra(D, O, dtype):
    rng, eps = np.random.default_rng(D + O), float(np.finfo(dtype).eps)
    root = rng.normal(size=(D, D)).astype(dtype)
    V = (rng.normal(size=(O, D)) @ root).astype(dtype)
    many = jax.jit(jax.vmap(reduced))(np.stack([root] * 9), np.stack([V] * 9))
    for L, U, left in (reduce(root, V), [part[4] for part in many]):
        assert L.dtype == U.dtype == left.dtype == dtype
        L, U, left, A, W = map(numbers, (L, U, left, root, V))
        close = {"atol": 50 * D * eps * np.abs(A).max() ** 2}
        size = np.abs(W @ W.T).max()
        np.testing.assert_allclose(L @ L.T, np.eye(O) + W @ W.T, rtol=0, atol=50 * D * eps * (1.0 + size))
        np.testing.assert_allclose(U @ L.T, A @ W.T, rtol=0, atol=50 * D * eps * (1.0 + np.abs(A @ W.T).max()))
        np.testing.assert_allclose(left @ left.T + U @ U.T, A @ A.T, rtol=0, **close)
        np.testing.assert_array_equal(np.triu(L, 1), 0.0)
        assert (np.diag(L) >= 1.0).all()


@every_dtype
def test_precise_outputs_that_agree_keep_their_digits(dtype):
    """The noise is less than ε of the forecast (Dyer and McReynolds, 1969): all forms that square have lost it."""
    eps = float(np.finfo(dtype).eps)
    d = {"float32": 2.0**-12, "float64": 2.0**-27}[dtype]
    assert d * d < eps
    root, V = precise(d, dtype)
    S, P = exact(root, V)
    L, U, left = (rational(part) for part in reduce(root, V))
    within = 20 * eps / d  # a product would be off by ε / d², which is more than 1
    pivot = float(S[1, 1] - S[0, 1] * S[1, 0] / S[0, 0])
    assert float(L[1, 1]) == pytest.approx(np.sqrt(pivot), rel=within)
    assert float(L[1, 0] * L[0, 0]) == pytest.approx(float(S[1, 0]), rel=20 * eps)
    for g in ([1, 1, 1], [1, -1, 0], [0, 0, 1], [1, 1, -2]):
        g = np.asarray([Fraction(number) for number in g], object)
        assert float(g @ left @ left.T @ g) == pytest.approx(float(g @ P @ g), rel=within)
    gain = solved(S, rational(V) @ rational(root).T).T  # A Vᵀ S⁻¹, which is U L⁻¹
    np.testing.assert_allclose(numbers(U), numbers(gain @ L), rtol=within, atol=within)


@every_dtype
@pytest.mark.parametrize(("D", "O"), SIZES)
def test_nothing_learnt_leaves_the_root_bit_for_bit(D, O, dtype):
    root = np.random.default_rng(D).normal(size=(D, D)).astype(dtype)
    L, U, left = reduce(root, np.zeros((O, D), dtype))
    np.testing.assert_array_equal(left, root)
    np.testing.assert_array_equal(L, np.eye(O))
    np.testing.assert_array_equal(U, np.zeros((D, O)))


@every_dtype
@pytest.mark.parametrize("share", [0.0, 0.125])
def test_of_a_huge_datum_every_number_is_finite_and_right(share, dtype):
    """As large as is let in, in float32 a V of 2e18, and of parameters whose variance is nearly too large, too."""
    limit = np.sqrt(float(np.finfo(dtype).max)) / 8.0
    scale = max(1.0, share * 8.0 * limit)
    root = np.asarray(scale * np.asarray([[1.0, 0.5, 0.0], [0.0, 2.0, 1.0], [0.25, 0.0, 3.0]]), dtype)
    V = np.asarray(limit * np.asarray([[1.0, 0.5, -0.25], [0.5, 1.0, 0.0]]), dtype)
    assert np.isfinite(4.0 * np.sum(V * V))
    L, U, left = (numbers(part) / unit for part, unit in zip(reduce(root, V), (limit, scale, scale), strict=True))
    S, P = (numbers(V) / limit) @ (numbers(V) / limit).T, numbers(root) / scale
    inverse = np.linalg.inv(np.linalg.cholesky(S))
    gain = P @ (inverse @ numbers(V) / limit).T
    close = {"rtol": 0.0, "atol": 50 * float(np.finfo(dtype).eps)}
    np.testing.assert_allclose(L, np.linalg.cholesky(S), **close)
    np.testing.assert_allclose(U, gain, **close)
    np.testing.assert_allclose(left @ left.T, P @ P.T - gain @ gain.T, rtol=0.0, atol=10 * close["atol"])


@every_dtype
def test_what_is_certain_and_what_is_missing_stay(dtype):
    """A column of V that is zero (a direction no output sees), a row (a missing output), and a row of the root."""
    rng = np.random.default_rng(5)
    root, V = rng.normal(size=(4, 4)).astype(dtype), rng.normal(size=(3, 4)).astype(dtype)
    root[2], V[:, 1], V[1] = 0.0, 0.0, 0.0
    L, U, left = map(numbers, reduce(root, V))
    np.testing.assert_array_equal(left[:, 1], root[:, 1])
    np.testing.assert_array_equal(left[2], 0.0)
    np.testing.assert_array_equal(U[2], 0.0)
    np.testing.assert_array_equal(U[:, 1], 0.0)
    np.testing.assert_array_equal(L[1], [0.0, 1.0, 0.0])
    assert L[2, 1] == 0.0
    some = reduce(root, V[[0, 2]])
    for whole, part in ((L[np.ix_([0, 2], [0, 2])], some[0]), (U[:, [0, 2]], some[1]), (left, some[2])):
        np.testing.assert_allclose(whole, part, rtol=0.0, atol=10 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize(("D", "O"), [(2, 2), (4, 2), (10, 3), (3, FEW_OUTPUTS + 1)])
def test_slopes_are_those_of_differences_and_finite_where_nothing_is_learnt(D, O):
    rng = np.random.default_rng(D)
    root, J, r = rng.normal(size=(D, D)), rng.normal(size=(O, D)), rng.normal(size=O)

    def score(scale):
        done = SquareRoot(jnp.ones(D), jnp.asarray(root)).condition(jnp.asarray(J), scale * jnp.eye(O), jnp.asarray(r))
        return jnp.sum(jnp.sin(done.belief.mean)) + jnp.sum(done.belief.cov) + done.log_det + done.innovation @ r

    slope, h = jax.jit(jax.grad(score)), 1e-6
    ahead, behind = jax.jit(score)(0.7 + h), jax.jit(score)(0.7 - h)
    assert float(slope(0.7)) == pytest.approx(float(ahead - behind) / (2 * h), rel=1e-6)
    assert np.isfinite(slope(0.0)) or O > FEW_OUTPUTS
