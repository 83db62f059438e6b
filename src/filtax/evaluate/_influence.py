r"""The posterior influence function: how far one corrupted datum moves the posterior.

$\mathrm{PIF}(y^c) = \mathrm{KL}(q(\theta\mid y^c)\,\|\,q(\theta\mid y))$, in nats. For a Kalman filter it is exactly
quadratic in the corruption, so no bound exists; for WoLF it is bounded, and tends to KL(prior ‖ clean posterior).

Thesis: theorem:kf-unbounded, theorem:wolf-bounded (errata E24: the quadratic form; E25: corrupted to clean, as the
definition has it).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from filtax import _validation as checks
from filtax.beliefs import kl
from filtax.bone import Bone
from filtax.state import State


def posterior_influence(method: Bone, state: Any, x: Any, y: Any, y_contaminated: Any) -> Array:
    """Divergence of the posterior under a contaminated datum from that under the clean one.

    Closed form for Gaussian, Beta and Gamma beliefs. With several hypotheses it is that of the Gaussians with the
    mixtures' means and covariances.

    Args:
        method: The method whose step is examined.
        state: The state before the datum.
        x: As for `step`.
        y: The clean datum, () or (O,).
        y_contaminated: What comes instead: of the shape of y, or with leading axes, a grid of them.

    Returns:
        KL in nats, of the shape of the leading axes; NaN where the contaminated datum is refused: there is then no
        posterior under it.

    >>> import filtax as fx
    >>> kf, wolf = (fx.method(f"{name}+C-Static", model=fx.models.linear(noise=1.0)) for name in ("LG", "WoLF-MD(c=2)"))
    >>> state = kf.init(mean=jnp.zeros(1), cov=1.0)
    >>> wrong = jnp.array([10.0, 100.0])
    >>> posterior_influence(kf, state, jnp.ones(1), 0.0, wrong).round(1).tolist()
    [25.0, 2500.0]
    >>> posterior_influence(wolf, state, jnp.ones(1), 0.0, wrong).round(2).tolist()
    [0.27, 0.15]
    """
    checks.check_state("posterior_influence", state)
    x, y, wrong = checks.arrays(x=x, y=y, y_contaminated=y_contaminated)
    lead = wrong.ndim - y.ndim
    if lead < 0 or wrong.shape[lead:] != y.shape:
        raise ValueError(
            f"posterior_influence: y_contaminated has shape {wrong.shape} but y has shape {y.shape}; give data of that "
            "shape, with any leading axes."
        )
    flat = jnp.asarray(wrong).reshape(-1, *y.shape)
    return _influence(method, state, x, y, flat).reshape(wrong.shape[:lead])


@jax.jit
def _influence(method: Bone, state: State, x: Array | None, y: Array, wrong: Array) -> Array:
    clean = method.belief(method.step(state, x, y)[0])

    def one(y_wrong: Array) -> Array:
        after, _ = method.step(state, x, y_wrong)
        return jnp.where(after.refused > state.refused, jnp.nan, kl(method.belief(after), clean))

    return jax.vmap(one)(wrong)
