r"""Units of a stream, learned from what came before: a running mean and scale for each number, and beliefs that follow.

With rate $\rho_n = \max(1/n, 1/N)$: $m' = m + \rho(x - m)$ and $v' = (1-\rho)(v + \rho(x - m)^2)$, which are the mean
and the variance of the data up to n = N, and forget slowly after that. A number counts as $z = (x - m)/\sqrt v$.

When the units move, a linear belief is re-expressed so that it goes on saying the same about y: with bias b first and
weights w, $w_i' = w_i s_i'/s_i$ and $b' = b + \sum_i w_i (m_i' - m_i)/s_i$. So units decide what the prior means, and
nothing else.

Axes: M slots. Cost: O(M), and O(M²) for a belief.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from filtax.beliefs import NormalInverseGamma, SquareRoot
from filtax.protocols import Module

__all__ = ["Units", "reexpressed"]

MEMORY = 1000.0  # data after which old ones are forgotten
FAR = 20.0  # scales beyond which a feature counts as being there
FEW = 3.0  # data that give a scale


class Units(Module):
    """How many numbers were seen in each slot, their mean and their variance.

    >>> units = Units.start(1).after(jnp.array([1.0])).after(jnp.array([3.0]))
    >>> units.mean.item(), units.var.item(), units.standard(jnp.array([3.0])).item()
    (2.0, 1.0, 1.0)
    """

    count: Float[Array, " M"]
    mean: Float[Array, " M"]
    var: Float[Array, " M"]

    @classmethod
    def start(cls, slots: int) -> "Units":
        """Nothing seen."""
        return cls(jnp.zeros(slots), jnp.zeros(slots), jnp.zeros(slots))

    @property
    def scale(self) -> Float[Array, " M"]:
        """Standard deviations; 0 as long as a slot has only ever held one value."""
        return jnp.sqrt(self.var)

    def after(self, x: Float[Array, " M"], reach: float = jnp.inf) -> "Units":
        """Units once x is known; what is not finite was not seen.

        Args:
            x: Numbers.
            reach: Scales that a number counts for at most, once there are `FEW`: one that is absurd does not become the
                unit, and of those that stay so far off a few do.
        """
        seen = jnp.isfinite(x)
        n = self.count + 1.0
        rate = jnp.maximum(1.0 / n, 1.0 / MEMORY)
        gap = jnp.where(seen, x, 0.0) - self.mean
        most = jnp.where((self.count >= FEW) & (self.var > 0.0), reach * self.scale, jnp.inf)
        gap = jnp.clip(gap, -most, most)
        mean, var = self.mean + rate * gap, (1.0 - rate) * (self.var + rate * gap * gap)
        sound = seen & jnp.isfinite(var) & jnp.isfinite(mean)
        pick = lambda new, old: jnp.where(sound, new, old)  # noqa: E731
        return Units(pick(n, self.count), pick(mean, self.mean), pick(var, self.var))

    def standard(self, x: Float[Array, " M"]) -> Float[Array, " M"]:
        """Numbers in these units: 0 for what is absent (NaN) or has no scale yet, 1 for a category (infinity)."""
        scale = self.scale
        there = jnp.isfinite(x) & (scale > 0.0)
        z = (jnp.where(there, x, 0.0) - self.mean) / jnp.where(there, scale, 1.0)
        return jnp.where(jnp.isinf(x), 1.0, jnp.where(there, jnp.clip(z, -FAR, FAR), 0.0))

    def younger(self, count: float, when: Bool[Array, ""]) -> "Units":
        """Units that follow new data as if they rested on at most `count`."""
        return Units(jnp.where(when, jnp.minimum(self.count, count), self.count), self.mean, self.var)


def reexpressed(belief: PyTree, before: Units, now: Units, y_before: Any = None, y_now: Any = None) -> PyTree:
    """A belief about bias and weights (M + 1,), saying in new units what it said in the old ones.

    Args:
        belief: Gaussian, or normal-inverse-gamma.
        before: Units of x, (M,), in which it was said.
        now: Units of x to say it in.
        y_before: Units of y, (1,), where y is counted in units too.
        y_now: And those to say it in.

    >>> old = Units(jnp.array([5.0]), jnp.array([0.0]), jnp.array([1.0]))
    >>> new = Units(jnp.array([6.0]), jnp.array([1.0]), jnp.array([4.0]))
    >>> belief = SquareRoot.start(jnp.array([1.0, 3.0]), jnp.ones(2))
    >>> reexpressed(belief, old, new).mean.tolist()
    [4.0, 6.0]
    """
    s, t = before.scale, now.scale
    had, met = s > 0.0, before.count > 0.0
    ratio = jnp.where(had, t / jnp.where(had, s, 1.0), 1.0)
    unit = jnp.where(had, s, jnp.where(t > 0.0, t, 1.0))
    shift = jnp.where(met, (now.mean - before.mean) / unit, 0.0)
    F = jnp.diag(jnp.concatenate([jnp.ones(1, ratio.dtype), ratio])).at[0, 1:].set(shift)
    size, level = jnp.ones((), ratio.dtype), jnp.zeros((), ratio.dtype)
    if y_before is not None:
        s, t = y_before.scale[0], y_now.scale[0]
        size = jnp.where((s > 0.0) & (t > 0.0), s / jnp.where(t > 0.0, t, 1.0), 1.0)
        gone = jnp.where(y_before.count[0] > 0.0, y_before.mean[0] - y_now.mean[0], 0.0)
        level = gone / jnp.where(t > 0.0, t, 1.0)
    return _pushed(belief, F, size, level)


def _pushed(belief: PyTree, F: Array, size: Array, level: Array) -> PyTree:
    """Map theta to size F theta, and add a level to the bias; an unknown noise takes the size upon itself."""
    if isinstance(belief, NormalInverseGamma):
        unit = _pushed(belief.unit, F, jnp.ones_like(size), jnp.zeros_like(level))
        mean = (size * unit.mean).at[0].add(level)
        unit = eqx.tree_at(lambda b: b.mean, unit, mean)
        return NormalInverseGamma(unit, belief.shape, belief.rate * size * size)
    b = jnp.zeros_like(belief.mean).at[0].set(level)
    if isinstance(belief, SquareRoot):  # F has one full row: no product of matrices
        ratio, shift = jnp.diagonal(F)[1:], F[0, 1:]

        def push(rows: Array) -> Array:
            first = rows[:1] + jnp.sum(shift[:, None] * rows[1:], axis=0, keepdims=True)
            return jnp.concatenate([first, ratio[:, None] * rows[1:]])

        mean = size * push(belief.mean[:, None])[:, 0] + b
        return SquareRoot(mean, size * push(belief.root))
    return belief.affine(size * F, b, None)
