"""Every result figure of the thesis is drawn by one experiment, and lies there as two whole files."""

from pathlib import Path

from thesis import find, names

ROOT = Path(__file__).parents[2]
LABELS = {label for label in (ROOT / "docs" / "thesis-labels.txt").read_text().split() if label.startswith("fig:")}
DIAGRAMS = {"fig:diagram-bone-ssm"}  # of the framework: no result

DRAWN = [label for name in names() for label in find(name).figures]
OF_THE_THESIS = {label for label in DRAWN if label.startswith("fig:")}


def test_the_thesis_has_38_result_figures():
    assert len(LABELS - DIAGRAMS) == 38


def test_every_figure_is_drawn():
    assert LABELS - DIAGRAMS - OF_THE_THESIS == set()


def test_no_figure_is_drawn_twice_and_each_label_exists():
    assert len(DRAWN) == len(set(DRAWN))
    assert OF_THE_THESIS <= LABELS
