"""WoLF under every kind of posterior: what is not believed leaves each bit, and no datum is too far for a number."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import filtax as fx
from filtax.models import linear
from filtax.posteriors import blockwise

D, NOISE, HAZARD = 3, 0.5, 0.07
x = np.array([0.6, 0.0, 0.0], "float32")  # RBPF may see what it draws alone
FAR = np.concatenate([np.logspace(0.0, 38.5, 155), [3.4e38, np.inf]])
FAR = np.concatenate([FAR, -FAR]).astype("float32")
DAILY = ("LoFi(rank=1)", "PULSE", "OGD(rate=0.01, memory=3)")
BY_NIGHT = ("LG(form=diagonal)", "BONG", "BLR", "BBB", "RVGA(samples=4)", "EnKF(size=8)", "ETKF(size=8)")
BY_NIGHT += ("RVGA(rank=1)", "PF(size=20)", "APF(size=20)", "RBPF(size=20, drawn=1)")
every = pytest.mark.parametrize("name", [*DAILY, *(pytest.param(name, marks=pytest.mark.nightly) for name in BY_NIGHT)])


def build(trust, name, rest="C-Static"):
    if name != "PULSE":
        return fx.method(f"{trust}+{name}+{rest}", model=linear(noise=NOISE))
    return fx.method(f"{trust}+{rest}", model=linear(noise=NOISE), posterior=blockwise(("root", "covariance"), (1, 2)))


def begun(method):
    """A state that has seen two data."""
    key = jax.random.key(0)
    state = method.init(mean=jnp.zeros(D, "float32"), cov=1.0, key=key if _draws(method) else None)
    return method.scan(state, np.stack([x, x]), np.array([0.3, -0.2], "float32"))[0]


def _draws(method):
    return getattr(method.posterior, "draws", False) or getattr(method.posterior, "needs_key", False)


def leaves(hypotheses):
    """All of a bank but the random key and the record of forecasts, which go on."""
    named = jax.tree_util.tree_leaves_with_path(hypotheses)
    return [leaf for path, leaf in named if not jax.tree_util.keystr(path).endswith(("key", "judged"))]


@pytest.mark.x64  # though in 32 bits: once a day is enough
@every
def test_a_gate_leaves_every_bit_and_nothing_is_refused(name):
    """Every distance a float32 can have, infinity included; behind the gate the belief is that of a gap."""
    method = build("WoLF-TMD(c=3)", name)
    state = begun(method)
    after, info = jax.vmap(lambda y: method.step(state, x, y))(FAR)
    assert bool(jnp.all(info.ok))
    assert not np.any(after.refused)
    shut = np.abs(FAR) > 10.0
    assert np.all(np.asarray(info.trust)[shut] == 0.0)
    for before, now in zip(leaves(state.hypotheses), leaves(after.hypotheses), strict=True):
        assert np.all(np.isfinite(now))
        np.testing.assert_array_equal(now[shut], np.broadcast_to(before, now[shut].shape))


@pytest.mark.parametrize("name", ["PF(size=20)", "OGD(rate=0.01, memory=3)"])
@pytest.mark.parametrize("trust", ["WoLF-MD(c=3)", pytest.param("WoLF-Huber(c=3)", marks=pytest.mark.nightly)])
def test_no_datum_is_too_far_for_a_likelihood(name, trust):
    """The square of a residual may be no number while its trusted square is one: the datum is used, not refused."""
    method = build(trust, name)
    state = begun(method)
    after, info = jax.vmap(lambda y: method.step(state, x, y))(FAR)
    assert bool(jnp.all(info.ok))
    assert not np.any(after.refused)
    assert all(np.all(np.isfinite(leaf)) for leaf in leaves(after.hypotheses))


@pytest.mark.parametrize("y", [4.0, 1e9, 5e19])
def test_particles_are_weighed_by_the_trusted_square(y):
    """Weights and score in numpy with 64 bits; 5e19 has a square that float32 does not have."""
    method = build("WoLF-MD(c=3)", "PF(size=20, threshold=0)")
    belief = jax.tree.map(lambda leaf: leaf[0], begun(method).hypotheses.belief)
    got = update(method, belief, jnp.asarray(x), jnp.asarray([y], "float32"))
    members, log_weight = (np.asarray(leaf, "float64") for leaf in (belief.members, belief.log_weight))
    share = 1.0 / (1.0 + (y - np.exp(log_weight) @ members @ x) ** 2 / NOISE / 9.0)
    want = log_weight + share * scipy.stats.norm(members @ x, np.sqrt(NOISE)).logpdf(y)
    np.testing.assert_allclose(got.log_score, scipy.special.logsumexp(want), rtol=2e-5)
    np.testing.assert_allclose(got.belief.log_weight, scipy.special.log_softmax(want), atol=2e-5)


@jax.jit
def update(method, belief, x, y):
    return method.posterior.update(belief, method.model, x, y, None, None, None)


@pytest.mark.x64
@pytest.mark.parametrize("name", ["LG", pytest.param("PF(size=50)", marks=pytest.mark.nightly)])
def test_the_last_bit_does_not_tell_of_a_change(name):
    """Huber's score grows with the distance: hypotheses differ by a bounded amount, which rounding must not exceed."""
    method = build("WoLF-Huber(c=3)", name, f"RL[4]-PR(hazard={HAZARD})")
    state = begun(method)
    info = jax.vmap(lambda y: method.step(state, x, y)[1])(FAR)
    change = np.asarray(info.change_probability)
    assert np.all(change < 0.5)
    np.testing.assert_allclose(change[np.abs(FAR) > 1e6], HAZARD, atol=1e-4)
