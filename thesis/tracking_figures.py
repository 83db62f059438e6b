"""Figures of the tracking runs: fig:linear-ssm-sample-runs, fig:2d-ssm-sample."""

from typing import TYPE_CHECKING

import numpy as np

from thesis.experiment import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COMPONENTS", "KINDS", "METHODS", "RBPF", "draw_errors", "draw_sample"]

KINDS, COMPONENTS = ("student", "mixture"), 4
METHODS = ("KF", "KF-B", "KF-IW", "WoLF-IMQ", "WoLF-TMD")
RBPF = "RBPF"


def draw_sample(result: Result) -> "Figure":
    """One trial of each kind: the path with its observations, then the error of every component."""
    from filtax.report.panels import COLOURS, GREY, INK, panels

    figure, axes = panels(2, COMPONENTS + 1, size=(14.0, 5.4))
    for row, kind in zip(axes, KINDS, strict=True):
        truth, y = result.arrays[f"{kind} truth"], result.arrays[f"{kind} y"]
        row[0].scatter(y[:, 0], y[:, 1], s=4, color=GREY, alpha=0.5, lw=0, label="observed")
        row[0].plot(truth[:, 0], truth[:, 1], color=INK, lw=1.5, label="truth")
        centre, reach = truth[:, :2].mean(axis=0), np.ptp(truth[:, :2], axis=0).max() + 10.0
        row[0].set(xlim=centre[0] + np.array([-0.8, 0.8]) * reach, ylim=centre[1] + np.array([-0.8, 0.8]) * reach)
        row[0].set(title=f"{kind.capitalize()}: the path")
        for i, axis in enumerate(row[1:]):
            errors = {name: result.arrays[f"{kind} {name}"][:, i] - truth[:, i] for name in METHODS}
            for name, colour in zip(METHODS, COLOURS, strict=False):
                axis.plot(errors[name], color=colour, lw=0.8, label=name)
            reach = 6.0 * np.std(errors["WoLF-IMQ"])  # what leaves the frame is lost
            axis.set(ylim=(-reach, reach), title=("position 0", "position 1", "velocity 0", "velocity 1")[i])
        row[1].set_ylabel("filtered minus true")
    for axis in axes[-1, 1:]:
        axis.set_xlabel("step")
    axes[0, 0].legend(frameon=False, fontsize=8, loc="best")
    handles, labels = axes[0, 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(METHODS), frameon=False)
    return figure


def draw_errors(result: Result) -> "Figure":
    """Sums of squares of the first component over the trials."""
    from filtax.report.panels import COLOURS, panels

    figure, axes = panels(1, 2, size=(10.0, 3.6))
    for axis, kind in zip(axes, KINDS, strict=True):
        values = [np.array(result.numbers["squares"][kind][name])[:, 0] for name in (*METHODS, RBPF)]
        boxes = axis.boxplot(values, patch_artist=True, widths=0.6, flierprops={"markersize": 3})
        for box, middle, colour in zip(boxes["boxes"], boxes["medians"], COLOURS, strict=False):
            box.set(facecolor=colour, alpha=0.5)
            middle.set(color="black")
        axis.set_xticks(range(1, len(METHODS) + 2), (*METHODS, RBPF))
        axis.set(yscale="log", title=f"{kind.capitalize()} observations")
    axes[0].set_ylabel("sum of squares of component 0")
    return figure
