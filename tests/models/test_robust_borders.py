"""(M.1) WoLF at its borders: trusts of a user's own, sweeps of a threshold, names, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.models import imq, linear, robust
from filtax.protocols import Module
from wolf import D, H, R, X, Y, y_line


@pytest.mark.x64
def test_a_trust_of_ones_own():
    """A function, and a pytree with settings that can be swept; both see the whitened residual."""

    class Mine(Module):
        sharpness: float

        def __call__(self, r):
            return jnp.exp(-self.sharpness * jnp.sum(r * r))

    mine = fx.method("LG+C-Static", model=robust(linear(noise=4.0), trust=Mine(0.1)))
    other = fx.method("LG+C-Static", model=robust(linear(noise=4.0), trust=lambda r: jnp.exp(-0.1 * jnp.sum(r * r))))
    state = mine.init(mean=np.zeros(2), cov=1.0)
    for wolf in (mine, other):
        _, info = wolf.step(state, X[0], 3.0)
        np.testing.assert_allclose(info.trust, np.exp(-0.1 * 9.0 / 4.0), rtol=1e-13)
        after, info = wolf.step(state, X[0], np.inf)
        assert bool(info.ok)
        jax.tree.map(np.testing.assert_array_equal, after.hypotheses, state.hypotheses)
    assert mine.name == "WoLF-Mine+C-Static"
    assert other.name == "WoLF-W+C-Static"


def test_a_trust_that_is_no_trust_is_refused_and_counted():
    """NaN, negative, infinite: taken as 0, the datum is not used, and a fault of W does not spread."""
    for W in (lambda r: jnp.nan * r[0], lambda r: -jnp.ones(()), lambda r: jnp.full((), jnp.inf)):
        wolf = fx.method("LG+C-Static", model=robust(linear(noise=0.5), trust=W))
        state = wolf.init(mean=jnp.zeros(D, "float32"), cov=1.0)
        after, info = wolf.step(state, np.float32(X[0, [0, 1, 0]]), np.float32(1.0))
        assert not bool(info.ok)
        assert float(info.trust) == 0.0
        assert int(after.refused) == 1
        assert np.isfinite(float(info.log_evidence))  # the forecast was made, and was right or wrong, all the same
        jax.tree.map(np.testing.assert_array_equal, after.hypotheses, state.hypotheses)
        _, infos = wolf.scan(state, np.ones((3, D), "float32"), np.ones(3, "float32"), complete=True)
        assert not bool(infos.ok.any())


@pytest.mark.x64
@pytest.mark.nightly
def test_the_threshold_can_be_swept_and_sloped():
    def total(c):
        wolf = fx.method("LG+C-Static", model=robust(linear(noise=0.5), imq(c)))
        return wolf.scan(wolf.init(mean=jnp.zeros(2), cov=1.0), X, y_line, keep=("log_evidence",))[1].log_evidence.sum()

    cs = jnp.array([0.5, 2.0, 8.0])
    np.testing.assert_allclose(jax.vmap(total)(cs), [total(c) for c in cs], rtol=1e-12)
    np.testing.assert_allclose(jax.grad(total)(2.0), (total(2 + 1e-6) - total(2 - 1e-6)) / 2e-6, rtol=1e-6)


def test_refusals():
    """What was given, what was expected, what to do."""
    plain = linear(noise=1.0)
    with pytest.raises(ValueError, match=r"robust\(trust=...\) must be a function of the whitened residual.*got 3"):
        robust(plain, trust=3)
    with pytest.raises(ValueError, match=r"robust already; give the plain one"):
        robust(robust(plain, imq(2.0)), imq(2.0))
    with pytest.raises(ValueError, match=r"robust already; give the plain one"):
        fx.method("WoLF-IMQ(c=4)+C-Static", model=robust(plain, imq(2.0)))
    with pytest.raises(ValueError, match=r"robust\(model=...\) must come from filtax.models.*got float"):
        robust(1.0, imq(2.0))
    with pytest.raises(ValueError, match=r"WoLF-IMQ needs c; write WoLF-IMQ\(c=...\)"):
        fx.method("WoLF-IMQ+C-Static", model=plain)
    with pytest.raises(ValueError, match=r"no trust 'WoLF-IMC'. Did you mean \"WoLF-IMQ\"\?"):
        fx.method("WoLF-IMC(c=4)+C-Static", model=plain)
    with pytest.raises(ValueError, match=r"imq\(c=...\) must be finite and above 0, got 0.0"):
        fx.method("WoLF-IMQ(c=0)+C-Static", model=plain)
    with pytest.raises(ValueError, match=r"only be learned under Gaussian noise"):
        fx.method("WoLF-MD(c=4)+NIG+C-Static", model=linear(likelihood=fx.models.bernoulli()))
    wide = fx.method("LG+C-Static", model=robust(linear(noise=R), lambda r: r))
    with pytest.raises(
        ValueError, match=r"W returned an array of shape \(2,\) for 2 outputs; it must return one number"
    ):
        wide.step(wide.init(mean=jnp.zeros(D), cov=1.0), H[0], Y[0])


@pytest.mark.x64
def test_what_is_impossible_stays_refused():
    """Infinity is the limit of large numbers, and of large counts; it is no label, and no count is negative."""
    for family, y, taken in (
        ("poisson", np.inf, True),
        ("poisson", -np.inf, False),
        ("poisson", 2.5, False),
        ("bernoulli", np.inf, False),
        ("categorical", np.inf, False),
    ):
        wolf = fx.method("WoLF-MD(c=3)+C-Static", model=linear(likelihood=getattr(fx.models, family)()))
        state = wolf.init(mean=jnp.zeros(2), cov=1.0)
        after, info = wolf.step(state, X[0] if family != "categorical" else X[0, :1], y)
        assert bool(info.ok) == taken
        jax.tree.map(np.testing.assert_array_equal, after.hypotheses.belief, state.hypotheses.belief)
