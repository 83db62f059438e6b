"""Figures of the regression with heavy tails: fig:segements-tdlist-lr, fig:outliers-lr-res, fig:bocd-lr-stress."""

from typing import TYPE_CHECKING

import numpy as np

from thesis.experiment import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PLAIN", "STATIC", "WINDOW", "WOLF", "draw_errors", "draw_posteriors", "draw_sample"]

STATIC, PLAIN, WOLF = "LG+C-Static", "LG+RL[inf]-PR", "WoLF+RL[inf]-PR"
WINDOW = 10


def draw_sample(result: Result) -> "Figure":
    """The data of each segment, with its true curve."""
    from filtax.report.panels import COLOURS, INK, panels

    a = result.arrays
    edges = [0, *a["changes"], len(a["x"])]
    count = len(edges) - 1
    columns = min(count, 3)
    figure, axes = panels(-(-count // columns), columns, size=(9.0, 2.6 * -(-count // columns)))
    grid = np.linspace(-2.0, 2.0, 100)
    axes = np.atleast_1d(axes).ravel()
    for i, axis in enumerate(axes):
        if i >= count:
            axis.set_axis_off()
            continue
        low, high = edges[i], edges[i + 1]
        theta = a["theta"][low]
        curve = theta[0] + theta[1] * grid + theta[2] * grid**2
        axis.scatter(a["x"][low:high], a["y"][low:high], s=10, color=COLOURS[0], alpha=0.7, lw=0)
        axis.plot(grid, curve, color=INK)
        axis.set(title=f"steps {low} to {high - 1}", xlabel="x" if i >= count - columns else None, xlim=(-2.1, 2.1))
    axes[0].set_ylabel("y")
    return figure


def draw_errors(result: Result) -> "Figure":
    """Rolling error of one stream, and the errors of all."""
    from filtax.report.panels import COLOURS, DASHES, GREY, panels

    figure, (left, right) = panels(1, 2, size=(10.0, 3.4), width_ratios=(1.5, 1.0))
    names = (STATIC, PLAIN, WOLF)
    for name, colour, dash in zip(names, COLOURS, DASHES, strict=False):
        left.plot(result.arrays[f"rolling {name}"], color=colour, ls=dash, lw=1.4, label=name)
    for change in result.arrays["changes"]:
        left.axvline(change, color=GREY, ls=":")
    left.set(xlabel="step", ylabel=f"RMSE of the last {WINDOW}", title="One stream; dotted: true changes")
    left.legend(frameon=False, fontsize=8)
    boxes = right.boxplot([result.numbers["rmse"][n] for n in names], patch_artist=True, widths=0.6)
    for box, middle, colour in zip(boxes["boxes"], boxes["medians"], COLOURS, strict=False):
        box.set(facecolor=colour, alpha=0.5)
        middle.set(color="black")
    right.set_xticks(range(1, 4), [n.replace("+", "+\n", 1) for n in names], fontsize=8)
    right.set(ylabel="RMSE", title="All streams", ylim=(0, None))
    return figure


def draw_posteriors(result: Result) -> "Figure":
    """Log posterior of the run length, and the path of its mode."""
    from filtax.report.panels import COLOURS, GREY, panels

    figure, axes = panels(1, 2, size=(10.0, 3.6), sharey=True)
    for axis, name in zip(axes, (PLAIN, WOLF), strict=True):
        image = result.arrays[f"posterior {name}"]
        axis.imshow(image, origin="lower", aspect="auto", cmap="Greys", vmin=-12, vmax=0, interpolation="none")
        axis.plot(image.argmax(axis=0), color=COLOURS[1], lw=1.0, label="mode")
        for change in result.arrays["changes"]:
            axis.axvline(change, color=GREY, ls=":", lw=1.0)
        axis.set(title=name, xlabel="step t")
    longest = max(int(result.arrays[f"posterior {name}"].argmax(axis=0).max()) for name in (PLAIN, WOLF))
    axes[0].set(ylabel="run length", ylim=(0, 1.15 * longest + 5))
    axes[0].legend(frameon=False, loc="upper left")
    figure.colorbar(axes[0].images[0], ax=axes, label="log p(r | y)", pad=0.01)
    return figure
