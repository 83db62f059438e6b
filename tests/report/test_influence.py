"""The figure of influence: the lines are the numbers given, and no text is cut off."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from filtax.report import draw_influence
from filtax.report.figure import STYLE
from filtax.report.influence import _compose

grid = np.linspace(-20.0, 20.0, 201)
lines = {"LG+C-Static": 0.2 * grid**2, "WoLF-MD(c=3)+C-Static": grid**2 / (1 + grid**2 / 9), "none": np.zeros(201)}


def test_the_lines_are_the_numbers_given_on_a_logarithmic_scale():
    axes = _compose(grid, lines, "sd").axes[0]
    assert axes.get_yscale() == "log"
    for line, (name, values) in zip(axes.get_lines(), lines.items(), strict=True):
        assert line.get_label() == name
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert len({(line.get_color(), str(line._linestyle)) for line in axes.get_lines()}) == 3
    assert axes.get_ylim()[1] > 80.0


def test_nothing_sticks_out_and_the_legend_touches_no_title():
    with mpl.rc_context(STYLE):
        figure = _compose(grid, lines, "standard deviations")
        FigureCanvasAgg(figure).draw()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) >= 0.0
    assert box.x1 <= 7.0
    assert box.y1 <= 4.0
    axes = figure.axes[0]
    assert not axes.get_legend().get_window_extent().overlaps(axes._left_title.get_window_extent())


def test_many_methods_are_told_apart_below_the_title():
    many = {f"WoLF-MD(c={c}.25)": grid**2 / (1 + grid**2 / c) for c in range(1, 10)}
    with mpl.rc_context(STYLE):
        figure = _compose(grid, many, "sd")
        FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    assert len({(line.get_color(), line._unscaled_dash_pattern) for line in axes.get_lines()}) == 9
    assert not axes.get_legend().get_window_extent().overlaps(axes._left_title.get_window_extent())
    assert figure.get_tightbbox().y1 <= 4.0


def test_the_picture_is_written_and_shapes_must_agree(tmp_path):
    path = draw_influence(grid, lines, tmp_path / "new" / "a.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"LG has shape \(3,\) but the contamination has shape \(201,\)"):
        draw_influence(grid, {"LG": np.zeros(3)}, tmp_path / "b.png")
