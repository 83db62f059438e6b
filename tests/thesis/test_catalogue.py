"""The catalogue: histories written out against the segmentation oracle, one method in full, and the rules."""

import numpy as np
import pytest
import scipy.stats

from filtax.methods import PUBLISHED
from oracles import enumerate_segmentations
from thesis import Result, catalogue, find

pytestmark = pytest.mark.x64
rng = np.random.default_rng(2)


def test_histories_are_those_of_the_oracle():
    X, y = rng.normal(size=(6, 2)), rng.normal(size=6)

    def evidence(start, stop):  # both included, counted from 1; 0 is the belief before the stream
        at = slice(max(start, 1) - 1, stop)
        if at.start >= stop:
            return 0.0
        cov = X[at] @ X[at].T + 0.3 * np.eye(stop - at.start)
        return scipy.stats.multivariate_normal(np.zeros(len(cov)), cov).logpdf(y[at])

    want = enumerate_segmentations(evidence, 0.2, 6)
    log_evidence, posterior = catalogue.enumerate_runs(X, y, 0.2, 0.3)
    assert log_evidence == pytest.approx(want[0], rel=1e-12)
    np.testing.assert_allclose(posterior, want[1], atol=1e-12)


def test_exact_run_lengths_equal_the_enumeration():
    assert max(catalogue._gap("RL[inf]-PR", 5, rng).values()) < 1e-10


@pytest.mark.parametrize("name", ["magill_1965", "duran_martin_2025"])
def test_a_method_reports_its_parts(name):
    told = catalogue._reported(name, PUBLISHED[name], rng)
    assert told[4]
    assert catalogue._same(catalogue.THESIS[name], told)


def test_parts_are_compared():
    same = catalogue._same
    assert same(("RL", "PR", "Cj", "DA[inf]"), ("RL", "PR", "Cj", "DA[K]", True))
    assert same(("C", "ACI", "LG", "DA[1]"), ("C", "ACI", "LoFi", "DA[1]", True))
    assert not same(("CPT/ME", "PR", "any", "DA[inf]"), ("CPT", "PR", "LG", "DA[inf]", True))
    assert not same(("RL", "PR", "Cj", "DA[inf]"), ("RL", "PR", "LG", "DA[inf]", True))
    assert not same(("RL", "PR", "LG", "DA[1]"), ("RL", "OUPR", "LG", "DA[1]", True))
    assert not same(("RL", "PR", "LG", "DA[1]"), ("RL", "PR", "LG", "DA[inf]", True))


def test_rules():
    good = {"parts": (), "runs": True, "same": True}
    rows = {"a": good, "b": good | {"same": False}, "c": None}
    gaps = {"RL": {"evidence": 1e-14}, "CPT": {"evidence": 1e-3}}
    decide = lambda rows, gaps: [c.decide(Result({"rows": rows, "gaps": gaps})).text for c in find("catalogue").claims]
    assert decide({"a": good}, {"RL": {"evidence": 1e-14}}) == ["holds", "holds"]
    parts, exact = decide(rows, gaps)
    omitted = "the 1 rows not built and the 1 rows built with other parts than the table's are omitted"
    assert parts == f"holds only if {omitted}"
    assert exact == "does not hold"
    assert decide({"a": good | {"runs": False}}, gaps)[0] == "does not hold"
