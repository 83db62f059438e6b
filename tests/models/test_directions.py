"""Directions against a full singular value decomposition: uncentred, centred, of differences (errata E31)."""

import jax
import numpy as np
import pytest

from filtax.models import directions, random_directions

rng = np.random.default_rng(0)
PATH = 10.0 + np.cumsum(rng.normal(size=(8, 50)), axis=0)
PREPARED = {"uncentred": PATH, "centred": PATH - PATH.mean(0), "differences": PATH[:-1] - PATH[-1]}


@pytest.mark.x64
@pytest.mark.parametrize("kind", PREPARED)
def test_they_are_right_singular_vectors(kind):
    V = np.linalg.svd(PREPARED[kind], full_matrices=False)[2]
    A = np.asarray(directions(PATH, 5, kind))
    np.testing.assert_allclose(A.T @ A, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(A * V[:5].T, axis=0)), 1.0, rtol=1e-10)
    most = len(PATH) - (kind != "uncentred")
    assert directions(PATH, most, kind).shape == (50, most)
    with pytest.raises(ValueError, match=f"8 iterates give at most {most} {kind} directions; ask for fewer"):
        directions(PATH, most + 1, kind)


def test_they_stay_orthonormal_in_float32_and_over_a_wide_range():
    """Singular values over a range of 1e6, which the Gram matrix of a float32 would have lost."""
    U, V = np.linalg.qr(rng.normal(size=(8, 8)))[0], np.linalg.qr(rng.normal(size=(300, 8)))[0]
    path = U @ np.diag(10.0 ** -np.linspace(0, 6, 8)) @ V.T
    A = np.asarray(directions(path.astype("float32"), 6))
    assert A.dtype == np.float32
    np.testing.assert_allclose(A.T @ A, np.eye(6), atol=1e-5)
    np.testing.assert_allclose(np.abs(np.sum(A[:, :4] * V[:, :4], axis=0)), 1.0, rtol=1e-3)


def test_random_directions_have_length_one():
    A = np.asarray(random_directions(200, 7, key=jax.random.key(0), dtype="float32"))
    np.testing.assert_allclose(np.sum(A * A, axis=0), 1.0, rtol=1e-5)
    assert random_directions(4, 0, key=jax.random.key(0)).shape == (4, 0)
    with pytest.raises(ValueError, match="only 4 parameters"):
        random_directions(4, 5, key=jax.random.key(0))


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="span 2 directions only"):
        directions(np.outer([1.0, 2.0, 4.0], np.arange(1.0, 6.0)) + np.eye(5)[0], 3)
    with pytest.raises(ValueError, match="span 0 directions"):
        directions(np.ones((3, 4)), 1, "centred")
    with pytest.raises(ValueError, match="no such kind"):
        directions(PATH, 1, "pca")
    with pytest.raises(ValueError, match=r"must be \(n, D\)"):
        directions(PATH[0], 1)
    with pytest.raises(ValueError, match="at least 1"):
        directions(PATH, 0)
