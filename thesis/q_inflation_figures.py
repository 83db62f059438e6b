"""Figures of the inflated covariance, and of the ensemble that tends to the Kalman filter.

Thesis: fig:segements-lr, fig:segments-lr-results.
"""

from typing import TYPE_CHECKING

import numpy as np

from thesis.experiment import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HAZARD", "PRINTED", "draw_ensembles", "draw_errors", "draw_example"]

HAZARD, PRINTED, WINDOW = 0.01, 0.001, 20
SHOWN = (0.0, 1e-3, 0.03, 1.0, 10.0)  # of the grid, in the figure


def draw_example(result: Result) -> "Figure":
    """Each regime in its own panel: samples, and the parabola they come from."""
    from filtax.report.panels import COLOURS, GREY, panels

    a = result.arrays
    bounds = [0, *a["example_changes"].tolist(), len(a["example_y"])]
    count = len(bounds) - 1
    rows = -(-count // 4)
    figure, axes = panels(rows, -(-count // rows), size=(9.0, 2.5 * rows), sharex=True, sharey=True, squeeze=False)
    grid = np.linspace(-2.0, 2.0, 100)
    for i, axis in enumerate(axes.flat):
        if i >= count:
            axis.set_axis_off()
            continue
        part = slice(bounds[i], bounds[i + 1])
        axis.scatter(a["example_x"][part], a["example_y"][part], s=7, color=GREY)
        axis.plot(
            grid, (grid[:, None] ** np.arange(3)) @ a["example_theta"][bounds[i]], color=COLOURS[i % len(COLOURS)]
        )
        axis.set_title(f"S{i + 1}: steps {bounds[i] + 1} to {bounds[i + 1]}")
    figure.supxlabel("x", fontsize=9)
    figure.supylabel("y", fontsize=9)
    return figure


def draw_errors(result: Result) -> "Figure":
    """Rolling error on the stream shown, and the total error over all of them against q."""
    from filtax.report.panels import COLOURS, DASHES, GREY, panels

    a = result.arrays
    figure, (left, right) = panels(1, 2, size=(9.5, 3.4), width_ratios=(1.4, 1.0))
    kernel = np.ones(WINDOW) / WINDOW
    for i, q in enumerate(q for q in SHOWN if q in a["q"]):
        square = a["example_errors"][np.flatnonzero(a["q"] == q)[0]] ** 2
        rolling = np.sqrt(np.convolve(square, kernel, mode="valid"))
        left.plot(
            np.arange(rolling.size) + WINDOW, rolling, color=COLOURS[i], ls=DASHES[i % len(DASHES)], label=f"q = {q:g}"
        )
    for change in a["example_changes"]:
        left.axvline(change, color=GREY, lw=0.8, ls=":")
    left.set(xlabel="step", ylabel="RMSE", title=f"Over the last {WINDOW} steps, the stream shown")
    left.legend(frameon=False, ncols=2, fontsize=8)
    for name, label, colour in (("used", f"change with {HAZARD:g}", 0), ("printed", f"with {PRINTED:g} (printed)", 1)):
        rmse = a[f"rmse_{name}"][:, a[f"changed_{name}"]]
        if rmse.size:
            low, middle, high = np.quantile(rmse, (0.25, 0.5, 0.75), axis=1)
            right.plot(range(len(a["q"])), middle, marker="o", ms=3, color=COLOURS[colour], label=label)
            right.fill_between(range(len(a["q"])), low, high, color=COLOURS[colour], alpha=0.2, lw=0)
    right.axhline(result.numbers["last_value"], color=GREY, ls="--", lw=1, label="last value")
    right.set(xlabel="q", title="Total, streams that change: median, quartiles")
    right.set_xticks(range(len(a["q"])), [f"{q:g}" for q in a["q"]], rotation=60, fontsize=8)
    right.legend(frameon=False, fontsize=8)
    return figure


def draw_ensembles(result: Result) -> "Figure":
    """Distance of the ensemble's mean from the exact one against its size."""
    from filtax.report.panels import COLOURS, GREY, panels

    sizes, gaps = result.arrays["sizes"], result.arrays["enkf"]
    figure, axis = panels(size=(5.0, 3.2))
    axis.loglog(np.repeat(sizes, gaps.shape[1]), gaps.reshape(-1), ls="", marker="o", ms=3, color=GREY, label="a run")
    axis.loglog(sizes, gaps.mean(axis=1), color=COLOURS[0], label=f"mean, slope {result.numbers['slope']:.3f}")
    axis.set(xlabel="members", ylabel="distance from the KF's mean", title="The EnKF tends to the KF")
    axis.legend(frameon=False)
    return figure
