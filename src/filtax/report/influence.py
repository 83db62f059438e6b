"""The figure of the posterior influence: how far one wrong datum moves each method, against how wrong it is.

On a logarithmic scale a quadratic influence climbs without end, and a bounded one turns flat or falls.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from filtax.report.figure import COLOURS, DASHES, FAINT, INK, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_influence"]

COLUMNS = 4  # of the legend


def draw_influence(
    contamination: Any,
    influence: Mapping[str, Any],
    path: str | Path,
    unit: str = "standard deviations",
    dpi: int = 110,
) -> Path:
    """Draw the influence of a corrupted datum and write the picture; the folder is made if there is none.

    Args:
        contamination: How far each corrupted datum lies from the clean one, (G,), sorted.
        influence: For each method, by name, what `filtax.posterior_influence` says, (G,).
        path: Where to write; the ending chooses the format.
        unit: Unit of the contamination, for the axis.
        dpi: Dots per inch; the figure is 7 by 4 inches.

    Returns:
        The path.

    Example:
        >>> import tempfile, numpy as np
        >>> from pathlib import Path
        >>> from filtax.report import draw_influence
        >>> grid = np.linspace(-10.0, 10.0, 101)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     draw_influence(grid, {"LG": grid**2}, Path(folder) / "a.png").stat().st_size > 5_000
        True
    """
    import matplotlib as mpl

    grid = np.asarray(contamination, "float64")
    for name, values in influence.items():
        if np.shape(values) != grid.shape:
            raise ValueError(
                f"draw_influence: {name} has shape {np.shape(values)} but the contamination has shape {grid.shape}; "
                "they must agree."
            )
    with mpl.rc_context(STYLE):
        figure = _compose(grid, influence, unit)
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=dpi)
    return path


def _compose(grid: np.ndarray, influence: Mapping[str, Any], unit: str) -> "Figure":
    from matplotlib.figure import Figure  # not pyplot: no window, no global state, nothing to close

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes, rows = figure.add_subplot(), -(-len(influence) // COLUMNS)
    for i, (name, values) in enumerate(influence.items()):
        dash = (i + i // len(COLOURS)) % len(DASHES)  # once the colours are used up, each meets another dash
        look = {"color": COLOURS[i % len(COLOURS)], "ls": DASHES[dash], "lw": 1.8}
        axes.plot(grid, np.asarray(values, "float64"), label=name, **look)
    axes.set_yscale("log")
    axes.set(xlim=(grid[0], grid[-1]), axisbelow=True)
    axes.set_xlabel(f"error of the datum ({unit})")
    axes.set_ylabel("influence on the posterior (nats)")
    axes.set_title("How far one wrong datum moves the belief", loc="left", color=INK, pad=10 + 16 * rows)
    axes.grid(axis="y", color=FAINT, lw=0.6)
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=COLUMNS, frameon=False, borderaxespad=0.2)
    _mind_the_zero(axes, influence)
    return figure


def _mind_the_zero(axes: Any, influence: Mapping[str, Any]) -> None:
    """The clean datum has no influence at all, which a logarithm cannot show: end the axis where it says little."""
    finite = [np.asarray(values, "float64") for values in influence.values()]
    top = max((values[np.isfinite(values)].max(initial=0.0) for values in finite), default=0.0)
    if top > 0.0:
        axes.set_ylim(1e-3 if top > 1e-2 else 1e-4 * top, 3.0 * top)
