import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import filtax as fx

RATE, MEMORY, INNER, T, D = 0.05, 3, 2, 12, 3
rng = np.random.default_rng(0)
X = rng.standard_normal((T, D))
Y = X @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.standard_normal(T)
NAME = f"OGD(rate={RATE}, memory={MEMORY}, inner={INNER})+C-Static"


@jax.numpy_dtype_promotion("standard")  # optax counts in whole numbers
def by_optax(X, Y, loss, memory=MEMORY):
    """Adam of another library on the last data, written with lists; rows with a missing y are passed over."""
    optimiser = optax.adam(RATE)
    theta = jnp.zeros(D)
    state, buffer, path = optimiser.init(theta), [], []
    for x, y in zip(X, Y, strict=True):
        if not np.isnan(y):
            buffer = [*buffer, (x, y)][-memory:]
            for _ in range(INNER):
                slope = jax.grad(lambda theta, data: sum(loss(theta, *row) for row in data) / len(data))(theta, buffer)
                updates, state = optimiser.update(slope, state)
                theta = optax.apply_updates(theta, updates)
        path.append(theta)
    return np.stack(path)


def run(method, Y=Y):
    _, infos = method.scan(method.init(mean=jnp.zeros(D)), X, Y, keep=("mean", "var", "belief_mean", "ok", "trust"))
    return infos


@pytest.mark.parametrize("missing", [False, True])
def test_equals_adam_of_optax_on_a_list_of_the_last_data(missing):
    y = Y.copy()
    if missing:
        y[[0, 4, 5]] = np.nan
    infos = run(fx.method(NAME, model=fx.models.linear(noise=0.5)), y)
    np.testing.assert_allclose(
        infos.belief_mean, by_optax(X, y, lambda t, x, y: (y - x @ t) ** 2 / (2 * 0.5)), rtol=1e-6
    )
    np.testing.assert_allclose(infos.var, 0.5)  # a point is sure of itself: all that is left is the noise


def test_labels():
    labels = (Y > 0).astype(float)
    logistic = fx.models.linear(likelihood=fx.models.bernoulli())
    loss = lambda t, x, y: jnp.logaddexp(0.0, x @ t) - y * (x @ t)
    np.testing.assert_allclose(
        run(fx.method(NAME, model=logistic), labels).belief_mean, by_optax(X, labels, loss), rtol=1e-6
    )


def test_an_outlier_under_wolf_is_not_learned_from():
    y = Y.copy()
    y[6] = 1e30
    robust = fx.method(f"WoLF-TMD(c=100.0)+{NAME}", model=fx.models.linear(noise=0.5))
    infos = run(robust, y)
    assert infos.trust[6] == 0.0
    np.testing.assert_array_equal(infos.belief_mean[6], infos.belief_mean[5])
    assert np.isfinite(np.asarray(infos.belief_mean)).all()


def test_a_datum_of_any_size_does_no_lasting_harm():
    y = Y.copy()
    y[6] = 1e200  # its gradient squared overflows
    infos = run(fx.method(NAME, model=fx.models.linear(noise=0.5)), y)
    assert not infos.ok[6]
    assert np.isfinite(np.asarray(infos.belief_mean)).all()


@pytest.mark.parametrize("bad", ["rate=0", "rate=-1.0", "memory=0", "memory=1.5", "inner=0"])
def test_bad_settings_are_refused(bad):
    with pytest.raises(ValueError, match=rf"OGD\({bad.split('=')[0]}=\.\.\.\)"):
        fx.method(f"OGD({bad})+C-Static", model=fx.models.linear(noise=1.0))


def test_what_has_no_variance_cannot_be_widened():
    with pytest.raises(ValueError, match="Point belief cannot move that way"):
        fx.method("OGD+C-ACI(q=0.1)", model=fx.models.linear(noise=1.0))
