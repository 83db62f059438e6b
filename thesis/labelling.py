"""What the two experiments with moving class boundaries share: four filters, their tuning, the sweep of RL[K], figures.

A logistic regression with two parameters, prior N(0, I), is learned from each stream; the error is the share of labels
that are not the more probable one by the forecast made before they came. Each filter's one number is chosen on streams
of its own. The number of hypotheses K enters the sweep as an array, so that the whole grid is one compiled program.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from matplotlib import colormaps

from filtax import Bone, Log, method, tune
from filtax.models import bernoulli, linear
from filtax.protocols import Weighting
from filtax.synthetic import Stream
from thesis.experiment import Advance, Result, Table
from thesis.figures import GREY, INK, Figure, boxes, panels
from thesis.findings import keep
from thesis.online_methods import stacked
from thesis.statistics import of_mean

FILTERS = ("RL[1]-OUPR", "C-ACI", "CPP-OU", "RL[1]-PR")
BASELINES = ("last label", "majority", "true parameters")
NUMBERS = {"C-ACI": "q={}", "CPP-OU": "rate={}, steps=1"}
SPACES = {name: Log(1e-4, 10.0) if name in NUMBERS else Log(1e-4, 0.99) for name in FILTERS}
TIE = 1e-5  # before the first label the forecast is a half, as far as quadrature goes; 0 is then said
CHUNK = 10  # streams in a call: one shape for tuning and testing, so one compilation for each filter


@dataclass(frozen=True)
class Setting:
    """Sizes; `trials`, `warm_up` and `swept` (those of the sweep) count streams."""

    trials: int = 30
    steps: int = 720
    warm_up: int = 10
    budget: int = 32
    swept: int = 10
    keeps: tuple[int, ...] = (1, 2, 3, 4, 5, 7, 10, 15)
    hazards: tuple[float, ...] = tuple(i / 9 for i in range(1, 9))


FULL = Setting(trials=100, swept=100, keeps=tuple(range(1, 16)))


def compare(
    setting: Setting,
    seed: int,
    advance: Advance,
    make: Callable[..., Stream],
    published: dict[str, tuple[float | None, float]],
) -> Result:
    """Tune, test, sweep streams that `make` makes of steps and a key: errors (N,) by filter; (K, hazards, swept).

    `published` are for each filter its published number, if ours has that number, and its published error.
    """
    warm = _streams(make, setting.warm_up, setting.steps, (seed, 0))
    test = _streams(make, setting.trials, setting.steps, (seed, 1))
    arrays, numbers, rows = _baselines(test), {}, []
    for i, name in enumerate(FILTERS):
        numbers[name] = chosen = keep(f"chosen, {name}", partial(_tuned, name, warm, setting.budget, seed))
        old, before = published[name]
        ours, theirs = _errors([_build(name, chosen), _build(name, chosen if old is None else old)], *test[:2])
        arrays[name] = ours
        again = (None, None) if old is None else (float(theirs.mean()), of_mean(theirs))
        rows.append((name, before, ours.mean(), of_mean(ours), *_spread(ours), chosen, old, *again))
        advance(0.1 * (i + 1))
    arrays["CPP-OU, searched"] = _errors([_build("CPP-OU", None)], *test[:2])[0]
    rows += [
        (name, None, arrays[name].mean(), of_mean(arrays[name]), *_spread(arrays[name]), *[None] * 4)
        for name in ("CPP-OU, searched", *BASELINES)
    ]
    X, Y = test[0][: setting.swept], test[1][: setting.swept]
    arrays["sweep"] = sweep_errors(setting.keeps, setting.hazards, X, Y, lambda s: advance(0.4 + 0.6 * s))
    arrays |= {"keeps": np.array(setting.keeps), "hazards": np.array(setting.hazards)}
    columns = ("", "published", "ours", "95 %", "2.5 % of streams", "97.5 % of streams")
    columns = (*columns, "number", "published number", "ours with that", "with that, 95 %")
    table = Table("Share of labels missed, mean over streams", columns, rows, published=("published",))
    return Result({"chosen": numbers}, arrays, (table, _grid(arrays)), NOTES)


NOTES = (
    "The filter is the extended Kalman filter of the natural parameter, evidence is the probability of the label, and "
    "a reset absorbs the label it is born with. The published runs mixed the mean's variance with the natural "
    "parameter's Jacobian, threw the label of a reset away, and ran CPP-OU with its two constants swapped.",
    "The number of each filter (q, a rate, or the hazard) is chosen by the error on ten warm-up streams of their own; "
    "the published runs had one. That of CPP-OU is the learning rate of one gradient step a datum, which begins where "
    "all is kept; 'CPP-OU, searched' takes the share of the greatest evidence, as the formula says, and so follows "
    "each single label too far. Both mix with the same prior N(0, I) as the others.",
    "Intervals, of 95 %, are Student's for the mean over streams; beside them what the middle 95 % of streams have. "
    "Those of the sweep are of each mean by itself: the claims compare with RL[1]-OUPR stream by stream.",
    "'true parameters' labels by the true boundary: no forecast can be better on average.",
)


def sweep_errors(
    keeps: Sequence[int], hazards: Sequence[float], X: np.ndarray, Y: np.ndarray, advance: Advance
) -> np.ndarray:
    """Errors of RL[K]-PR for every K and hazard, (K, hazards, N)."""
    table, most = [], max(keeps)
    for i, most_kept in enumerate(keeps):
        built = [
            method(f"LG(form=covariance)+RL[{most}]-PR(hazard={h})", model=linear(likelihood=bernoulli()))
            for h in hazards
        ]
        built = [eqx.tree_at(lambda m: m.weighting, each, _Best(jnp.asarray(most_kept))) for each in built]
        table.append(keep(f"RL[{most_kept}]", partial(_errors, built, X, Y)))
        advance((i + 1) / len(keeps))
    return np.stack(table)


class _Best(Weighting):
    """Of all hypotheses the best K survive, K an array: what `bounded` does for a K known when it is compiled."""

    keep: Any

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        mine, other, place = log_weight[:, None], log_weight[None, :], jnp.arange(log_weight.size)
        ahead = (other > mine) | ((other == mine) & (place[None, :] < place[:, None]))  # a sort is slow under vmap
        log_weight = jnp.where(jnp.sum(ahead, axis=1) < self.keep, log_weight, -jnp.inf)
        return log_weight - jax.nn.logsumexp(log_weight)


def _streams(make: Callable[..., Stream], count: int, steps: int, key: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """Inputs (N, T, 2), labels (N, T), probabilities (N, T)."""
    seeds = np.random.SeedSequence(key).generate_state(count)
    streams = [make(steps, key=int(seed)) for seed in seeds]
    return tuple(np.stack([getattr(stream, part) for stream in streams]) for part in ("X", "y", "truth"))


def _build(name: str, number: float | None) -> Bone:
    setting = "" if number is None else f"({NUMBERS.get(name, 'hazard={}').format(number)})"
    return method(f"LG(form=covariance)+{name}{setting}", model=linear(likelihood=bernoulli()))


def _tuned(name: str, warm: tuple[np.ndarray, ...], budget: int, seed: int) -> float:
    """The number with the least error on the warm-up streams; the first of equals."""

    def lost(at: Any) -> np.ndarray:
        return _errors([_build(name, number) for number in at["number"]], *warm[:2]).mean(axis=1)

    return tune(lost, {"number": SPACES[name]}, budget=budget, batch=2, seed=seed).best["number"]


def _errors(built: list[Bone], X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Shares of labels missed, (B, N), for B settings of one method and N streams."""
    state = built[0].init(mean=jnp.zeros(2, jnp.float32), cov=1.0)
    pieces = [_missed(stacked(built), state, X[at : at + CHUNK], Y[at : at + CHUNK]) for at in range(0, len(X), CHUNK)]
    return np.concatenate([np.asarray(piece, np.float64) for piece in pieces], axis=1)


@jax.jit
def _missed(methods: Bone, state: Any, X: Array, Y: Array) -> Array:
    def one(each: Bone, x: Array, y: Array) -> Array:
        said: Any = each.scan(state, x, y, keep=("mean",), complete=True)[1].mean
        return jnp.mean((said.reshape(-1) > 0.5 + TIE) != (y > 0.5))

    return jax.vmap(jax.vmap(one, (None, 0, 0)), (0, None, None))(methods, X, Y)


def _baselines(test: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    """Errors of forecasts that need no filter; before the first label they say 0."""
    _, Y, truth = test
    before = np.concatenate([np.zeros((len(Y), 1)), Y[:, :-1]], axis=1)
    ones, seen = np.cumsum(before, axis=1), np.arange(Y.shape[1])
    said = (before, ones > seen / 2, truth > 0.5)
    return {name: np.mean(label != Y, axis=1) for name, label in zip(BASELINES, said, strict=True)}


def _spread(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def least_by_keep(result: Result) -> tuple[np.ndarray, np.ndarray]:
    """For each K the least mean error over the hazards, (K,), and the errors of that hazard, (K, N)."""
    sweep = result.arrays["sweep"]
    best = sweep.mean(axis=2).argmin(axis=1)
    errors = sweep[np.arange(len(sweep)), best]
    return errors.mean(axis=1), errors


def same_streams(result: Result) -> np.ndarray:
    """Errors of RL[1]-OUPR on the streams of the sweep."""
    return result.arrays["RL[1]-OUPR"][: result.arrays["sweep"].shape[2]]


def _grid(arrays: dict[str, np.ndarray]) -> Table:
    columns = ("K", *(f"{hazard:.3f}{part}" for hazard in arrays["hazards"] for part in ("", ", 95 %")))
    rows = [
        (int(k), *(cell for errors in row for cell in (float(errors.mean()), of_mean(errors))))
        for k, row in zip(arrays["keeps"], arrays["sweep"], strict=True)
    ]
    return Table("RL[K]-PR: share missed by K and hazard, mean over streams", columns, rows)


def draw_errors(result: Result) -> Figure:
    """A box for each filter, lines for what needs none."""
    figure, axis = panels(size=(6.5, 3.4))
    boxes(axis, [result.arrays[name] for name in FILTERS], FILTERS)
    for name, dashes in zip(BASELINES, (":", "-.", "--"), strict=True):
        axis.axhline(result.arrays[name].mean(), color=GREY, ls=dashes, label=f"{name}, mean")
    axis.set(ylabel="share of labels missed", title="Errors over streams", ylim=(0, None))
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def draw_sweep(result: Result) -> Figure:
    """Mean error of RL[K]-PR by K, a line for each hazard, beside RL[1]-OUPR."""
    figure, axis = panels(size=(6.5, 3.8))
    hazards, keeps = result.arrays["hazards"], result.arrays["keeps"]
    colours = colormaps["viridis"](np.linspace(0.0, 0.92, len(hazards)))
    for hazard, colour, line in zip(hazards, colours, result.arrays["sweep"].mean(axis=2).T, strict=True):
        axis.plot(keeps, line, color=colour, marker="o", ms=3, label=f"{hazard:.3f}")
    axis.axhline(same_streams(result).mean(), color=INK, ls=":", label="RL[1]-OUPR")
    axis.set(xlabel="hypotheses kept, K", ylabel="share of labels missed", title="RL[K]-PR by hazard")
    axis.legend(title="hazard", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
