"""Drifts that act on each parameter alone, against the moments of an affine map in numpy; time gaps by composition."""

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.beliefs import Covariance, SquareRoot
from filtax.priors import additive_inflation, shrink_perturb
from moments import drifted, normal, same, spd

pytestmark = pytest.mark.x64
MEAN, COV = normal(0, 3), spd(1, 3)
forms = pytest.mark.parametrize("form", [SquareRoot, Covariance])


def move(dynamics, form=SquareRoot, dt=None):
    belief = form.start(jnp.asarray(MEAN), jnp.asarray(COV))
    return dynamics(belief, None, None, None if dt is None else jnp.asarray(dt))


@forms
@pytest.mark.parametrize("q", [0.0, 0.4, np.array([0.0, 0.1, 2.0])])
def test_additive_inflation(q, form):
    """Variance q a step, times the length of the step; none in no time."""
    dynamics = additive_inflation(q)
    same(move(dynamics, form), drifted(MEAN, COV, Q=q))
    for dt in (0.0, 2.5):
        same(move(dynamics, form, dt), drifted(MEAN, COV, Q=q * dt))


@forms
@pytest.mark.parametrize("shrink", [0.0, 0.6, 1.0, np.array([0.0, 0.5, 1.0])])
@pytest.mark.parametrize("q", [0.0, 0.4, np.array([0.0, 0.1, 2.0])])
def test_shrink_perturb(shrink, q, form):
    """In its name's order: what is shrunk is the old belief, not the noise that comes after."""
    same(move(shrink_perturb(shrink, q), form), drifted(MEAN, COV, shrink, None, q))


def test_shrink_perturb_over_time_gaps():
    """The factor is a power of the gap, the variance what as many steps add; nothing happens in no time."""
    dynamics = shrink_perturb(0.8, 0.3)
    same(move(dynamics, dt=1.0), drifted(MEAN, COV, 0.8, None, 0.3))
    same(move(dynamics, dt=2.5), drifted(MEAN, COV, 0.8**2.5, None, 0.3 * (1 - 0.8**5.0) / (1 - 0.8**2)))
    same(move(dynamics, dt=0.0), drifted(MEAN, COV))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: additive_inflation(-0.1), r"additive_inflation\(q=...\) must be finite and at least 0, got -0.1"),
        (lambda: additive_inflation([0.1, np.nan]), "variance added to each parameter per step"),
        (lambda: additive_inflation("much"), "must be a number"),
        (lambda: shrink_perturb(1.1, 0.1), r"shrink_perturb\(shrink=...\) must lie in \[0, 1\], got 1.1"),
        (lambda: shrink_perturb(-0.1, 0.1), "1 keeps the parameters, 0 forgets them"),
        (lambda: shrink_perturb(0.9, np.inf), r"shrink_perturb\(q=...\) must be finite"),
    ],
)
def test_refusals(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_two_gaps_are_one_of_their_sum():
    belief = Covariance.start(jnp.array([1.0, -2.0]), jnp.array([2.0, 0.5]))
    for shrink in (0.5, 0.99, 1.0):
        dynamics = shrink_perturb(shrink, 0.3)
        gap = lambda b, dt: dynamics(b, b, None, jnp.asarray(dt))  # noqa: B023
        np.testing.assert_allclose(gap(gap(belief, 1.0), 2.5).cov, gap(belief, 3.5).cov, rtol=1e-6)
        np.testing.assert_allclose(gap(belief, 1.0).cov, dynamics(belief, belief, None, None).cov, rtol=1e-6)


@pytest.mark.parametrize("prior", ["ACI(q=1e30)", "SP(shrink=1.0, q=1e30)"])
@pytest.mark.parametrize("form", ["root", "covariance", "diagonal"])
def test_an_inflation_that_overflows_is_not_taken_for_none(form, prior):
    """After it nothing is known of the parameters: a datum is refused, and the stream goes on."""
    method = fx.method(f"LG(form={form})+C-{prior}", model=fx.models.linear(noise=1.0))
    state = method.init(mean=np.zeros(2, "float32"), cov=1.0)
    X, gap = np.full((3, 2), 2.0), np.array([1e-30, 1e30, 1e-30])
    _, infos = method.scan(state, X, np.ones(3), dt=gap)
    assert infos.ok.tolist() == [True, False, False]
    assert infos.var[0] < 20.0
    assert not infos.var[1] < 1e37
