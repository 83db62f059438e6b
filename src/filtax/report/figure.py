"""The figures: a run over an hourly stream with its faults, and a series with its segments and run lengths.

The colours are told apart by people who do not see red or green (the set of Okabe and Ito), lines also by their dashes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from filtax.segmentation import Alarms, Segmentation
from filtax.synthetic import Stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_segments", "draw_stream", "run_length_image"]

INK, GREY, FAINT = "#222222", "#8a8a8a", "#dddddd"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1, 1.5, 1)))  # of baselines
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
}
HOURS_BEFORE, HOURS_AFTER = 36, 60  # around a fault, in a close view
FLOOR = 1e-6  # probability below which the heat map is white


def draw_stream(stream: Stream, forecast: np.ndarray, errors: Mapping[str, np.ndarray], path: str | Path) -> Path:
    """Draw the figure of a run over an hourly stream, and write it as a picture.

    Top: days around a silence, a gross error and a change of level, each with the readings, the truth, and the
    forecasts. Bottom: the rolling error of the run, and in grey those of baselines.

    Args:
        stream: What `filtax.synthetic.hourly_load` returns.
        forecast: Lower end of the 90 % interval, forecast, upper end, (3, T).
        errors: Rolling errors (T,) by name, those of the run first, then those of the baselines; NaN for none yet.
        path: Where to write; the ending chooses the format. The folder is made if there is none.

    Returns:
        The path.

    Example:
        >>> import tempfile, numpy as np
        >>> from pathlib import Path
        >>> from filtax.report import draw_stream
        >>> from filtax.synthetic import hourly_load
        >>> stream = hourly_load(400, key=0)
        >>> forecast = stream.truth + np.array([[-0.1], [0.0], [0.1]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     draw_stream(stream, forecast, {"truth": np.zeros(400)}, Path(folder) / "a.png").stat().st_size > 10_000
        True
    """
    return _save(partial(_compose_stream, stream, forecast, errors), path)


def _save(compose: Callable[[], "Figure"], path: str | Path) -> Path:
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        compose().savefig(path, dpi=110)
    return path


def _compose_stream(stream: Stream, forecast: np.ndarray, errors: Mapping[str, np.ndarray]) -> "Figure":
    from matplotlib.figure import Figure  # not pyplot: no window, no global state, nothing to close

    figure = Figure(figsize=(10, 6.4), layout="constrained")
    figure.set_layout_engine("constrained", w_pad=0.1)  # so that the dates of neighbours keep apart
    views, axes = _views(stream), None
    grid = figure.add_gridspec(2, max(len(views), 1), height_ratios=(1.15, 1.0))
    for column, (title, centre) in enumerate(views.items()):
        axes = figure.add_subplot(grid[0, column], sharey=axes)
        _draw_view(axes, stream, forecast, next(iter(errors)), centre)
        axes.set_title(title, loc="left", color=INK, pad=9)
        axes.tick_params(labelleft=column == 0)
        axes.set_ylabel("load (GW)" if column == 0 else "")
    if axes is not None:
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=5, frameon=False)
    _draw_errors(figure.add_subplot(grid[1, :]), stream, errors)
    return figure


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


def _draw_view(axes: "Axes", stream: Stream, forecast: np.ndarray, name: str, centre: int) -> None:
    rows = slice(max(0, centre - HOURS_BEFORE), min(len(stream), centre + HOURS_AFTER))
    time, (low, mean, high) = stream.time[rows], forecast[:, rows]
    axes.plot(time, stream.y[rows], ".", color=INK, ms=4, label="reading")
    axes.plot(time, stream.truth[rows], color=INK, lw=0.8, label="true load")
    axes.plot(time, mean, color=COLOURS[0], lw=1.6, label=name)
    axes.fill_between(time, low, high, color=COLOURS[0], alpha=0.2, lw=0, label="its 90 % interval")
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


def _draw_errors(axes: "Axes", stream: Stream, errors: Mapping[str, np.ndarray]) -> None:
    from matplotlib.dates import ConciseDateFormatter, date2num

    days = date2num(stream.time)
    for i, (name, error) in enumerate(errors.items()):
        look = (
            {"color": GREY, "ls": DASHES[(i - 1) % len(DASHES)], "lw": 1.2} if i else {"color": COLOURS[0], "lw": 1.6}
        )
        axes.plot(stream.time, error, label=name, **look)
    axes.set(xlim=(days[0], days[-1]), axisbelow=True, ylabel="mean absolute error\nof the last week (GW)")
    axes.set_ylim(bottom=0.0)
    for line, (title, centre) in enumerate(_views(stream).items()):
        axes.axvline(days[centre], color=INK, lw=0.8, ls=(0, (1, 2)))
        words = title.removeprefix("The ").removesuffix(" for good")
        height = 0.98 - 0.08 * line  # each on a line of its own: in a short stream they stand close together
        axes.text(days[centre], height, f"{words} ", ha="right", va="top", transform=axes.get_xaxis_transform())
    axes.xaxis.set_major_formatter(ConciseDateFormatter(axes.xaxis.get_major_locator()))
    axes.grid(axis="y", color=FAINT, lw=0.6)
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(errors), frameon=False, borderaxespad=0.2)


def draw_segments(
    y: Any,
    segmentation: Segmentation,
    path: str | Path,
    *,
    alarms: Alarms | None = None,
    title: str = "",
    unit: str = "",
) -> Path:
    """Draw a series, its segments and its run lengths, and write the picture.

    Top: the readings, a line where a segment begins, and triangles where alarms were given. Middle: the probability of
    a change at each reading, the whole series known. Bottom: the posterior of the run length as each reading came, on a
    logarithmic scale of grey; a run climbs by one a reading and falls to nought at a change.

    Thesis: experiment:segmentation, fig:segments-lr-results.

    Args:
        y: Readings, (T,) or (T, O), as given to `segment`.
        segmentation: What `filtax.segmentation.segment` returned.
        path: Where to write; the ending chooses the format. The folder is made if there is none.
        alarms: What `filtax.segmentation.detect` returned, drawn as triangles from the named start to the alarm.
        title: Name of the series.
        unit: Unit of y, for the axis.

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
    y = np.asarray(y, np.float64)
    y = y.reshape(len(y), -1)
    if len(y) != len(segmentation.probability):
        raise ValueError(
            f"draw_segments: y has {len(y)} readings but the segmentation is of {len(segmentation.probability)}; give "
            "the series that was segmented."
        )
    return _save(partial(_compose_segments, y, segmentation, alarms, title, unit), path)


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


def _compose_segments(
    y: np.ndarray, segmentation: Segmentation, alarms: Alarms | None, title: str, unit: str
) -> "Figure":
    from matplotlib.figure import Figure

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
