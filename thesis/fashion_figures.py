"""Figures of the Fashion-MNIST experiment: accuracy by dimension for each method, and all of them by their time.

Thesis: fig:fashion-mnist-subspace-rank, fig:fashion-mnist-pulse-rank, fig:fashion-mnist-lofi-rank,
fig:showdown-mnist-lofi-rank.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from thesis.experiment import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]


def _by_dimension(*kinds: str) -> Callable[[Result], "Figure"]:
    def draw(result: Result) -> "Figure":
        import matplotlib as mpl

        from filtax.report.panels import GREY, panels

        figure, (left, right) = panels(1, 2, size=(9.5, 3.4))
        rows = [row for row in result.numbers["rows"] if row[0] in kinds]
        shades = mpl.colormaps["viridis"]
        of_first = [row for row in rows if row[0] == kinds[0]]
        for i, (kind, d, *_) in enumerate(of_first):
            curve = result.arrays[f"{kind}/{d}"]
            left.plot(curve, color=shades(0.9 * i / max(1, len(of_first) - 1)), lw=0.9, label=f"{d}")
        left.set(xlabel="data seen", ylabel="accuracy, EWMA of 100", title=kinds[0], ylim=(0, 1))
        left.legend(title="dimension", frameon=False, ncols=2, loc="lower right")
        for kind, marker in zip(kinds, "os", strict=False):
            points = [(d, error) for name, d, error, _ in rows if name == kind]
            right.plot(*zip(*points, strict=True), marker=marker, label=kind)
        right.axhline(result.numbers["majority"], color=GREY, ls="--", label="majority class")
        right.set(xlabel="dimension", ylabel="misclassification", title="Last part of the stream", ylim=(0, 1))
        right.legend(frameon=False)
        return figure

    return draw


def _showdown(result: Result) -> "Figure":
    from filtax.report.panels import COLOURS, INK, panels

    figure, axis = panels(size=(8.0, 4.2))
    kinds = list(dict.fromkeys(row[0] for row in result.numbers["rows"]))
    for kind, colour, marker in zip(kinds, COLOURS, "os^Dv", strict=False):
        points = [(seconds, error, d) for name, d, error, seconds in result.numbers["rows"] if name == kind]
        axis.plot([p[0] for p in points], [p[1] for p in points], color=colour, marker=marker, ls="", label=kind)
        for seconds, error, d in points:
            axis.annotate(str(d), (seconds, error), textcoords="offset points", xytext=(4, 3), fontsize=7, color=colour)
        best = min(points, key=lambda point: point[1])
        axis.axhline(best[1], color=colour, ls="--", lw=0.9, alpha=0.8)
        axis.axhline(np.median([p[1] for p in points]), color=colour, ls=":", lw=0.9, alpha=0.8)
    axis.plot([], [], color=INK, ls="--", lw=0.9, label="best dimension of each")
    axis.plot([], [], color=INK, ls=":", lw=0.9, label="median over dimensions")
    shown = [row[2] for row in result.numbers["rows"] if row[0] != "subspace, untrained"]
    room = 0.3 * (max(shown) - min(shown)) + 0.002
    title = f"Error and time, by dimension (majority class: {result.numbers['majority']:.2f})"
    axis.set(xlabel="seconds for the stream", ylabel="misclassification", title=title)
    axis.set(ylim=(min(shown) - room, max(shown) + room))  # an untrained subspace of few dimensions is off the scale
    axis.legend(frameon=False)
    return figure


FIGURES = {
    "fig:fashion-mnist-subspace-rank": _by_dimension("subspace", "subspace, untrained"),
    "fig:fashion-mnist-pulse-rank": _by_dimension("PULSE"),
    "fig:fashion-mnist-lofi-rank": _by_dimension("LoFi", "LoFi, warmed up"),
    "fig:showdown-mnist-lofi-rank": _showdown,
}
