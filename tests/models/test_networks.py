"""(M.1) The networks: against numpy and scipy, and counts done on paper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.signal

import filtax as fx
from filtax.models import Network, lenet5, mlp

WIDE = jnp.result_type(float)  # float64, or float32 in the pass without it
RTOL = 1e-10 if WIDE == jnp.float64 else 2e-5


def drawn(net: Network, seed: int = 0, dtype=None):
    """Parameters with biases that are not zero, so that a forgotten bias shows."""
    params = net.init(jax.random.key(seed), dtype)
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda p: p + jnp.asarray(0.1 * rng.normal(size=p.shape), p.dtype), params)


def drawn_size(net: Network) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(net.init, jax.random.key(0))))


def convolved(image, kernel, bias):
    """Each filter by scipy, over all channels at once."""
    each = [scipy.signal.correlate(image, kernel[..., f], "valid", "direct") for f in range(kernel.shape[-1])]
    return np.concatenate(each, axis=-1) + bias


def pooled(image):
    return (image[::2, ::2] + image[1::2, ::2] + image[::2, 1::2] + image[1::2, 1::2]) / 4.0


@pytest.mark.parametrize(("sizes", "count"), [((3, 1), 4), ((3, 20, 1), 101), ((2, 5, 7, 4), 15 + 42 + 32)])
def test_a_perceptron_has_the_parameters_counted_on_paper(sizes, count):
    assert mlp(sizes).size == drawn_size(mlp(sizes)) == count


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 61_706),
        ({"extra": True}, 62_766),
        ({"image": (32, 32, 1)}, 61_706),
        ({"image": (32, 32, 1), "extra": True}, 62_766),
        ({"image": (32, 32, 3)}, 61_706 + 2 * 6 * 25),
        ({"classes": 2}, 61_706 - 8 * 85),
    ],
)
def test_lenet5_has_the_published_number_of_parameters(options, count):
    assert lenet5(**options).size == drawn_size(lenet5(**options)) == count


def test_the_perceptron_is_the_numpy_one():
    net = mlp((3, 8, 5, 2), activation="tanh")
    params = drawn(net)
    x = np.random.default_rng(1).normal(size=3)
    values = x
    for layer in params[:-1]:
        values = np.tanh(values @ np.asarray(layer["weight"]) + np.asarray(layer["bias"]))
    want = values @ np.asarray(params[-1]["weight"]) + np.asarray(params[-1]["bias"])
    np.testing.assert_allclose(net.apply(params, jnp.asarray(x, WIDE)), want, rtol=RTOL)


@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize(("image", "border"), [((28, 28, 1), (2, 2)), ((32, 32, 2), (0, 0)), ((9, 30, 1), (11, 1))])
def test_lenet5_is_the_numpy_one(image, border, extra):
    net = lenet5(classes=4, image=image, extra=extra)
    params = drawn(net)
    x = np.random.default_rng(2).normal(size=image)
    values = np.zeros((32, 32, image[2]))
    values[border[0] : border[0] + image[0], border[1] : border[1] + image[1]] = x
    layers = [(np.asarray(p["weight"], float), np.asarray(p["bias"], float)) for p in params]
    for weight, bias in layers[:2]:
        values = pooled(np.maximum(convolved(values, weight, bias), 0.0))
    values = values.ravel()
    for weight, bias in layers[2:-1]:
        values = np.maximum(values @ weight + bias, 0.0)
    want = values @ layers[-1][0] + layers[-1][1]
    assert len(layers) == (6 if extra else 5)
    atol = 0.0 if WIDE == jnp.float64 else 1e-5
    np.testing.assert_allclose(net.apply(params, jnp.asarray(x, WIDE)), want, rtol=RTOL, atol=atol)


def test_first_weights_have_the_variance_of_one_over_fan_in():
    """1200 to 48,000 draws a layer: a sample variance off by 15 % has odds below 1e-3 each."""
    params = lenet5().init(jax.random.key(0))
    for layer, fan_in in zip(params[1:4], (150, 400, 120), strict=True):
        np.testing.assert_allclose(np.var(layer["weight"]) * fan_in, 1.0, rtol=0.15)
        np.testing.assert_array_equal(layer["bias"], 0.0)


def test_filters_of_equal_networks_share_one_compilation():
    calls = []

    def counted(values):
        calls.append(values.shape)
        return jnp.tanh(values)

    def learn():
        net = mlp((2, 3, 1), activation=counted)
        ekf = fx.method("LG+C-Static", model=fx.models.nonlinear(net.apply, noise=0.1))
        state = ekf.init(params=mlp((2, 3, 1)).init(jax.random.key(0)), cov=0.1)
        return ekf.scan(state, jnp.ones((4, 2), WIDE), jnp.ones(4, WIDE), keep=("mean",))[1].mean

    first = learn()
    traced = len(calls)
    np.testing.assert_array_equal(learn(), first)
    assert len(calls) == traced > 0


def test_a_filter_fits_a_network_to_a_curve():
    """sin(3x) from 400 noisy points in one pass: what is left is near the noise, and far below the curve itself."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(400, 1))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.normal(size=400)
    net = mlp((1, 20, 1), activation="tanh")
    ekf = fx.method("LG+C-Static", model=fx.models.nonlinear(net.apply, noise=0.01))
    state = ekf.init(params=net.init(jax.random.key(0)), cov=1.0)
    assert ekf.belief(state).mean.shape == (net.size,)
    _, infos = ekf.scan(state, jnp.asarray(X, WIDE), jnp.asarray(y, WIDE), keep=("mean",))
    error = np.asarray(infos.mean)[-100:] - np.sin(3.0 * X[-100:, 0])
    assert infos.mean.shape == (400,)
    assert np.sqrt(np.mean(error**2)) < 0.1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mlp((3,)), "two or more"),
        (lambda: mlp((3, 0, 1)), "positive whole widths"),
        (lambda: mlp((3, 1), activation="rleu"), "jax.nn"),
        (lambda: lenet5(image=(33, 28, 1)), "32 x 32"),
        (lambda: lenet5(image=(28, 28, 0)), "32 x 32"),
        (lambda: lenet5(classes=0), "a whole number of at least 1"),
        (lambda: mlp((3, 1)).init(jax.random.key(0), "int32"), "floating"),
        (lambda: mlp((3, 1)).apply(mlp((3, 1)).init(jax.random.key(0)), jnp.ones(4)), "takes"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
