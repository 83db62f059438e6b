"""Ten Bernoulli arms whose probabilities walk: the regret of four filters under Thompson sampling, beside two more.

Every arm is a log-odds with a Gaussian belief (one extended Kalman filter of one parameter), and idle arms age. The one
number of each method is chosen on a warm-up world of its own key. The two step sizes, that of the text and that of the
published run, are two columns; so are the two definitions of regret, against the true means and against the rewards as
they fell. Beta arms with run lengths are those of Mellor and Shapiro (2013).

Thesis: experiment:bandits, fig:bandit-results; in the published run C-ACI was greedy, the two constants of CPP-OU were
swapped, and idle arms did not age.
"""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from filtax import bandits, method
from filtax.models import bernoulli
from thesis.experiment import Advance, Experiment, Result, Table, claims
from thesis.figures import COLOURS, DASHES, GREY, Figure, panels
from thesis.findings import keep
from thesis.online_methods import stacked
from thesis.statistics import Verdict, all_of, below, of_mean

CLAIMED = ("RL[1]-OUPR", "CPP-OU", "C-ACI", "RL[1]-PR")  # from the least regret to the most
PUBLISHED = {"RL[1]-OUPR": 2367.0, "CPP-OU": 2594.0, "C-ACI": 3015.0, "RL[1]-PR": 4630.0}  # regret of rewards
STEPS_OF_WALK = {"text": 0.03, "published": 0.003**0.5}
REGRETS = {"means": bandits.regret_of_means, "rewards": bandits.regret_of_rewards}
# Wide enough to hold what is best: below 1e-05 nothing is ever reset, from a rate of 100 on the share jumps between 0
# and 1, and regret changes no more.
HAZARDS = (1e-06, 1e-05, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
VARIANCES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
CONTENDERS = {  # name, candidates for its number; the Beta arms keep ten run lengths, in the publication all
    "C-ACI": ("LG(form=covariance)+C-ACI(q={})", VARIANCES),
    "CPP-OU": ("LG(form=covariance)+CPP-OU(rate={}, steps=2)", RATES),
    "CPP-OU, searched": ("LG(form=covariance)+CPP-OU", (0.0,)),
    "RL[1]-PR": ("LG(form=covariance)+RL[1]-PR(hazard={})", HAZARDS),
    "RL[1]-OUPR": ("LG(form=covariance)+RL[1]-OUPR(hazard={})", HAZARDS),
    "Beta-RL": ("Cj+RL[10]-PR(hazard={})", HAZARDS),
}
LOG_ODDS = {"mean": np.zeros(1, np.float32), "cov": 2.0}
COUNTS = {"mean": np.full(1, 0.5, np.float32), "cov": 1.0 / 12.0}
SHOWN = (*CLAIMED, "CPP-OU, searched", "Beta-RL", "uniform")
POINTS = 100  # of a curve of regret over the rounds
NOTES = (
    "All methods choose by Thompson sampling, idle arms age, and a reset starts from the arm's own prior. In the "
    "published run C-ACI was greedy, the two constants of CPP-OU were swapped, and idle arms did not age.",
    "The text's walk has steps of 0.03, the published run's of the square root of 0.003; 'of rewards' is the thesis's "
    "regret, against the best reward as it fell, of which even a perfect policy has some.",
    "The number of each method is the candidate with the least regret of means in a warm-up world of its own; that of "
    "CPP-OU is the rate of two gradient steps, 'searched' takes the share of the greatest evidence. Beta-RL are Beta "
    "arms with ten run lengths (Mellor and Shapiro 2013), 'uniform' pulls blindly.",
    "Intervals, of 95 %, are Student's for the mean over simulations; beside them what the middle 95 % of them have.",
)


@dataclass(frozen=True)
class Setting:
    """Rounds, simulations, arms; and rounds and simulations of the warm-up world."""

    steps: int = 1000
    simulations: int = 20
    arms: int = 10
    warm_up: tuple[int, int] = (1000, 20)
    extra: tuple[str, ...] = ()


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    arrays, numbers, names = {}, {}, (*CLAIMED, *setting.extra)
    for at, (label, sd) in enumerate(STEPS_OF_WALK.items()):
        key = jax.random.fold_in(jax.random.key(seed), at)
        results = keep(label, partial(contest, setting, key, sd, names, lambda part, at=at: advance((at + part) / 2)))
        advance((at + 1) / len(STEPS_OF_WALK))
        numbers[label] = {name: result["number"] for name, result in results.items()}
        for name, result in results.items():
            arrays |= {f"{label}, {name}, {of}": result[f"regret_of_{of}"] for of in REGRETS}
            arrays |= {f"{label}, {name}, curve of {of}": result[f"curve_of_{of}"] for of in REGRETS}
            arrays["rounds"] = result["rounds"] + 1
    tables = tuple(_table(label, arrays, numbers, setting) for label in STEPS_OF_WALK)
    return Result({"chosen": numbers, "methods": [*names, "uniform"]}, arrays, tables, NOTES)


def contest(setting: Setting, key: Any, sd: float, names: tuple[str, ...], advance: Advance) -> dict[str, Any]:
    """Regret of the methods, and of arms chosen blindly, in the same simulations of one step size.

    By name: `regret_of_means` and `regret_of_rewards` after the last round, (S,); `curve_of_means` and
    `curve_of_rewards` at `rounds`, (P, S); and the `number` chosen.
    """
    of_warm_up, of_world, of_play = jax.random.split(key, 3)
    make = partial(bandits.drifting_bernoulli, arms=setting.arms, sd=sd)
    warm = make(key=of_warm_up, steps=setting.warm_up[0], simulations=setting.warm_up[1])
    world, results = make(key=of_world, steps=setting.steps, simulations=setting.simulations), {}
    for i, name in enumerate(names):
        results[name] = _played(name, warm, world, of_play)
        advance((i + 1) / (len(names) + 1))
    blind = method("Cj+C-Static", model=bernoulli())
    state = bandits.stack([blind.init(**COUNTS)] * world.arms)
    played = bandits.play(blind, bandits.epsilon_greedy(1.0), world, state, key=of_play)
    return results | {"uniform": _score(world, played) | {"number": None}}


def _played(name: str, warm: bandits.World, world: bandits.World, key: Any) -> dict[str, Any]:
    """The candidate with the least regret in the warm-up world, at play in the other."""
    spelled, candidates = CONTENDERS[name]
    built = [method(spelled.format(number), model=bernoulli()) for number in candidates]
    state = bandits.stack([built[0].init(**(COUNTS if name == "Beta-RL" else LOG_ODDS))] * world.arms)

    def lost(chosen: Any) -> Any:
        played = bandits.play(chosen, bandits.thompson(), warm, state, key=key)
        return jnp.mean(bandits.regret_of_means(warm, played)[-1])

    if warm.rewards.shape == world.rewards.shape:  # the program of the contest serves: one compilation less
        losses = jnp.stack([lost(chosen) for chosen in built])
    else:
        losses = jax.vmap(lost)(stacked(built))
    best = int(jnp.argmin(losses))
    return _score(world, bandits.play(built[best], bandits.thompson(), world, state, key=key)) | {
        "number": candidates[best]
    }


def _score(world: bandits.World, played: bandits.Played) -> dict[str, Any]:
    told: dict[str, Any] = {"rounds": np.linspace(0, world.steps - 1, min(POINTS, world.steps)).astype(int)}
    for name, regret in REGRETS.items():
        curve = np.asarray(regret(world, played), np.float64)
        told |= {f"regret_of_{name}": curve[-1], f"curve_of_{name}": curve[told["rounds"]]}
    return told


def _table(label: str, arrays: dict[str, np.ndarray], numbers: dict, setting: Setting) -> Table:
    whole = label == "published" and setting.steps == 10_000
    rows = []
    for name, number in numbers[label].items():
        means, rewards = (arrays[f"{label}, {name}, {of}"] for of in REGRETS)
        low, high = (float(np.quantile(rewards, p)) for p in (0.025, 0.975))
        before = PUBLISHED.get(name) if whole else None
        ours = (float(rewards.mean()), of_mean(rewards), low, high, float(means.mean()), of_mean(means))
        rows.append((name, before, *ours, number))
    spread = ("2.5 % of simulations", "97.5 % of simulations")
    columns = ("", "published", "of rewards", "95 %", *spread, "of means", "of means, 95 %", "number")
    title = f"Regret after {setting.steps} rounds, steps of {STEPS_OF_WALK[label]:.4f} ({label})"
    return Table(title, columns, rows, published=("published",))


def _draw(result: Result) -> Figure:
    """Cumulative regret of rewards by round, mean and 5 to 95 %, a panel for each step size."""
    figure, axes = panels(1, 2, size=(10.0, 3.8), sharey=True)
    names = [name for name in SHOWN if name in result.numbers["methods"]]
    colours = [GREY if name == "uniform" else COLOURS[i] for i, name in enumerate(names)]
    for axis, (label, sd) in zip(axes, STEPS_OF_WALK.items(), strict=True):
        for i, (name, colour) in enumerate(zip(names, colours, strict=True)):
            curve = result.arrays[f"{label}, {name}, curve of rewards"]
            low, high = np.quantile(curve, (0.05, 0.95), axis=1)
            axis.fill_between(result.arrays["rounds"], low, high, color=colour, alpha=0.12, lw=0)
            dashes = DASHES[i % len(DASHES)]
            axis.plot(result.arrays["rounds"], curve.mean(axis=1), color=colour, ls=dashes, label=name)
        axis.set(xlabel="round", title=f"steps of {sd:.4f}, {'as in the text' if label == 'text' else 'as published'}")
    axes[0].set_ylabel("cumulative regret of rewards")
    axes[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _ranking(result: Result) -> Verdict:
    """Each method of the claimed order is below the next, the ends too, and all below blind choice; by four columns."""
    said = []
    for label in STEPS_OF_WALK:
        for of in REGRETS:
            regret = {name: result.arrays[f"{label}, {name}, {of}"] for name in (*CLAIMED, "uniform")}
            pairs = (*pairwise(CLAIMED), (CLAIMED[0], "uniform"))
            links = [below(regret[a], regret[b], (a, b)) for a, b in pairs]
            part = all_of(*links)
            means = ", ".join(f"{name} {one.mean():.0f}" for name, one in regret.items())
            broken = [f"{a} < {b} {link.text}" for (a, b), link in zip(pairwise(CLAIMED), links, strict=False)]
            said.append(Verdict(part.text, f"{label} steps, regret of {of}: {means} ({'; '.join(broken)})"))
    return all_of(*said)


EXPERIMENT = Experiment(
    name="bernoulli-bandit",
    title="Ten Bernoulli arms whose probabilities walk",
    sizes={"quick": Setting(), "full": Setting(10_000, 100, warm_up=(2000, 10), extra=("CPP-OU, searched", "Beta-RL"))},
    run=_run,
    figures={"fig:bandit-results": _draw},
    claims=claims({19: _ranking}),
    fixed={"steps": STEPS_OF_WALK, "hazards": HAZARDS, "variances": VARIANCES, "rates": RATES},
)
