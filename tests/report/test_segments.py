"""The figure of a segmentation: what is drawn is what was found, and no text is cut off."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import filtax as fx
from filtax.report import draw_segments, run_length_image
from filtax.report.figure import STYLE, _compose_segments
from filtax.segmentation import detect, segment

rng = np.random.default_rng(1)
ONE = np.r_[rng.normal(size=60), rng.normal(8.0, 1.0, size=50)]
TWO = np.column_stack([ONE, -100.0 * ONE + rng.normal(size=110)])


@pytest.fixture(scope="module")
def found():
    return segment(ONE), detect(ONE)


def test_lines_stand_where_changes_were_found(found):
    segmentation, alarms = found
    assert segmentation.changes == [60]
    top, chance, runs = _compose_segments(ONE[:, None], segmentation, alarms, "jump", "mV").axes[:3]
    drawn = {line.get_label(): np.asarray(line.get_xdata()) for line in top.get_lines()}
    assert drawn["change found looking back"][0] == 60
    assert drawn["alarm, online"].tolist() == alarms.times
    assert drawn["start it named"].tolist() == alarms.starts
    heights = [path.vertices[1, 1] for path in chance.collections[0].get_paths()]
    np.testing.assert_allclose(heights, segmentation.probability)
    assert runs.get_images()


def test_the_heat_map_is_the_posterior(found):
    image = run_length_image(found[0])
    np.testing.assert_allclose(image.sum(axis=0), 1.0, atol=1e-5)
    assert image[:, 55].argmax() == 55  # no change yet
    assert image[:, 100].argmax() == 40  # since the change
    assert np.all(np.triu(np.ones_like(image)) >= (image > 0.0))  # no run is longer than the series


@pytest.mark.parametrize("y", [ONE[:, None], TWO], ids=["one", "two"])
def test_nothing_sticks_out_and_the_legend_touches_no_title(y):
    with mpl.rc_context(STYLE):
        figure = _compose_segments(y, segment(y), detect(y), "A series with a long name", "millivolts")
        FigureCanvasAgg(figure).draw()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) >= 0.0
    assert box.x1 <= 9.0
    assert box.y1 <= 6.0
    axes = figure.axes[0]
    assert not axes.get_legend().get_window_extent().overlaps(axes._left_title.get_window_extent())


def test_the_picture_is_written_and_lengths_must_agree(tmp_path, found):
    path = draw_segments(ONE, found[0], tmp_path / "new" / "a.png", alarms=found[1])
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"y has 109 readings but the segmentation is of 110"):
        draw_segments(ONE[1:], found[0], tmp_path / "b.png")


def test_the_call_of_the_documentation_takes_a_path_as_text(found, tmp_path):
    written = fx.report.draw_segments(ONE, found[0], str(tmp_path / "new" / "a.png"), alarms=found[1])
    assert written == tmp_path / "new" / "a.png"
    assert written.stat().st_size > 0
