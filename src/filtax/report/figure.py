"""The figure of a run over an hourly stream: close views of what went wrong, and the error of each method over time.

Top: days around a silence, a gross error and a change of level, each with the readings, the truth, and one method's
forecast with its 90 % band; another method is drawn for contrast. Bottom: the rolling error of all, baselines in grey.
The colours are told apart by people who do not see red or green (the set of Okabe and Ito), lines also by their dashes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from filtax.synthetic import Stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Track", "draw_stream"]

INK, GREY, FAINT = "#222222", "#8a8a8a", "#dddddd"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1, 1.5, 1)), (0, (8, 2)), (0, (3, 1)))
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
}
HOURS_BEFORE, HOURS_AFTER = 36, 60


@dataclass(frozen=True, eq=False)
class Track:
    """One method's way through the stream.

    Attributes:
        name: As in the table.
        mean: Forecasts, shape (T,).
        error: Rolling error, shape (T,); NaN where there is none yet.
        band: Lower and upper end of the 90 % interval, each of shape (T,); None if it is not to be drawn.
        baseline: Drawn in grey.

    Example:
        >>> import numpy as np
        >>> from filtax.report import Track
        >>> Track("last-value", np.zeros(3), np.ones(3), baseline=True).band is None
        True
    """

    name: str
    mean: np.ndarray
    error: np.ndarray
    band: tuple[np.ndarray, np.ndarray] | None = None
    baseline: bool = False


def draw_stream(stream: Stream, tracks: Sequence[Track], path: str | Path, unit: str = "GW", dpi: int = 110) -> Path:
    """Draw the figure and write it as a picture; the folder is made if there is none.

    Args:
        stream: What `filtax.synthetic.hourly_load` returns.
        tracks: Methods and baselines; of those with a band, the first and the last are shown in the close views.
        path: Where to write; the ending chooses the format.
        unit: Unit of y, for the axes.
        dpi: Dots per inch; the figure is 10 by 6.4 inches.

    Returns:
        The path.

    Example:
        >>> import tempfile, numpy as np
        >>> from pathlib import Path
        >>> from filtax.report import Track, draw_stream
        >>> from filtax.synthetic import hourly_load
        >>> stream = hourly_load(400, key=0)
        >>> track = Track("truth", stream.truth, np.zeros(400), (stream.truth - 0.1, stream.truth + 0.1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     draw_stream(stream, [track], Path(folder) / "a.png").stat().st_size > 10_000
        True
    """
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        figure = _compose(stream, tracks, unit)
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=dpi)
    return path


def _compose(stream: Stream, tracks: Sequence[Track], unit: str) -> "Figure":
    from matplotlib.figure import Figure  # not pyplot: no window, no global state, nothing to close

    figure = Figure(figsize=(10, 6.4), layout="constrained")
    figure.set_layout_engine("constrained", w_pad=0.1)  # so that the dates of neighbours keep apart
    views = _views(stream)
    grid = figure.add_gridspec(2, max(len(views), 1), height_ratios=(1.15, 1.0))
    looks = _looks(tracks)
    banded = [track for track in tracks if track.band is not None]
    axes = None
    for column, (title, centre) in enumerate(views.items()):
        axes = figure.add_subplot(grid[0, column], sharey=axes)
        _draw_view(axes, stream, banded, looks, centre)
        axes.set_title(title, loc="left", color=INK, pad=9)
        axes.tick_params(labelleft=column == 0)
        axes.set_ylabel(f"load ({unit})" if column == 0 else "")
    if axes is not None:
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=5, frameon=False)
    _draw_errors(figure.add_subplot(grid[1, :]), stream, tracks, looks, unit)
    return figure


def _looks(tracks: Sequence[Track]) -> dict[str, dict[str, Any]]:
    """Colour and dashes of each track: methods in turn, baselines grey."""
    looks = {}
    for family, colours, width in ((False, COLOURS, 1.6), (True, (GREY,), 1.2)):
        for i, track in enumerate(track for track in tracks if track.baseline == family):
            looks[track.name] = {"color": colours[i % len(colours)], "ls": DASHES[i % len(DASHES)], "lw": width}
    return looks


def _views(stream: Stream) -> dict[str, int]:
    """Where to look closely: the longest silence, a gross error away from all else, the first change of level."""
    views = {}
    if stream.missing.any():
        edges = np.flatnonzero(np.diff(np.concatenate([[0], stream.missing.astype(int), [0]])))
        views["The meter is silent"] = int(max(edges.reshape(-1, 2), key=lambda run: run[1] - run[0])[0])
    wrong = np.array([], int) if stream.outliers is None else np.flatnonzero(stream.outliers)
    if wrong.size:
        events = np.array([0, len(stream) - 1, *stream.changes, *views.values(), *wrong])
        away = [np.abs(events[events != t] - t).min() for t in wrong]
        views["The meter is wrong"] = int(wrong[np.argmax(away)])
    if stream.changes:
        views["The level shifts for good"] = stream.changes[0]
    return dict(sorted(views.items(), key=lambda view: view[1]))


def _draw_view(
    axes: "Axes", stream: Stream, banded: Sequence[Track], looks: dict[str, dict[str, Any]], centre: int
) -> None:
    rows = slice(max(0, centre - HOURS_BEFORE), min(len(stream), centre + HOURS_AFTER))
    time = stream.time[rows]
    axes.plot(time, stream.y[rows], ".", color=INK, ms=4, label="reading")
    axes.plot(time, stream.truth[rows], color=INK, lw=0.8, label="true load")
    for track in [*banded[:0:-1][:1], *banded[:1]]:
        axes.plot(time, track.mean[rows], label=track.name, **looks[track.name])
    if banded and banded[0].band is not None:
        low, high = banded[0].band
        colour = looks[banded[0].name]["color"]
        axes.fill_between(time, low[rows], high[rows], color=colour, alpha=0.2, lw=0, label="its 90 % interval")
    _frame_view(axes, stream, rows)


def _frame_view(axes: "Axes", stream: Stream, rows: slice) -> None:
    """Fit the axis to the truth of the whole stream, and write readings beyond it at its edge."""
    from matplotlib.dates import DateFormatter, DayLocator, date2num

    low, high = stream.truth.min(), stream.truth.max()
    margin = 0.15 * (high - low)
    low, high = low - margin, high + margin
    days = date2num(stream.time)
    for t in np.arange(len(stream))[rows]:
        if stream.y[t] > high or stream.y[t] < low:
            edge, marker, align = (high, "^", "top") if stream.y[t] > high else (low, "v", "bottom")
            axes.plot(days[t], edge, marker, color=INK, ms=6, clip_on=False)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
            axes.text(days[t] + 0.1, edge, f"{stream.y[t]:.2f}", va=align, fontsize=8, bbox=box, clip_on=True)
    axes.set(xlim=(days[rows][0], days[rows][-1]), ylim=(low, high), axisbelow=True)
    axes.xaxis.set_major_locator(DayLocator())
    axes.xaxis.set_major_formatter(DateFormatter("%d %b"))
    axes.grid(axis="y", color=FAINT, lw=0.6)


def _draw_errors(
    axes: "Axes", stream: Stream, tracks: Sequence[Track], looks: dict[str, dict[str, Any]], unit: str
) -> None:
    from matplotlib.dates import ConciseDateFormatter, date2num

    days = date2num(stream.time)
    for track in tracks:
        axes.plot(stream.time, track.error, label=track.name, **looks[track.name])
    axes.set(xlim=(days[0], days[-1]), axisbelow=True, ylabel=f"mean absolute error\nof the last week ({unit})")
    axes.set_ylim(bottom=0.0)
    for line, (title, centre) in enumerate(_views(stream).items()):
        axes.axvline(days[centre], color=INK, lw=0.8, ls=(0, (1, 2)))
        words = title.removeprefix("The ").removesuffix(" for good")
        height = 0.98 - 0.08 * line  # each on a line of its own: in a short stream they stand close together
        axes.text(days[centre], height, f"{words} ", ha="right", va="top", transform=axes.get_xaxis_transform())
    axes.xaxis.set_major_formatter(ConciseDateFormatter(axes.xaxis.get_major_locator()))
    axes.grid(axis="y", color=FAINT, lw=0.6)
    lengths = [len(track.name) + 8 for track in tracks]
    columns = len(tracks) if sum(lengths) < 130 else max(1, 120 // max(lengths))
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, frameon=False, borderaxespad=0.2)
