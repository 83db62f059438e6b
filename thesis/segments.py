"""Parabolas that meet at unknown places: who forecasts best, and who counts the places best.

Each hypothesis has its features (1, d, d²) in the frame of its own segment, d the way from the x at which it began. The
hazard is 0.01, the noise 0.04, the prior N(0, I), as in the published run.

Thesis: experiment:segmentation, eq:h_fct_aux, fig:sements-dependency-lr, fig:segments-count.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from filtax import method
from filtax.models import Linearised, Model, Predictor, gaussian, linear
from filtax.protocols import static
from filtax.synthetic import linked_parabolas
from thesis.experiment import Advance, Experiment, Result, Table, claims
from thesis.figures import COLOURS, FAINT, GREY, Figure, boxes, panels
from thesis.statistics import Verdict, all_of, below, holds_if, holds_only_if, of_median

HAZARD, NOISE = 0.01, 0.04
FIXED = ", one frame"  # what the name of a method ends with whose features are those of the first datum's frame
PUBLISHED = {  # median RMSE, median count; of more hypotheses the published count is of another kind
    "RL[1]-PR": (3.310, 27.5),
    "RL[1]-MMPR": (2.268, 5.0),
    "RL[1]-OUPR": (0.78, 2.0),
    "C-Static": (6.0, None),
} | {f"RL[{k}]-PR": (rmse, None) for k, rmse in ((5, 2.273), (10, 2.149), (15, 1.951))}
PUBLISHED |= {f"RL[{k}]-MMPR": (rmse, None) for k, rmse in ((5, 1.267), (10, 1.276), (15, 1.251))}
NOTES = (
    "Each hypothesis carries the x at which its segment began. In the published run RL-PR kept the frame of the last x "
    "for ever, C-Static had a constant as its one feature, and the weights of MMPR summed to the hazard.",
    "A reset by MMPR hands the coefficients on to a new frame. Handed on as they are (the thesis), the curve jumps; "
    "in another frame the parabola stays the same, which is what features of one fixed frame mean (', one frame'). "
    "In one frame a new hypothesis has the belief of its parents, and so do all: RL[K]-MMPR is then C-Static, for "
    "every K. To find these boundaries a prior would have to keep the level and forget slope and bend.",
    "The forecast is the thesis's, of the hypotheses that are there, without the one that a reset would add. The error "
    "is against y with its noise, whose standard deviation of 0.2 is the least that can be reached; 'last value' "
    "forecasts the y before. Counted are the data at which the most probable run length is 0; there are 4 boundaries.",
    "Intervals, of 95 %, are those of the medians over streams, between two of them.",
)


@dataclass(frozen=True)
class Setting:
    """Streams, and numbers of hypotheses of PR and MMPR."""

    trials: int = 40
    keeps: tuple[int, ...] = (1, 5, 15)


class _Curve(Predictor):
    """A parabola in the frame of the segment; x is the number of the datum, `positions` where all of them are."""

    positions: Any
    moving: bool = static(default=True)

    def linearise(self, theta: Float[Array, " D"], x: Any, aux: PyTree) -> Linearised:
        at = x[0].astype(jnp.int32)
        run = getattr(aux, "runlength", None)
        began = 0 if run is None or not self.moving else jnp.maximum(at - run, 0)
        d = (self.positions[at] - self.positions[began]).astype(theta.dtype)
        return linear(noise=NOISE).predictor.linearise(theta, jnp.stack([jnp.ones_like(d), d, d * d]), aux)


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    seeds = np.random.SeedSequence((seed, 0)).generate_state(setting.trials)
    streams = [linked_parabolas(key=int(one)) for one in seeds]
    lengths = np.array([len(stream) for stream in streams])
    both = [np.stack([s.X[:, 0], s.y]) for s in streams]
    longest = int(lengths.max())
    x, y = np.stack([np.pad(one, ((0, 0), (0, longest - one.shape[1])), mode="edge") for one in both], axis=1)
    there = np.arange(x.shape[1]) < lengths[:, None]
    arrays: dict[str, np.ndarray] = {}
    names = _names(setting.keeps)
    for i, name in enumerate(names):
        said, runs = _forecasts(name, x, y)
        arrays |= {name: _rmse(said, y, there), f"{name}, count": np.sum((runs == 0) & there, axis=1)}
        sample = slice(0, lengths[0])
        arrays |= {f"{name}, sample": said[0, sample], f"{name}, sample runs": runs[0, sample]}
        advance((i + 1) / len(names))
    before = np.concatenate([np.zeros((len(y), 1)), y[:, :-1]], axis=1)
    arrays |= {"last value": _rmse(before, y, there), "x": streams[0].X[:, 0], "y": streams[0].y}
    arrays |= {"truth": streams[0].truth, "boundaries": np.array(streams[0].changes), "lengths": lengths}
    return Result({"methods": names, "keeps": list(setting.keeps)}, arrays, (_table(arrays, names),), NOTES)


def _names(keeps: tuple[int, ...]) -> list[str]:
    many = [f"RL[{keep}]-{prior}" for prior in ("PR", "MMPR") for keep in keeps]
    return ["RL[1]-OUPR", "C-Static", *many, f"RL[{max(keeps)}]-MMPR{FIXED}"]


def _rmse(said: np.ndarray, y: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Root mean squared error of each stream, (N,), over the data that are there."""
    return np.sqrt(np.sum(np.where(there, (said - y) ** 2, 0.0), axis=1) / there.sum(axis=1))


def _forecasts(name: str, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts without the new hypothesis, and most probable run lengths, (N, T) each, for x and y of that shape."""
    short = name.removesuffix(FIXED)
    text = f"LG+{short}" if name == "C-Static" else f"LG+{short}(hazard={HAZARD})"
    curve = _Curve(jnp.zeros(x.shape[1]), moving=not name.endswith(FIXED))
    built = method(text, model=Model(curve, gaussian(NOISE)))
    mean, first, runs = (np.asarray(part) for part in _scan(built, built.init(mean=jnp.zeros(3), cov=1.0), x, y))
    if name == "C-Static" or name.endswith(FIXED):  # no new hypothesis, or one that says what the others say
        return mean, runs
    return (mean - HAZARD * (first if "MMPR" in name else 0.0)) / (1 - HAZARD), runs


@jax.jit
def _scan(built: Any, state: Any, x: Array, y: Array) -> tuple[Array, Array, Array]:
    rows = jnp.arange(x.shape[1], dtype=y.dtype)[:, None]

    def one(positions: Array, y: Array) -> tuple[Array, Array, Array]:
        here = eqx.tree_at(lambda m: m.model.predictor.positions, built, positions)
        infos: Any = here.scan(state, rows, y, keep=("mean", "runlength", "belief_mean"), complete=True)[1]
        before = jnp.concatenate([state.initial.mean[None], infos.belief_mean[:-1]])
        return infos.mean.reshape(-1), before[:, 0], infos.runlength

    return jax.vmap(one)(x, y)


def _table(arrays: dict[str, np.ndarray], names: list[str]) -> Table:
    rows: list[tuple] = []
    for name in (*names, "last value"):
        low, middle, high = (float(q) for q in np.quantile(arrays[name], (0.25, 0.5, 0.75)))
        rmse, count = PUBLISHED.get(name, (None, None))
        counts = None if name == "last value" else arrays[f"{name}, count"]
        ours = (None, None) if counts is None else (float(np.median(counts)), of_median(counts))
        rows.append((name, rmse, middle, of_median(arrays[name]), low, high, count, *ours))
    quartiles = ("25 % of streams", "75 % of streams")
    columns = ("", "published RMSE", "ours, median", "95 %", *quartiles)
    columns = (*columns, "published count", "ours, median count", "count, 95 %")
    published = ("published RMSE", "published count")
    return Table("RMSE of forecasts and number of changepoints, over streams", columns, rows, published=published)


OURS, BOUNDARIES = "RL[1]-OUPR", 4
TIE = 0.1
ONE = ("RL[1]-PR", "RL[1]-MMPR", OURS)  # the methods of the thesis's figures


def lowest(result: Result) -> Verdict:
    """Paired over streams: OUPR is below the rivals with one hypothesis, then below those with more, and the last y.

    "The lowest" is one method that is below each of the others. Where the interval of the median difference holds 0,
    two things can be: there are too few streams, which is not decided; or the two are alike, which more streams only
    confirm. The latter is when the whole interval is within 10 % of the rival's median, the margin by which errors are
    called alike in the other claims about them (25 and 32); it was set there before this one. A tie then refutes the
    claim, as it would for the rival: the published medians, 0.78 and 3.31, claim a difference and not a tie.

    Runs were known when the rule was written. In the full one every margin from 4 % on gives the same verdict, in the
    quick one from 8 % on; and the rivals with more hypotheses, whom the claim was to hold for too, are below OUPR.
    """
    of = result.arrays
    rivals = ("C-Static", "RL[1]-PR", "RL[1]-MMPR")
    single = all_of(*[below(of[OURS], of[name], ("OUPR", name), tie=TIE) for name in rivals])
    rivals = [name for name in result.numbers["methods"] if name not in (OURS, "C-Static") and "[1]" not in name]
    best = min(rivals, key=lambda name: np.median(of[name]))
    more = [below(of[OURS], of[best], ("OUPR", f"the best of more hypotheses, {best},"))]
    more.append(below(of[OURS], of["last value"], ("OUPR", "last value")))
    said = f"{single.evidence}; {more[0].evidence}; {more[1].evidence}"
    if single.text == "holds" and any(part.text == "does not hold" for part in more):
        lost = ["rivals keep one hypothesis", "the last value is omitted"]
        provisos = [words for words, part in zip(lost, more, strict=True) if part.text == "does not hold"]
        return holds_only_if(True, " and ".join(provisos), said)
    return Verdict(single.text, said)


def counts(result: Result) -> Verdict:
    """Median counts against the four boundaries, and whether forecasts and counts rank the methods otherwise.

    They do if of some two methods one has the smaller error and the other the count nearer to the truth; a tie in
    either is no order.
    """
    middle = {name: float(np.median(result.arrays[f"{name}, count"])) for name in ONE}
    error = {name: float(np.median(result.arrays[name])) for name in ONE}
    pr, mmpr, oupr = (middle[name] for name in ONE)
    off = {name: abs(middle[name] - BOUNDARIES) for name in ONE}
    against = [(a, b) for a in ONE for b in ONE if error[a] < error[b] and off[a] > off[b]]
    return all_of(
        holds_if(pr >= 3 * BOUNDARIES, f"median count of RL[1]-PR {pr:g}, at least {3 * BOUNDARIES} expected"),
        holds_if(abs(mmpr - BOUNDARIES) <= 2, f"of RL[1]-MMPR {mmpr:g}, {BOUNDARIES} give or take 2 expected"),
        holds_if(oupr < BOUNDARIES, f"of RL[1]-OUPR {oupr:g}, below {BOUNDARIES} expected"),
        holds_if(bool(against), f"by error {_ranked(error)}; by count {_ranked(off)}"),
    )


def _ranked(by: dict[str, float]) -> str:
    """Names from the least on; those that are equal are said to be."""
    first, *others = sorted(by, key=lambda name: by[name])
    words, before = first, first
    for name in others:
        words += f"{' as ' if by[name] == by[before] else ', '}{name}"
        before = name
    return words


def draw_forecasts(result: Result) -> Figure:
    """One stream with the forecasts and run lengths of three methods, and the errors over all streams."""
    of = result.arrays
    figure, axes = panels(2, 2, size=(10.0, 6.4))
    low, high = of["truth"].min(), of["truth"].max()
    room = 0.15 * (high - low) + 0.5
    for axis, name in zip(axes.ravel()[:3], ONE, strict=True):
        for place in of["x"][of["boundaries"]]:
            axis.axvline(place, color=GREY, ls=":", lw=1)
        axis.plot(of["x"], of["y"], ".", color=FAINT, ms=3, zorder=0)
        axis.plot(of["x"], of["truth"], color=COLOURS[4], lw=2.5, label="truth")
        axis.plot(of["x"], of[f"{name}, sample"], color=COLOURS[0], lw=1, label="forecast")
        axis.set(title=name, xlabel="x", ylabel="y", ylim=(low - room, high + room))
        right = axis.twinx()
        right.spines["right"].set_visible(True)
        right.plot(of["x"], of[f"{name}, sample runs"], color=COLOURS[1], lw=0.8, ls="--", label="run length")
        right.set_ylabel("run length", color=COLOURS[1])
    axes[0, 0].legend(loc="best")
    box = axes[1, 1]
    names = [*ONE, "C-Static", "last value"]
    words = [name.replace("]-", "]-\n").replace(" ", "\n") for name in names]
    boxes(box, [of[name] for name in names], words, (*COLOURS[:4], GREY))
    box.set(yscale="log", ylabel="RMSE", title=f"Errors over {len(of['lengths'])} streams")
    return figure


def draw_counts(result: Result) -> Figure:
    """How many changepoints each method counts, with the truth as a line."""
    figure, axis = panels(size=(6.5, 3.4))
    found = [result.arrays[f"{name}, count"] for name in ONE]
    boxes(axis, found, ONE)
    axis.set_yscale("symlog", linthresh=5)
    ticks = [0, 1, 2, 4, 10, 30, 100, 300]
    axis.set_yticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()
    axis.axhline(BOUNDARIES, color=COLOURS[4], lw=2, label=f"truth, {BOUNDARIES}")
    axis.set(ylabel="changepoints counted", title="Data at which a segment is thought to begin")
    axis.legend()
    return figure


EXPERIMENT = Experiment(
    name="segments",
    title="Segments of parabolas that meet: forecasts and changepoints",
    sizes={"quick": Setting(), "full": Setting(trials=100, keeps=(1, 5, 10, 15))},
    run=_run,
    figures={"fig:sements-dependency-lr": draw_forecasts, "fig:segments-count": draw_counts},
    claims=claims({20: lowest, 21: counts}),
)
