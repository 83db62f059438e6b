"""Ten arms whose probabilities walk: the regret of four filters under Thompson sampling.

The two step sizes, that of the text and that of the published run, are two columns; so are the two definitions of
regret, against the true means and against the rewards as they fell.

Thesis: experiment:bandits, fig:bandit-results.
"""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import jax
import numpy as np

from filtax.bandits.bernoulli import CLAIMED, HAZARDS, PUBLISHED, RATES, VARIANCES, bernoulli_contest
from filtax.bandits.environments import PUBLISHED_SD, THESIS_SD
from thesis.experiment import Advance, Claim, Experiment, Result, Table
from thesis.intervals import of_mean
from thesis.parts import keep
from thesis.verdicts import PAIRED, Verdict, all_of, below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "Setting"]

STEPS_OF_WALK = {"text": THESIS_SD, "published": PUBLISHED_SD}
REGRETS = ("means", "rewards")
SHOWN = (*CLAIMED, "CPP-OU, searched", "Beta-RL", "uniform")
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
    """Rounds, simulations, arms; and rounds and simulations of the warm-up world.

    >>> Setting().arms
    10
    """

    steps: int = 1000
    simulations: int = 20
    arms: int = 10
    warm_up: tuple[int, int] = (1000, 20)
    extra: tuple[str, ...] = ()


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    arrays, numbers, done = {}, {}, [0]
    names = (*CLAIMED, *setting.extra)

    def count(_: str) -> None:
        done[0] += 1
        advance(done[0] / (len(STEPS_OF_WALK) * (len(names) + 1)))

    for at, (label, sd) in enumerate(STEPS_OF_WALK.items()):
        size = {"steps": setting.steps, "simulations": setting.simulations, "arms": setting.arms}
        key = jax.random.fold_in(jax.random.key(seed), at)
        run = partial(bernoulli_contest, key=key, sd=sd, names=names, warm_up=setting.warm_up, say=count, **size)
        results = keep(label, run)
        done[0] = (at + 1) * (len(names) + 1)
        advance((at + 1) / len(STEPS_OF_WALK))
        numbers[label] = {name: result["number"] for name, result in results.items()}
        for name, result in results.items():
            arrays |= {f"{label}, {name}, {of}": result[f"regret_of_{of}"] for of in REGRETS}
            arrays |= {f"{label}, {name}, curve of {of}": result[f"curve_of_{of}"] for of in REGRETS}
            arrays["rounds"] = result["rounds"] + 1
    tables = tuple(_table(label, arrays, numbers, setting) for label in STEPS_OF_WALK)
    return Result({"chosen": numbers, "methods": [*names, "uniform"]}, arrays, tables, NOTES)


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


def _draw(result: Result) -> "Figure":
    """Cumulative regret of rewards by round, mean and 5 to 95 %, a panel for each step size."""
    from filtax.report.panels import COLOURS, DASHES, GREY, panels

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
    axes[1].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _ranking(result: Result) -> Verdict:
    """Each method of the claimed order is below the next, the ends too, and all below blind choice; by four columns."""
    said = []
    for label in STEPS_OF_WALK:
        for of in REGRETS:
            at = lambda name, label=label, of=of: result.arrays[f"{label}, {name}, {of}"]  # noqa: E731
            links = [below(at(a), at(b), (a, b)) for a, b in (*pairwise(CLAIMED), (CLAIMED[0], "uniform"))]
            part = all_of(links)
            means = ", ".join(f"{name} {at(name).mean():.0f}" for name in (*CLAIMED, "uniform"))
            broken = [f"{a} < {b} {link.text}" for (a, b), link in zip(pairwise(CLAIMED), links, strict=False)]
            said.append(Verdict(part.text, f"{label} steps, regret of {of}: {means} ({'; '.join(broken)})"))
    return all_of(said)


EXPERIMENT = Experiment(
    name="bernoulli-bandit",
    title="Ten Bernoulli arms whose probabilities walk",
    sizes={
        "quick": Setting(),
        "full": Setting(10_000, 100, warm_up=(2000, 10), extra=("CPP-OU, searched", "Beta-RL")),
    },
    run=_run,
    figures={"fig:bandit-results": _draw},
    claims=(
        Claim(
            19,
            "As under periodic drift RL[1]-OUPR has the least regret, then CPP-OU, C-ACI, and RL[1]-PR the most.",
            "fig:bandit-results",
            _ranking,
            f"{PAIRED}, for neighbours in the order, by both step sizes and both regrets",
        ),
    ),
    fixed={"steps": STEPS_OF_WALK, "hazards": HAZARDS, "variances": VARIANCES, "rates": RATES},
)
