"""State and Info are plain pytrees: what they hold, what a later state shares with the first, and what is omitted."""

import jax
import jax.numpy as jnp
import numpy as np

import filtax as fx
from filtax.state import INFO, ConditioningWarning, Info

KF = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))


def test_a_state_can_be_stored_stacked_and_flattened():
    leaves, structure = jax.tree.flatten(KF.init(mean=jnp.zeros(2), cov=1.0))
    stored = [np.asarray(leaf) for leaf in leaves]
    again = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in stored])
    after, info = KF.step(again, [1.0, 0.0], 2.0)
    np.testing.assert_allclose(KF.belief(after).mean, [1.0, 0.0], rtol=1e-6)  # half of 2: noise equals prior
    two = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), again)
    both, _ = jax.vmap(KF.step)(two, jnp.eye(2), jnp.array([2.0, 4.0]))
    np.testing.assert_allclose(both.hypotheses.belief.mean[:, 0], [[1.0, 0.0], [0.0, 2.0]], rtol=1e-6)
    assert both.t.tolist() == [1, 1]
    assert bool(info.ok)


def test_a_step_is_counted_whatever_it_brings():
    """A gap is a step and no refusal; infinity is both; the strain is the largest ratio so far."""
    state = KF.init(mean=jnp.zeros(1), cov=4.0)
    for y, refused in ((np.nan, 0), (np.inf, 1), (1.0, 1), (1.0, 1)):
        state, info = KF.step(state, [1.0], y)
        assert (int(state.refused), bool(info.ok)) == (refused, not np.isinf(y))
    assert int(state.t) == 4
    np.testing.assert_allclose(
        state.conditioning_ratio, 4.0, rtol=1e-6
    )  # prior variance over noise; later ones are smaller


def test_info_holds_what_was_kept():
    assert jax.tree.leaves(Info()) == []
    _, infos = KF.scan(KF.init(mean=jnp.zeros(1)), np.ones((3, 1)), np.zeros(3), keep=("mean", "belief_cov"))
    assert (infos.mean.shape, infos.belief_cov.shape) == ((3,), (3, 1, 1))
    assert len(jax.tree.leaves(infos)) == 2
    _, info = KF.step(KF.init(mean=jnp.zeros(1)), [1.0], 0.0)
    assert {name for name in vars(info) if hasattr(getattr(info, name), "shape")} == set(INFO)
    assert issubclass(ConditioningWarning, UserWarning)
