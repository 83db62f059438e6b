"""Every result figure of the thesis is drawn by one experiment, or is named here as still missing."""

from pathlib import Path

from filtax.experiments import find, names

ROOT = Path(__file__).parents[2]
LABELS = {label for label in (ROOT / "docs" / "thesis-labels.txt").read_text().split() if label.startswith("fig:")}
DIAGRAMS = {"fig:diagram-bone-ssm"}  # of the framework: no result
MISSING = {
    "fig:2d-ssm-sample",
    "fig:bandit-results",
    "fig:bocd-lr-stress",
    "fig:clf-results",
    "fig:clf-results-abrupt",
    "fig:clf-rlpr-comparison",
    "fig:clf-rlpr-comparison-abrupt",
    "fig:day-ahead-plot",
    "fig:day-ahead-results",
    "fig:day-ahead-results-zoomed",
    "fig:day-ahead-rlpr-predictions",
    "fig:fashion-mnist-lofi-rank",
    "fig:fashion-mnist-pulse-rank",
    "fig:fashion-mnist-subspace-rank",
    "fig:linear-ssm-sample-runs",
    "fig:online-mlp-example-run-sorted",
    "fig:online-mlp-example-run-unsorted",
    "fig:outliers-lr-res",
    "fig:segements-tdlist-lr",
    "fig:segments-count",
    "fig:sements-dependency-lr",
    "fig:showdown-mnist-lofi-rank",
    "fig:sorted-unsorted-clean-measurement",
    "fig:uci-per-step-time",
}

DRAWN = [label for name in names() for label in find(name).figures]
OF_THE_THESIS = {label for label in DRAWN if label.startswith("fig:")}


def test_the_thesis_has_38_result_figures():
    assert len(LABELS - DIAGRAMS) == 38


def test_every_figure_is_drawn_or_known_to_be_missing():
    assert LABELS - DIAGRAMS - OF_THE_THESIS == MISSING


def test_no_figure_is_drawn_twice_and_each_label_exists():
    assert len(DRAWN) == len(set(DRAWN))
    assert OF_THE_THESIS <= LABELS
