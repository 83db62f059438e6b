"""What is shown and decided of the electricity load: the rules of its claims, tables, figures.

Errors of an hour resemble those of the same weekday (correlation 0.4 to 0.8 of daily means a week apart) and of the
season (up to 0.4 of 5-day means a month apart, at most 0.1 two months apart). So days are not drawn again one by one,
but in blocks of 35, the shortest that hold whole weeks and whole buckets of five days, and last a month. The networks
are those of the run; the intervals are those of other years, not of other networks.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import dates

from thesis.experiment import Result, Table
from thesis.figures import COLOURS, DASHES, GREY, INK, Figure, boxes, panels
from thesis.statistics import Interval, Verdict, all_of, below, block_draws, holds_if, holds_only_if, middle, of_series

CHANGE = "2020-03-07"
SLOW = ("RL[1]-PR", "CPP-OU")
RULES = ("last value", "plus yesterday's change")
METHODS = ("RL[1]-OUPR", "C-ACI", "CPP-OU", "RL[1]-PR")
OURS, SHOWN = METHODS[0], (*METHODS, "RL[1]-OUPR+ACI", *RULES)


def window(result: Result, first: str, last: str) -> np.ndarray:
    """Which hours lie from the first day to before the last."""
    time = result.arrays["hours"].astype("datetime64[h]")
    return (time >= np.datetime64(first, "h")) & (time < np.datetime64(last, "h"))


def five_day(error: np.ndarray) -> np.ndarray:
    """Means over consecutive buckets of five days, of all networks, (B,); the last, if it is not whole, is omitted."""
    whole = error.shape[1] // 120
    return error[:, : 120 * whole].reshape(len(error), whole, 120).mean(axis=(0, 2))


def rolling(result: Result, name: str, width: int = 12) -> np.ndarray:
    """Mean absolute error of the last `width` hours, (T,), over networks; NaN before there are as many."""
    error = np.abs(result.arrays[name] - result.arrays["y"]).mean(axis=0)
    total = np.cumsum(np.concatenate([[0.0], error]))
    mean = (total[width:] - total[:-width]) / width
    return np.concatenate([np.full(width - 1, np.nan), mean])


def flat(result: Result) -> Verdict:
    """Within the working days of the week after, the load varies by less than a third of the week before."""
    sd = [
        result.arrays["load"][window(result, first, last)].reshape(5, 24).std(axis=1)
        for first, last in (("2020-03-02", CHANGE), ("2020-03-09", "2020-03-14"))
    ]
    said = f"sd within the day {sd[0].min():.0f} to {sd[0].max():.0f} MW on 2-6 March, {sd[1].min():.0f} to "
    return holds_if(sd[1].mean() < sd[0].mean() / 3, f"{said}{sd[1].max():.0f} MW on 9-13 March")


def quickest(result: Result) -> Verdict:
    """Over four days from the change, the rolling errors of the two are below those of the others."""
    days = window(result, CHANGE, "2020-03-11")
    mean = {name: float(rolling(result, name)[days].mean()) for name in ("C-ACI", "RL[1]-OUPR", *SLOW, *RULES)}
    said = "12-hour error on 7-10 March: " + ", ".join(f"{name} {value:.3f}" for name, value in mean.items())
    return holds_if(max(mean["C-ACI"], mean["RL[1]-OUPR"]) < min(mean[name] for name in SLOW), said)


def resets(result: Result) -> Verdict:
    """Resets a day in the six days before, and in the four days from the change on."""
    before, after = window(result, "2020-03-01", CHANGE), window(result, CHANGE, "2020-03-11")

    def counted(name: str) -> tuple[float, float]:
        born = result.arrays[name] == 0
        return float(born[:, before].sum(axis=1).mean() / 6), float(born[:, after].sum(axis=1).mean())

    rate, later = counted("RL[1]-PR, runs")
    old, old_later = counted("RL[1]-PR, runs at the published setting")
    said = f"{rate:.1f} resets a day on 1-6 March, {later:g} in all on 7-10 March"
    theirs = f"at the published scaling and hazard {old:.1f} a day and {old_later:g} in all"
    ours, published = (1.5 <= a <= 2.5 and b == 0 for a, b in ((rate, later), (old, old_later)))
    if ours:
        return holds_if(True, f"{said}; {theirs}")
    return holds_only_if(published, "scaling and hazard are the published ones", f"{said}; {theirs}")


def lowest(result: Result) -> Verdict:
    """Paired over buckets of five days, among the four methods and then with the rules of thumb."""
    mean = {name: five_day(np.abs(result.arrays[name] - result.arrays["y"])) for name in SHOWN}
    among, rules = (
        all_of(*[below(mean[OURS], mean[name], ("OUPR", name)) for name in some]) for some in (METHODS[1:], RULES)
    )
    with_walk = float(np.median(mean["RL[1]-OUPR+ACI"]))
    said = f"{among.evidence}; with a random walk and a tuned variance OUPR has {with_walk:.3f}"
    said = f"{said}. With the rules of thumb it {rules.text.replace('holds', 'still holds')}: {rules.evidence}"
    if among.text == "holds" and rules.text != "holds":
        return holds_only_if(True, "rules of thumb are omitted", said)
    return Verdict(among.text, said)


DAY, BUCKET, BLOCK = 24, 5, 35  # hours; days; days
FAR = 3.0  # times the median over networks
TITLE = "Absolute error: median of all hours, median of 5-day means, and the latter less that of RL[1]-OUPR, in pairs"
Scores = tuple[float, Interval, float, Interval]


def scores(error: np.ndarray) -> Scores:
    """Of absolute errors (networks, T) the median of all hours, and that of 5-day means, each with its interval."""
    means = five_day(error)
    return float(np.median(error)), of_hours(error), float(np.median(means)), of_series(means, BLOCK // BUCKET)


def of_hours(error: np.ndarray, block: int = BLOCK) -> Interval:
    """Interval of the median of all hours, (networks, T), when whole days of all networks are drawn in blocks.

    Sorted once; a draw only says how often each day counts.
    """
    days = error.shape[1] // DAY
    if days < 2 * block:
        return None
    cut = error[:, : DAY * days]
    order = np.argsort(cut, axis=None)
    value, day = cut.ravel()[order], order % (DAY * days) // DAY
    drawn = []
    for places in block_draws(days, block):
        count = np.cumsum(np.bincount(places, minlength=days)[day])
        at = np.searchsorted(count, ((count[-1] + 1) // 2, count[-1] // 2 + 1))
        drawn.append(value[at].mean())
    return middle(np.array(drawn))


def diverged(errors: Mapping[str, np.ndarray], where: str) -> tuple[str, ...]:
    """A sentence for each method that diverges from some first networks: mean error above 3 times their median."""
    said = []
    for name, error in errors.items():
        means = np.nan_to_num(np.mean(error, axis=1), nan=np.inf)
        middle = float(np.median(means))
        lost = [i for i, mean in enumerate(means) if not np.isfinite(mean) or mean > FAR * middle]
        if lost:
            which = " and ".join(f"network {i + 1} has a mean error of {means[i]:.2f}" for i in lost)
            said.append(
                f"With {name}, {where}, the filter diverges from {len(lost)} of {len(means)} first networks: {which}, "
                f"the median network {middle:.2f}. 5-day errors in the table are means over all {len(means)}, these "
                "included."
            )
    return tuple(said)


def error_tables(
    errors: Mapping[str, np.ndarray],
    theirs: Mapping[str, np.ndarray],
    published: Mapping[str, tuple[Any, float | None, float | None]],
    chosen: Mapping[str, Mapping[str, float]],
) -> tuple[Table, Table]:
    """Two tables: errors as the text has it, and `theirs`, at the published scaling and numbers, (networks, T) each.

    `published` are for each method its numbers, the median absolute error and the median 5-day error; `chosen` ours.
    """
    rows: list[Sequence[Any]] = []
    for name, error in errors.items():
        _, old_median, old_days = published.get(name, (None, None, None))
        less = five_day(error) - five_day(errors[OURS]) if OURS in errors and name != OURS else None
        pair = (None, None) if less is None else (float(np.median(less)), of_series(less, BLOCK // BUCKET))
        told = ", ".join(f"{key} {value:.3g}" for key, value in chosen.get(name, {}).items())
        median, hourly, days, bucket = scores(error)
        rows.append((name, old_median, median, hourly, old_days, days, bucket, *pair, told))
    heads = ("", "median, published", "median", "median, 95 %", "5-day, published", "5-day", "5-day, 95 %")
    marked = (heads[1], heads[4])
    columns = (*heads, "less OUPR", "less OUPR, 95 %", "chosen")
    again = [
        (name, published[name][1], *(given := scores(error))[:2], published[name][2], *given[2:])
        for name, error in theirs.items()
    ]
    title = "The same with the published scaling ('sd') and numbers"
    return Table(TITLE, columns, [tuple(row) for row in rows], marked), Table(title, heads, again, marked)


def _days(axis: Any) -> None:
    """Days on the axis of time, and a line at the change."""
    axis.axvline(np.datetime64(CHANGE), color=INK, ls=":", lw=1.2)
    axis.xaxis.set_major_locator(dates.DayLocator())
    axis.xaxis.set_major_formatter(dates.DateFormatter("%-d %b"))


def _seen(result: Result, first: str, last: str) -> tuple[np.ndarray, np.ndarray]:
    seen = window(result, first, last)
    return seen, result.arrays["hours"][seen].astype("datetime64[h]")


def draw_change(result: Result) -> Figure:
    """The target, and the error of the last twelve hours, from 1 to 12 March 2020."""
    figure, (top, bottom) = panels(2, 1, size=(9.0, 5.2), sharex=True)
    seen, time = _seen(result, "2020-03-01", "2020-03-13")
    top.plot(time, result.arrays["y"][seen], color=INK, lw=1)
    top.set(ylabel="normalised load", title="Target")
    for name, colour, dashes in zip(METHODS, COLOURS, DASHES, strict=False):
        bottom.plot(time, rolling(result, name)[seen], color=colour, ls=dashes, label=name)
    for name, dashes in zip(RULES, ("--", ":"), strict=True):
        bottom.plot(time, rolling(result, name)[seen], color=GREY, ls=dashes, label=name)
    bottom.set(ylabel="mean absolute error", title="Error of the last twelve hours", ylim=(0, None))
    bottom.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    _days(top)
    _days(bottom)
    return figure


def draw_forecasts(result: Result) -> Figure:
    """The forecasts of each method from 4 to 8 March 2020, beside the target."""
    figure, axes = panels(2, 2, size=(9.0, 5.2), sharex=True, sharey=True)
    seen, time = _seen(result, "2020-03-04", "2020-03-09")
    for axis, name, colour in zip(axes.ravel(), METHODS, COLOURS, strict=False):
        axis.plot(time, result.arrays["y"][seen], color=INK, lw=0.8, label="target")
        axis.plot(time, result.arrays[name][0, seen], color=colour, label="forecast")
        axis.set_title(name)
        axis.legend(loc="upper right", ncols=2)
        _days(axis)
    return figure


def draw_runs(result: Result) -> Figure:
    """The forecasts of RL[1]-PR and its run length, from 1 to 12 March 2020: with our number, and as published."""
    figure, axes = panels(2, 1, size=(9.0, 5.6), sharex=True, sharey=True)
    seen, time = _seen(result, "2020-03-01", "2020-03-13")
    kinds = {
        "Number chosen on the warm-up": ("RL[1]-PR", "RL[1]-PR, runs"),
        "Published scaling and number": ("RL[1]-PR, published setting", "RL[1]-PR, runs at the published setting"),
    }
    for axis, (words, (forecast, runs)) in zip(axes, kinds.items(), strict=True):
        runlength = result.arrays[runs][0, seen]
        right = axis.twinx()
        right.spines["right"].set_visible(True)
        right.fill_between(time, runlength, step="post", color=COLOURS[1], alpha=0.18, lw=0)
        right.step(time, runlength, where="post", color=COLOURS[1], lw=1.2, label="run length, on the right")
        right.plot(time[runlength == 0], runlength[runlength == 0], "|", color=COLOURS[1], ms=7, label="reset")
        right.set(ylim=(0, max(24, 1.1 * runlength.max())))
        right.set_ylabel("hours since the last reset", color=COLOURS[1])
        axis.set_zorder(right.get_zorder() + 1)  # lines in front of the run length
        axis.patch.set_visible(False)
        axis.plot(time, result.arrays["y"][seen], color=INK, lw=0.8, label="target")
        axis.plot(time, result.arrays[forecast][0, seen], color=COLOURS[0], label="forecast of RL[1]-PR")
        axis.axhline(0.0, color=GREY, lw=0.5)
        axis.set(ylabel="normalised load", title=f"{words}: {_resets(time, runlength)}")
        _days(axis)
    handles = [one for axis in (axes[0], figure.axes[-1]) for one in axis.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _resets(time: np.ndarray, runlength: np.ndarray) -> str:
    """How often it was reset in a day, before and after the change."""
    before = time < np.datetime64(CHANGE)
    rates = [24 * float(np.mean(runlength[part] == 0)) for part in (before, ~before)]
    return f"{rates[0]:.1f} resets a day before the change, {rates[1]:.1f} after"


def draw_boxes(result: Result) -> Figure:
    """The 5-day mean absolute errors over the whole stream, of methods and of rules of thumb."""
    figure, axis = panels(size=(8.0, 3.8))
    errors = [five_day(np.abs(result.arrays[name] - result.arrays["y"])) for name in SHOWN]
    names = [name.replace(" ", "\n").replace("+", "\n+") for name in SHOWN]
    boxes(axis, errors, names, (*COLOURS[:5], GREY, GREY))
    axis.set(ylabel="mean absolute error", title="Buckets of five days", ylim=(0, None))
    return figure
