"""The figure of the corrupted tables: fig:uci-per-step-time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from thesis.experiment import Result
from thesis.uci_settings import METHODS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_quadrants", "mean_error", "relative"]


def mean_error(numbers: Mapping[str, Any], law: str, name: str, method: str) -> float:
    """Mean RMedSE over the trials."""
    return float(np.mean(numbers["rmedse"][law][name][method]))


def relative(result: Result, name: str, method: str) -> tuple[float, float]:
    """Error and time of a method relative to OGD, minus 1."""
    n = result.numbers
    times = n["times"][name]
    slower = float(np.median(np.divide(times[method], times["OGD"])))
    return mean_error(n, "text", name, method) / mean_error(n, "text", name, "OGD") - 1, slower - 1


def draw_quadrants(result: Result) -> "Figure":
    """Error against time, both relative to OGD; the name of a set has the colour of the method."""
    from matplotlib.colors import to_hex, to_rgb

    from filtax.report.names import name_points
    from filtax.report.panels import COLOURS, INK, panels

    figure, axis = panels(1, 1, size=(9.5, 6.0))
    named: list[tuple[str, float, float, str]] = []
    for method, colour, mark in zip((m for m in METHODS if m != "OGD"), COLOURS, "osD^v", strict=False):
        points = [relative(result, name, method) for name in result.numbers["times"]]
        y, x = np.array(points).T + 1
        axis.scatter(x, y, s=45, color=colour, marker=mark, label=method, zorder=3, edgecolor=INK, lw=0.5)
        r, g, b = (0.7 * part for part in to_rgb(colour))
        dark = to_hex((r, g, b))  # for type that small
        named += [(name, *at, dark) for name, *at in zip(result.numbers["times"], x.tolist(), y.tolist(), strict=True)]
    axis.axhline(1.0, color=INK, lw=0.8)
    axis.axvline(1.0, color=INK, lw=0.8)
    axis.set(xscale="log", yscale="log", xlabel="time a step over OGD's", ylabel="RMedSE over OGD's")
    axis.set(title="Corrupted UCI sets; OGD is where the lines cross")
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter("{x:g}")
        side.set_minor_formatter(_sparse)
    axis.tick_params(which="both", labelsize=8)
    axis.margins(0.06)
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    name_points(figure, axis, named)
    return figure


def _sparse(value: float, _: int) -> str:
    """Words for 2, 3 and 5 of each magnitude: nine of them touch."""
    return f"{value:g}" if f"{value:e}"[0] in "235" else ""
