r"""(M.1) Does a trust make a filter robust? The two conditions of theorem:wolf-bounded, looked at in numbers.

A WoLF posterior has a bounded influence if $\sup W < \infty$ and $\sup W^2\|y\| < \infty$. Both are evaluated along
rays, out to 1e36 standard deviations; a bound counts as one if it has stopped growing there.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from filtax import checks
from filtax.models.trust import supplied

__all__ = ["TrustCheck", "check_trust"]

RADII = np.concatenate([[0.0], np.logspace(-6.0, 36.0, 421)])
FAR = 1e20  # from here on a bounded quantity must not grow any more


@dataclass(frozen=True)
class TrustCheck:
    """What `check_trust` found.

    Attributes:
        sup_trust: Largest trust met.
        sup_pull: Largest W²|r| met: how far, in whitened units, one datum can pull.
        bounded: Whether both are bounds, so that no datum can move the posterior without limit.
        verdict: The same in a sentence.

    >>> from filtax.models import check_trust, threshold
    >>> check_trust(threshold(3.0)).bounded
    True
    """

    sup_trust: float
    sup_pull: float
    bounded: bool
    verdict: str


def check_trust(trust: Any, outputs: Any = 1) -> TrustCheck:
    """Look whether a trust function makes a filter robust.

    Args:
        trust: A function W(r) -> w of the whitened residual (O,), or a trust of `filtax.models`.
        outputs: O, how many outputs the residual has; rays are followed along each, and across all of them.

    Returns:
        The two suprema of theorem:wolf-bounded, and a verdict.

    >>> from filtax.models import mahalanobis, tempered
    >>> found = check_trust(mahalanobis(4.0))
    >>> round(found.sup_trust, 3), round(found.sup_pull, 2), found.bounded
    (1.0, 2.0, True)
    >>> check_trust(tempered(0.5)).verdict
    'Not robust: W²|r| still grows at |r| = 1e+36, so one datum can move the posterior without limit.'
    """
    checks.whole("check_trust(outputs=...)", outputs, least=1, hint="It is how many numbers the residual has.")
    rays = np.concatenate([np.eye(outputs), np.ones((1, outputs)) / np.sqrt(outputs)])
    rays = np.concatenate([rays, -rays])
    w = _along(supplied(trust), rays)
    wrong = ~(w >= 0.0)
    if wrong.any():
        at = RADII[np.flatnonzero(wrong.any(axis=0))[0]]
        text = f"No trust: W is negative or NaN at |r| = {at:.3g}; it must return a number of at least 0 there."
        sups = (np.nan, np.nan) if np.isnan(w).all() else (np.nanmax(w), np.nanmax(w**2 * RADII))
        return TrustCheck(float(sups[0]), float(sups[1]), False, text)
    pull = w**2 * RADII
    for name, values in (("W", w), ("W²|r|", pull)):
        if not np.all(np.isfinite(values)) or _grows(values):
            text = f"Not robust: {name} still grows at |r| = 1e+36, so one datum can move the posterior without limit."
            return TrustCheck(float(w.max()), float(pull.max()), False, text)
    last = float(pull[:, -1].max())
    end = "vanishes far away" if last < 1e-3 * pull.max() else f"stays {last:.3g} however far it is"
    text = f"Robust: W is at most {w.max():.3g}; the pull W²|r| of a datum is at most {pull.max():.3g}, and {end}."
    return TrustCheck(float(w.max()), float(pull.max()), True, text)


def _along(trust: Any, rays: np.ndarray) -> np.ndarray:
    """Trust at every radius of every ray, in the default float of JAX."""
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
