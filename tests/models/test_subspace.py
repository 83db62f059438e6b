"""The subspace and last-layer models against dense numpy; directions against singular vectors (errata E31)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.models import directions, last_layer, last_layer_range, random_directions, subspace
from filtax.ravel import flatten
from oracles import exact_update

pytestmark = pytest.mark.x64
models, priors = fx.models, fx.priors
exact = dict(rtol=1e-10, atol=1e-12)
NET = models.mlp((3, 4, 5, 2), "tanh")
PARAMS = NET.init(jax.random.key(0))
THETA, LAYOUT = flatten(PARAMS)
D, HIDDEN = THETA.size, 41  # 3*4+4 + 4*5+5, then 5*2+2 in the last layer
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
AT = jnp.asarray(X[0])
R = np.array([[0.5, 0.2], [0.2, 0.4]])
A = rng.normal(size=(D, 4)) / np.sqrt(D)


def h(theta, x):
    """The network again, in numpy: its flat parameters are bias, weight of each layer in order."""
    at, value = 0, np.asarray(x)
    for k, (n, m) in enumerate([(3, 4), (4, 5), (5, 2)]):
        b, W = theta[at : at + m], theta[at + m : at + m + n * m].reshape(n, m)
        value, at = value @ W + b, at + m + n * m
        value = np.tanh(value) if k < 2 else value
    return value


def slope(f, z, step=1e-6):
    """Central differences, with one step of Richardson's extrapolation."""
    wide = lambda e: np.stack([(f(z + e * d) - f(z - e * d)) / (2 * e) for d in np.eye(len(z))], axis=1)
    return (4 * wide(step) - wide(2 * step)) / 3


@pytest.mark.parametrize("width", [1, 4, 30])  # 30 directions for 2 outputs: the other way to the Jacobian
def test_jacobian_is_that_of_the_composed_function(width):
    basis = np.random.default_rng(width).normal(size=(D, width)) / np.sqrt(D)
    inside = subspace(models.nonlinear(NET.apply, noise=R), basis, PARAMS)
    z = 0.3 * np.random.default_rng(1).normal(size=width)
    at = inside.linearise(jnp.asarray(z), AT)
    np.testing.assert_allclose(at.eta, h(np.asarray(THETA) + basis @ z, X[0]), **exact)
    np.testing.assert_allclose(inside.value(jnp.asarray(z), AT).eta, at.eta, **exact)
    full = models.nonlinear(NET.apply, noise=R).bind(LAYOUT).linearise(THETA + jnp.asarray(basis @ z), AT)
    np.testing.assert_allclose(at.jacobian, np.asarray(full.jacobian) @ basis, **exact)
    by_difference = slope(lambda z: h(np.asarray(THETA) + basis @ z, X[0]), z, 1e-4)
    np.testing.assert_allclose(at.jacobian, by_difference, rtol=1e-7, atol=1e-9)


def test_subspace_filter_is_the_dense_filter_lifted():
    """Algorithm as corrected (E30), in numpy over z; and the same in D dimensions from the prior A P Aᵀ."""
    inside = subspace(models.nonlinear(NET.apply, noise=R), A, PARAMS)
    ekf = fx.method("LG+C-LSSM", model=inside, prior=priors.linear_dynamics(F=0.9, Q=0.01))
    state, info = ekf.scan(ekf.init(cov=0.5), X, Y)
    plain = models.nonlinear(NET.apply, noise=R).bind(LAYOUT)
    z, P, evidence = np.zeros(4), 0.5 * np.eye(4), []
    theta, C = np.asarray(THETA), A @ (0.5 * np.eye(4)) @ A.T
    for x, y in zip(X, Y, strict=True):
        z, P = 0.9 * z, 0.81 * P + 0.01 * np.eye(4)
        theta = np.asarray(THETA) + 0.9 * (theta - np.asarray(THETA))
        C = 0.81 * C + 0.01 * A @ A.T
        H = np.asarray(plain.linearise(jnp.asarray(np.asarray(THETA) + A @ z), jnp.asarray(x)).jacobian)
        gap = y - h(np.asarray(THETA) + A @ z, x)
        S = H @ A @ P @ A.T @ H.T + R
        evidence.append(-0.5 * (gap @ np.linalg.solve(S, gap) + np.linalg.slogdet(2 * np.pi * S)[1]))
        K = P @ (H @ A).T @ np.linalg.inv(S)
        z, P = z + K @ gap, P - K @ (H @ A) @ P
        K = C @ H.T @ np.linalg.inv(H @ C @ H.T + R)
        theta, C = theta + K @ gap, C - K @ H @ C
    belief = ekf.belief(state)
    np.testing.assert_allclose(belief.mean, z, **exact)
    np.testing.assert_allclose(belief.cov, P, **exact)
    np.testing.assert_allclose(info.log_evidence, evidence, **exact)
    np.testing.assert_allclose(flatten(inside.predictor.lift(belief.mean))[0], theta, **exact)
    np.testing.assert_allclose(A @ np.asarray(belief.cov) @ A.T, C, **exact)


def test_last_layer_is_linear_regression_on_the_features():
    """Hidden layers fixed: the last layer's filter is exact Bayes on the features of the network."""
    head = last_layer(models.nonlinear(NET.apply, noise=R), PARAMS)
    ekf = fx.method("LG+C-Static", model=head)
    assert head.predictor.sizes == (0, 12)
    state, _ = ekf.scan(ekf.init(cov=0.7), X, Y)
    mean, cov = np.asarray(THETA)[HIDDEN:], 0.7 * np.eye(12)
    theta = np.asarray(THETA)
    for x, y in zip(X, Y, strict=True):
        features = np.tanh(
            np.tanh(x @ theta[4:16].reshape(3, 4) + theta[:4]) @ theta[21:41].reshape(4, 5) + theta[16:21]
        )
        H = np.concatenate([np.eye(2), np.kron(features[None, :], np.eye(2))], axis=1)
        mean, cov = exact_update(mean, cov, H, R, y)[:2]
    np.testing.assert_allclose(ekf.belief(state).mean, mean, **exact)
    np.testing.assert_allclose(ekf.belief(state).cov, cov, **exact)
    lifted = flatten(head.predictor.lift(ekf.belief(state).mean))[0]
    np.testing.assert_array_equal(lifted[:HIDDEN], THETA[:HIDDEN])


@pytest.mark.nightly
def test_a_layer_in_the_middle_of_the_vector_is_left_free():
    """A dictionary is flattened by its names: the last layer may come first."""
    params = {"a_head": rng.normal(size=(4, 2)), "b_body": rng.normal(size=(3, 4)), "c_gain": rng.normal(size=4)}
    apply = lambda p, x: (jnp.tanh(x @ p["b_body"]) * p["c_gain"]) @ p["a_head"]
    plain = models.nonlinear(apply, noise=R)
    theta, layout = flatten(params)
    for basis in (rng.normal(size=(16, 3)), None):
        inside = subspace(plain, basis, params, last="a_head")
        assert inside.predictor.sizes == ((3 if basis is not None else 16), 8)
        start = inside.predictor.begin()
        np.testing.assert_array_equal(flatten(inside.predictor.lift(start))[0], theta)
        at = inside.linearise(start, AT)
        J = np.asarray(plain.bind(layout).linearise(theta, AT).jacobian)
        Z = J[:, 8:] if basis is None else J[:, 8:] @ basis
        np.testing.assert_allclose(at.jacobian, np.concatenate([Z, J[:, :8]], axis=1), **exact)


@pytest.mark.parametrize(
    ("params", "last", "sentence"),
    [
        ({"out": np.ones(2), "body": np.ones(3)}, True, "a dictionary has no order; name it"),
        ((np.ones(3),), True, "cannot be found in parameters of type int"),
        (np.ones(5), True, "flat vector of 5"),
        (np.ones(5), 9, "flat vector of 5"),
        ((np.ones(3), np.ones(2)), 4, "there is no 4 on the path"),
        ({"out": np.ones(2), "body": np.ones(3)}, "head", "there is no 'head'.*it has 'body', 'out'"),
        ((np.ones(3), ()), 1, "holds no parameters"),
        ({"all": {"w": np.ones(3)}}, "all", "all of the network"),
        ((np.ones(3), np.ones(2)), False, "last=False names no layer"),
    ],
)
def test_a_last_layer_that_cannot_be_found_is_refused(params, last, sentence):
    with pytest.raises(ValueError, match=sentence):
        last_layer_range(params, last)


def test_what_does_not_fit_is_refused():
    plain = models.nonlinear(NET.apply, noise=R)
    with pytest.raises(ValueError, match=rf"shape \(5, 2\) but there are {D} parameters"):
        subspace(plain, np.ones((5, 2)), PARAMS)
    with pytest.raises(ValueError, match=rf"{HIDDEN} hidden parameters"):
        subspace(plain, A, PARAMS, last=True)
    with pytest.raises(ValueError, match="neither a basis"):
        subspace(plain, None, PARAMS)
    with pytest.raises(ValueError, match="subspace already"):
        subspace(subspace(plain, A, PARAMS), A, PARAMS)
    with pytest.raises(ValueError, match="got BernoulliLikelihood"):
        subspace(models.bernoulli(), A, PARAMS)
    with pytest.raises(ValueError, match="finite"):
        subspace(plain, np.full((D, 1), np.nan), PARAMS)
    ekf = fx.method("LG+C-Static", model=subspace(plain, A, PARAMS))
    with pytest.raises(ValueError, match="leave params out"):
        ekf.init(params=PARAMS)
    with pytest.raises(ValueError, match="the model has 4 coordinates"):
        ekf.init(mean=np.zeros(3))


PATH = 10.0 + np.cumsum(rng.normal(size=(8, 50)), axis=0)
PREPARED = {"uncentred": PATH, "centred": PATH - PATH.mean(0), "differences": PATH[:-1] - PATH[-1]}


@pytest.mark.parametrize("kind", PREPARED)
def test_directions_are_right_singular_vectors(kind):
    V = np.linalg.svd(PREPARED[kind], full_matrices=False)[2]
    A = np.asarray(directions(PATH, 5, kind))
    np.testing.assert_allclose(A.T @ A, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(A * V[:5].T, axis=0)), 1.0, rtol=1e-10)
    most = len(PATH) - (kind != "uncentred")
    assert directions(PATH, most, kind).shape == (50, most)
    with pytest.raises(ValueError, match=f"8 iterates give at most {most} {kind} directions; ask for fewer"):
        directions(PATH, most + 1, kind)


def test_directions_stay_orthonormal_in_float32_and_over_a_wide_range():
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


def test_directions_that_cannot_be_are_refused():
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
