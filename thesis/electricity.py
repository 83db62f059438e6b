"""The load of the next hour through the beginning of Covid: four ways to follow a change, beside two rules of thumb.

A network 6-4-4-1 is learned by an extended Kalman filter with noise variance 1 and prior variance 1 from 31,812 hours.
The number of each method is chosen on the first 300 of them; what is scored begins after.

Thesis: experiment:hour-ahead-forecasting, fig:day-ahead-plot, fig:day-ahead-results-zoomed,
fig:day-ahead-rlpr-predictions, fig:day-ahead-results.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from filtax import Log, Uniform, method, tune
from filtax.datasets import read_table
from filtax.models import mlp, nonlinear
from filtax.priors import additive_inflation
from filtax.protocols import Prior, Proposal
from thesis.electricity_shown import (
    diverged,
    draw_boxes,
    draw_change,
    draw_forecasts,
    draw_runs,
    error_tables,
    five_day,
    flat,
    lowest,
    quickest,
    resets,
)
from thesis.experiment import Advance, Experiment, Result, claims
from thesis.findings import keep
from thesis.online_methods import stacked

HALF_LIFE = 20.0
BURN = 100  # rows without which the averages begin
DAY = 24
WEATHER = ("pressure", "cloud_cover_pct", "humidity_pct", "temperature_c", "wind_direction_deg", "wind_speed_kmh")


class Hours(NamedTuple):
    """Rows in time: when, inputs (T, 6), target (T,), load in MW (T,), and forecasts that need no model."""

    time: np.ndarray
    X: np.ndarray
    y: np.ndarray
    load: np.ndarray
    last: np.ndarray
    changed: np.ndarray


def read_hours(scaling: str = "mean") -> Hours:
    """Read the set and prepare it."""
    if scaling not in ("mean", "sd"):
        raise ValueError(f"read_hours(scaling={scaling!r}) must be mean (the text) or sd (the published run).")
    table = read_table("electricity")
    weather = np.stack([table[name] for name in WEATHER], axis=1)
    return prepare(np.array(table["time"], "datetime64[h]"), table["load_kw"] / 1000.0, weather, scaling)


def prepare(time: np.ndarray, load: np.ndarray, weather: np.ndarray, scaling: str = "mean") -> Hours:
    r"""Make targets, inputs and baselines of load (T,) and weather (T, 6), all known an hour before.

    The target is $y_t = (\ell_t - m_{t-1}) / s_{t-1}$, with m and s the exponentially weighted mean and standard
    deviation of the load $\ell$, half-life 20 hours, both known an hour before. It is forecast from the weather of the
    hour before, each column divided by its average ("mean", the text) or its standard deviation ("sd", what was run).

    The rows begin with the hundredth. `last` forecasts the load of the hour before, `changed` adds to it the change of
    the same hour a day before; both are in the unit of the target.
    """
    mean, sd = averages(load[:, None], 0.5 ** (1.0 / HALF_LIFE))
    mean, sd = mean[:-1, 0], sd[:-1, 0]
    span = 1.0 - 2.0 / (HALF_LIFE + 1.0)  # the published run took 20 as a span
    size = averages(np.abs(weather), 0.5 ** (1.0 / HALF_LIFE))[0] if scaling == "mean" else averages(weather, span)[1]
    some = size > 1e-6 * np.abs(weather)  # a reading that stands still for days has a deviation of rounding errors
    X = np.where(some, weather / np.where(some, size, 1.0), 0.0)[:-1]
    move = np.full(len(load), np.nan)
    move[DAY + 1 :] = load[1:-DAY] - load[: -DAY - 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        in_unit = [((value - mean) / sd)[BURN - 1 :] for value in (load[1:], load[:-1], load[:-1] + move[1:])]
    y, last, changed = in_unit
    return Hours(time[BURN:], X[BURN - 1 :], y, load[BURN:], last, changed)


def averages(x: np.ndarray, keep: float) -> tuple[np.ndarray, np.ndarray]:
    """Exponentially weighted means and standard deviations of columns, the latter without bias; weights sum to one.

    A weight keeps the share `keep` of itself in a step. The first deviation is NaN.
    """
    total, squares, weight, weight2 = np.zeros(x.shape[1]), np.zeros(x.shape[1]), 0.0, 0.0
    mean, var = np.empty(x.shape), np.empty(x.shape)
    for t, row in enumerate(x):
        weight, weight2 = 1.0 + keep * weight, 1.0 + keep**2 * weight2
        step = row - total
        total = total + step / weight
        squares = keep * squares + step * (row - total)
        mean[t] = total
        var[t] = squares * weight / (weight**2 - weight2) if t else np.nan
    return mean, np.sqrt(var)


class Shocked(Prior):
    """OUPR whose mixture widens by a variance of its own, about the mean there is, as the published run had it.

    So a belief widens and stays where it is; a reset goes to the initial belief. In the thesis both are the initial
    belief. Thesis: eq:SPR-equation-gt, eq:SPR-equation-Gt.
    """

    prior: Any
    shock: Any
    name = "OUPR"
    needs = ("mix",)
    greedy = True

    @property
    def dynamics(self) -> Any:
        """How the parameters move besides."""
        return self.prior.dynamics

    def __call__(self, proposal: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        """Beliefs (C, ...) before the datum."""
        return self.prior(proposal, initial, dt)

    def revise(
        self, proposal: Proposal, beliefs: PyTree, log_score: Array, initial: PyTree, ask: Callable
    ) -> tuple[Proposal, PyTree]:
        """As OUPR, with what is mixed in replaced; a new hypothesis has the initial belief."""
        mean = jnp.sum(jnp.where(proposal.is_new[:, None], 0.0, beliefs.mean), axis=0)  # of the one that goes on
        target = type(initial).start(mean, self.shock * jnp.ones_like(mean))
        chosen, settled = self.prior.revise(proposal, beliefs, log_score, target, ask)

        def pick(old: Array, new: Array) -> Array:
            return jnp.where(chosen.is_new.reshape(-1, *[1] * (old.ndim - 1)), new[None], old)

        return chosen, jax.tree.map(pick, settled, initial)


NETWORK = mlp((6, 4, 4, 1))
WARM_UP = 300
KEPT = ("belief_mean", "runlength")
HAZARD, SMALL = Log(1e-6, 0.99), Log(2e-9, 1.0)
SPACES: dict[str, dict[str, Uniform]] = {
    "RL[1]-OUPR": {"hazard": HAZARD},
    "C-ACI": {"q": SMALL},
    "CPP-OU": {"rate": SMALL},
    "RL[1]-PR": {"hazard": HAZARD},
    "RL[1]-OUPR+ACI": {"hazard": HAZARD, "q": SMALL, "variance": Uniform(0.01, 2.0)},
}
PUBLISHED: dict[str, tuple[dict[str, float], float, float]] = {  # numbers, median absolute error, median 5-day MAE
    "RL[1]-OUPR": ({"hazard": 0.342}, 0.199, 0.259),
    "C-ACI": ({"q": 1.0}, 0.261, 0.321),
    "CPP-OU": ({"rate": 0.635}, 0.608, 0.602),
    "RL[1]-PR": ({"hazard": 0.489}, 0.463, 0.510),
    "RL[1]-OUPR+ACI": ({"hazard": 0.342, "q": 0.00226, "shock": math.exp(1.956)}, 0.199, 0.259),
}
WIDE = "RL[1]-OUPR+ACI, 7.07 I from the start"  # the same numbers with the prior of the text: one for all purposes
BASELINES = {"last value": "last", "plus yesterday's change": "changed"}
NOTES = (
    "The text divides each weather column by its moving average; the published run divided by a moving standard "
    "deviation with 20 as the span. The text is the default, the other scaling with the published numbers a second "
    "table. The set has six weather columns, not seven.",
    "The published RL[1]-OUPR also had a random walk (ACI) and a tuned prior variance, which its rivals had not: shown "
    "apart, as RL[1]-OUPR+ACI. It started from the variance 1 and mixed in another about the mean there was, tuned as "
    "1.956 and by mistake run as exp(1.956) = 7.07: so in the second table, with the text's reading below it, in which "
    "the initial belief, of variance 7.07, is also what is mixed in, mean included.",
    "A reset absorbs the hour it is born with, CPP-OU takes three gradient steps of a tuned rate, and, but for that "
    "one row, what is mixed in is the initial belief, mean included.",
    "The forecast is the thesis's: the network at the mean of the belief before the hour, without the hazard of a "
    "change; evidence knows of the hazard.",
    "Chosen by the mean absolute error on the first 300 hours, which are not scored.",
    "Intervals, of 95 %, are those of medians when blocks of 35 days (whole weeks) are drawn again, the same for "
    "every method: days are not independent, the same weekday and the same month resemble each other. They tell of "
    "other years, not of other first networks.",
)


@dataclass(frozen=True)
class Setting:
    """Settings tried for each method, and initial networks over which errors are averaged."""

    budget: int = 16
    networks: int = 1
    hours: int | None = None


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    """Tune on the first hours, run over all of them, score what comes after."""
    hours = Hours(*(part[: setting.hours] for part in read_hours()))
    other = Hours(*(part[: setting.hours] for part in read_hours("sd")))
    after = slice(WARM_UP, None)
    arrays: dict[str, np.ndarray] = {"hours": hours.time[after].astype(np.int64), "y": hours.y[after]}
    arrays["load"], chosen, errors, others = hours.load[after], {}, {}, {}
    for i, name in enumerate(SPACES):
        numbers = PUBLISHED[name][0]
        chosen[name] = keep(f"chosen, {name}", partial(_tuned, name, hours, setting.budget, seed))
        said, runs = _forecasts(name, chosen[name], hours, setting.networks, seed)
        theirs, their_runs = _forecasts(name, numbers, other, setting.networks, seed)
        arrays |= {
            name: said[:, after],
            f"{name}, runs": runs[:, after],
            f"{name}, published setting": theirs[:, after],
        }
        arrays[f"{name}, runs at the published setting"] = their_runs[:, after]
        errors[name], others[name] = np.abs(said - hours.y)[:, after], np.abs(theirs - other.y)[:, after]
        advance((i + 1) / len(SPACES))
    numbers = {key.replace("shock", "variance"): value for key, value in PUBLISHED["RL[1]-OUPR+ACI"][0].items()}
    wide, _ = _forecasts("RL[1]-OUPR+ACI", numbers, other, setting.networks, seed)
    others[WIDE] = np.abs(wide - other.y)[:, after]
    for name, part in BASELINES.items():
        arrays[name] = getattr(hours, part)[None, after]
        errors[name] = np.abs(arrays[name] - hours.y[after])
    tables = error_tables(errors, others, PUBLISHED | {WIDE: (numbers, None, None)}, chosen)
    lost = (*diverged(errors, "at the numbers chosen"), *diverged(others, "at the published scaling and numbers"))
    return Result({"chosen": chosen, "hours": len(arrays["y"])}, arrays, tables, (_beaten(errors), *lost, *NOTES))


def _beaten(errors: dict[str, np.ndarray]) -> str:
    """Which methods lose to which rule of thumb, by the 5-day error."""
    said, days = [], {name: float(np.median(five_day(error))) for name, error in errors.items()}
    for rule in BASELINES:
        bar = days[rule]
        losers = [name for name in SPACES if days[name] > bar]
        whom = "every method" if len(losers) == len(SPACES) else ", ".join(losers) or "no method"
        said.append(f"'{rule}' has a 5-day error of {bar:.3f}, below that of {whom}")
    return f"Rules of thumb: {'; '.join(said)}. The inputs are the weather alone; a model for use should see the load."


def _build(
    name: str, hazard: Any = None, q: Any = None, rate: Any = None, variance: Any = 1.0, shock: Any = None
) -> Any:
    """A method from its numbers; `variance` is that of the prior, which `init` takes, `shock` what OUPR mixes in."""
    name = name.removesuffix("+ACI") if q is not None and hazard is not None else name
    given = {"hazard": hazard, "q": q if hazard is None else None, "rate": rate, "steps": rate and 3}
    text = ", ".join(f"{key}={value}" for key, value in given.items() if value is not None)
    drift = additive_inflation(q) if hazard is not None and q is not None else None
    model = nonlinear(NETWORK.apply, noise=1.0)
    built = method(f"LG(form=covariance)+{name}({text})", model=model, prior=drift)
    return built if shock is None else eqx.tree_at(lambda m: m.prior, built, Shocked(built.prior, shock))


def _tuned(name: str, hours: Hours, budget: int, seed: int) -> dict[str, float]:
    X, y = hours.X[:WARM_UP], hours.y[:WARM_UP]
    params = NETWORK.init(jax.random.key(seed))

    def lost(at: dict[str, np.ndarray]) -> np.ndarray:
        points = [dict(zip(at, point, strict=True)) for point in zip(*at.values(), strict=True)]
        said, _ = _run_all(name, points, X, y, [params] * len(points))
        return np.mean(np.abs(said - y), axis=1)

    return dict(tune(lost, SPACES[name], budget=budget, seed=seed).best)


def _forecasts(
    name: str, numbers: dict[str, float], hours: Hours, networks: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts and run lengths over all hours, (networks, T)."""
    starts = [NETWORK.init(jax.random.key(seed + i)) for i in range(networks)]
    return _run_all(name, [numbers] * networks, hours.X, hours.y, starts)


def _run_all(name: str, points: list[dict[str, float]], X: np.ndarray, y: np.ndarray, starts: list) -> tuple:
    methods = [_build(name, **point) for point in points]
    variances = [point.get("variance", 1.0) for point in points]
    states = [m.init(params=p, cov=v) for m, p, v in zip(methods, starts, variances, strict=True)]
    said, runs = _scan(stacked(methods), stacked(states), X, y)
    return np.asarray(said), np.asarray(runs)


@jax.jit
def _scan(methods: Any, states: Any, X: Array, y: Array) -> tuple[Array, Array]:
    def one(each: Any, state: Any) -> tuple[Array, Array]:
        infos: Any = each.scan(state, X, y, keep=KEPT, complete=True)[1]
        before = jnp.concatenate([state.initial.mean[None], infos.belief_mean[:-1]])
        said = jax.vmap(lambda theta, x: NETWORK.apply(state.layout.restore(theta), x))(before, X)
        return said, infos.runlength

    return jax.vmap(one)(methods, states)


EXPERIMENT = Experiment(
    name="electricity",
    title="Hour-ahead electricity load before and after the beginning of Covid",
    sizes={"quick": Setting(), "full": Setting(budget=64, networks=5)},
    run=_run,
    figures={
        "fig:day-ahead-plot": draw_change,
        "fig:day-ahead-results-zoomed": draw_forecasts,
        "fig:day-ahead-rlpr-predictions": draw_runs,
        "fig:day-ahead-results": draw_boxes,
    },
    claims=claims({11: flat, 12: quickest, 13: resets, 14: lowest}),
    data=("electricity",),
    fixed={"spaces": SPACES, "published": PUBLISHED, "warm_up": WARM_UP},
)
