"""R-VGA: equal to Bayesian linear regression where that is exact, and near the batch estimate for labels.

Thesis: prop:rvga-matches-linreg, fig:recursive-logreg, fig:recursive-logreg-params (errata E6: each inner iteration
starts again from the belief before the datum). Nothing of the run is published; data and sizes are ours.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from filtax import method, models
from filtax.synthetic import fixed_labels, fixed_regression
from thesis.experiment import Advance, Experiment, Result, Table, claims
from thesis.figures import COLOURS, GREY, INK, Figure, panels
from thesis.statistics import Verdict, all_of, holds_if, of_mean

THETA = (-0.5, 2.0, -1.0)  # of (1, x_1, x_2)
NAMES = ("bias", "$x_1$", "$x_2$")
ROUNDS = (1, 2, 3, 4, 5)
LINEAR_NOISE = 0.5


@dataclass(frozen=True)
class Setting:
    """Streams of T labels, the first of which is shown; samples of its second run; the prior is N(0, I)."""

    streams: int = 20
    steps: int = 1000
    samples: int = 1000
    sampled_steps: int = 200
    linear_steps: int = 50


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    X, y = _labels(setting, seed)
    mean, var, right = _recursive("RVGA(iterations=4)", X, y)
    advance(0.3)
    batch = np.stack([_batch(*one) for one in zip(X, y, strict=True)])
    quarter = setting.steps // 4
    few = setting.sampled_steps
    sampled, _, _ = _recursive(f"RVGA(iterations=4, samples={setting.samples})", X[:1, :few], y[:1, :few], seed)
    advance(0.5)
    away = np.linalg.norm(mean - batch[:, None], axis=2)
    numbers: dict[str, Any] = {
        "within": (np.abs(mean[:, -1] - batch) / np.sqrt(var[:, -1])).max(axis=1).tolist(),
        "away": away[:, -1].tolist(),
        "away_at_quarter": away[:, quarter - 1].tolist(),
        "sampled_gap": float((np.abs(sampled[0] - mean[0, :few]) / np.sqrt(var[0, :few])).max()),
        "accuracy": float(right.mean()),
        "accuracy_interval": of_mean(right.mean(axis=1)),
        "accuracy_majority": float(_majority(y).mean()),
        "majority_interval": of_mean(_majority(y).mean(axis=1)),
        "linear": _linear(setting.linear_steps, seed),
    }
    advance(1.0)
    arrays = {"X": X[0], "y": y[0], "mean": mean[0], "sd": np.sqrt(var[0]), "batch": batch[0], "away": away}
    return Result(numbers, {**arrays, "sampled": sampled[0]}, _tables(numbers, arrays), NOTES)


def _labels(setting: Setting, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (N, T, 3), standard normal with a one in front, and labels drawn from the logistic model."""
    keys = np.random.SeedSequence((seed, 0)).generate_state(setting.streams)
    streams = [fixed_labels(setting.steps, key=int(key), theta=THETA) for key in keys]
    return np.stack([stream.X for stream in streams]), np.stack([stream.y for stream in streams])


def _recursive(posterior: str, X: np.ndarray, y: np.ndarray, seed: int | None = None) -> tuple[np.ndarray, ...]:
    """Means and variances (N, T, 3) after each datum, and whether its label was foreseen (N, T)."""
    filter_ = method(f"{posterior}+C-Static", model=models.linear(likelihood=models.bernoulli()))
    state = filter_.init(mean=jnp.zeros(3), cov=1.0, key=None if seed is None else jax.random.key(seed))

    @jax.jit
    @jax.vmap
    def learn(X: Any, y: Any) -> Any:
        return filter_.scan(state, X, y, keep=("mean", "belief_mean", "belief_var"), complete=True)[1]

    infos = learn(X, y)
    return np.asarray(infos.belief_mean), np.asarray(infos.belief_var), (np.asarray(infos.mean) > 0.5) == (y > 0.5)


def _batch(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mode of the posterior of all data under the same prior, by Newton's method."""
    theta = np.zeros(X.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-X @ theta))
        theta = theta + np.linalg.solve((X.T * p * (1 - p)) @ X + np.eye(theta.size), X.T @ (y - p) - theta)
    return theta


def _majority(y: np.ndarray) -> np.ndarray:
    """Whether the more frequent label so far was the next one; the first guess is zero."""
    seen = np.cumsum(y, axis=1) - y
    return (seen > 0.5 * np.arange(y.shape[1])) == (y > 0.5)


def _linear(steps: int, seed: int) -> dict[str, Any]:
    """Largest relative differences from the Kalman filter over a linear-Gaussian stream, for each count of rounds."""
    stream = fixed_regression(steps, key=seed + 1, theta=THETA, noise=LINEAR_NOISE)
    X, y = stream.X, stream.y

    def learn(posterior: str) -> tuple[np.ndarray, np.ndarray]:
        filter_ = method(f"{posterior}+C-Static", model=models.linear(noise=LINEAR_NOISE))
        state = filter_.init(mean=jnp.zeros(3), cov=1.0)
        infos = filter_.scan(state, X, y, keep=("belief_mean", "belief_cov"), complete=True)[1]
        return np.asarray(infos.belief_mean), np.asarray(infos.belief_cov)

    exact = learn("LG")
    ours = [_gap(learn(f"RVGA(iterations={rounds})"), exact) for rounds in ROUNDS]
    printed = [_gap(_as_printed(X, y, rounds), exact) for rounds in ROUNDS]
    return {"ours": ours, "printed": printed}


def _gap(found: tuple[np.ndarray, np.ndarray], exact: tuple[np.ndarray, np.ndarray]) -> float:
    """Largest relative difference of means and covariances, over the stream."""
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = [
            np.linalg.norm((a - b).reshape(len(a), -1), axis=1) / np.linalg.norm(b.reshape(len(b), -1), axis=1)
            for a, b in zip(found, exact, strict=True)
        ]
    return float(min(np.nan_to_num(np.max(gaps), nan=np.inf, posinf=np.inf), 1e300))


def _as_printed(X: np.ndarray, y: np.ndarray, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """The algorithm as it is printed: the precision is carried through the inner loop, so a datum counts again."""
    mean, precision, means, covs = np.zeros(3), np.eye(3), [], []
    for x, target in zip(X, y, strict=True):
        start, step = mean, np.linalg.solve(precision, x) / LINEAR_NOISE
        for _ in range(rounds):
            mean = start + step * (target - x @ mean)
            precision = precision + np.outer(x, x) / LINEAR_NOISE
        means.append(mean)
        covs.append(np.linalg.inv(precision))
    return np.array(means), np.array(covs)


def _tables(n: dict[str, Any], a: dict[str, np.ndarray]) -> tuple[Table, ...]:
    last = zip(("bias", "x_1", "x_2"), THETA, a["batch"], a["mean"][-1], a["sd"][-1], strict=True)
    rounds = zip(ROUNDS, n["linear"]["ours"], n["linear"]["printed"], strict=True)
    labels = [
        ("R-VGA", n["accuracy"], n["accuracy_interval"]),
        ("majority so far", n["accuracy_majority"], n["majority_interval"]),
    ]
    return (
        Table("After the last label", ("", "truth", "batch", "recursive", "posterior sd"), list(last)),
        Table(
            "Linear-Gaussian model: largest relative difference from the Kalman filter",
            ("inner iterations", "R-VGA", "as printed"),
            list(rounds),
            ("as printed",),
        ),
        Table("Labels foreseen, mean over streams", ("", "share", "95 %"), labels),
    )


NOTES = (
    "The averages over the belief are one-dimensional integrals for linear log odds and are taken by quadrature; with "
    "samples, as the text does it, the means of the stream shown differ by the share of a standard deviation that the "
    "result tells.",
    "As printed, the inner loop updates the running precision, so a datum counts once for each iteration, and its mean "
    "overshoots where the belief before the datum is wide (E6).",
    "The thesis gives no data: inputs are standard normal with a bias, labels are drawn from the model.",
)


def _draw_boundaries(result: Result) -> Figure:
    """Forecast probabilities and the boundary at one half after a few, some, and all labels."""
    a = result.arrays
    shown = [t for t in (5, 20, 100, len(a["y"])) if t <= len(a["y"])]
    figure, axes = panels(1, len(shown), size=(2.6 * len(shown), 2.9), sharex=True, sharey=True, squeeze=False)
    side = np.linspace(-3.0, 3.0, 80)
    at = np.stack([np.ones((80, 80)), *np.meshgrid(side, side)], axis=-1)
    for axis, t in zip(axes[0], shown, strict=True):
        p = 1 / (1 + np.exp(-at @ a["mean"][t - 1]))
        axis.contourf(side, side, p, levels=np.linspace(0, 1, 21), cmap="RdBu", alpha=0.6)
        axis.contour(side, side, p, levels=[0.5], colors=[INK])
        for label, colour in ((0, COLOURS[1]), (1, COLOURS[0])):
            of = a["y"][:t] == label
            axis.scatter(a["X"][:t, 1][of], a["X"][:t, 2][of], s=6, color=colour)
        axis.set(title=f"after {t:,} labels", xlabel="$x_1$", xlim=(-3, 3), ylim=(-3, 3))
    axes[0, 0].set_ylabel("$x_2$")
    return figure


def _draw_parameters(result: Result) -> Figure:
    """Means with two standard deviations, and the batch estimate."""
    a = result.arrays
    figure, axis = panels(size=(7.5, 3.6))
    steps = np.arange(len(a["y"])) + 1
    for i, name in enumerate(NAMES):
        mean, sd = a["mean"][:, i], a["sd"][:, i]
        axis.plot(steps, mean, color=COLOURS[i], label=name)
        axis.fill_between(steps, mean - 2 * sd, mean + 2 * sd, color=COLOURS[i], alpha=0.2, lw=0)
        axis.axhline(a["batch"][i], color=GREY, ls="--", lw=1.2, label="batch" if i == 2 else None)
    axis.set(xlabel="labels seen", ylabel="parameter", title="Mean and two standard deviations")
    axis.legend(ncols=4)
    return figure


def _contains_regression(result: Result) -> Verdict:
    """Mean and covariance are the Kalman filter's for every count of inner iterations."""
    ours, printed = result.numbers["linear"]["ours"], result.numbers["linear"]["printed"]
    said = (
        f"1 to {len(ours)} iterations: relative differences up to {max(ours):.0e}; as printed from {min(printed):.2g} "
        f"to {max(printed):.2g}"
    )
    return holds_if(max(ours) <= 1e-8, said)


def _near_batch(result: Result) -> Verdict:
    """Within two standard deviations at the end, on every stream; and half as far away as at a quarter of it."""
    n = result.numbers
    ratio = np.median(np.array(n["away"]) / np.array(n["away_at_quarter"]))
    worst = max(n["within"])
    return all_of(
        holds_if(worst <= 2, f"at most {worst:.2f} posterior sd off the batch estimate, {len(n['within'])} streams"),
        holds_if(ratio < 0.5, f"the distance at the end is {ratio:.3f} of that at a quarter (median)"),
    )


EXPERIMENT = Experiment(
    name="rvga-logistic",
    title="R-VGA for linear and logistic regression",
    sizes={"quick": Setting(), "full": Setting(streams=200, sampled_steps=1000)},
    run=_run,
    figures={"fig:recursive-logreg": _draw_boundaries, "fig:recursive-logreg-params": _draw_parameters},
    claims=claims({2: _contains_regression, 3: _near_batch}),
    fixed={
        "theta": THETA,
        "labels": "a key for each stream, of the seed",
        "rounds": ROUNDS,
        "linear_noise": LINEAR_NOISE,
    },
)
