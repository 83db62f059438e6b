"""A moving average of the Dow Jones log-returns with two wrong data in it: EWMA and WoLF-EWMA.

Thesis: prop:kf-unidimensional-is-ewma, eq:wolf-1d, fig:dji-returns, fig:dji-ewma-methods, fig:dji-learning-rate (errata
E28: q, r and s are variances, and s' is (1 - k)(s + q)). Where the two wrong data are is not printed; they are those of
the author's notebook.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from filtax import ewma
from filtax.datasets import read_table
from thesis.experiment import Advance, Experiment, Result, Table, claims
from thesis.figures import COLOURS, GREY, INK, Figure, panels
from thesis.statistics import Verdict, all_of, holds_if, holds_only_if

FIRST, LAST = "2019-01-01", "2024-12-31"
BETA, DRAWN = 0.095, 0.05  # smoothing factor of the text; of the curve that the notebook drew
Q, R, C = 0.01, 1.0, 0.05
WRONG = {500: -0.5, 1000: 0.5}
AFTER = 60  # days for which an outlier is remembered


@dataclass(frozen=True)
class Setting:
    """Days to use from the first of 2019 on, at most; None for all to the end of 2024."""

    days: int | None = None


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    """The text's hyper-parameters, on the closing prices; nothing is drawn, so the seed does nothing."""
    table = read_table("djia")
    chosen = (table["date"] >= FIRST) & (table["date"] <= LAST)
    dates, close = table["date"][chosen][: setting.days], table["close"][chosen][: setting.days]
    dates, clean = dates[1:], np.diff(np.log(close))
    y, wrong = clean.copy(), np.zeros(clean.size, bool)
    for day, value in WRONG.items():
        if day < y.size:
            y[day], wrong[day] = value, True
    robust, plain = ewma(y, q=Q, r=R, c=C), ewma(y, q=Q, r=R)
    arrays = {
        "dates": dates,
        "y": y,
        "wrong": wrong,
        "ewma": _average(y, BETA),
        "ewma_drawn": _average(y, DRAWN),
        "wolf": np.asarray(robust.mean),
        "gain": np.asarray(robust.gain),
        "kf_gain": np.asarray(plain.gain),
        "ewma_clean": _average(clean, BETA),
    }
    advance(1.0)
    numbers = _numbers(arrays)
    return Result(numbers, arrays, _tables(numbers), NOTES)


def _average(y: np.ndarray, beta: float) -> np.ndarray:
    """The fixed smoothing, from a level of 0."""
    level, out = 0.0, []
    for value in y:
        level += beta * (value - level)
        out.append(level)
    return np.array(out)


def _numbers(a: dict[str, np.ndarray]) -> dict[str, Any]:
    steps = {name: np.abs(np.diff(a[name], prepend=0.0))[a["wrong"]] for name in ("ewma", "ewma_drawn", "wolf")}
    calm = ~_since(a["wrong"])
    low = calm & (a["gain"] < 0.5 * BETA)
    low[:AFTER] = False  # the gain begins at one half and settles
    calmest = calm & ~_since(low)
    days = [str(day) for day in a["dates"][low]]
    return {
        "steps_ewma": steps["ewma"].tolist(),
        "steps_ewma_drawn": steps["ewma_drawn"].tolist(),
        "steps_wolf": steps["wolf"].tolist(),
        "gain_at_wrong": a["gain"][a["wrong"]].tolist(),
        "steady": float(a["kf_gain"][-1]),
        "median_gain": float(np.median(a["gain"][calm])),
        "correlation": float(np.corrcoef(a["ewma"][calm], a["wolf"][calm])[0, 1]),
        "correlation_calmest": float(np.corrcoef(a["ewma"][calmest], a["wolf"][calmest])[0, 1]),
        "rms_gap_calm": float(np.sqrt(np.mean((a["ewma"] - a["wolf"])[calm] ** 2))),
        "low_days": days,
        "low_in_march_2020": sum(day.startswith("2020-03") for day in days),
    }


def _since(event: np.ndarray) -> np.ndarray:
    """True at an event and for the days after it."""
    return np.convolve(event, np.ones(AFTER + 1))[: event.size] > 0


def _tables(n: dict[str, Any]) -> tuple[Table, ...]:
    dates = [f"wrong datum {i + 1}" for i in range(len(n["steps_wolf"]))]
    rows = list(zip(dates, n["steps_ewma"], n["steps_ewma_drawn"], n["steps_wolf"], n["gain_at_wrong"], strict=True))
    heads = ("", f"EWMA, beta = {BETA:g}", f"beta = {DRAWN:g} (notebook)", "WoLF-EWMA", "its k")
    facts = [
        ("beta of the text", BETA),
        ("k of the Kalman filter, settled", n["steady"]),
        ("median k of WoLF-EWMA outside of the windows", n["median_gain"]),
        ("correlation of the two means outside of them", n["correlation"]),
        ("the same, days after a real outlier omitted too", n["correlation_calmest"]),
        ("days outside of them with k below half of beta", len(n["low_days"])),
        ("of these in March 2020", n["low_in_march_2020"]),
    ]
    return (
        Table("How far a wrong datum moves the average", heads, rows, (f"beta = {DRAWN:g} (notebook)",)),
        Table("Smoothing factors", ("", ""), facts),
    )


NOTES = (
    "With q = 0.01 and r = 1 as variances the gain of the Kalman filter settles at 0.0951, the beta of the text; with "
    "their squares it would be 0.00995. The recursion is s' = (1 - k)(s + q) (E28).",
    "The wrong data, -0.5 at row 500 and +0.5 at row 1000, are those of the author's notebook, which drew the EWMA "
    "with 0.05, used c unsquared and the weight twice. Here the text's formula: 1/(1 + e²/c²).",
    "The gain also falls on days that are real: k below half of beta outside of the two windows is counted in the "
    "table, most of it in March 2020. The method cannot tell a crash from a mistake: for some weeks the two averages "
    "differ, and the correlation outside of the two windows is below 0.95 for that reason alone.",
    "There is one series of the index, and nothing is drawn: one run, so the tables have no intervals.",
)


def _draw_returns(result: Result) -> Figure:
    """The data, wrong ones included."""
    a = result.arrays
    figure, axis = panels(size=(9.0, 3.0))
    axis.plot(_days(a), a["y"], color=INK, lw=0.7)
    axis.plot(_days(a)[a["wrong"]], a["y"][a["wrong"]], ls="", marker="x", color="crimson", label="wrong datum")
    axis.set(ylabel="log-return", title="Dow Jones Industrial Average, daily")
    axis.legend()
    return figure


def _draw_averages(result: Result) -> Figure:
    """Both averages over the data."""
    a = result.arrays
    figure, axis = panels(size=(9.0, 3.4))
    axis.plot(_days(a), a["y"], ls="", marker=".", ms=1.5, color=GREY, label="log-return")
    axis.plot(_days(a), a["ewma"], color=COLOURS[0], ls="--", lw=1.2, label=f"EWMA, $\\beta$ = {BETA:g}")
    axis.plot(_days(a), a["wolf"], color=COLOURS[1], lw=1.4, label="WoLF-EWMA")
    axis.set(ylim=(-0.062, 0.062), ylabel="log-return", title="Moving averages")
    axis.legend(ncols=3, loc="lower right", fontsize=8)
    return figure


def _draw_gains(result: Result) -> Figure:
    """Smoothing factors over time."""
    a = result.arrays
    figure, axis = panels(size=(9.0, 3.2))
    axis.plot(_days(a), a["gain"], color=COLOURS[1], lw=1.0, label="WoLF-EWMA, $k_t$")
    axis.axhline(BETA, color=COLOURS[0], ls="--", lw=1.2, label=f"EWMA, $\\beta$ = {BETA:g}")
    axis.plot(_days(a)[a["wrong"]], a["gain"][a["wrong"]], ls="", marker="x", color="crimson", label="wrong datum")
    axis.axvspan(np.datetime64("2020-02-24"), np.datetime64("2020-04-10"), color=GREY, alpha=0.2, lw=0)
    axis.annotate("March 2020", (np.datetime64("2020-04-20"), 0.115), fontsize=8, color=GREY)
    axis.set(ylim=(0.0, 0.13), ylabel="smoothing factor", title="How much a datum counts")
    axis.legend(ncols=3, loc="lower right", fontsize=8)
    return figure


def _days(arrays: Any) -> np.ndarray:
    return np.asarray(arrays["dates"], "datetime64[D]")


def _robust(result: Result) -> Verdict:
    """Steps at the wrong data, the steady gain, agreement elsewhere, and the gain at the wrong data."""
    n = result.numbers
    low, high = min(n["steps_ewma"]), max(n["steps_wolf"])
    gain, steady = max(n["gain_at_wrong"]), n["steady"]
    return all_of(
        holds_if(low >= 0.04 and high <= 0.002, f"a wrong datum moves EWMA by {low:.4f}, WoLF-EWMA by {high:.5f}"),
        holds_if(abs(steady - BETA) <= 1e-3, f"steady k {steady:.4f}, beta {BETA:g}"),
        _agree(n["correlation"], n["correlation_calmest"]),
        holds_if(
            gain < 0.01,
            f"k at the wrong data {gain:.4f}, and it falls below half of beta on {len(n['low_days'])} real "
            f"days, {n['low_in_march_2020']} of them in March 2020",
        ),
    )


def _agree(elsewhere: float, calmest: float) -> Verdict:
    """Outside of the windows after the wrong data; if not there, outside of those after real outliers as well."""
    said = f"correlation elsewhere {elsewhere:.3f}, and {calmest:.3f} without the days after real outliers"
    if elsewhere >= 0.95:
        return holds_if(True, said)
    return holds_only_if(calmest >= 0.95, "the crash of 2020 counts as an outlier event too", said)


EXPERIMENT = Experiment(
    name="ewma",
    title="A robust moving average of the Dow Jones log-returns",
    sizes={"quick": Setting(), "full": Setting()},
    run=_run,
    figures={
        "fig:dji-returns": _draw_returns,
        "fig:dji-ewma-methods": _draw_averages,
        "fig:dji-learning-rate": _draw_gains,
    },
    claims=claims({36: _robust}),
    data=("djia",),
    fixed={"wrong": WRONG, "after": AFTER},
)
