"""How a pytree of parameters lies in the flat vector: there and back, without loss and without a second compilation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filtax.ravel import Layout, flatten

shapes = st.lists(st.integers(1, 3), max_size=3).map(tuple)
trees = st.recursive(
    shapes,
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, min_size=1),
    max_leaves=5,
)


def is_shape(node):
    return isinstance(node, tuple)


@given(tree=trees, seed=st.integers(0, 9))
def test_there_and_back(tree, seed):
    rng = np.random.default_rng(seed)
    params = jax.tree.map(lambda shape: rng.normal(size=shape).astype("float32"), tree, is_leaf=is_shape)
    theta, layout = flatten(params)
    leaves = jax.tree.leaves(params)
    np.testing.assert_array_equal(theta, np.concatenate([np.ravel(leaf) for leaf in leaves]))
    back = layout.restore(theta)
    assert jax.tree.structure(back) == jax.tree.structure(params)
    for left, right in zip(jax.tree.leaves(back), leaves, strict=True):
        assert left.shape == right.shape
        np.testing.assert_array_equal(left, right)


def test_rows_of_a_matrix_follow_one_another():
    theta, layout = flatten({"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.array(-1.0)})
    assert theta.tolist() == [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]  # keys by the alphabet, matrices row by row
    assert layout.restore(10.0 * theta)["w"][1].tolist() == [30.0, 40.0, 50.0]


def test_equal_layouts_share_a_compilation():
    compiled = []

    @jax.jit
    def use(layout, theta):
        compiled.append(layout)
        return layout.restore(theta)["w"].sum()

    for value in (1.0, 2.0):
        theta, layout = flatten({"w": jnp.full((2, 2), value)})
        use(layout, theta)
    assert len(compiled) == 1
    assert flatten({"w": jnp.zeros((2, 2))})[1] == Layout(layout.structure, ((2, 2),))
    assert flatten({"w": jnp.zeros(4)})[1] != layout


def test_python_numbers_take_the_type_of_the_arrays():
    theta, layout = flatten([jnp.ones(2, "float32"), 3.0])
    assert theta.dtype == "float32"
    assert layout.shapes == ((2,), ())


@pytest.mark.parametrize(
    ("params", "part"),
    [
        ({}, "holds no arrays"),
        ([None], "holds no arrays"),
        ({"n": jnp.arange(3)}, "int"),
        ([True], "bool"),
        ([jnp.tanh], "must hold float arrays"),
    ],
)
def test_refuses(params, part):
    with pytest.raises(ValueError, match=part) as error:
        flatten(params)
    assert str(error.value).startswith("init(params=...)")
