"""Figures of the regression in one dimension: runs of each filter along the curve, and errors over the trials."""

from typing import TYPE_CHECKING

import numpy as np

from thesis.experiment import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["METHODS", "draw_sorted", "draw_true", "draw_unsorted"]

METHODS = ("EKF", "EKF-B", "EKF-IW", "OGD", "WoLF-IMQ", "WoLF-TMD")


def draw_sorted(result: Result) -> "Figure":
    """fig:online-mlp-example-run-sorted."""
    return _draw_network(result, "sorted")


def draw_unsorted(result: Result) -> "Figure":
    """fig:online-mlp-example-run-unsorted; no trial is left out."""
    return _draw_network(result, "unsorted")


def draw_true(result: Result) -> "Figure":
    """fig:sorted-unsorted-clean-measurement: unsorted above, sorted below."""
    from filtax.report.panels import panels

    figure, axes = panels(2, len(METHODS), size=(14.0, 5.0), sharex=True, sharey=True)
    for row, run in zip(axes, ("unsorted", "sorted"), strict=True):
        for axis, name in zip(row, METHODS, strict=True):
            _draw_run(axis, result, "true", run, name)
        row[0].set_ylabel(f"{run}: y")
    for axis in axes[1]:
        axis.set_xlabel("x")
    return figure


def _draw_network(result: Result, run: str) -> "Figure":
    from filtax.report.panels import COLOURS, panels

    figure, axes = panels(2, 4, size=(13.0, 5.4), width_ratios=(1.0, 1.0, 1.0, 1.4))
    for axis, name in zip(axes[:, :3].ravel(), METHODS, strict=True):
        _draw_run(axis, result, "MLP", run, name)
    for axis in axes[1, :3]:
        axis.set_xlabel("x")
    for axis in axes[:, 0]:
        axis.set_ylabel("y")
    for axis in axes[:, 3]:
        axis.remove()
    right = figure.add_subplot(axes[0, 0].get_gridspec()[:, 3])
    values = [np.minimum(result.numbers["rmedse"]["MLP"][run][name], 1e6) for name in METHODS]
    boxes = right.boxplot(values, patch_artist=True, widths=0.6, orientation="horizontal")
    for box, middle, colour in zip(boxes["boxes"], boxes["medians"], COLOURS, strict=True):
        box.set(facecolor=colour, alpha=0.5)
        middle.set(color="black")
    right.set_yticks(range(1, len(METHODS) + 1), METHODS)
    right.set(xlabel="RMedSE", title="All trials", xscale="log")
    right.xaxis.set_major_formatter("{x:g}")
    right.xaxis.set_minor_formatter("{x:g}")
    right.tick_params(axis="x", which="both", labelsize=8, rotation=45)
    right.invert_yaxis()
    return figure


def _draw_run(axis: "Axes", result: Result, model: str, run: str, name: str) -> None:
    """Forecasts of one trial along x, over the data and the true curve."""
    from filtax.report.panels import COLOURS, FAINT, INK

    a = result.arrays
    x = a[f"{run} x"]
    order = np.argsort(x)
    axis.scatter(x, a[f"{run} y"], s=3, color=FAINT, lw=0)
    axis.plot(x[order], a[f"{run} truth"][order], color=INK, lw=1.2)
    axis.scatter(x, a[f"{model} {run} {name}"], s=4, color=COLOURS[METHODS.index(name)], lw=0)
    axis.set(title=name, ylim=(-45, 45))
