"""What the figures share: colours, axes with one look, and names beside points where there is room for them.

The colours are told apart by people who do not see red or green (the set of Okabe and Ito), lines also by their dashes.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.figure import Figure

INK, GREY, FAINT = "#222222", "#8a8a8a", "#dddddd"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1, 1.5, 1)), (0, (8, 2)), (0, (3, 1)))
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "legend.frameon": False,
}


def panels(
    rows: int = 1, columns: int = 1, size: tuple[float, float] = (9.0, 3.2), **shared: Any
) -> tuple[Figure, Any]:
    """A figure, and an axis or an array of axes, as in `matplotlib.pyplot.subplots`; `size` in inches.

    >>> figure, axis = panels()
    >>> axis.plot([0, 1], [0, 1])[0].get_color() == COLOURS[0]
    True
    """
    with look():
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, **shared)
    return figure, axes


def boxes(axis: Any, values: Sequence[Any], names: Sequence[str], colours: Sequence[str] = COLOURS) -> None:
    """A box of each sequence of values, beside each other, in colours."""
    drawn = axis.boxplot(values, widths=0.5, patch_artist=True, medianprops={"color": INK})
    for patch, colour in zip(drawn["boxes"], colours, strict=False):
        patch.set(facecolor=colour, alpha=0.6)
    axis.set_xticks(range(1, len(names) + 1), names)


def look() -> Any:
    """A context in which figures have our look; what is drawn outside of it has the user's.

    >>> with look():
    ...     figure, axis = panels()
    ...     axis.set_title("here").get_fontsize()
    10.0
    """
    return mpl.rc_context(STYLE)


MARK = 5.0  # half a point's width, in points of type
STEPS = (0.0, 9.0, 18.0, 28.0, 40.0)  # how far a name may stand from its point
SIDES = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 0.7), (1, -0.7), (-1, 0.7), (-1, -0.7)])
Named = tuple[str, float, float, str]


def name_points(figure: Figure, axis: Any, named: Sequence[Named], size: float = 7.0) -> list[Any]:
    """Write names (word, x, y, colour) so that none covers another, a point or a straight line across the axis.

    A thin line leads to a name that stands off. Where there is no room at all, a name stands where it covers least. The
    figure is laid out here: set scales, limits and legends before.

    >>> figure, axis = panels()
    >>> points = axis.scatter([1.0, 1.0], [1.0, 1.0])
    >>> a, b = name_points(figure, axis, [("a", 1.0, 1.0, "k"), ("b", 1.0, 1.0, "k")])
    >>> a.xyann == b.xyann
    False
    """
    figure.draw_without_rendering()  # the layout moves axes
    scale = figure.dpi / 72.0
    at = axis.transData.transform([(x, y) for _, x, y, _ in named]) / scale
    frame = _box_of(axis.get_window_extent(), scale)
    taken = [_box(centre, MARK) for centre in at]
    taken += [_box_of(line.get_window_extent(), scale) + 1.5 * np.array([-1, -1, 1, 1]) for line in axis.lines]
    crowd = [int(np.sum(np.abs(at - centre).max(axis=1) < 40.0)) for centre in at]
    names: dict[int, Any] = {}
    for i in np.argsort(crowd, kind="stable").tolist():  # the lonely first: their names hardly move
        word, x, y, colour = named[i]
        text = axis.annotate(word, (x, y), fontsize=size, color=colour, ha="center", va="center")
        half = np.ptp(_box_of(text.get_window_extent(), scale).reshape(2, 2), axis=0) * (0.5, 0.4)
        text.remove()
        shifts = [side * (MARK + half + 1.0 + step) for step, side in product(STEPS, SIDES)]
        spots = [_box(at[i] + shift, half) for shift in shifts]
        costs = [sum(_overlap(box, other) for other in taken) + _outside(box, frame) for box in spots]
        best = int(np.argmin(costs))
        line = {"arrowstyle": "-", "color": colour, "lw": 0.4, "shrinkA": 0, "shrinkB": 2}
        place: Any = {"xytext": tuple(shifts[best]), "textcoords": "offset points", "ha": "center", "va": "center"}
        place["arrowprops"] = line if best >= len(SIDES) else None
        names[i] = axis.annotate(word, (x, y), fontsize=size, color=colour, **place)
        taken.append(spots[best])
    return [names[i] for i in range(len(named))]


def _box(centre: Any, half: Any) -> np.ndarray:
    return np.concatenate([np.asarray(centre) - half, np.asarray(centre) + half])


def _box_of(extent: Any, scale: float) -> np.ndarray:
    return np.array([extent.x0, extent.y0, extent.x1, extent.y1]) / scale


def _overlap(a: np.ndarray, b: np.ndarray) -> float:
    """Area that two boxes share."""
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    return float(np.prod(np.maximum(sides, 0.0)))


def _outside(box: np.ndarray, frame: np.ndarray) -> float:
    """Area of a box that is outside of a frame."""
    return float(np.prod(box[2:] - box[:2])) - _overlap(box, frame)
