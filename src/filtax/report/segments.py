"""The figure of a segmentation: the series with its segments, and the run-length posterior under it.

Top: the readings, a line where a segment begins, and triangles where alarms were given. Middle: the probability of a
change at each reading, the whole series known. Bottom: the posterior of the run length as each reading came, on a
logarithmic scale of grey; a run climbs by one a reading and falls to nought at a change.

Thesis: experiment:segmentation, fig:segments-lr-results.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from filtax.report.figure import COLOURS, FAINT, INK, STYLE
from filtax.segmentation import Alarms, Segmentation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_segments", "run_length_image"]

FLOOR = 1e-6  # probability below which the heat map is white


def draw_segments(
    y: Any,
    segmentation: Segmentation,
    path: str | Path,
    *,
    alarms: Alarms | None = None,
    title: str = "",
    unit: str = "",
    dpi: int = 110,
) -> Path:
    """Draw a series, its segments and its run lengths, and write the picture; the folder is made if there is none.

    Args:
        y: Readings, (T,) or (T, O), as given to `segment`.
        segmentation: What `filtax.segmentation.segment` returned.
        path: Where to write; the ending chooses the format.
        alarms: What `filtax.segmentation.detect` returned, drawn as triangles from the named start to the alarm.
        title: Name of the series.
        unit: Unit of y, for the axis.
        dpi: Dots per inch; the figure is 9 by 6 inches.

    Returns:
        The path.

    Example:
        >>> import tempfile, numpy as np
        >>> from pathlib import Path
        >>> from filtax.report import draw_segments
        >>> from filtax.segmentation import segment
        >>> y = np.r_[np.zeros(30), np.ones(30)] + 0.01 * np.sin(np.arange(60) ** 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     draw_segments(y, segment(y), Path(folder) / "a.png").stat().st_size > 10_000
        True
    """
    import matplotlib as mpl

    y = np.asarray(y, np.float64)
    y = y.reshape(len(y), -1)
    if len(y) != len(segmentation.probability):
        raise ValueError(
            f"draw_segments: y has {len(y)} readings but the segmentation is of {len(segmentation.probability)}; give "
            "the series that was segmented."
        )
    with mpl.rc_context(STYLE):
        figure = _compose(y, segmentation, alarms, title, unit)
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=dpi)
    return path


def run_length_image(segmentation: Segmentation) -> np.ndarray:
    """Posterior of the run length as each block of readings came, (R, B): row r of column t is p(r | y up to t).

    >>> from filtax.segmentation import segment
    >>> image = run_length_image(segment(np.sin(np.arange(20.0) ** 2), period=None))
    >>> image.shape, bool(np.allclose(image.sum(axis=0), 1.0))
    ((20, 20), True)
    """
    seen = segmentation.seen
    starts, weight = np.asarray(seen.starts), np.exp(np.asarray(seen.log_weight))
    blocks = len(starts)
    image = np.zeros((blocks, blocks))
    for t in range(blocks):
        np.add.at(image[:, t], t - starts[t], weight[t])
    return image


def _compose(y: np.ndarray, segmentation: Segmentation, alarms: Alarms | None, title: str, unit: str) -> "Figure":
    from matplotlib.figure import Figure  # not pyplot: no window, no global state, nothing to close

    figure = Figure(figsize=(9, 6), layout="constrained")
    series, chance, runs = figure.subplots(3, 1, sharex=True, height_ratios=(1.4, 0.5, 1.2))
    _draw_series(series, y, segmentation.changes, alarms)
    series.set_ylabel(unit or "reading")
    series.set_title(title, loc="left", color=INK, pad=26)
    series.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=6, frameon=False, borderaxespad=0.2)
    chance.vlines(np.arange(len(y)), 0.0, segmentation.probability, color=COLOURS[1], lw=1.6)
    chance.set(ylim=(0.0, 1.05), ylabel="change\nprobability")
    _draw_runs(figure, runs, segmentation)
    runs.set(xlim=(0, len(y)), xlabel="reading", ylabel="run length")
    return figure


def _draw_series(axes: "Axes", y: np.ndarray, changes: Sequence[int], alarms: Alarms | None) -> None:
    spread = np.nanstd(y, axis=0)
    several = y.shape[1] > 1
    shown = (y - np.nanmean(y, axis=0)) / np.where(spread > 0.0, spread, 1.0) if several else y
    for column in range(y.shape[1]):
        label = ("readings, each in its unit" if several else "reading") if column == 0 else None
        colour = COLOURS[(column + 2) % len(COLOURS)] if several else INK
        axes.plot(shown[:, column], color=colour, lw=0.9, marker="." if len(y) < 150 else "", ms=3, label=label)
    for i, change in enumerate(changes):
        axes.axvline(change, color=COLOURS[1], lw=1.6, label="change found looking back" if i == 0 else None)
    axes.grid(axis="y", color=FAINT, lw=0.6)
    if alarms is None or not alarms.times:
        return
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.14 * (high - low), high)
    height = np.full(len(alarms.times), low - 0.07 * (high - low))
    axes.hlines(height, alarms.starts, alarms.times, color=COLOURS[0], lw=1.2)
    axes.plot(alarms.starts, height, "|", color=COLOURS[0], ms=8, mew=1.6, label="start it named")
    axes.plot(alarms.times, height, "^", color=COLOURS[0], ms=5, label="alarm, online")


def _draw_runs(figure: "Figure", axes: "Axes", segmentation: Segmentation) -> None:
    from matplotlib.colors import LogNorm

    image, block = run_length_image(segmentation), segmentation.block
    longest = max(int(np.flatnonzero((image > 1e-3).any(axis=1)).max()) + 2, 10)
    blocks = image.shape[1]
    drawn = axes.imshow(
        np.maximum(image[:longest], FLOOR),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        extent=(0.0, blocks * block, 0.0, longest * block),
        cmap="Greys",
        norm=LogNorm(FLOOR, 1.0),
    )
    figure.colorbar(drawn, ax=axes, pad=0.01, label="probability")
