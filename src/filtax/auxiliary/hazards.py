r"""(M.2) Hazards: the probability that a regime which has lasted r steps ends at the next one.

A hazard is a number, a function of the run length, or comes from a law of segment lengths: with $P(\ell)$ the
probability that a segment holds $\ell$ data, $H(r) = P(r+1) / P(\ell > r)$, as `from_lengths(law.pmf(lengths))` with
a law of `scipy.stats` and lengths 1, 2, ... up to the longest segment that may occur.

Thesis: eq:transition-rl-markov; hazards lie in [0, 1], 0 is the static filter and 1 a reset at every step.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from filtax import _validation as checks
from filtax.beliefs._square_root import two_sum
from filtax.protocols import Module, static

__all__ = ["Flat", "FromFunction", "FromLengths", "from_lengths"]


class Flat(Module):
    """The same hazard at every run length; over a time step dt it is 1 - (1 - rate)^dt.

    >>> Flat(0.5)(jnp.array([0, 3]), None).tolist()
    [0.5, 0.5]
    """

    rate: Any

    def __call__(self, runlength: Int[Array, " C"], dt: Array | None) -> Float[Array, " C"]:
        """Hazard of each hypothesis."""
        rate = jnp.asarray(self.rate)
        rate = rate if dt is None else 1.0 - (1.0 - rate) ** dt
        return jnp.broadcast_to(rate, runlength.shape)


class FromLengths(Module):
    """A table of hazards by run length; the last one holds for all longer runs.

    >>> from_lengths([0.5, 0.5])(jnp.array([0, 1, 9]), None).tolist()
    [0.5, 1.0, 1.0]
    """

    table: Float[Array, " L"]
    rate = None

    def __call__(self, runlength: Int[Array, " C"], dt: Array | None) -> Float[Array, " C"]:
        """Hazard of each hypothesis."""
        _no_gaps(dt)
        return self.table[jnp.minimum(runlength, self.table.size - 1)]


class FromFunction(Module):
    """A function of the run length.

    >>> hazard(lambda r: 1.0 / (r + 2.0))(jnp.array([0]), None).tolist()
    [0.5]
    """

    function: Callable = static()
    rate = None

    def __call__(self, runlength: Int[Array, " C"], dt: Array | None) -> Float[Array, " C"]:
        """Hazard of each hypothesis, clipped to [0, 1]."""
        _no_gaps(dt)
        return jnp.clip(jnp.asarray(self.function(runlength.astype(jnp.result_type(float)))), 0.0, 1.0)


def log_odds(law: Any, runlength: Int[Array, " C"], dt: Array | None, dtype: Any) -> tuple[Array, Array]:
    """Log probabilities of a change and of no change, (C,); a constant hazard is computed once."""
    h = (law(runlength[:1], dt)[0] if isinstance(law, Flat) else law(runlength, dt)).astype(dtype)
    return jnp.broadcast_to(jnp.log(h), runlength.shape), jnp.broadcast_to(jnp.log1p(-h), runlength.shape)


def going_on(old: Float[Array, " C"], log_stay: Float[Array, " C"]) -> tuple[Array, Array | None]:
    """Log weights of runs that go on, and their rounding errors; None in float64.

    A constant hazard adds the same small number at every step, and between two powers of 2 the sum is rounded in the
    same direction each time: in float32 a run of 800 steps has an error of 1e-4. Adding the rounding error to the next
    score, which is of its size, avoids that.
    """
    weight, rounded = two_sum(old, log_stay)
    if jnp.finfo(old.dtype).bits >= 64:
        return weight, None
    return weight, jnp.where(jnp.isfinite(weight), rounded, 0.0)


def hazard(given: Any) -> Any:
    """Turn a number, a function of the run length, or a law of segment lengths into a hazard."""
    if isinstance(given, Flat | FromLengths | FromFunction):
        return given
    if callable(given):
        checks.share(
            "hazard=...", _sampled(given), hint="A function of the run length gives the probability of a change."
        )
        return FromFunction(given)
    if isinstance(given, str):
        raise ValueError(
            f"hazard={given} is no number; write hazard=0.01, or give a law or a function by "
            "auxiliary=filtax.auxiliary.run_length(...)."
        )
    if np.shape(given) not in ((), (1,)):
        raise ValueError(
            f"hazard=... must be one number, got shape {np.shape(given)}; give a function of the run length, or "
            "filtax.auxiliary.hazards.from_lengths(...), where it changes with the run."
        )
    checks.share("hazard=...", given, hint="It is the probability of a change at a step.")
    return Flat(given)


def from_lengths(probabilities: Sequence[float] | Any) -> FromLengths:
    """Hazard of a law of segment lengths, given as the probabilities of 1, 2, ... data.

    Args:
        probabilities: (L,), at least 0, with a sum of at most 1; the rest is the probability of more than L data.

    >>> from_lengths([0.25, 0.75]).table.tolist()
    [0.25, 1.0]
    """
    law = np.asarray(probabilities, "float64")
    if law.ndim != 1 or law.size == 0 or (law < 0).any() or not law.sum() <= 1.0 + 1e-9:
        raise ValueError(
            f"from_lengths(probabilities=...) must be a vector of probabilities with a sum of at most 1, got shape "
            f"{law.shape} and sum {law.sum():.4g}; give P(1), P(2), ..."
        )
    beyond = 1.0 - law.sum()
    left = (beyond if beyond > 1e-9 else 0.0) + np.cumsum(law[::-1])[::-1]  # from the end: no digits are lost
    return FromLengths(jnp.asarray(np.clip(np.where(left > 0.0, law / np.where(left > 0.0, left, 1.0), 1.0), 0.0, 1.0)))


def _sampled(function: Callable) -> Any:
    """Values of a function at the run lengths of a short stream and at some long ones."""
    runs = jnp.asarray([*range(100), *(10**power for power in range(2, 7))], jnp.result_type(float))
    return jnp.broadcast_to(jnp.asarray(function(runs)), runs.shape)


def _no_gaps(dt: Array | None) -> None:
    if dt is not None:
        raise ValueError(
            "step(dt=...): a hazard that depends on the run length counts steps, not time; use a constant hazard."
        )
