import numpy as np
import pytest

from thesis import about, all_of, below, holds_if, holds_only_if

rng = np.random.default_rng(0)
BASE = rng.standard_normal(200)


@pytest.mark.parametrize(
    ("shift", "text"), [(-0.5, "holds"), (0.5, "does not hold"), (0.0, "not decided at this size")]
)
def test_below_is_paired(shift, text):
    # the spread of the trials is ten times the shift: only the pairing shows it
    a = 5 * BASE + shift + 0.3 * rng.standard_normal(200)
    assert below(a, 5 * BASE).text == text


def test_below_with_a_ratio():
    a, b = np.full(20, 0.6), np.ones(20)
    assert below(a, b, ratio=0.65).text == "holds"
    assert below(a, b, ratio=0.55).text == "does not hold"


@pytest.mark.parametrize(
    ("shift", "tie", "text"),
    [
        (0.0, None, "not decided at this size"),
        (0.0, 0.1, "does not hold"),
        (0.0, 0.001, "not decided at this size"),
        (-0.05, 0.1, "holds"),  # below by less than the margin, but below
        (0.5, 0.1, "does not hold"),
        (-0.5, 0.1, "holds"),
    ],
)
def test_a_tie_is_not_below(shift, tie, text):
    b = 3 + BASE
    a = b + shift + 0.05 * np.random.default_rng(5).standard_normal(200)
    verdict = below(a, b, tie=tie)
    assert verdict.text == text
    assert ("alike within 10 %" in verdict.evidence) == (text == "does not hold" and shift == 0)


def test_a_diverged_trial_never_helps():
    a, b = np.ones(20), np.full(20, 2.0)
    a[:15] = np.nan
    assert below(a, b).text == "does not hold"


@pytest.mark.parametrize(
    ("shift", "text"), [(0.0, "holds"), (0.05, "holds"), (0.2, "does not hold"), (-0.2, "does not hold")]
)
def test_about_has_a_margin(shift, text):
    b = 1 + 0.01 * BASE
    assert about(b + shift, b, margin=0.1).text == text
    assert about(10 * (b + shift), 10 * b, margin=1.0, relative=False).text == text


def test_about_is_not_decided_by_few_noisy_trials():
    assert about(BASE[:6], np.ones(6), margin=0.5).text == "not decided at this size"


def test_parts_of_a_claim():
    yes, no, maybe = holds_if(True, "a"), holds_if(False, "b"), holds_only_if(True, "it rains", "c")
    assert all_of(yes, yes).text == "holds"
    assert all_of(yes, maybe).text == "holds only if it rains"
    assert all_of(maybe, no).text == "does not hold"
    assert holds_only_if(False, "it rains", "c").text == "does not hold"


def test_what_fails_comes_after_a_but_wherever_it_stood():
    yes, no, maybe = holds_if(True, "a"), holds_if(False, "b"), holds_only_if(True, "it rains", "c")
    assert all_of(no, yes).evidence == all_of(yes, no).evidence == "a; but b"
    assert all_of(maybe, yes, no, yes).evidence == "a; a; but c; but b"
    assert all_of(no, maybe).evidence == "c; but b"
    assert all_of(no, no).evidence == "b; b"  # none holds: but for what?
