"""Names beside points: by the boxes that matplotlib draws, none covers another, a line, or leaves the axis."""

from itertools import combinations

import numpy as np
import pytest

from thesis.figures import name_points, panels

WORDS = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")


@pytest.fixture(scope="module")
def crowded():
    """45 points on logarithmic axes, five of a kind close together, one of them on a line across."""
    rng = np.random.default_rng(3)
    where = np.repeat(rng.uniform(0.0, 1.0, (9, 2)), 5, axis=0) + 0.08 * rng.normal(size=(45, 2))
    figure, axis = panels(size=(9.5, 6.0))
    x, y = np.exp(where).T
    axis.scatter(x, y, s=45)
    axis.axhline(y[7])
    axis.set(xscale="log", yscale="log")
    names = name_points(figure, axis, [(WORDS[i // 5], x[i], y[i], "k") for i in range(45)])
    figure.draw_without_rendering()
    return figure, axis, names


def test_no_name_covers_another_or_a_line_or_leaves_the_axis(crowded):
    _, axis, names = crowded
    boxes = [type(name).__mro__[1].get_window_extent(name) for name in names]  # of the words, without the leading line
    assert len({name.get_text() for name in names}) == 9
    for a, b in combinations(boxes, 2):
        width, height = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert width <= 0 or height <= 0.25 * a.height  # ascenders and descenders have room of their own
    frame, line = axis.get_window_extent(), axis.lines[0].get_window_extent()
    for box in boxes:
        assert not box.y0 + 0.1 * box.height < line.y0 < box.y1 - 0.1 * box.height
        assert frame.x0 <= box.x0
        assert box.x1 <= frame.x1


def test_a_name_is_beside_its_own_point_and_a_line_leads_to_one_that_is_not(crowded):
    figure, _, names = crowded
    offsets = np.abs([name.xyann for name in names])
    far = np.array([name.arrow_patch is not None for name in names])
    half = np.array([type(n).__mro__[1].get_window_extent(n).size / 2 for n in names]) / (figure.dpi / 72)
    gap = (offsets - half).max(axis=1)
    assert (gap[~far] < 8.0).all()
    assert (gap[far] > 8.0).all()
    assert far.mean() < 0.5
