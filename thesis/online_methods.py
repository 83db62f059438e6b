"""The six methods that chapter 4 compares on networks, built of numbers that may be searched and mapped over."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from filtax import Log, Uniform, method, models, posteriors, priors, tune

Learn = Callable[..., tuple[np.ndarray, np.ndarray]]

_P = Log(1e-3, 1.0)
SPACES: dict[str, dict[str, Uniform]] = {
    "EKF": {"p": _P},
    "EKF-B": {"p": _P, "a": Uniform(0.01, 5.0), "b": Uniform(0.01, 5.0)},
    "EKF-IW": {"p": _P, "degrees": Log(0.1, 20.0)},
    "OGD": {"rate": Log(1e-4, 1.0)},
    "WoLF-IMQ": {"p": _P, "c": Log(0.1, 20.0)},
    "WoLF-TMD": {"p": _P, "c": Log(0.1, 20.0)},
}

REVISED: dict[str, Any] = {"EKF-B": posteriors.BernoulliOutliers, "EKF-IW": posteriors.InverseWishartNoise}


def stacked(trees: Sequence[Any]) -> Any:
    """One pytree of several alike: each leaf has them along its first axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *trees)


def alternating(runs: Mapping[str, Callable[[], Any]], rounds: Mapping[str, int]) -> dict[str, list[float]]:
    """Seconds of warm runs that take turns, so that those of one round can be compared; `rounds` is by name."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for i in range(-1, max(rounds.values())):  # the first is to compile
        for name, run in runs.items():
            began = perf_counter()
            if i < rounds[name]:
                run()
                times[name].append(perf_counter() - began)
    return {name: of[1:] for name, of in times.items()}


def build(name: str, h: Any, chosen: Mapping[str, Any], *, drift: Any, iterations: int, inner: int) -> Any:
    """A method by its name in the tables, for observations h(params, x) with noise variance 1.

    `chosen` are its hyper-parameters, as in `SPACES`; `p` belongs to the initial belief. `drift` is the variance that a
    step adds to each parameter, or a prior; `iterations` are those of EKF-B and EKF-IW, `inner` the steps of OGD.

    >>> build("WoLF-IMQ", lambda theta, x: theta[0] * x, {"p": 1.0, "c": 4.0}, drift=0.01, iterations=2, inner=1).name
    'WoLF-IMQ(c=4.0)+LG(form=covariance)+C-ACI(q=0.01)'
    """
    model, form = models.nonlinear(h, noise=1.0), "covariance"
    moving = drift if callable(drift) else priors.additive_inflation(drift) if drift else priors.static()
    if name == "OGD":
        return method("OGD+C-Static", model=model, posterior=posteriors.Gradient(chosen["rate"], 1, inner))
    posterior: Any = posteriors.Extended(form)
    if name in REVISED:
        settings = {key: value for key, value in chosen.items() if key != "p"}
        posterior = REVISED[name](**settings, iterations=iterations, form=form)
    elif name.startswith("WoLF"):
        trust = models.imq if name == "WoLF-IMQ" else models.threshold
        model = models.robust(model, trust=trust(chosen["c"]))
    return method("C-Static", model=model, posterior=posterior, prior=moving)


def learner(make: Callable[[Mapping[str, Any]], Any], *, in_turn: bool = False) -> Learn:
    """A function that learns from N streams at once, each with its own numbers and start; it compiles once for a shape.

    It takes N settings with the same names; initial parameters, vectors or a pytree with a leading axis N; inputs
    (N, T, M); and what was observed, (N, T). It returns forecasts and trusts, (N, T) each. `in_turn` takes one stream
    after the other: faster where one belief fills the cache of the machine.

    >>> make = lambda at: build("EKF", lambda theta, x: theta[0] * x[0], at, drift=0.0, iterations=1, inner=1)
    >>> mean, trust = learner(make)([{"p": 1.0}], np.zeros((1, 1)), np.ones((1, 2, 1)), np.ones((1, 2)))
    >>> mean.round(2).tolist()
    [[0.0, 0.5]]
    """

    def one(at: Mapping[str, Any], start: Any, X: Any, y: Any) -> tuple[Any, Any]:
        filter_ = make(at)
        begin = {"params": start} if isinstance(start, tuple) else {"mean": start}
        infos = filter_.scan(filter_.init(cov=at.get("p", 1.0), **begin), X, y, keep=("mean", "trust"))[1]
        return infos.mean, infos.trust

    compiled = jax.jit((lambda *rows: jax.lax.map(lambda row: one(*row), rows)) if in_turn else jax.vmap(one))

    def learn(chosen: Sequence[Mapping[str, float]], starts: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        at = {name: jnp.asarray([one[name] for one in chosen]) for name in chosen[0]}
        mean, trust = compiled(at, jax.tree.map(jnp.asarray, starts), X, y)
        return np.asarray(mean), np.asarray(trust)

    return learn


def searched(
    make: Callable[[Mapping[str, Any]], Any],
    space: Mapping[str, Uniform],
    starts: Any,
    X: np.ndarray,
    y: np.ndarray,
    *,
    budget: int,
    seed: int,
    batch: int = 8,
    in_turn: bool = False,
) -> dict[str, float]:
    """The setting in a space with the least RMedSE, the mean over N warm-up streams; arguments as in `learner`.

    >>> make = lambda at: build("EKF", lambda theta, x: theta[0] * x[0], at, drift=0.0, iterations=1, inner=1)
    >>> at = np.zeros((1, 1)), np.ones((1, 3, 1)), np.ones((1, 3))
    >>> sorted(searched(make, SPACES["EKF"], *at, budget=2, seed=0, batch=2))
    ['p']
    """
    count, learn = len(y), learner(make, in_turn=in_turn)

    def objective(at: dict[str, np.ndarray]) -> np.ndarray:
        size = len(next(iter(at.values())))
        chosen = [{key: float(value[i]) for key, value in at.items()} for i in range(size) for _ in range(count)]
        tiled = jax.tree.map(lambda leaf: np.concatenate([leaf] * size), starts)
        mean, _ = learn(chosen, tiled, np.concatenate([X] * size), np.concatenate([y] * size))
        square = (mean - np.concatenate([y] * size)) ** 2
        loss = np.sqrt(np.median(np.where(np.isfinite(square), square, np.inf), axis=1))
        return loss.reshape(size, count).mean(axis=1)

    return dict(tune(objective, space, budget=budget, batch=batch, seed=seed).best)
