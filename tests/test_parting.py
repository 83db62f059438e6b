"""A program in two parts gives the numbers of the whole, and the first of them reads nothing that differs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxpr_as_fun

from filtax.calls import apart
from filtax.parting import parted

GIVEN = (jnp.arange(3.0), jnp.array(2.0), jnp.array([3.0, 1.0, 2.0]), jnp.array(0.5))


def whole(a, b, c, d):
    """Of a and c what is shared, of b and d what differs, and calls that mix them."""
    inner = apart(lambda u, v: (jnp.cos(u), u * v, v + 1.0))
    seen, both, own = inner(a, b)
    soft = jax.nn.softplus(both + c)
    return a + c, seen[:2], soft * own, jnp.sum(jnp.exp(c)) * d, c, jnp.float32(4.0) * d, 7.0


def put_together(parts, differs, given):
    pick = lambda side: [value for value, there in zip(given, differs, strict=True) if there == side]
    first = jaxpr_as_fun(parts.alike)(*pick(False))
    own = len(first) - len(parts.read)
    second = jaxpr_as_fun(parts.other)(*first[own:], *pick(True))
    both = {False: iter(first[:own]), True: iter(second)}
    return [next(both[there]) for there in parts.differs], first[own:]


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize(
    "differs", [(False, True, False, True), (True,) * 4, (False,) * 4, (True, False, False, False)]
)
def test_both_parts_give_what_the_whole_gives(differs, asked):
    program = jax.make_jaxpr(whole)(*GIVEN)
    parts = parted(program, differs, [asked] * 7)
    found, read = put_together(parts, differs, GIVEN)
    for one, other in zip(found, whole(*GIVEN), strict=True):
        np.testing.assert_array_equal(one, other)
    for value, at in zip(read, parts.read, strict=True):
        if at >= 0:
            np.testing.assert_array_equal(value, GIVEN[at])
            assert not differs[at]


def test_results_differ_where_they_depend_on_what_does():
    parts = parted(jax.make_jaxpr(whole)(*GIVEN), (False, True, False, True), [False] * 7)
    assert parts.differs == [False, False, True, True, False, True, False]
    names = [{eqn.primitive.name for eqn in part.jaxpr.eqns} for part in (parts.alike, parts.other)]
    assert {"exp", "reduce_sum"} <= names[0]
    assert names[1].isdisjoint({"exp", "reduce_sum"})


def test_a_view_of_an_argument_is_taken_again_and_the_argument_read():
    parts = parted(jax.make_jaxpr(lambda a, b: a[1:, None] * b)(jnp.ones(3), 1.0), (False, True), [False])
    assert parts.read == [0]
