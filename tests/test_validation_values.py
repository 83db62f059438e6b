"""Checks at the boundary: each refuses what it should with one sentence, and lets the rest pass."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from filtax import _validation as checks

near_zero = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-9]])  # indefinite by less than float32 can tell


def says(error, *parts):
    text = str(error.value)
    assert text.startswith("f(a=...) must")
    assert all(part in text for part in parts)
    assert text.endswith(".")


@pytest.mark.parametrize(
    ("check", "value", "part"),
    [
        (checks.finite, np.nan, "finite, got nan"),
        (checks.finite, [1.0, np.inf], "finite, got [1.0, inf]"),
        (checks.finite, "1.0", "number or an array of numbers, got '1.0'"),
        (checks.finite, [[1.0], [1.0, 2.0]], "number or an array of numbers"),
        (checks.finite, 1j, "number or an array of numbers"),
        (checks.finite, None, "number or an array of numbers"),
        (checks.positive, 0.0, "above 0, got 0.0"),
        (checks.positive, -1, "above 0, got -1.0"),
        (checks.positive, [1.0, np.nan], "above 0"),
        (checks.positive, np.inf, "finite"),
        (checks.positive, np.r_[np.ones(9), -2.0], "shape (10,) with minimum -2"),
        (checks.positive, np.r_[np.ones(9), np.nan], "non-finite entries"),
        (checks.share, 1.5, "[0, 1], got 1.5"),
        (checks.share, -1e-9, "[0, 1]"),
        (checks.share, np.nan, "[0, 1]"),
        (checks.share, [0.5, 2.0], "[0, 1], got [0.5, 2.0]"),
        (checks.share, "high", "number or an array of numbers"),
    ],
)
def test_refuses(check, value, part):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        check("f(a=...)", value)
    says(error, part)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (checks.finite, [1, -2]),
        (checks.finite, jnp.zeros((2, 2), "bfloat16")),
        (checks.positive, 1e-300),
        (checks.positive, np.ones(7)),
        (checks.share, 0),
        (checks.share, [1.0, 0.5]),
    ],
)
def test_accepts(check, value):
    assert check("f(a=...)", value) is None


def test_flags_are_numbers_only_when_allowed():
    """Features may be yes and no, a setting may not; neither while it is traced."""
    for check in (checks.finite, checks.share):
        check("f(a=...)", np.array([True, False]), flags=True)
        for value in (True, [True, False], np.array([True]), jnp.array(True)):
            with pytest.raises(ValueError) as error:  # noqa: PT011
                check("f(a=...)", value)
            says(error, "a number or an array of numbers, got", "write 1.0 where True means one")
    with pytest.raises(ValueError, match=r"write 1\.0 where True means one"):
        jax.jit(lambda a: checks.positive("f(a=...)", a))(True)


REFUSED = [
    (np.zeros((2, 3)), "got shape (2, 3)"),
    (np.zeros((2, 2, 2)), "got shape (2, 2, 2)"),
    (-1.0, "at least 0"),
    ([1.0, -1.0], "at least 0"),
    ([[1.0, 0.5], [0.4, 1.0]], "symmetric; entries differ by up to 0.1"),
    ([[1.0, np.nan], [np.nan, 1.0]], "finite"),
    ([[1.0, 2.0], [2.0, 1.0]], "positive semidefinite"),
    ([[0.0, 1.0], [1.0, 0.0]], "positive semidefinite"),
    (np.diag([1.0, -1e-20]), "positive semidefinite"),  # a variance is negative in any unit
    ([[1e10, 0.0], [1.0, 1e-10]], "symmetric"),  # as a correlation the two entries differ by one
    (near_zero, "positive semidefinite"),
    ("wide", "numbers"),
]


@pytest.mark.parametrize(("value", "part"), REFUSED)
def test_refuses_what_is_no_covariance(value, part):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        checks.covariance_like("f(a=...)", value, singular=True)
    says(error, part)


@pytest.mark.parametrize("value", [0.0, [0.0, 1.0], np.ones((3, 3)), np.zeros((2, 2)), np.diag([0.0, 1e-30])])
def test_singular_covariances_pass_only_where_they_may(value):
    checks.covariance_like("f(a=...)", value, singular=True)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        checks.covariance_like("f(a=...)", value, singular=False, hint="Why it matters.")
    says(error, "Why it matters.")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_units_do_not_make_a_covariance_singular(dtype):
    """Outputs in very different units are as definite as in equal ones; only correlation can make them singular."""
    unit = np.array([1e-8, 1.0, 1e6])
    for correlation in (0.0, 0.9):
        cov = (np.full((3, 3), correlation) + (1 - correlation) * np.eye(3)) * np.outer(unit, unit)
        checks.covariance_like("f(a=...)", jnp.asarray(cov, dtype), singular=False)
    with pytest.raises(ValueError, match="positive definite"):
        checks.covariance_like("f(a=...)", jnp.asarray(np.outer(unit, unit), dtype), singular=False)


def test_rounding_of_float32_is_forgiven_in_float32_only():
    checks.covariance_like("f(a=...)", near_zero.astype("float32"), singular=True)
    with pytest.raises(ValueError, match="positive semidefinite"):
        checks.covariance_like("f(a=...)", near_zero, singular=True)


def test_traced_values_pass_but_their_shapes_are_checked():
    def inside(value):
        assert not checks.is_concrete(value)
        assert checks.concrete(value) is None
        checks.finite("f(a=...)", value)
        checks.positive("f(a=...)", value)
        checks.share("f(a=...)", value)
        checks.covariance_like("f(a=...)", value, singular=False)
        return value

    jax.jit(inside)(-jnp.eye(2))
    with pytest.raises(ValueError, match="got shape"):
        jax.jit(inside)(jnp.zeros((2, 3)))


def test_tables_are_their_columns():
    whole = pd.DataFrame({"holiday": [True, False], "warmth": [1.5, 2.0], "count": [1, 2]})
    np.testing.assert_array_equal(checks.numeric("X", whole), [[1.0, 1.5, 1.0], [0.0, 2.0, 2.0]])
    with pytest.raises(ValueError, match=r"X must hold numbers, but its column 'city' holds .*; leave it out, or"):
        checks.numeric("X", whole.assign(city=["Oslo", "Rome"]))
    twice = pd.DataFrame([[1.0, True]], columns=["a", "a"])
    np.testing.assert_array_equal(checks.numeric("X", twice), [[1.0, 1.0]])
