"""Bounded and unbounded influence: the weighted likelihood, three outliers in twenty steps, and the grid of influences.

Thesis: theorem:kf-unbounded, theorem:wolf-bounded, fig:weighted-log-likelihood-gaussian, fig:intro-image (errata E20,
E24 to E27), and the hidden system of fig:dynamical-system-intro.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.patches import ConnectionPatch

from filtax import method, models, priors
from filtax.synthetic import LinearSystem, constant_velocity, tracking_2d
from thesis.experiment import Advance, Experiment, Result, Table, claims
from thesis.figures import COLOURS, DASHES, GREY, INK, Figure, panels
from thesis.statistics import Verdict, all_of, holds_if, of_median

OUTLIERS = {4: -2.0, 9: 2.0, 14: -2.0}  # steps from 0, and the factor on y
PLAIN, ROBUST = "LG", "WoLF-IMQ(c=2)+LG"
INFLUENCED = {"KF": "LG", "IMQ": "WoLF-IMQ(c=4)+LG", "MD": "WoLF-MD(c=4)+LG", "TMD": "WoLF-TMD(c=4)+LG"}
SIZES = 10.0 ** np.arange(0, 31, 2)  # of a corruption
ASIDE = np.array([1.0, 0.5])  # its direction


@dataclass(frozen=True)
class Setting:
    """Steps of a run with outliers, points on a side of the influence grid, random updates of claim 23, and runs."""

    steps: int = 20
    grid: int = 61
    reach: float = 5.0
    updates: int = 200
    runs: int = 100


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    others = np.random.SeedSequence((seed, 1)).generate_state(setting.runs - 1)
    streams = [_stream(setting.steps, int(key)) for key in (seed, *others)]
    stream = streams[0]  # the one that is drawn
    every = _tracked(stream["X"], np.stack([one["y"] for one in streams]))
    arrays = {name: of[0] for name, of in every.items()}
    advance(0.3)
    influences, numbers = _influences(setting, stream)
    advance(0.7)
    gap = arrays["robust_cov"] - arrays["plain_cov"]
    numbers["least_any"], numbers["least_imq"] = _random_updates(setting.updates, seed)
    numbers["least_over_run"] = float(np.linalg.eigvalsh(gap).min())
    truth, y = (np.stack([one[of] for one in streams])[..., 0] for of in ("theta", "y"))
    said = {"plain": every["plain_mean"][..., 0], "robust": every["robust_mean"][..., 0], "observed": y}
    numbers["rmse"] = {name: np.sqrt(np.mean((each - truth) ** 2, axis=1)).tolist() for name, each in said.items()}
    return Result(numbers, {**arrays, **stream, **influences, **_hidden(seed)}, _tables(numbers), NOTES)


def _system() -> Any:
    return constant_velocity(dt=1.0, q=0.1, r=1.0)


def _stream(steps: int, seed: int) -> dict[str, np.ndarray]:
    """Track of the moving object with three observations made wrong."""
    stream = tracking_2d(steps, key=seed, system=_system())
    y, wrong = stream.y.copy(), np.zeros(steps, bool)
    for t, factor in OUTLIERS.items():
        if t < steps:
            y[t], wrong[t] = factor * y[t], True
    return {"X": np.array(stream.X), "y": y, "clean": stream.y, "theta": np.asarray(stream.theta), "wrong": wrong}


def _filter(name: str) -> tuple[Any, Any]:
    """Method and state before the first datum: the start of the system, with unit variances."""
    system = _system()
    dynamics = priors.linear_dynamics(F=jnp.asarray(system.F), Q=jnp.asarray(system.Q))
    filter_ = method(f"{name}+C-LSSM", model=models.linear(noise=jnp.ones(2)), prior=dynamics)
    return filter_, filter_.init(mean=jnp.asarray(system.initial), cov=1.0)


def _tracked(X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """What the two filters make of N streams y (N, T, 2): means, covariances and trusts, N each."""
    found = {}
    kept = ("belief_mean", "belief_cov", "trust")
    for label, name in (("plain", PLAIN), ("robust", ROBUST)):
        filter_, state = _filter(name)
        infos: Any = jax.vmap(lambda y, f=filter_, s=state: f.scan(s, X, y, keep=kept)[1])(y)
        parts = (infos.belief_mean, infos.belief_cov, infos.trust)
        found |= {f"{label}_{part}": np.asarray(of) for part, of in zip(("mean", "cov", "trust"), parts, strict=True)}
    return found


def _influences(setting: Setting, stream: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Divergences, in both directions, along a ray and over a square, of a wrong last datum of the clean stream.

    All methods are asked from one belief, that of the Kalman filter after the data before.
    """
    filter_, state = _filter(PLAIN)
    X, y = stream["X"], stream["clean"]
    state, _ = filter_.scan(state, X[:-1], y[:-1], keep=("belief_mean", "belief_cov", "trust"))
    side = np.linspace(-setting.reach, setting.reach, setting.grid)
    square = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    error = np.concatenate([np.zeros((1, 2)), np.full((1, 2), np.nan), SIZES[:, None] * ASIDE, square])
    arrays, numbers = {"side": side, "sizes": SIZES}, {}
    for label, name in INFLUENCED.items():
        mean, cov = _after(_filter(name)[0], state, jnp.asarray(X[-1]), jnp.asarray(y[-1] + error))
        clean, prior, wrong = (mean[0], cov[0]), (mean[1], cov[1]), (mean[2:], cov[2:])  # a missing datum: the prior
        here, back = _kl(*wrong, *clean), _kl(*clean, *wrong)
        arrays[f"ray_{label}"] = ray = np.stack([here, back])[:, : len(SIZES)]
        arrays[f"square_{label}"] = here[len(SIZES) :].reshape(setting.grid, setting.grid)
        limits = [float(_kl(*prior, *clean)), float(_kl(*clean, *prior))]
        numbers[label] = {"limits": limits, "furthest": ray[:, -1].tolist(), "largest": float(here.max())}
        if label == "KF":
            quadratic = 0.5 * SIZES**2 * (ASIDE @ X[-1] @ clean[1] @ X[-1].T @ ASIDE)
            numbers[label]["off_quadratic"] = float(np.abs(ray / quadratic - 1.0).max())
    return arrays, {"influence": numbers}


def _after(filter_: Any, state: Any, x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean (N, D) and covariance (N, D, D) after each of N data."""

    @jax.jit
    @jax.vmap
    def after(y: Any) -> tuple[Any, Any]:
        belief = filter_.belief(filter_.step(state, x, y)[0])
        return belief.mean, belief.cov

    mean, cov = after(y)
    return np.asarray(mean), np.asarray(cov)


def _kl(m: np.ndarray, P: np.ndarray, n: np.ndarray, Q: np.ndarray) -> Any:
    """KL(N(m, P), N(n, Q)), over leading axes."""
    inverse, gap = np.linalg.inv(Q), n - m
    apart = np.einsum("...i,...ij,...j->...", gap, inverse, gap)
    trace = np.einsum("...ij,...ji->...", inverse, P)
    return 0.5 * (trace + apart - m.shape[-1] + np.linalg.slogdet(Q)[1] - np.linalg.slogdet(P)[1])


def _random_updates(count: int, seed: int) -> tuple[float, float]:
    """Least eigenvalue of robust minus plain covariance, relative to the prior's norm, over random single updates.

    First with any trust in [0, 1], then with that of IMQ.
    """
    rng = np.random.default_rng(seed)
    roots, H = rng.standard_normal((count, 4, 4)), rng.standard_normal((count, 2, 4))
    w = np.concatenate([[0.0, 1.0], rng.random(count - 2)])
    P, y = roots @ roots.transpose(0, 2, 1), 10 ** rng.uniform(-1, 4, (count, 1)) * rng.standard_normal((count, 2))
    linear = models.linear(noise=jnp.array([1.0, 0.3]))

    def covariances(model: Callable) -> np.ndarray:
        def one(w: Any, P: Any, H: Any, y: Any) -> Any:
            filter_ = method("LG+C-Static", model=model(w))
            return filter_.belief(filter_.step(filter_.init(mean=jnp.zeros(4), cov=P), H, y)[0]).cov

        return np.asarray(jax.jit(jax.vmap(one))(w, P, H, y))

    plain, norm = covariances(lambda w: linear), np.linalg.norm(P, axis=(1, 2))
    trusts = (models.tempered, lambda w: models.imq(1.0))
    gaps = [covariances(lambda w, trust=trust: models.robust(linear, trust=trust(w))) - plain for trust in trusts]
    least, of_imq = ((np.linalg.eigvalsh(gap)[:, 0] / norm).min() for gap in gaps)
    return float(least), float(of_imq)


def _hidden(seed: int) -> dict[str, np.ndarray]:
    """A noisy spiral of which one coordinate is seen; the thesis does not say which system it drew."""
    turn = 0.35
    F = 0.97 * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    system = LinearSystem(F, 0.01 * np.eye(2), np.eye(1, 2), 0.005 * np.eye(1), np.array([2.0, 0.0]))
    stream = tracking_2d(25, key=seed, system=system)
    return {"hidden_F": F, "hidden_theta": np.asarray(stream.theta), "hidden_y": stream.y[:, 0]}


def _tables(numbers: dict[str, Any]) -> tuple[Table, ...]:
    rows = [
        (name, found["largest"], found["furthest"][0], found["limits"][0], found["furthest"][1], found["limits"][1])
        for name, found in numbers["influence"].items()
    ]
    heads = ("", "largest", "at 1e30", "KL(prior, clean)", "reversed, at 1e30", "KL(clean, prior)")
    named = {"plain": "KF", "robust": "WoLF-IMQ", "observed": "the observations themselves"}
    errors = [(words, (of := numbers["rmse"][n])[0], float(np.median(of)), of_median(of)) for n, words in named.items()]
    runs = len(numbers["rmse"]["plain"])
    return (
        Table("Influence of one wrong datum, in nats", heads, rows),
        Table(
            "First component, twenty steps with three outliers",
            ("", "RMSE, run that is drawn", f"RMSE, median of {runs} runs", "95 %"),
            errors,
        ),
    )


NOTES = (
    "The influence is KL(corrupted, clean), as the definition has it (E25), from one belief for all methods: that of "
    "the Kalman filter after the data before. The published grid compares with the clean Kalman posterior, the other "
    "way round.",
    "The printed proofs do not prove the two theorems (E24 to E27); what is tested here is what they say.",
    "Wider posteriors are a fact of one update from one prior. Over a run it carries over for a linear model, whose "
    "covariance does not look at the mean; for a nonlinear one the two filters linearise at different points.",
    "The thesis does not say which system its first figure shows: a noisy spiral here.",
    "The influences are those of one belief and one datum, computed and not drawn: there is nothing to give an "
    "interval of. The interval of an RMSE, of 95 %, is that of the median over runs, each with data of its own.",
)


def _bounded(result: Result) -> Verdict:
    """The KF's influence is the quadratic form; the others' are finite and end at that of no datum at all."""
    found = result.numbers["influence"]
    off = found["KF"]["off_quadratic"]
    parts = [
        holds_if(off <= 1e-8, f"KF: off the quadratic by {off:.1e}, {found['KF']['furthest'][0]:.1e} nats at 1e30")
    ]
    for name in ("IMQ", "MD", "TMD"):
        far, limit = np.array(found[name]["furthest"]), np.array(found[name]["limits"])
        finite = np.isfinite(far).all() and np.isfinite(found[name]["largest"])
        gap = np.abs(far - limit).max()
        parts.append(
            holds_if(finite and gap <= 1e-6, f"{name}: at most {found[name]['largest']:.2f}, {gap:.0e} off its limit")
        )
    return all_of(*parts)


def _conservative(result: Result) -> Verdict:
    """Robust minus plain covariance has no negative eigenvalue beyond rounding."""
    least, of_imq, run = (result.numbers[name] for name in ("least_any", "least_imq", "least_over_run"))
    return all_of(
        holds_if(least >= -1e-12, f"least eigenvalue of the difference, any W in [0, 1]: {least:.0e} of the prior"),
        holds_if(of_imq >= -1e-12, f"under IMQ: {of_imq:.0e}"),
        holds_if(run >= -1e-12, f"over the linear run: {run:.0e}"),
    )


def draw_likelihood(result: Result) -> Figure:
    """N(y | 0, 1) to the power w²."""
    figure, axis = panels(size=(5.5, 3.4))
    y = np.linspace(-6.0, 6.0, 400)
    log_density = -0.5 * y**2 - 0.5 * np.log(2 * np.pi)
    for i, w in enumerate((1.0, 0.5, 0.25, 0.1)):
        axis.plot(y, np.exp(w * log_density), color=COLOURS[i], ls=DASHES[i % len(DASHES)], label=f"$w^2 = {w:g}$")
    axis.set(xlabel="y", ylabel="not normalised", title="Weighted likelihood of a standard normal", ylim=(0, None))
    axis.legend()
    return figure


def draw_track(result: Result) -> Figure:
    """First component: data, truth, both filters with two standard deviations."""
    a = result.arrays
    figure, axis = panels(size=(7.5, 3.8))
    steps = np.arange(len(a["y"])) + 1
    axis.plot(steps, a["theta"][:, 0], color=INK, ls="--", lw=1.2, label="truth")
    axis.plot(steps[~a["wrong"]], a["y"][~a["wrong"], 0], ls="", marker="o", ms=3.5, color=GREY, label="measurement")
    axis.plot(steps[a["wrong"]], a["y"][a["wrong"], 0], ls="", marker="x", ms=7, color="crimson", label="outlier")
    for label, name, colour, dash in (("plain", "KF", 0, ":"), ("robust", "WoLF-IMQ", 1, "-")):
        mean, sd = a[f"{label}_mean"][:, 0], np.sqrt(a[f"{label}_cov"][:, 0, 0])
        axis.plot(steps, mean, color=COLOURS[colour], ls=dash, lw=2, label=name)
        axis.fill_between(steps, mean - 2 * sd, mean + 2 * sd, color=COLOURS[colour], alpha=0.2, lw=0)
    axis.set(xlabel="step", ylabel="first component", title="Three outliers in twenty steps", xticks=steps[4::5])
    axis.legend(fontsize=8)
    return figure


def draw_influence(result: Result) -> Figure:
    """Influence over the square for three methods, on one scale, and along a ray for all."""
    a = result.arrays
    names = ("KF", "IMQ", "TMD")
    figure, axes = panels(1, 4, size=(12.0, 3.1), width_ratios=(1, 1, 1, 1.25))
    top, reach = max(a[f"square_{name}"].max() for name in names), a["side"][-1]
    shape = {"extent": (-reach, reach, -reach, reach), "origin": "lower", "vmin": 0.0, "vmax": top}
    for axis, name in zip(axes, names, strict=False):
        axis.imshow(a[f"square_{name}"], cmap="cividis", **shape)
        axis.set(title=name, xlabel="error of $y_1$")
    axes[0].set_ylabel("error of $y_2$")
    figure.colorbar(axes[0].images[0], ax=axes[:3].tolist(), label="influence (nats)", shrink=0.85)
    for i, name in enumerate(("KF", "IMQ", "MD", "TMD")):
        axes[3].loglog(
            a["sizes"], a[f"ray_{name}"][0], color=COLOURS[i], ls=DASHES[i % len(DASHES)], lw=1.8, label=name
        )
    axes[3].set(xlabel="size of the error", title="Along a ray", ylim=(1e-2, 1e12), xlim=(1, 1e16))
    axes[3].legend(fontsize=8)
    return figure


def draw_hidden(result: Result) -> Figure:
    """Above, the system in the plane; below, what is seen of it."""
    F, theta, y = (result.arrays[f"hidden_{name}"] for name in ("F", "theta", "y"))
    figure, (top, bottom) = panels(2, 1, size=(6.5, 6.0), height_ratios=(4, 1), sharex=True)
    reach = 1.15 * max(np.abs(theta).max(), np.abs(y).max())
    side = np.linspace(-reach, reach, 15)
    at = np.stack(np.meshgrid(side, side), axis=-1)
    move = at @ F.T - at
    top.quiver(at[..., 0], at[..., 1], move[..., 0], move[..., 1], color="#bbbbbb", width=0.003)
    top.plot(theta[:, 0], theta[:, 1], color=GREY, lw=0.6)
    top.plot(theta[:, 0], theta[:, 1], ls="", marker="o", ms=4, color=INK)
    bottom.plot(y, np.zeros_like(y), ls="", marker="o", ms=4, color="crimson")
    for point, seen in zip(theta, y, strict=True):
        ends = {"xyA": point, "xyB": (seen, 0.0), "coordsA": "data", "coordsB": "data"}
        figure.add_artist(ConnectionPatch(**ends, axesA=top, axesB=bottom, color="crimson", lw=0.5, alpha=0.6))
    top.set(ylabel="$\\theta_2$ (hidden)", title="A system in the plane, and its noisy projection")
    bottom.set(xlabel="$y$, a noisy $\\theta_1$", yticks=[], ylim=(-1, 1))
    return figure


EXPERIMENT = Experiment(
    name="wolf-intro",
    title="Outliers: weighted likelihood, bounded influence, wider posteriors",
    sizes={"quick": Setting(), "full": Setting(grid=151, updates=5000)},
    run=_run,
    figures={
        "fig:dynamical-system-intro": draw_hidden,
        "fig:weighted-log-likelihood-gaussian": draw_likelihood,
        "fig:intro-image": draw_track,
        "posterior-influence": draw_influence,
    },
    claims=claims({22: _bounded, 23: _conservative}),
    fixed={"outliers": OUTLIERS, "methods": INFLUENCED, "sizes": SIZES, "aside": ASIDE},
)
