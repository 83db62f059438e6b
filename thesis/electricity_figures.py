"""The figures of the electricity load: around the change of March 2020, and over the whole of it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from thesis.electricity_claims import CHANGE, RULES, five_day, rolling, window
from thesis.experiment import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["METHODS", "draw_boxes", "draw_change", "draw_forecasts", "draw_runs"]

METHODS = ("RL[1]-OUPR", "C-ACI", "CPP-OU", "RL[1]-PR")


def _days(axis: Any) -> None:
    """Days on the axis of time, and a line at the change."""
    from matplotlib import dates

    from filtax.report.panels import INK

    axis.axvline(np.datetime64(CHANGE), color=INK, ls=":", lw=1.2)
    axis.xaxis.set_major_locator(dates.DayLocator())
    axis.xaxis.set_major_formatter(dates.DateFormatter("%-d %b"))


def _seen(result: Result, first: str, last: str) -> tuple[np.ndarray, np.ndarray]:
    seen = window(result, first, last)
    return seen, result.arrays["hours"][seen].astype("datetime64[h]")


def draw_change(result: Result) -> "Figure":
    """The target, and the error of the last twelve hours, from 1 to 12 March 2020."""
    from filtax.report.panels import COLOURS, DASHES, GREY, INK, panels

    figure, (top, bottom) = panels(2, 1, size=(9.0, 5.2), sharex=True)
    seen, time = _seen(result, "2020-03-01", "2020-03-13")
    top.plot(time, result.arrays["y"][seen], color=INK, lw=1)
    top.set(ylabel="normalised load", title="Target")
    for name, colour, dashes in zip(METHODS, COLOURS, DASHES, strict=False):
        bottom.plot(time, rolling(result, name)[seen], color=colour, ls=dashes, label=name)
    for name, dashes in zip(RULES, ("--", ":"), strict=True):
        bottom.plot(time, rolling(result, name)[seen], color=GREY, ls=dashes, label=name)
    bottom.set(ylabel="mean absolute error", title="Error of the last twelve hours", ylim=(0, None))
    bottom.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    _days(top)
    _days(bottom)
    return figure


def draw_forecasts(result: Result) -> "Figure":
    """The forecasts of each method from 4 to 8 March 2020, beside the target."""
    from filtax.report.panels import COLOURS, INK, panels

    figure, axes = panels(2, 2, size=(9.0, 5.2), sharex=True, sharey=True)
    seen, time = _seen(result, "2020-03-04", "2020-03-09")
    for axis, name, colour in zip(axes.ravel(), METHODS, COLOURS, strict=False):
        axis.plot(time, result.arrays["y"][seen], color=INK, lw=0.8, label="target")
        axis.plot(time, result.arrays[name][0, seen], color=colour, label="forecast")
        axis.set_title(name)
        axis.legend(frameon=False, loc="upper right", ncols=2)
        _days(axis)
    return figure


def draw_runs(result: Result) -> "Figure":
    """The forecasts of RL[1]-PR and its run length, from 1 to 12 March 2020: with our number, and as published."""
    from filtax.report.panels import COLOURS, GREY, INK, panels

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
    figure.legend(handles=handles, frameon=False, loc="outside lower center", ncols=4)
    return figure


def _resets(time: np.ndarray, runlength: np.ndarray) -> str:
    """How often it was reset in a day, before and after the change."""
    before = time < np.datetime64(CHANGE)
    rates = [24 * float(np.mean(runlength[part] == 0)) for part in (before, ~before)]
    return f"{rates[0]:.1f} resets a day before the change, {rates[1]:.1f} after"


def draw_boxes(result: Result) -> "Figure":
    """The 5-day mean absolute errors over the whole stream, of methods and of rules of thumb."""
    from filtax.report.panels import COLOURS, GREY, INK, panels

    names = (*METHODS, "RL[1]-OUPR+ACI", *RULES)
    colours = (*COLOURS[:5], GREY, GREY)
    figure, axis = panels(size=(8.0, 3.8))
    errors = [five_day(np.abs(result.arrays[name] - result.arrays["y"])) for name in names]
    boxes = axis.boxplot(errors, widths=0.5, patch_artist=True, medianprops={"color": INK}, flierprops={"ms": 3})
    for box, colour in zip(boxes["boxes"], colours, strict=True):
        box.set(facecolor=colour, alpha=0.6)
    axis.set_xticks(range(1, len(names) + 1), [name.replace(" ", "\n").replace("+", "\n+") for name in names])
    axis.set(ylabel="mean absolute error", title="Buckets of five days", ylim=(0, None))
    return figure
