"""The scores of change points: by hand, by the definition over sets, and as they were published."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from filtax.evaluate import covering, detection_delays, f1

TCPD = Path(os.environ.get("FILTAX_DATA", "absent")) / "tcpd"
needs_tcpd = pytest.mark.skipif(
    not TCPD.is_dir(), reason="the Turing change-point set is not at hand: name the folder of data sets in FILTAX_DATA"
)

# F1 of saying "no change", as the benchmark's authors published it
NO_CHANGE = {
    "nile": 0.824,
    "run_log": 0.446,
    "occupancy": 0.341,
    "bitcoin": 0.450,
    "bank": 1.000,
    "well_log": 0.237,
    "brent_spot": 0.315,
    "apple": 0.594,
    "bee_waggle_6": 0.929,
    "measles": 0.947,
    "scanline_42049": 0.276,
    "co2_canada": 0.361,
    "lga_passengers": 0.535,
    "ozone": 0.723,
    "centralia": 0.763,
    "robocalls": 0.636,
}


def test_f1_by_hand():
    """Found 51 and 200; told 50 by one and nothing by the other; 0 counts for all."""
    precision, recall = 2 / 3, (1.0 + 1.0) / 2
    assert f1([[50], []], [51, 200]) == pytest.approx(2 * precision * recall / (precision + recall))
    assert f1([[50], []], []) == pytest.approx(2 * 0.75 / 1.75)
    assert f1([[50]], [56]) == 0.5
    assert f1([[50]], [55]) == 1.0


def test_a_found_change_serves_one_true_one():
    assert f1([[50, 53]], [51]) == pytest.approx(2 * 1.0 * (2 / 3) / (1.0 + 2 / 3))


def test_covering_by_hand():
    assert covering([[5]], [5], 10) == 1.0
    assert covering([[4]], [6], 10) == pytest.approx((4 * 4 / 6 + 6 * 4 / 6) / 10)
    assert covering([[5], []], [0, 10], 10) == 0.75  # what lies at the ends parts nothing


def test_covering_is_that_of_sets():
    rng = np.random.default_rng(0)
    for _ in range(20):
        marks = [rng.choice(np.arange(1, 40), size, replace=False).tolist() for size in (0, 2, 5)]
        found = rng.choice(np.arange(1, 40), 3, replace=False).tolist()
        cut = lambda cps: [set(part.tolist()) for part in np.split(np.arange(40), sorted(cps))]
        by_sets = np.mean(
            [sum(len(A) * max(len(A & B) / len(A | B) for B in cut(found)) for A in cut(m)) / 40 for m in marks]
        )
        assert covering(marks, found, 40) == pytest.approx(by_sets, abs=1e-12)


def test_delays_are_those_of_the_first_alarm_that_names_the_change():
    assert detection_delays({"a": [50], "b": [90]}, [57, 60, 120], [49, 52, 20]) == {50: 7}
    assert detection_delays([[50]], [49], [50]) == {50: 0}
    assert detection_delays([[]], [10], [5]) == {}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: f1([], [3]), r"f1\(truth=\.\.\.\) must hold the changes of at least one annotator"),
        (lambda: covering([3, 4], [3], 9), r"for one annotator write \[\[50, 90\]\]"),
        (lambda: covering([[3]], [50], 10), r"covering\(found=\.\.\.\) holds 50, but .* from 0 to 10;"),
        (lambda: covering([[11]], [5], 10), r"covering\(truth=\.\.\.\) holds 11"),
        (lambda: f1([[3]], [-3]), r"f1\(found=\.\.\.\) holds -3, but .* of at least 0;"),
        (lambda: f1([[2.5]], [3]), r"holds 2\.5, but an index is a whole number"),
        (lambda: f1([[-1]], [3]), r"f1\(truth=\.\.\.\) holds -1"),
        (lambda: detection_delays([[3]], [3], []), r"1 alarms but 0 starts"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@needs_tcpd
def test_no_change_scores_as_published():
    told = json.loads((TCPD / "annotations.json").read_text())
    files = {path.stem: path for folder in TCPD.glob("series*") for path in folder.glob("*.json")}
    sizes = {name: (lambda d: (d["n_obs"], d["n_dim"]))(json.loads(files[name].read_text())) for name in told}
    for name, published in NO_CHANGE.items():
        assert f1(told[name], []) == pytest.approx(published, abs=6e-4)
    real = [n for n in told if sizes[n][1] == 1 and not n.startswith("quality_control") and n != "uk_coal_employ"]
    several = [n for n in told if sizes[n][1] > 1]
    for names, published in ((real, (0.645, 0.566)), (several, (0.577, 0.464))):
        got = [np.mean([f1(told[n], []) for n in names]), np.mean([covering(told[n], [], sizes[n][0]) for n in names])]
        np.testing.assert_allclose(got, published, atol=6e-4)
