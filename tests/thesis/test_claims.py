"""What is said of every claim: its margin, the words of the thesis, the form tested, and the reason where it fails."""

import dataclasses
import html

import numpy as np
import pytest

from thesis import Claim, Finding, Result, find, holds_if, names, reproduce
from thesis.bernoulli_bandit import CLAIMED
from thesis.findings import decide
from thesis.page import write_report

WORDS = ("none: ", "standard deviation within the day below a third", "twice WoLF's time")  # margins without digits

CLAIMS = {claim.number: claim for name in names() for claim in find(name).claims}
NONE = "No reason was looked for: at the full size with seed 0 it does not fail."


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return reproduce(["ridge"], out=tmp_path_factory.mktemp("reproduce"))[0]


def test_every_printed_form_belongs_to_a_claim_and_differs_from_it():
    for claim in CLAIMS.values():
        assert (claim.printed is None) == (claim.tested is None)
        if claim.tested:
            assert claim.printed
            assert claim.tested.endswith(".")
            assert claim.tested not in (claim.printed, claim.text)


def test_every_claim_says_what_margin_it_allows():
    for claim in CLAIMS.values():
        assert len(claim.tolerance) > 3
        assert any(letter.isdigit() for letter in claim.tolerance) or claim.tolerance.startswith(WORDS), claim
    with pytest.raises(ValueError, match="claim 7 has no tolerance"):
        Claim(7, lambda result: holds_if(True, ""), "", "", "")


def test_a_claim_is_written_and_shown_with_its_form_tolerance_and_reason(found, tmp_path):
    """Also the reason, which only what does not hold has."""
    (claim,) = found["claims"]
    assert claim.keys() >= {"number", "text", "source", "tolerance", "printed", "tested", "verdict", "evidence"}
    assert (claim["printed"], claim["tested"], claim["reason"]) == (CLAIMS[1].printed, CLAIMS[1].tested, None)
    (other,) = decide(find("bernoulli-bandit"), made_up_bandit())
    assert (other["verdict"], other["reason"]) == ("does not hold", CLAIMS[19].reason)
    bandit = find("bernoulli-bandit")
    sure = dataclasses.replace(bandit.claims[0], decide=lambda result: holds_if(True, ""))
    assert decide(dataclasses.replace(bandit, claims=(sure,)), Result({}))[0]["reason"] is None
    doubtful = dataclasses.replace(find("ridge").claims[0], decide=lambda result: holds_if(False, ""))
    assert decide(dataclasses.replace(bandit, claims=(doubtful,)), Result({}))[0]["reason"] == NONE
    both = Finding({**found.content, "claims": [claim, other]}, found.folder)
    page = html.unescape(write_report([both], tmp_path / "report.html").read_text())
    for said in (
        claim["tolerance"],
        claim["printed"],
        claim["tested"],
        other["tolerance"],
        f"seed 0: {other['reason']}",
    ):
        assert said in page
    assert page.count("Why, as found") == 1


def made_up_bandit():
    flat = {f"{label}, {name}, {of}": np.ones(9) for label in ("text", "published") for of in ("means", "rewards")
            for name in (*CLAIMED, "uniform")}  # fmt: skip
    return Result({}, flat | {f"text, {CLAIMED[0]}, means": np.full(9, 2.0)})


def test_what_fails_has_a_reason():
    assert all(claim.reason.endswith(".") for claim in CLAIMS.values())
    fails = {6, 13, 14, 18, 19, 20, 21, 24, 25, 26, 29, 30, 31, 32, 34, 38, 39, 40, 41}  # at the full or the quick size
    assert not {number for number in fails if CLAIMS[number].reason == NONE}


def test_all_41_claims_are_there_once():
    assert sorted(claim.number for name in names() for claim in find(name).claims) == [*range(1, 42)]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "verdicts"),
    [
        ("catalogue", ["holds", "holds"]),
        ("expfam-moons", ["holds only if the moons' noise is at most 0.2", "does not hold"]),
        ("q-inflation", ["holds", "holds"]),
        ("rvga-logistic", ["holds", "holds"]),
        ("rvga-moons", ["not decided at this size"]),
        ("wolf-intro", ["holds", "holds"]),
    ],
)
def test_verdicts_of_the_quick_size(name, verdicts, tmp_path):
    (found,) = reproduce([name], out=tmp_path)
    assert [claim["verdict"] for claim in found["claims"]] == verdicts
