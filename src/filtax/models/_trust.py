r"""(M.1) How far a datum is trusted: the weighting functions W of chapter 4, and a check of their robustness.

A trust is a function of one residual (O,) that returns a number w >= 0: the datum then counts as w² of one. The
residual is the whitened one, $r = R^{-1/2}(y - \hat y)$, so that c counts standard deviations of the noise. Only `imq`
takes the plain residual where the noise is Gaussian, so that its c has the unit of y. All are finite for residuals of
any size, and w = 0 for infinite ones.

A WoLF posterior has a bounded influence if $\sup W < \infty$ and $\sup W^2\|y\| < \infty$ (theorem:wolf-bounded).

Thesis: subsec:choice-weighting-function, eq:w_t, eq:mahalanobis-weight, eq:thresholded-mahalanobis-weight (errata E21,
E22: w may be 0, and every threshold is a distance).
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from filtax import _validation as checks
from filtax.numerics import safe_scale
from filtax.protocols import Module, static

RADII = np.concatenate([[0.0], np.logspace(-6.0, 36.0, 421)])  # along each ray, for `check_trust`
FAR = 1e20  # from this radius on a bounded quantity must not grow any more


class Trust(Module):
    """W(r) of a residual (O,). The name of a method prints `name` and the settings in `shown`."""

    name = "WoLF-W"
    shown: ClassVar[dict[str, Any]] = {}
    raw = False  # whether W takes the plain residual where the noise is Gaussian, and not the whitened one

    @abstractmethod
    def __call__(self, r: Float[Array, " O"]) -> Float[Array, ""]:
        """Trust in a datum with residual r, in which missing outputs are 0."""

    def floor(self, count: Float[Array, ""]) -> Float[Array, ""] | None:
        """Log density, in units of the noise, that a rejected datum has for hypotheses; None if it has no scale."""
        return None


class OfDistance(Trust):
    """A trust that depends on the distance |r| in units of c; `call` is the function that a user calls."""

    c: Any
    call: ClassVar[str]
    shown: ClassVar = {"c": None}

    def __check_init__(self) -> None:
        hint = "It is the distance from which on a datum loses trust, such as 4 standard deviations."
        checks.positive(f"{self.call}(c=...)", self.c, hint=hint)


class Mahalanobis(OfDistance):
    """w = (1 + |r|²/c²)^(-1/2): smooth, and the pull of a datum, w²|r|, is at most c/2."""

    name = "WoLF-MD"
    call = "mahalanobis"

    def __call__(self, r: Float[Array, " O"]) -> Float[Array, ""]:
        scale, square, near = _distance(r, self.c)
        return jnp.where(near, 1.0 / jnp.sqrt(jnp.square(1.0 / scale) + square) / scale, 0.0)


class InverseMultiquadratic(Mahalanobis):
    """The same of the plain residual, where the noise is Gaussian: c has the unit of y."""

    name = "WoLF-IMQ"
    call = "imq"
    raw = True


class Threshold(OfDistance):
    """w = 1 up to the distance c, and 0 beyond: a datum farther away is rejected.

    For the weighing of hypotheses a rejected datum counts as one at the distance c, for all hypotheses alike.
    """

    name = "WoLF-TMD"
    call = "threshold"

    def __call__(self, r: Float[Array, " O"]) -> Float[Array, ""]:
        return (jnp.sum(jnp.square(r / jnp.asarray(self.c, r.dtype))) <= 1.0).astype(r.dtype)  # inf is not <= 1

    def floor(self, count: Float[Array, ""]) -> Float[Array, ""]:
        """Log of exp(-c²/2), whatever the number of outputs."""
        return -0.5 * jnp.square(jnp.asarray(self.c, count.dtype))


class Huber(OfDistance):
    """w² = min(1, c/|r|): full trust up to c, then a pull w²|r| that stays c."""

    name = "WoLF-Huber"
    call = "huber"

    def __call__(self, r: Float[Array, " O"]) -> Float[Array, ""]:
        scale, square, near = _distance(r, self.c)
        beyond = square > jnp.square(1.0 / scale)
        w = jnp.where(beyond, 1.0 / jnp.sqrt(scale * jnp.sqrt(jnp.where(beyond, square, 1.0))), 1.0)
        return jnp.where(near, w, 0.0)


class Tempered(Trust):
    """w is a constant: every datum counts as w² of one, near or far."""

    w: Any
    name = "WoLF-Tempered"
    shown: ClassVar = {"w": None}

    def __call__(self, r: Float[Array, " O"]) -> Float[Array, ""]:
        return jnp.asarray(self.w, r.dtype)


class Supplied(Trust):
    """A function of the user's own, or a callable pytree, whose settings can be traced and whose class names it."""

    module: Any = None
    function: Callable | None = static(default=None)

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """With the class of a pytree; a function has no name."""
        return Trust.name if self.module is None else f"WoLF-{type(self.module).__name__}"

    def __call__(self, r: Float[Array, " O"]) -> Array:
        try:
            return self.module(r) if self.function is None else self.function(r)
        except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
            raise ValueError(
                "robust(trust=W): W must be written with jax.numpy, since it is compiled; use jnp.where instead of if, "
                "and jnp instead of np or float()."
            ) from error


class Scaled(Trust):
    """A trust times a constant."""

    inner: Trust
    w: Any

    @property
    def raw(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the inner trust."""
        return self.inner.raw

    def __call__(self, r: Float[Array, " O"]) -> Float[Array, ""]:
        return jnp.asarray(self.w, r.dtype) * self.inner(r)


def imq(c: Any) -> InverseMultiquadratic:
    r"""Trust that falls smoothly with the residual y - ŷ; c has the unit of y.

    $w = (1 + \|y - \hat y\|^2/c^2)^{-1/2}$, the inverse multi-quadratic (eq:w_t).

    Args:
        c: Soft threshold in the unit of y. Where the noise is not Gaussian, y - E[y] has no fixed scale, and the trust
            takes the whitened residual, as `mahalanobis` does.

    >>> imq(4.0).name
    'WoLF-IMQ'
    """
    return InverseMultiquadratic(c)


def mahalanobis(c: Any) -> Mahalanobis:
    r"""Trust that falls smoothly with the whitened residual; c counts standard deviations of the noise.

    $w = (1 + \|R^{-1/2}(y - \hat y)\|^2/c^2)^{-1/2}$ (eq:mahalanobis-weight).

    Args:
        c: Soft threshold in standard deviations of the noise, whatever the unit of y.

    >>> mahalanobis(4.0).name
    'WoLF-MD'
    """
    return Mahalanobis(c)


def threshold(c: Any) -> Threshold:
    """Hard gate: full trust within c standard deviations of the noise, none beyond.

    Args:
        c: The gate: a distance, where the thesis prints its square (eq:thresholded-mahalanobis-weight, errata E22).

    >>> threshold(4.0).name
    'WoLF-TMD'
    """
    return Threshold(c)


def huber(c: Any) -> Huber:
    """Full trust up to c standard deviations of the noise; beyond, a datum pulls as one at c does.

    The influence of a datum is bounded, but does not vanish however wrong it is.

    Args:
        c: Where the pull stops growing.

    >>> huber(2.0).name
    'WoLF-Huber'
    """
    return Huber(c)


def tempered(w: Any) -> Tempered:
    """Constant trust: every datum counts as w² of one (power posterior). It is not robust to outliers.

    Args:
        w: The trust, at least 0; at most 1 to down-weight.

    >>> tempered(0.5).w
    0.5
    """
    checks.positive("tempered(w=...)", w, zero=True, hint="It is the trust in every datum, such as 0.5.")
    return Tempered(w)


def supplied(trust: Any) -> Any:
    """The trust that a `Trust`, a callable pytree or a plain function W(r) -> w stands for."""
    if not callable(trust):
        raise ValueError(
            f"robust(trust=...) must be a function of the whitened residual, such as imq(4.0), got {trust!r:.40}."
        )
    if isinstance(trust, Trust):
        return trust
    return Supplied(trust) if isinstance(trust, Module | eqx.Module) else Supplied(None, trust)


def _distance(r: Array, c: Any) -> tuple[Array, Array, Array]:
    """|r|/c as scale * sqrt(square) with scale >= 1, and whether it is finite; no large number is ever squared.

    The scale has no gradient, since the product does not depend on it. Infinite distances are replaced first, and |r|
    has a scale of its own, because XLA reorders divisions: it would compute inf / inf, and c times the scale, whose
    inverse may underflow.
    """
    c = jnp.asarray(c, r.dtype)
    near = jnp.all(jnp.isfinite(r / c))
    r = jnp.where(near, r, 0.0)
    own = safe_scale(r)
    far = own / c
    scale = safe_scale(far[None], 1.0)
    return scale, jnp.sum(jnp.square(r / own)) * jnp.square(far / scale), near


@dataclass(frozen=True)
class TrustCheck:
    """The result of `check_trust`.

    Attributes:
        sup_trust: Largest W on the rays.
        sup_pull: Largest W²|r| on the rays: how far, in whitened units, one datum can pull.
        bounded: Whether both are bounded, so that no datum can move the posterior without limit.
        verdict: The result in a sentence.

    >>> check_trust(threshold(3.0)).bounded
    True
    """

    sup_trust: float
    sup_pull: float
    bounded: bool
    verdict: str


def check_trust(trust: Any, outputs: Any = 1) -> TrustCheck:
    """Check whether a trust function makes a filter robust, by the two suprema of theorem:wolf-bounded.

    Args:
        trust: A function W(r) -> w of the whitened residual (O,), or a trust of `filtax.models`.
        outputs: O, how many outputs the residual has; rays are followed along each, and across all of them.

    >>> found = check_trust(mahalanobis(4.0))
    >>> round(found.sup_trust, 3), round(found.sup_pull, 2), found.bounded
    (1.0, 2.0, True)
    >>> check_trust(tempered(0.5)).verdict
    'Not robust: W²|r| still grows at |r| = 1e+36, so one datum can move the posterior without limit.'
    """
    checks.whole("check_trust(outputs=...)", outputs, least=1, hint="It is how many numbers the residual has.")
    rays = np.concatenate([np.eye(outputs), np.ones((1, outputs)) / np.sqrt(outputs)])
    w = _along(supplied(trust), np.concatenate([rays, -rays]))
    pull = w**2 * RADII
    wrong = ~(w >= 0.0)
    if wrong.any():
        at = RADII[np.flatnonzero(wrong.any(axis=0))[0]]
        text = f"No trust: W is negative or NaN at |r| = {at:.3g}; it must return a number of at least 0 there."
        return TrustCheck(float(np.fmax.reduce(w, axis=None)), float(np.fmax.reduce(pull, axis=None)), False, text)
    sups = float(w.max()), float(pull.max())
    for name, values in (("W", w), ("W²|r|", pull)):
        if not np.all(np.isfinite(values)) or _grows(values):
            text = f"Not robust: {name} still grows at |r| = 1e+36, so one datum can move the posterior without limit."
            return TrustCheck(*sups, False, text)
    last = float(pull[:, -1].max())
    end = "vanishes far away" if last < 1e-3 * sups[1] else f"stays {last:.3g} however far it is"
    text = f"Robust: W is at most {sups[0]:.3g}; the pull W²|r| of a datum is at most {sups[1]:.3g}, and {end}."
    return TrustCheck(*sups, True, text)


def _along(trust: Any, rays: np.ndarray) -> np.ndarray:
    """Trust at each radius of each ray, in JAX's default float."""
    residuals = jnp.asarray(rays[:, None, :] * RADII[None, :, None], jnp.result_type(float))
    w = np.asarray(jax.vmap(jax.vmap(trust))(residuals), "float64")
    if w.size != rays.shape[0] * RADII.size:
        raise ValueError(
            f"check_trust(W): W returned an array of shape {w.shape[2:]} for {rays.shape[1]} outputs; it must return "
            "one number for the whole residual, such as jnp.exp(-jnp.sum(r * r))."
        )
    return w.reshape(rays.shape[0], RADII.size)


def _grows(values: np.ndarray) -> bool:
    tail = values[:, RADII >= FAR]
    return bool(np.any(tail.max(axis=1) > 1.01 * tail[:, 0]))
