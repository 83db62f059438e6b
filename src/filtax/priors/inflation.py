"""(M.3) Drifts that act on each parameter alone: none (Static), added variance (ACI), shrink and perturb (SP).

Thesis: sec. on the conditional prior of chapter 3; ACI is a random walk. Time gaps: variance grows with dt,
shrinkage as shrink^dt, and two gaps are the same as one of their sum.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax import checks
from filtax.protocols import Dynamics

__all__ = ["AdditiveInflation", "ShrinkPerturb", "Static", "additive_inflation", "shrink_perturb", "static"]


class Static(Dynamics):
    """The parameters do not move.

    >>> Static().name
    'Static'
    """

    name = "Static"
    shown = {}  # noqa: RUF012
    needs = ()
    moves = False

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """Return the belief as it is."""
        return belief


class AdditiveInflation(Dynamics):
    """A random walk: each parameter gains variance q a tick.

    >>> additive_inflation(0.1).q
    0.1
    """

    q: Any
    name = "ACI"
    shown = {"q": None}  # noqa: RUF012
    needs = ("add",)
    moves = True

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """Widen the belief."""
        q = jnp.asarray(self.q)
        return belief.add(_held(q if dt is None else q * dt, belief.mean.dtype))


class ShrinkPerturb(Dynamics):
    """Shrink the parameters towards zero, then perturb them.

    >>> shrink_perturb(0.99, 0.01).shrink
    0.99
    """

    shrink: Any
    q: Any
    name = "SP"
    shown = {"shrink": None, "q": None}  # noqa: RUF012
    needs = ("affine",)
    moves = True

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """Theta -> shrink theta + e, e ~ N(0, q)."""
        shrink, q = jnp.asarray(self.shrink), jnp.asarray(self.q)
        if dt is not None:
            shrink, q = shrink**dt, q * _ticks_worth(shrink, dt)
        return belief.affine(shrink, None, jnp.sqrt(_held(q, belief.mean.dtype)))


def _held(q: Array, dtype: Any) -> Array:
    """A variance that overflowed as one whose root still has a square: a belief takes an infinite one for none."""
    return jnp.minimum(q, 0.25 * jnp.finfo(dtype).max)


def _ticks_worth(shrink: Array, dt: Array) -> Array:
    r"""Noise of dt ticks in units of one, $(1 - s^{2dt})/(1 - s^2)$: so two ticks in one are one after the other."""
    still = shrink >= 1.0
    safe = jnp.where(still, 0.5, shrink)
    return jnp.where(still, dt, (1.0 - safe ** (2.0 * dt)) / (1.0 - safe**2))


def static() -> Static:
    """Keep the parameters constant: every datum counts for ever.

    >>> import filtax as fx
    >>> fx.method("LG+C-Static", model=fx.models.linear(noise=1.0), prior=static()).name
    'LG+C-Static'
    """
    return Static()


def additive_inflation(q: Any) -> AdditiveInflation:
    """Let the parameters walk at random (ACI): the belief widens by variance q at each tick, times dt.

    Args:
        q: Variance, or (D,) variances, at least 0. Zero is `static()`.

    >>> import filtax as fx
    >>> kf = fx.method("LG+C-ACI", model=fx.models.linear(noise=1.0), prior=additive_inflation(0.5))
    >>> kf.predict(kf.init(mean=jnp.zeros(1), cov=1.0), jnp.ones(1)).var.item()
    2.5
    """
    checks.positive(
        "additive_inflation(q=...)", q, zero=True, hint="It is the variance added to each parameter per step."
    )
    checks.one_or_more("additive_inflation(q=...)", q)
    return AdditiveInflation(q)


def shrink_perturb(shrink: Any, q: Any) -> ShrinkPerturb:
    """Shrink the parameters by a factor and add variance q at each tick.

    Args:
        shrink: Factor in [0, 1], or (D,) of them; 1 is `additive_inflation(q)`.
        q: Variance, or (D,) variances, at least 0.

    >>> import filtax as fx
    >>> sp = fx.method("LG+C-SP", model=fx.models.linear(noise=1.0), prior=shrink_perturb(0.5, 0.0))
    >>> sp.predict(sp.init(mean=jnp.ones(1), cov=4.0), jnp.ones(1)).mean.item()
    0.5
    """
    checks.share("shrink_perturb(shrink=...)", shrink, hint="1 keeps the parameters, 0 forgets them.")
    checks.positive("shrink_perturb(q=...)", q, zero=True, hint="It is the variance added to each parameter per step.")
    checks.one_or_more("shrink_perturb(shrink=...)", shrink)
    checks.one_or_more("shrink_perturb(q=...)", q)
    return ShrinkPerturb(shrink, q)
