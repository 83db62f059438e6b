"""Axes for figures: one look for all, without a global setting changed.

>>> figure, axes = panels(1, 2)
>>> len(axes)
2
"""

from typing import TYPE_CHECKING, Any

from filtax.report.figure import COLOURS, DASHES, FAINT, GREY, INK, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "DASHES", "FAINT", "GREY", "INK", "look", "panels"]


def panels(
    rows: int = 1, columns: int = 1, size: tuple[float, float] = (9.0, 3.2), **shared: Any
) -> "tuple[Figure, Any]":
    """A figure and its axes: one, or an array of them, as in `matplotlib.pyplot.subplots`.

    Args:
        rows: Rows of axes.
        columns: Columns of axes.
        size: Inches.
        **shared: `sharex`, `sharey`, `width_ratios` and the like.

    Returns:
        The figure, and an axis or an array of axes. Titles stand to the left, ticks are small, the layout fits.

    >>> figure, axis = panels()
    >>> axis.plot([0, 1], [0, 1])[0].get_color() == COLOURS[0]
    True
    """
    from matplotlib.figure import Figure

    with look():
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, **shared)
    return figure, axes


def look() -> Any:
    """A context in which figures have our look; what is drawn outside of it has the user's.

    >>> with look():
    ...     figure, axis = panels()
    ...     axis.set_title("here").get_fontsize()
    10.0
    """
    import matplotlib as mpl
    from cycler import cycler

    own: dict[Any, Any] = {"axes.prop_cycle": cycler(color=COLOURS), "axes.titlelocation": "left", "axes.titlesize": 10}
    return mpl.rc_context({**STYLE, **own})
