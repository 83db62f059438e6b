"""What is said of every claim: its margin, the words of the thesis, the form tested, and the reason where it fails."""

import pytest

from thesis import find, names, reproduce

CLAIMS = {claim.number: claim for name in names() for claim in find(name).claims}


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
