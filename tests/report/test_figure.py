"""The figure: what it shows where, what it leaves out, and that no two texts touch."""

import itertools
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.legend import Legend
from matplotlib.text import Text

from filtax.report import draw_stream
from filtax.report.figure import STYLE, _compose_stream, _views
from filtax.synthetic import Stream, hourly_load


def given(stream: Stream):
    error = np.linspace(0.0, 0.1, len(stream))
    errors = {"filtax": error, "last-value": 2 * error, "naive-plus-change(24)": 3 * error}
    return stream.truth + np.array([[-0.05], [0.0], [0.05]]), errors


def composed(stream: Stream):
    with mpl.rc_context(STYLE):
        figure = _compose_stream(stream, *given(stream))
        FigureCanvasAgg(figure).draw()
    return figure


def drawn_texts(figure) -> list[Text]:
    """Every text that is seen; ticks outside of their axis are made but not drawn."""
    texts = [text for legend in figure.findobj(Legend) for text in legend.get_texts()]
    for axes in figure.axes:
        texts += [axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
        texts += [axes.xaxis.offsetText, axes.yaxis.offsetText]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [text for text in texts if text.get_text().strip() and text.get_visible()]


@pytest.mark.parametrize(("hours", "key"), [(4368, 0), (4368, 1), (336, 0), (400, 2), (1000, 3), (8736, 4)])
def test_no_two_texts_touch(hours, key):
    figure = composed(hourly_load(hours, key=key))
    boxes = [(text.get_text(), text.get_window_extent()) for text in drawn_texts(figure)]
    touching = [(a, b) for (a, one), (b, two) in itertools.combinations(boxes, 2) if one.overlaps(two)]
    assert len(boxes) > 25
    assert touching == []


def test_nothing_sticks_out_of_the_picture():
    figure = composed(hourly_load(4368, key=0))
    box = figure.get_tightbbox()
    assert box.x0 >= 0.0
    assert box.y0 >= 0.0
    assert box.x1 <= figure.get_figwidth()
    assert box.y1 <= figure.get_figheight()


def test_the_close_views_are_of_the_faults_in_order():
    stream = hourly_load(4368, key=0)
    views = _views(stream)
    assert list(views.values()) == sorted(views.values())
    assert views["The level shifts for good"] == stream.changes[0]
    assert stream.outliers[views["The meter is wrong"]]
    start = views["The meter is silent"]
    assert stream.missing[start : start + 30].all()
    assert not stream.missing[start - 1]


def test_of_the_gross_errors_the_loneliest_is_shown():
    stream = hourly_load(4368, key=0)
    views = _views(stream)
    chosen = views.pop("The meter is wrong")
    wrong = np.flatnonzero(stream.outliers).tolist()
    loneliness = {t: min(abs(t - s) for s in [0, 4367, *wrong, *views.values()] if s != t) for t in wrong}
    assert loneliness[chosen] == max(loneliness.values())
    assert len(set(loneliness.values())) > 3


def test_a_stream_without_faults_has_its_errors_drawn_alone():
    stream = hourly_load(400, key=0, shift=0.0, missing=0.0, outliers=0.0)
    assert _views(stream) == {}
    assert len(composed(stream).axes) == 1


def test_the_lines_are_the_numbers_given():
    stream = hourly_load(1000, key=0)
    *views, errors = composed(stream).axes
    drawn = {line.get_label(): line for line in errors.get_lines()}
    for name, error in given(stream)[1].items():
        np.testing.assert_array_equal(drawn[name].get_ydata(), error)
    assert drawn["last-value"].get_color() == drawn["naive-plus-change(24)"].get_color() != drawn["filtax"].get_color()
    rows, shift = slice(600 - 36, 600 + 60), list(_views(stream)).index("The level shifts for good")
    shown = {line.get_label(): line.get_ydata() for line in views[shift].get_lines()}
    np.testing.assert_array_equal(shown["true load"], stream.truth[rows])
    np.testing.assert_array_equal(shown["reading"], stream.y[rows])
    np.testing.assert_array_equal(shown["filtax"], stream.truth[rows])


def test_readings_off_the_scale_are_written_at_its_edge():
    stream = hourly_load(4368, key=0)
    axes = composed(stream).axes[0]
    where = _views(stream)["The meter is wrong"]
    assert f"{stream.y[where]:.2f}" in [text.get_text() for text in axes.texts]
    assert axes.get_ylim()[1] < 1.5 < stream.y[where]


def test_the_picture_is_written_and_the_folder_made(tmp_path):
    stream = hourly_load(400, key=0)
    path = draw_stream(stream, *given(stream), tmp_path / "new" / "a.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_matplotlib_is_imported_only_to_draw():
    code = "import sys, filtax.report; sys.exit('matplotlib' in sys.modules or 'rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
