"""The warm-up against descent in numpy, its iterates, how it goes on, and what it is for: PULSE after it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.ravel import flatten

models = fx.models
KEY = jax.random.key(0)
rng = np.random.default_rng(5)
LINE = models.linear(noise=0.5)


class Sgd(NamedTuple):
    """A plain descent, as optax would give it."""

    rate: float

    def init(self, params):
        return ()

    def update(self, slope, memory, params):
        return jax.tree.map(lambda g: -self.rate * g, slope), memory


@pytest.mark.x64
def test_it_is_descent_of_the_mean_negative_log_likelihood():
    """Full batches, a row missing: (1/N) X'(y - X theta)/R, by hand; the loss is that before each step."""
    X, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    y[4] = np.nan
    warm = fx.warmup(LINE, np.ones(3), X, y, Sgd(0.1), epochs=4, batch=100, key=KEY)
    theta, path, losses, seen = np.ones(3), [np.ones(3)], [], ~np.isnan(y)
    for _ in range(4):
        gap = np.where(seen, y - X @ theta, 0.0)
        losses.append(np.sum(0.5 * gap[seen] ** 2 / 0.5 + 0.5 * np.log(2 * np.pi * 0.5)) / 9)
        theta = theta + 0.1 * X.T @ gap / 0.5 / 9
        path.append(theta)
    np.testing.assert_allclose(warm.iterates, path, rtol=1e-12)
    np.testing.assert_allclose(warm.params, theta, rtol=1e-12)
    np.testing.assert_allclose(warm.losses, losses, rtol=1e-12)


@pytest.mark.x64
def test_batches_do_not_overlap_and_make_up_the_data():
    """With a rate this small an epoch moves by the sum of all gradients at its start, in batches of 4, 4 and 1."""
    X, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    rate = 1e-9
    warm = fx.warmup(LINE, np.ones(3), X, y, Sgd(rate), epochs=2, batch=4, each="step", key=KEY)
    moves = np.diff(warm.iterates, axis=0) / rate
    rows = X * (y - X @ np.ones(3))[:, None] / 0.5  # what each datum asks for
    assert len(moves) == 6
    for first, second, alone in (moves[:3], moves[3:]):
        np.testing.assert_allclose(4 * first + 4 * second + alone, rows.sum(0), rtol=1e-5)
        assert min(np.abs(rows - alone).max(1)) < 1e-5  # the last batch is one datum
    assert np.abs(moves[2] - moves[5]).max() > 0.1  # each epoch has an order of its own


NET = models.mlp((2, 6, 2), "tanh")
LABELS = models.nonlinear(NET.apply, likelihood=models.categorical())
X = rng.normal(size=(240, 2)).astype("float32")
Y = (X[:, 0] * X[:, 1] > 0).astype("float32")  # no line tells the two classes apart
PARAMS = NET.init(jax.random.key(1), "float32")


@pytest.mark.parametrize(("skip", "stride", "epochs"), [(0, 1, 5), (2, 3, 11), (11, 2, 11), (20, 1, 5)])
def test_iterates_are_stored_after_skip_at_a_stride(skip, stride, epochs):
    run = lambda **kw: fx.warmup(LINE, np.ones(2), X, X[:, 0], Sgd(0.1), epochs=epochs, batch=60, key=KEY, **kw)
    every, some = run().iterates, run(skip=skip, stride=stride).iterates
    assert len(every) == epochs + 1
    np.testing.assert_array_equal(some, every[skip::stride])
    assert len(some) == max(0, (epochs - skip) // stride + 1)


def test_it_goes_on_to_the_same_bits_and_tells_of_its_progress():
    told = []
    once = fx.warmup(LABELS, PARAMS, X, Y, 0.01, epochs=6, stride=2, key=KEY, advance=lambda *a: told.append(a))
    half = fx.warmup(LABELS, PARAMS, X, Y, 0.01, epochs=3, stride=2, key=KEY)
    whole = fx.warmup(LABELS, None, X, Y, 0.01, epochs=3, stride=2, start=half)
    assert told == [("warm-up", 1)] * 6
    assert whole.losses == once.losses
    assert whole.steps == once.steps == (6 * 8, 6)
    np.testing.assert_array_equal(whole.iterates, once.iterates)
    for left, right in zip(jax.tree.leaves(whole.params), jax.tree.leaves(once.params), strict=True):
        np.testing.assert_array_equal(left, right)
        assert left.dtype == jnp.float32


def test_warm_up_then_pulse_beats_chance_and_no_warm_up():
    """Forty labels to warm up, 200 to filter: with A and offset from the warm-up, and from nothing."""
    warm = fx.warmup(LABELS, PARAMS, X[:40], Y[:40], 0.03, epochs=60, key=KEY)
    basis = warm.directions(5, kind="differences", last=True)
    np.testing.assert_array_equal(flatten(warm.params)[0], warm.iterates[-1])
    right = {}
    for name, A, params in (
        ("warm", basis, warm.params),
        ("cold", models.random_directions(18, 5, key=KEY, dtype="float32"), PARAMS),
    ):
        pulse = fx.method("PULSE+C-Static", model=models.subspace(LABELS, A, params, last=True))
        _, info = pulse.scan(pulse.init(cov=(0.1, 0.1)), X[40:], Y[40:], keep=("mean",))
        right[name] = float(np.mean(np.asarray(info.mean).argmax(1) == Y[40:]))
    assert right["warm"] > 0.85
    assert right["warm"] > right["cold"] + 0.1


def test_what_does_not_fit_is_refused():
    small = dict(epochs=1, key=KEY)
    with pytest.raises(ValueError, match="X has 0 rows and Y has 0; give the same number of each, at least one"):
        fx.warmup(LABELS, PARAMS, X[:0], Y[:0], **small)
    with pytest.raises(ValueError, match="X has 240 rows and Y has 3"):
        fx.warmup(LABELS, PARAMS, X, Y[:3], **small)
    with pytest.raises(ValueError, match=r"y = 7 is not possible under a categorical likelihood with 2 outputs"):
        fx.warmup(LABELS, PARAMS, X, 7 * Y, **small)
    one = models.nonlinear(NET.apply, noise=1.0)
    with pytest.raises(
        ValueError, match="2 outputs, for which a gaussian likelihood takes 2 numbers a row, but Y has 1"
    ):
        fx.warmup(one, PARAMS, X, Y, **small)
    with pytest.raises(ValueError, match="finite"):
        fx.warmup(LABELS, PARAMS, np.full_like(X, np.nan), Y, **small)
    with pytest.raises(ValueError, match=r"the loss is .* in epoch .*; use a smaller learning rate"):
        fx.warmup(LINE, np.ones(2, "float32"), X, X[:, 0], Sgd(1e20), epochs=9, key=KEY)
    with pytest.raises(ValueError, match="give key="):
        fx.warmup(LABELS, PARAMS, X, Y, epochs=1)
    with pytest.raises(ValueError, match=r"learning rate or an optimiser of optax.*got 'adam'"):
        fx.warmup(LABELS, PARAMS, X, Y, "adam", **small)
    with pytest.raises(ValueError, match=r"epochs=...\) must be a whole number of at least 1"):
        fx.warmup(LABELS, PARAMS, X, Y, epochs=0, key=KEY)
    with pytest.raises(ValueError, match="'epoch' or 'step'"):
        fx.warmup(LABELS, PARAMS, X, Y, each="row", **small)
    with pytest.raises(ValueError, match="at most 0 centred"):
        fx.models.directions(
            fx.warmup(LINE, np.ones(2), X, X[:, 0], Sgd(0.1), epochs=1, key=KEY, skip=1).iterates, 1, "centred"
        )
