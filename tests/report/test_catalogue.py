"""The catalogue: every part of the grammar, written as it is typed."""

import re

from filtax.methods._parse import AUXILIARIES, POSTERIORS, PRIORS, TRUSTS
from filtax.report import catalogue


def test_every_part_is_listed_once_and_says_what_it_does():
    rows = catalogue()
    names = [re.split(r"[\[(]", written)[0] for _, written, _ in rows]
    assert names == [*TRUSTS, *POSTERIORS, *AUXILIARIES, *PRIORS]
    assert all(meaning.endswith(".") and len(meaning) > 15 for _, _, meaning in rows)


def test_settings_show_their_defaults_or_that_they_must_be_given():
    written = {row[1].split("(")[0]: row[1] for row in catalogue()}
    assert written["ACI"] == "ACI(q=...)"
    assert written["IEKF"] == "IEKF(iterations=5, form=auto)"
    assert written["Static"] == "Static"
