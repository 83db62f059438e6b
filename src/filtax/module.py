"""The base of every part, belief and state: an immutable pytree, as equinox makes it, with plain attributes."""

import equinox as eqx

__all__ = ["Module"]


class Module(eqx.Module):
    """An `equinox.Module` whose methods are ordinary methods.

    equinox turns each method into a pytree when it is looked up. That costs as much as a step of a small filter, is
    paid again for each field whenever JAX flattens a state, and makes `jax.jit(kf.step)` fail if kf holds arrays.

    >>> class Line(Module):
    ...     slope: float
    ...     def at(self, x):
    ...         return self.slope * x
    >>> import jax
    >>> float(jax.jit(Line(2.0).at)(3.0))
    6.0
    """

    __getattribute__ = object.__getattribute__
