"""The compiled loop of a run: many series in one block are each as if alone, and none costs for the others."""

import re

import jax
import numpy as np
import pytest

from filtax.runs import engine
from filtax.runs.engine import Learner

pytestmark = pytest.mark.x64

METHOD = "WoLF-MD(c=4)+NIG(form=covariance)+RL[1]-OUPR(hazard=0.01)"
B, D, S = 24, 3, 5


def data():
    rng = np.random.default_rng(0)
    slot = rng.choice([0, 1, 3, 4], size=B)  # the third series has no row, and rows of a series do not stand together
    return slot, rng.normal(size=(B, D)), rng.normal(size=B)


@pytest.mark.parametrize("n", [B, 17, 0])
def test_series_in_one_block_are_each_as_if_alone(n):
    learner = Learner(METHOD, columns=D, cov=1.0, limit=1e-6)
    slot, X, y = data()
    carry, made, told = learner.advance(learner.fresh(S), slot, X, y, n)
    for series in range(S):
        mine = np.flatnonzero(slot[:n] == series)
        own = np.concatenate([mine, np.zeros(B - len(mine), int)])
        after, said, heard = learner.advance(learner.fresh(1), np.zeros(B, int), X[own], y[own], len(mine))
        np.testing.assert_allclose(np.asarray(made.mean)[mine], np.asarray(said.mean)[: len(mine)], rtol=1e-12)
        np.testing.assert_allclose(np.asarray(told["trust"])[mine], heard["trust"][: len(mine)], rtol=1e-12)
        for leaf, one in zip(jax.tree.leaves(carry), jax.tree.leaves(after), strict=True):
            np.testing.assert_allclose(leaf[series], one[0], rtol=1e-11, atol=1e-13)


def test_a_row_does_not_copy_what_other_series_have_learned():
    """With a copy for each row, 1000 series took 80 times as long a row as one."""
    learner, slots = Learner(METHOD, columns=D, cov=1.0, limit=1e-6), 61
    slot, X, y = data()
    given = (slot.astype(np.int32), X, y, None, learner.limit)
    program = engine._series.lower(learner.method, learner.state, learner.fresh(slots), given, np.int32(B)).compile()
    loops, _ = program.as_text().split("ENTRY")
    assert f"f64[{slots},{D}" in loops or f"f64[{slots},2,{D}" in loops  # they are there
    assert not re.findall(rf"f64\[{slots},[\d,]*\]\S* copy\(", loops)
