"""Units that follow a stream, and beliefs that follow the units: checked against numpy on dense matrices."""

import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import Covariance, NormalInverseGamma, SquareRoot
from filtax.estimators.alarms import SURPRISE, next_score
from filtax.estimators.units import FAR, MEMORY, Units, reexpressed

pytestmark = pytest.mark.x64


def run(columns):
    units = Units.start(columns.shape[1])
    for row in columns:
        units = units.after(jnp.asarray(row))
    return units


def test_mean_and_variance_are_those_of_the_data():
    x = np.random.default_rng(0).normal(3.0, 5.0, size=(60, 2))
    x[::3, 1] = np.nan
    units = run(x)
    np.testing.assert_allclose(units.mean, np.nanmean(x, axis=0), rtol=1e-12)
    np.testing.assert_allclose(units.var, np.nanvar(x, axis=0), rtol=1e-12)
    assert units.count.tolist() == [60.0, 40.0]


def test_old_data_are_forgotten():
    units = Units(jnp.full(1, 1e6), jnp.zeros(1), jnp.ones(1)).after(jnp.full(1, 1.0))
    np.testing.assert_allclose(units.mean, 1.0 / MEMORY)


def test_a_number_counts_for_so_many_scales_and_a_unit_that_changed_is_found():
    """Of one that is absurd the mean moves as by 20 scales; of a thousand times the unit 45 are enough."""
    one = Units(jnp.full(3, 99.0), jnp.zeros(3), jnp.array([1.0, 1.0, 0.0])).after(jnp.array([1e30, -3.0, 5.0]), FAR)
    np.testing.assert_allclose(one.mean, [0.2, -0.03, 0.05])  # without a scale there is no such limit
    np.testing.assert_allclose(one.var, 0.99 * np.array([1.0 + 4.0, 1.09, 0.25]))
    young = Units(jnp.full(1, 2.0), jnp.zeros(1), jnp.ones(1)).after(jnp.array([300.0]), FAR)
    np.testing.assert_allclose(young.mean, 100.0)
    units = Units(jnp.full(1, 1e4), jnp.zeros(1), jnp.ones(1))
    for t in range(45):
        units = units.after(jnp.array([1000.0 * (-1) ** t]), FAR)
    assert units.scale.item() > 100.0


def test_what_is_absent_constant_far_or_a_category():
    units = Units(jnp.full(5, 9.0), jnp.full(5, 1.0), jnp.array([4.0, 4.0, 0.0, 4.0, 0.0]))
    z = units.standard(jnp.array([5.0, jnp.nan, 7.0, 1e30, jnp.inf]))
    assert z.tolist() == [2.0, 0.0, 0.0, FAR, 1.0]


def test_numbers_beyond_all_bounds_are_not_counted():
    units = run(np.array([[1.0], [2.0]]))
    assert units.after(jnp.array([1e300])).mean.tolist() == units.mean.tolist()


def gaussian(form):
    rng = np.random.default_rng(1)
    mean, root = rng.normal(size=4), rng.normal(size=(4, 4))
    belief = SquareRoot(jnp.asarray(mean), jnp.asarray(root)) if form == "root" else None
    return belief or Covariance.start(jnp.asarray(mean), jnp.asarray(root @ root.T)), mean, root @ root.T


@pytest.mark.parametrize("form", ["root", "covariance"])
@pytest.mark.parametrize("noisy", [False, True])
def test_a_belief_says_the_same_about_y_in_other_units(form, noisy):
    """Slot 0 moves, slot 1 had one value until now, slot 2 was never met."""
    belief, mean, cov = gaussian(form)
    old = Units(jnp.array([5.0, 5.0, 0.0]), jnp.array([1.0, 2.0, 0.0]), jnp.array([4.0, 0.0, 0.0]))
    new = Units(jnp.array([6.0, 6.0, 1.0]), jnp.array([1.5, 2.5, 7.0]), jnp.array([9.0, 1.0, 0.0]))
    y_old = Units(jnp.ones(1) * 5, jnp.array([10.0]), jnp.array([4.0]))
    y_new = Units(jnp.ones(1) * 6, jnp.array([11.0]), jnp.array([25.0]))
    if noisy:
        belief = NormalInverseGamma(belief, jnp.asarray(3.0), jnp.asarray(2.0))
    moved = reexpressed(belief, old, new, y_old, y_new)
    noise = [float(b.rate / (b.shape - 1.0)) if noisy else 1.0 for b in (belief, moved)]
    unit = moved.unit if noisy else moved
    for x0, x1 in [(1.0, 2.0), (4.0, 2.0), (-3.0, 2.0)]:  # slot 1 has only ever been 2
        before = np.array([1.0, (x0 - 1.0) / 2.0, 0.0, 0.0])
        after = np.array([1.0, (x0 - 1.5) / 3.0, (x1 - 2.5) / 1.0, 0.0])
        np.testing.assert_allclose(11.0 + 5.0 * after @ np.asarray(moved.mean), 10.0 + 2.0 * before @ mean, rtol=1e-12)
        was, now = 4.0 * noise[0] * before @ cov @ before, 25.0 * noise[1] * after @ np.asarray(unit.cov) @ after
        np.testing.assert_allclose(now, was, rtol=1e-12)


def test_the_score_is_a_likelihood_ratio():
    """Its mean under the forecast is 1, which bounds the rate of false alarms; one datum gains at most log 11."""
    start = jnp.asarray(50.0)
    for chance in (SURPRISE, 0.3, 1e-6, 0.9):
        gains = [
            float(next_score(start, jnp.asarray(event), jnp.asarray(chance), jnp.asarray(True)) - start)
            for event in (True, False)
        ]
        np.testing.assert_allclose(chance * np.exp(gains[0]) + (1.0 - chance) * np.exp(gains[1]), 1.0, rtol=1e-9)
        assert gains[1] < 0.0 < gains[0] < np.log(11.0) + 1e-9
    assert next_score(start, jnp.asarray(True), jnp.asarray(0.5), jnp.asarray(False)) == start
