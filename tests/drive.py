"""Run a filter over a drawn system through the public contract, with one compilation per shape and form."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx

FORMS = ["root", "covariance", "precision"]


def in_turn(forms, sizes):
    """Every form and every size by day, but not each with each: the other pairs wait for the night."""
    by_night = [size.values for size in sizes if hasattr(size, "marks")]  # marked as such for every form
    by_day = [size for size in sizes if not hasattr(size, "marks")]
    pairs = [(form, size) for form in forms for size in by_day + by_night]
    today = [(form, by_day[turn % len(by_day)]) for turn, form in enumerate(forms)]
    return [
        pytest.param(form, *size, marks=() if (form, size) in today else pytest.mark.nightly) for form, size in pairs
    ]


class History(NamedTuple):
    """What the filter said at each step: the belief after the datum, and the forecast before it."""

    mean: np.ndarray
    cov: np.ndarray
    forecast_mean: np.ndarray
    forecast_cov: np.ndarray
    log_evidence: np.ndarray
    ok: np.ndarray


@jax.jit
def _run(kfs, state, X, Y):
    def one(state, row):
        kf, x, y = row
        forecast = kf.predict(state, x)
        state, info = kf.step(state, x, y)
        belief = kf.belief(state)
        return state, History(belief.mean, belief.cov, forecast.mean, forecast.cov, info.log_evidence, info.ok)

    return jax.lax.scan(one, state, (kfs, X, Y))[1]


def stack(methods):
    """Method values are pytrees: stacked along time, a scan hands each step its own."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *methods)


def tracker(form, F, b, Q, R):
    prior = fx.priors.linear_dynamics(F=jnp.asarray(F), b=jnp.asarray(b), Q=jnp.asarray(Q))
    return fx.method(f"LG(form={form})+C-LSSM", model=fx.models.linear(noise=jnp.asarray(R)), prior=prior)


def run(system, form: str) -> History:
    """Filter the whole system, each step with the F, b, Q, R of its own."""
    methods = [tracker(form, *row) for row in zip(system.F, system.b, system.Q, system.R, strict=True)]
    state = methods[0].init(mean=jnp.asarray(system.m0), cov=jnp.asarray(system.P0))
    history = _run(stack(methods), state, jnp.asarray(system.H), jnp.asarray(system.y))
    return History(*map(np.asarray, history))


def close(got, want, scale=1.0, floor=0.0) -> None:
    """Ten digits, each element in its own unit; `floor` is the size below which a mean counts as zero there."""
    got, want = np.asarray(got) / scale, np.asarray(want) / scale
    size = max(floor, float(np.max(np.abs(want), initial=0.0)))
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10 * size)


def same_belief(got, want, units) -> None:
    """Compare means and covariances of the last step, in comfortable units."""
    close(got.mean[-1], want.mean[-1], units, floor=1.0)
    close(got.cov[-1], want.cov[-1], np.outer(units, units))
