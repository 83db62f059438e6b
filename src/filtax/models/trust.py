r"""(M.1) How far a datum is believed: the weighting functions W of chapter 4, which filtax calls trust.

A trust is a function of one residual (O,) that returns a number w >= 0: the datum then counts as w² of one. The
residual is the whitened one, $r = R^{-1/2}(y - \hat y)$, so that a threshold c counts standard deviations of the noise.
`imq` alone takes the plain residual of the thesis where there is one (Gaussian noise), so that its c has the unit of y.

All are finite, with w = 0 as the limit, for residuals of any size, infinite ones included.

Thesis: subsec:choice-weighting-function, eq:w_t, eq:mahalanobis-weight, eq:thresholded-mahalanobis-weight (errata E21,
E22: w may be 0, and every threshold is a distance).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax import checks
from filtax.module import Module
from filtax.safe import safe_scale

__all__ = [
    "Huber",
    "Quadratic",
    "Supplied",
    "Tempered",
    "Threshold",
    "huber",
    "imq",
    "mahalanobis",
    "supplied",
    "tempered",
    "threshold",
]

C_HINT = "It is the distance from which on a datum loses trust, such as 4 standard deviations."


class Quadratic(Module):
    """w = (1 + |r|²/c²)^(-1/2): smooth, and the pull of a datum, w²|r|, is at most c/2.

    >>> mahalanobis(2.0)(jnp.array([2.0])).round(4).item()
    0.7071
    """

    c: Any
    raw: bool = eqx.field(static=True, default=False)
    shown = {"c": None}  # noqa: RUF012

    @property
    def name(self) -> str:
        """WoLF-IMQ on the plain residual, WoLF-MD on the whitened one."""
        return "WoLF-IMQ" if self.raw else "WoLF-MD"

    def __check_init__(self) -> None:
        checks.positive(f"{'imq' if self.raw else 'mahalanobis'}(c=...)", self.c, hint=C_HINT)

    def __call__(self, r: Float[Array, " O"]) -> Float[Array, ""]:
        """Trust of a residual."""
        scale, square, near = _distance(r, self.c)
        return jnp.where(near, 1.0 / jnp.sqrt(jnp.square(1.0 / scale) + square) / scale, 0.0)


class Threshold(Module):
    """w = 1 up to the distance c, and 0 beyond: what is too far is rejected.

    `floor` is the log density, in units of the noise, that a rejected datum has for the weighing of hypotheses: that of
    a datum on the gate, and the same for all.

    >>> [threshold(3.0)(jnp.array([r])).item() for r in (2.9, 3.1)]
    [1.0, 0.0]
    """

    c: Any
    name = "WoLF-TMD"
    shown = {"c": None}  # noqa: RUF012

    def __check_init__(self) -> None:
        checks.positive("threshold(c=...)", self.c, hint=C_HINT)

    def __call__(self, r: Float[Array, " O"]) -> Float[Array, ""]:
        """Trust of a residual."""
        return (jnp.sum(jnp.square(r / jnp.asarray(self.c, r.dtype))) <= 1.0).astype(r.dtype)  # inf is not <= 1

    def floor(self, count: Float[Array, ""]) -> Float[Array, ""]:
        """Log of exp(-c²/2), whatever the number of outputs."""
        return -0.5 * jnp.square(jnp.asarray(self.c, count.dtype))


class Huber(Module):
    """w² = min(1, c/|r|): full trust up to c, then a pull w²|r| that stays c.

    >>> huber(1.0)(jnp.array([4.0])).item()
    0.5
    """

    c: Any
    name = "WoLF-Huber"
    shown = {"c": None}  # noqa: RUF012

    def __check_init__(self) -> None:
        checks.positive("huber(c=...)", self.c, hint=C_HINT)

    def __call__(self, r: Float[Array, " O"]) -> Float[Array, ""]:
        """Trust of a residual."""
        scale, square, near = _distance(r, self.c)
        beyond = square > jnp.square(1.0 / scale)
        w = jnp.where(beyond, 1.0 / jnp.sqrt(scale * jnp.sqrt(jnp.where(beyond, square, 1.0))), 1.0)
        return jnp.where(near, w, 0.0)


class Tempered(Module):
    """w is a constant: every datum counts as w² of one, near or far.

    >>> tempered(0.5)(jnp.array([100.0])).item()
    0.5
    """

    w: Any
    name = "WoLF-Tempered"
    shown = {"w": None}  # noqa: RUF012

    def __call__(self, r: Float[Array, " O"]) -> Float[Array, ""]:
        """The constant."""
        return jnp.asarray(self.w, r.dtype)


class Supplied(Module):
    """A function of the user's.

    >>> supplied(lambda r: jnp.exp(-jnp.sum(r * r)))(jnp.zeros(2)).item()
    1.0
    """

    function: Callable = eqx.field(static=True)
    name = "WoLF-W"
    shown = {}  # noqa: RUF012

    def __call__(self, r: Float[Array, " O"]) -> Array:
        """What the function says."""
        try:
            return self.function(r)
        except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
            raise ValueError(
                "robust(trust=W): W must be written with jax.numpy, since it is compiled; use jnp.where instead of if, "
                "and jnp instead of np or float()."
            ) from error


def imq(c: Any) -> Quadratic:
    r"""Inverse multi-quadratic trust: $w = (1 + \|y - \hat y\|^2/c^2)^{-1/2}$ (eq:w_t).

    Args:
        c: Soft threshold in the unit of y. Under another likelihood than the Gaussian, where y - E[y] has no fixed
            scale, it is the whitened residual that counts, as in `mahalanobis`.

    Returns:
        A trust for `robust(model, trust=...)`.

    >>> imq(4.0).name
    'WoLF-IMQ'
    """
    return Quadratic(c, raw=True)


def mahalanobis(c: Any) -> Quadratic:
    r"""The same in units of the noise: $w = (1 + \|R^{-1/2}(y - \hat y)\|^2/c^2)^{-1/2}$ (eq:mahalanobis-weight).

    Args:
        c: Soft threshold in standard deviations of the noise; the answer does not depend on the unit of y.

    Returns:
        A trust for `robust(model, trust=...)`.

    >>> mahalanobis(4.0).name
    'WoLF-MD'
    """
    return Quadratic(c)


def threshold(c: Any) -> Threshold:
    """Hard gate: believe what lies within c standard deviations of the noise, reject the rest.

    Args:
        c: The gate: a distance, where the thesis prints its square (eq:thresholded-mahalanobis-weight, errata E22).

    Returns:
        A trust for `robust(model, trust=...)`.

    >>> threshold(4.0).name
    'WoLF-TMD'
    """
    return Threshold(c)


def huber(c: Any) -> Huber:
    """Full trust up to c standard deviations of the noise; beyond, the pull of a datum stays what it is at c.

    Bounded influence, yet not vanishing: however wrong a datum is, it pulls as one at c does.

    Args:
        c: Where the pull stops growing.

    Returns:
        A trust for `robust(model, trust=...)`.

    >>> huber(2.0).name
    'WoLF-Huber'
    """
    return Huber(c)


def tempered(w: Any) -> Tempered:
    """Constant trust: a power posterior, in which every datum counts as w² of one. Not robust to outliers.

    Args:
        w: The trust, at least 0; at most 1 to down-weight.

    Returns:
        A trust for `robust(model, trust=...)`.

    >>> tempered(0.5).w
    0.5
    """
    checks.positive("tempered(w=...)", w, zero=True, hint="It is the trust in every datum, such as 0.5.")
    return Tempered(w)


def supplied(trust: Any) -> Any:
    """Accept a ready trust, a callable pytree, or a plain function W(r) -> w.

    >>> supplied(imq(2.0)).c
    2.0
    """
    if not callable(trust):
        raise ValueError(
            f"robust(trust=...) must be a function of the whitened residual, such as imq(4.0), got {trust!r:.40}."
        )
    return trust if isinstance(trust, eqx.Module) else Supplied(trust)


def _distance(r: Array, c: Any) -> tuple[Array, Array, Array]:
    """|r|/c as scale * sqrt(square) with scale >= 1, and whether it is finite: no large number is ever squared.

    The scale has no slope, since the product does not depend on it. An infinite distance is set apart at once: XLA
    reorders divisions, and would meet inf / inf. So |r| has a scale of its own: in r / c / scale, c times the scale
    would be made first, and may be too large to have an inverse.
    """
    c = jnp.asarray(c, r.dtype)
    near = jnp.all(jnp.isfinite(r / c))
    r = jnp.where(near, r, 0.0)
    own = safe_scale(r)
    far = own / c
    scale = safe_scale(far[None], 1.0)
    return scale, jnp.sum(jnp.square(r / own)) * jnp.square(far / scale), near
