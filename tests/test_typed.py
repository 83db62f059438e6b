"""Annotations are checked wherever tests call filtax: shapes that do not fit, and types, are refused."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import jaxtyping
import pytest
from jaxtyping import Array, Float, PyTree

from filtax import _validation as checks
from filtax import linalg
from typed import checked

REFUSED = {
    "axes of two arguments": lambda: linalg.solve_lower(jnp.eye(2), jnp.ones(3)),
    "number of axes": lambda: linalg.cholesky(jnp.ones(3)),
    "numbers that are whole": lambda: linalg.cholesky(jnp.eye(2, dtype=int)),
    "no array": lambda: linalg.cholesky([[1.0]]),
    "under a transformation": lambda: jax.jit(linalg.solve_lower)(jnp.eye(2), jnp.ones(3)),
    "a plain type": lambda: checks.nearest(3, ["one"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_argument_is_refused(name):
    with pytest.raises(jaxtyping.TypeCheckError):
        REFUSED[name]()


def test_a_wrong_result_is_refused():
    @checked
    def first(x: Float[Array, " N"]) -> Float[Array, " N"]:
        return x[:1]

    assert first(jnp.ones(1)).shape == (1,)
    with pytest.raises(jaxtyping.TypeCheckError, match="return"):
        first(jnp.ones(2))


def test_axes_are_named_again_in_each_call():
    @checked
    def outer(x: Float[Array, " N"], y: Float[Array, " M"]) -> Float[Array, " M"]:
        return inner(y)

    @checked
    def inner(x: Float[Array, " N"]) -> Float[Array, " N"]:
        return x

    assert outer(jnp.ones(2), jnp.ones(3)).shape == (3,)
    assert outer(jnp.ones(3), jnp.ones(2)).shape == (2,)


def test_what_is_no_plain_function():
    @checked
    def named(x: "Unknown", tree: PyTree, *rest: int, plus: float = 1.0) -> Iterator[float]:
        yield from (x, tree, *rest, plus)

    assert list(named(1, 2, 3)) == [1, 2, 3, 1.0]
    assert list(named(1, 2, 3, plus=4.0)) == [1, 2, 3, 4.0]
    with pytest.raises(jaxtyping.TypeCheckError):
        list(named(1, 2, "three"))


def test_it_can_be_switched_off(monkeypatch):
    @checked
    def same(x: int) -> int:
        return x

    with pytest.raises(jaxtyping.TypeCheckError):
        same("one")
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    assert same("one") == "one"
