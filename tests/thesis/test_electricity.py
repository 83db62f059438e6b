"""The electricity load: preparation against sums written out, the filter against numpy, and the rules."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from thesis import Result, electricity, electricity_shown, find, reproduce
from thesis.electricity import BURN, Shocked, averages, prepare
from thesis.statistics import block_draws

rng = np.random.default_rng(0)
TIME = np.datetime64("2020-03-01T00") + np.arange(160)
LOAD = 1000.0 + 50.0 * np.sin(np.arange(160) / 4) + rng.normal(size=160)
WEATHER = rng.uniform(0.5, 2.0, size=(160, 6))


def test_averages_are_sums_of_weights():
    mean, sd = averages(LOAD[:9, None], 0.8)
    weight = 0.8 ** np.arange(9)[::-1]
    want = weight @ LOAD[:9] / weight.sum()
    spread = weight @ (LOAD[:9] - want) ** 2 / (weight.sum() - (weight**2).sum() / weight.sum())
    np.testing.assert_allclose(mean[-1, 0], want)
    np.testing.assert_allclose(sd[-1, 0], np.sqrt(spread))


@pytest.mark.parametrize("scaling", ["mean", "sd"])
def test_a_row_knows_nothing_of_its_own_hour(scaling):
    hours = prepare(TIME, LOAD, WEATHER, scaling)
    t = 130
    changed, weather = LOAD.copy(), WEATHER.copy()
    changed[t:] += 100.0
    weather[t:] += 1.0
    other = prepare(TIME, changed, weather, scaling)
    row = t - BURN
    for part in ("X", "last", "changed"):
        np.testing.assert_array_equal(getattr(hours, part)[: row + 1], getattr(other, part)[: row + 1])
    np.testing.assert_array_equal(hours.y[:row], other.y[:row])
    assert other.y[row] > hours.y[row] + 1.0
    assert hours.time[row] == TIME[t]


def test_rules_of_thumb_are_in_the_unit_of_the_target():
    hours = prepare(TIME, LOAD, WEATHER)
    keep = 0.5 ** (1 / 20)
    mean, sd = averages(LOAD[:, None], keep)
    t = 140
    scaled = lambda load: (load - mean[t - 1, 0]) / sd[t - 1, 0]
    row = t - BURN
    np.testing.assert_allclose(hours.y[row], scaled(LOAD[t]))
    np.testing.assert_allclose(hours.last[row], scaled(LOAD[t - 1]))
    np.testing.assert_allclose(hours.changed[row], scaled(LOAD[t - 1] + LOAD[t - 24] - LOAD[t - 25]))


def network(theta, x):
    """The perceptron 6-4-4-1 on a flat vector, in numpy: biases before weights."""
    at = 0
    for fan, width in ((6, 4), (4, 4), (4, 1)):
        bias, weight = theta[at : at + width], theta[at + width : at + width + fan * width].reshape(fan, width)
        at += width + fan * width
        x = x @ weight + bias
        x = np.maximum(x, 0.0) if width > 1 else x
    return x[0]


@pytest.mark.x64
def test_forecasts_are_those_of_a_filter_in_numpy():
    hours = prepare(TIME, LOAD, WEATHER)
    said, _ = electricity._forecasts("C-ACI", {"q": 0.1}, hours, 1, 0)
    leaves = jax.tree.leaves(electricity.NETWORK.init(jax.random.key(0)))
    mean = np.concatenate([np.ravel(leaf) for leaf in leaves])
    cov, want, h = np.eye(53), [], 1e-6
    for x, y in zip(hours.X, hours.y, strict=True):
        want.append(network(mean, x))
        cov = cov + 0.1 * np.eye(53)
        J = np.array([(network(mean + h * e, x) - network(mean - h * e, x)) / (2 * h) for e in np.eye(53)])
        gain = cov @ J / (J @ cov @ J + 1.0)
        mean, cov = mean + gain * (y - want[-1]), cov - np.outer(gain, J @ cov)
    np.testing.assert_allclose(said[0], want, atol=1e-4)


NAMES = ("RL[1]-OUPR", "C-ACI", "CPP-OU", "RL[1]-PR", "RL[1]-OUPR+ACI", "last value", "plus yesterday's change")


def made(errors, runs=None, flat=0.1):
    """Three weeks from 24 February 2020 on; errors are constant but for a little noise."""
    T = 24 * 24
    time = np.datetime64("2020-02-24T00") + np.arange(T)
    noise = np.random.default_rng(1).normal(size=T)
    size = np.where(time < np.datetime64("2020-03-07"), 1.0, flat)
    arrays = {name: (error + 1e-3 * noise)[None] for name, error in zip(NAMES, errors, strict=True)}
    runs = np.arange(T)[None] + 1 if runs is None else runs
    arrays |= {"RL[1]-PR, runs": runs, "RL[1]-PR, runs at the published setting": np.arange(T)[None] % 12}
    load = 1000 + 100 * size * np.sin(np.arange(T) * np.pi / 12)
    return Result({}, arrays | {"y": np.zeros(T), "load": load, "hours": time.astype(np.int64)})


def decided(result):
    return [claim.decide(result).text for claim in find("electricity").claims]


def test_rules_of_the_claims():
    assert decided(made((0.2, 0.3, 0.4, 0.5, 0.2, 0.6, 0.6))) == ["holds", "holds", "does not hold", "holds"]
    with_rules = decided(made((0.2, 0.3, 0.4, 0.5, 0.2, 0.6, 0.1), flat=0.5))
    assert with_rules == ["does not hold", "holds", "does not hold", "holds only if rules of thumb are omitted"]
    assert decided(made((0.4, 0.3, 0.35, 0.5, 0.2, 0.6, 0.6)))[1::2] == ["does not hold", "does not hold"]


def test_resets_are_counted_in_days():
    hours = np.arange(24 * 24)
    still = np.where(hours < 12 * 24, hours % 12, 1 + hours)[None]
    assert decided(made((0.2,) * 7, still))[2] == "holds"
    assert decided(made((0.2,) * 7, (hours % 24)[None]))[2] == "does not hold"


def test_intervals_draw_whole_weeks_of_all_networks_and_methods_alike():
    """By brute force: the errors of each drawn day put side by side, and their median taken."""
    T = 24 * 75
    shape = 1.0 + 0.5 * (np.arange(T) // 24 % 7 == 0)
    one, two = (shape * rng.gamma(2.0, size=(2, T)) + level for level in (0.0, 0.3))
    by_day, days = one.reshape(2, 75, 24), []
    for places in block_draws(75, 35):
        assert (np.diff(places[:35]) % 75 == 1).all()
        days.append(np.median(by_day[:, places]))
    np.testing.assert_allclose(electricity_shown.of_hours(one), np.quantile(days, (0.025, 0.975)), rtol=1e-12)
    means = {name: e.reshape(2, 15, 120).mean(axis=(0, 2)) for name, e in (("RL[1]-OUPR", one), ("C-ACI", two))}
    drawn = lambda of: np.quantile([np.median(of[places]) for places in block_draws(15, 7)], (0.025, 0.975))
    published = {"RL[1]-OUPR": ({}, 0.1, 0.2), "C-ACI": ({}, 0.3, 0.4)}
    ours, theirs = electricity_shown.error_tables({"RL[1]-OUPR": one, "C-ACI": two}, {"C-ACI": one}, published, {})
    row = dict(zip(ours.columns, ours.rows[1], strict=True))
    np.testing.assert_allclose(row["5-day, 95 %"], drawn(means["C-ACI"]))
    np.testing.assert_allclose(row["less OUPR"], np.median(means["C-ACI"] - means["RL[1]-OUPR"]))
    np.testing.assert_allclose(row["less OUPR, 95 %"], drawn(means["C-ACI"] - means["RL[1]-OUPR"]))
    assert (row["median, published"], row["5-day, published"]) == (0.3, 0.4)
    assert ours.rows[0][7:9] == (None, None)
    assert theirs.rows[0][5:] == ours.rows[0][5:7]


def density(y, mean, var):
    return np.exp(-0.5 * (y - mean) ** 2 / var) / np.sqrt(2 * np.pi * var)


@pytest.mark.x64
@pytest.mark.parametrize("y", [0.4, 30.0])
def test_the_published_prior_widens_about_its_own_mean_or_resets(y):
    """What OUPR mixes in, against the formulas in numpy: one datum, one parameter."""
    plain = fx.method("LG(form=covariance)+RL[1]-OUPR(hazard=0.3)", model=fx.models.linear(noise=1.0))
    shocked = eqx.tree_at(lambda m: m.prior, plain, Shocked(plain.prior, 7.0))
    state = shocked.init(mean=jnp.array([0.5]), cov=1.0)
    x = jnp.ones(1)
    mean, var = 0.5, 1.0
    for datum in (0.1, y):
        on = 0.7 * density(datum, mean, var + 1.0)
        share = on / (on + 0.3 * density(datum, 0.5, 2.0))
        mean, var = (mean, share**2 * var + (1 - share**2) * 7.0) if share > 0.5 else (0.5, 1.0)
        gain = var / (var + 1.0)
        mean, var = mean + gain * (datum - mean), (1 - gain) * var
        state, _ = shocked.step(state, x, jnp.asarray(datum))
    belief = shocked.belief(state)
    np.testing.assert_allclose([belief.mean[0], belief.cov[0, 0]], [mean, var], rtol=1e-10)


@pytest.mark.nightly
def test_verdicts_and_bars_of_the_quick_size(tmp_path):
    try:
        (found,) = reproduce(["electricity"], out=tmp_path)
    except FileNotFoundError as absent:
        pytest.skip(str(absent))
    verdicts = [claim["verdict"] for claim in found["claims"]]
    assert verdicts == ["holds", "holds", "does not hold", "does not hold"]
    scores = {row[0]: row[2] for row in found["tables"][0]["rows"]}
    assert scores["last value"] == pytest.approx(0.16, abs=0.005)
    assert scores["plus yesterday's change"] == pytest.approx(0.044, abs=0.001)
    assert "below that of every method" in found["notes"][0]
