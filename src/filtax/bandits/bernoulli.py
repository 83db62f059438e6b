"""The thesis' bandit: ten Bernoulli arms whose probabilities walk, and four ways to follow them, beside two more.

Every arm is a log-odds with a Gaussian belief (one extended Kalman filter of one parameter), idle arms age, and all
methods choose by Thompson sampling. The one number of each method is chosen on a warm-up world of its own key; that of
CPP-OU is the rate of two gradient steps a round. Beside
them: Beta arms with run lengths (Mellor and Shapiro 2013), and arms chosen blindly.

Thesis: experiment:bandits, fig:bandit-results; errata of the published run: C-ACI was greedy there, the two constants
of CPP-OU were swapped, and idle arms did not age.
"""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from filtax.bandits.environments import PUBLISHED_SD, THESIS_SD, World, drifting_bernoulli
from filtax.bandits.play import Played, play, regret_of_means, regret_of_rewards
from filtax.bandits.policies import epsilon_greedy, thompson
from filtax.bandits.rounds import stack
from filtax.grammar import method
from filtax.models import bernoulli

__all__ = ["CLAIMED", "bernoulli_contest", "bernoulli_experiment", "contenders"]

CLAIMED = ("RL[1]-OUPR", "CPP-OU", "C-ACI", "RL[1]-PR")  # from the least regret to the most
PUBLISHED = {"RL[1]-OUPR": 2367.0, "CPP-OU": 2594.0, "C-ACI": 3015.0, "RL[1]-PR": 4630.0}  # regret of rewards
# Wide enough to hold what is best: below 1e-05 nothing is ever reset, from a rate of 100 on the share jumps between 0
# and 1, and regret changes no more.
HAZARDS = (1e-06, 1e-05, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
VARIANCES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
HYPOTHESES = 10  # kept by the Beta arms, which in the publication keep all
RESAMPLES = 2000
POINTS = 100  # of a curve of regret over the rounds

_LOG_ODDS = {"mean": np.zeros(1, np.float32), "cov": 2.0}
_COUNTS = {"mean": np.full(1, 0.5, np.float32), "cov": 1.0 / 12.0}


def contenders() -> dict[str, tuple[Callable[[float], Any], tuple[float, ...], dict]]:
    """The methods by their names in the thesis: how to build each from its number, candidates for it, and its start.

    >>> contenders()["C-ACI"][0](0.1).name
    'LG(form=covariance)+C-ACI(q=0.1)'
    """
    of = lambda name: method(f"LG(form=covariance)+{name}", model=bernoulli())  # noqa: E731
    counts = lambda h: method(f"Cj+RL[{HYPOTHESES}]-PR(hazard={h})", model=bernoulli())  # noqa: E731
    return {
        "C-ACI": (lambda q: of(f"C-ACI(q={q})"), VARIANCES, _LOG_ODDS),
        "CPP-OU": (lambda rate: of(f"CPP-OU(rate={rate}, steps=2)"), RATES, _LOG_ODDS),
        "CPP-OU, searched": (lambda _: of("CPP-OU"), (0.0,), _LOG_ODDS),
        "RL[1]-PR": (lambda h: of(f"RL[1]-PR(hazard={h})"), HAZARDS, _LOG_ODDS),
        "RL[1]-OUPR": (lambda h: of(f"RL[1]-OUPR(hazard={h})"), HAZARDS, _LOG_ODDS),
        "Beta-RL": (counts, HAZARDS, _COUNTS),
    }


def bernoulli_experiment(
    *,
    key: Array,
    steps: int = 10_000,
    simulations: int = 100,
    arms: int = 10,
    sd: tuple[float, ...] = (THESIS_SD, PUBLISHED_SD),
    names: tuple[str, ...] = (*CLAIMED, "Beta-RL"),
    warm_up: tuple[int, int] = (2000, 10),
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Run the experiment for each step size of the walk, and judge the claims.

    Args:
        key: Random key; worlds and policies are the same for the same key.
        steps: Rounds; the thesis has 10,000.
        simulations: How many; the thesis has 100.
        arms: How many; the thesis has 10.
        sd: Step sizes: 0.03 of the text and sqrt(0.003) of the published run.
        names: Which methods.
        warm_up: Rounds and simulations of the world on which the one number of each method is chosen.
        say: Called with a line for each method that is done.

    Returns:
        Plain data: for each sd the regret of each method by both definitions, its number, its seconds (compilation
        included), and verdicts.

    >>> small = {"steps": 20, "simulations": 4, "sd": (0.03,), "warm_up": (20, 4)}
    >>> told = bernoulli_experiment(key=jax.random.key(0), names=("C-ACI",), **small)
    >>> sorted(told["runs"][0]["methods"])
    ['C-ACI', 'uniform']
    """
    runs = []
    size = {"steps": steps, "simulations": simulations, "arms": arms, "warm_up": warm_up}
    for at, step in enumerate(sd):
        results = bernoulli_contest(key=jax.random.fold_in(key, at), sd=step, names=names, say=say, **size)
        runs.append({"sd": step, "methods": {n: _told(r) for n, r in results.items()}, "claims": _claims(results)})
    size["warm_up"] = list(warm_up)
    return {"size": size, "published": {"sd": PUBLISHED_SD, "regret_of_rewards": PUBLISHED}, "runs": runs}


def bernoulli_contest(
    *,
    key: Array,
    sd: float,
    steps: int,
    simulations: int,
    arms: int = 10,
    names: tuple[str, ...] = CLAIMED,
    warm_up: tuple[int, int] = (2000, 10),
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, dict[str, Any]]:
    """Run the methods, and arms chosen blindly, through the same simulations of one step size.

    Args:
        key: Random key.
        sd: Step size of the walk.
        steps: Rounds.
        simulations: How many.
        arms: How many.
        names: Which methods.
        warm_up: As for `bernoulli_experiment`.
        say: Called with a line for each method that is done.

    Returns:
        By name: `regret_of_means` and `regret_of_rewards` after the last round, (S,); `curve_of_means` and
        `curve_of_rewards` at `rounds`, (P, S); the `number` chosen, and `seconds`.

    >>> told = bernoulli_contest(key=jax.random.key(0), sd=0.03, steps=20, simulations=2, names=(), warm_up=(20, 2))
    >>> told["uniform"]["regret_of_means"].shape
    (2,)
    """
    of_warm_up, of_world, of_play = jax.random.split(key, 3)
    warm = drifting_bernoulli(key=of_warm_up, steps=warm_up[0], simulations=warm_up[1], arms=arms, sd=sd)
    world = drifting_bernoulli(key=of_world, steps=steps, simulations=simulations, arms=arms, sd=sd)
    results = {}
    for name in names:
        build, candidates, start = contenders()[name]
        results[name] = _contest(build, candidates, start, warm, world, of_play)
        say(f"sd {sd:.4f}  {_line(name, results[name])}")
    results["uniform"] = _uniform(world, of_play)
    say(f"sd {sd:.4f}  {_line('uniform', results['uniform'])}")
    return results


def _contest(build: Callable, candidates: tuple, start: dict, warm: World, world: World, key: Array) -> dict[str, Any]:
    built = [build(number) for number in candidates]
    state = stack([built[0].init(**start)] * world.arms)
    lost = lambda chosen: jnp.mean(regret_of_means(warm, play(chosen, thompson(), warm, state, key=key))[-1])  # noqa: E731
    if warm.rewards.shape == world.rewards.shape:  # the program of the contest serves: one compilation less
        losses = jnp.stack([lost(chosen) for chosen in built])
    else:
        stacked = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *built)
        losses = jax.vmap(lost)(stacked)
    best = int(jnp.argmin(losses))
    number, began = candidates[best], time.perf_counter()
    played = jax.block_until_ready(play(built[best], thompson(), world, state, key=key))
    return _score(world, played) | {"number": number, "seconds": time.perf_counter() - began}


def _uniform(world: World, key: Array) -> dict[str, Any]:
    blind = method("Cj+C-Static", model=bernoulli())
    state = stack([blind.init(**_COUNTS)] * world.arms)
    return _score(world, play(blind, epsilon_greedy(1.0), world, state, key=key)) | {"number": None, "seconds": None}


def _score(world: World, played: Played) -> dict[str, Any]:
    told: dict[str, Any] = {"rounds": np.linspace(0, world.steps - 1, min(POINTS, world.steps)).astype(int)}
    for name, regret in (("means", regret_of_means), ("rewards", regret_of_rewards)):
        curve = np.asarray(regret(world, played), np.float64)
        told |= {f"regret_of_{name}": curve[-1], f"curve_of_{name}": curve[told["rounds"]]}
    return told


def _told(result: dict[str, Any]) -> dict[str, Any]:
    told = {"number": result["number"], "seconds": result["seconds"]}
    for name in ("regret_of_means", "regret_of_rewards"):
        low, middle, high = np.quantile(result[name], (0.05, 0.5, 0.95)).tolist()
        told[name] = {"mean": float(result[name].mean()), "median": middle, "5 %": low, "95 %": high}
    return told


def _claims(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Claim 19, link by link: paired over simulations, the interval of the median difference lies below 0."""
    present = [name for name in CLAIMED if name in results]
    pairs = list(pairwise(present)) + [(name, "uniform") for name in present]
    if len(present) > 2:
        pairs.append((present[0], present[-1]))
    claims = []
    for definition in ("regret_of_means", "regret_of_rewards"):
        for better, worse in pairs:
            low, high = _median_interval(results[better][definition] - results[worse][definition])
            verdict = "holds" if high < 0.0 else "does not hold" if low > 0.0 else "not decided at this size"
            claims.append(
                {"claim": f"{better} < {worse}", "by": definition, "interval": [low, high], "verdict": verdict}
            )
    return claims


def _median_interval(difference: np.ndarray) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(difference), (RESAMPLES, len(difference)))
    low, high = np.quantile(np.median(difference[drawn], axis=1), (0.025, 0.975)).tolist()
    return low, high


def _line(name: str, result: dict[str, Any]) -> str:
    number = "" if result["number"] is None else f"{result['number']:g}"
    means, rewards = result["regret_of_means"].mean(), result["regret_of_rewards"].mean()
    seconds = "" if result["seconds"] is None else f"{result['seconds']:.2f} s"
    return f"{name:12} {number:>6}  of means {means:8.1f}  of rewards {rewards:8.1f}  {seconds}"
