r"""(A.1) Online gradient descent with a memory: the usual baseline.

On each datum, `inner` steps of Adam (Kingma and Ba, 2015) on the mean loss $-\log p(y \mid \theta, x)$ of the last
`memory` data, a FIFO buffer. There is no uncertainty about theta: the forecast is that of the point, and so is the
evidence. Under a robust model a datum counts as trust² of one, where the trust comes from its forecast.

Axes: D parameters, M data remembered. Cost: `inner` x M gradients, O(D) memory besides the data.
Thesis: sec:experiments-robustness, OGD.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from filtax import _validation as checks
from filtax.beliefs import Memory, Point
from filtax.models import Model
from filtax.posteriors._extended import Mask, RandomKey
from filtax.protocols import Posterior, Update, static

FADE, FADE_SQUARE, LEAST = 0.9, 0.999, 1e-8  # Adam's usual constants


class Gradient(Posterior):
    """Adam on the last data; `rate` is its step size.

    >>> Gradient(rate=0.01, memory=10).name
    'OGD'
    """

    rate: Any = 1e-2
    memory: Any = static(default=1)
    inner: Any = static(default=1)
    shown = {"rate": None, "memory": 1, "inner": 1}  # noqa: RUF012
    families = (Point,)
    stores_data = True
    likelihood_needs = ("given", "log_likelihood")
    name = "OGD"

    def __check_init__(self) -> None:
        checks.positive("OGD(rate=...)", self.rate, hint="It is the size of a step.")
        checks.whole("OGD(memory=...)", self.memory, least=1, hint="It is the number of data in the buffer.")
        hint = "It counts the steps for each datum."
        checks.whole("OGD(inner=...)", self.inner, least=1, most=checks.REPEATS, hint=hint)

    def start(self, mean: Float[Array, " D"], cov: Array, has_dynamics: bool) -> Point:
        """Initial point; the covariance is not used."""
        return Point.start(mean)

    def allocate_memory(self, belief: Point, x: Array | None, width: int) -> Any:
        """Allocate memory for data like x."""
        if belief.memory is not None:
            return belief
        memory = Memory.empty(self.memory, x, width, belief.mean.dtype)
        return Point(belief.mean, belief.slope, belief.size, belief.steps, memory)

    def forecast(self, belief: Point, model: Model, x: Array | None, aux: PyTree, plugin: bool = False) -> PyTree:
        """Distribution of y at the point."""
        at = model.value(belief.mean, x, aux)
        return model.likelihood.plain.given(at.eta, x, at.scalar)

    def update(
        self, belief: Point, model: Model, x: Array | None, y: Array, mask: Mask, aux: PyTree, key: RandomKey
    ) -> Update:
        """Store the datum, then take gradient steps."""
        likelihood = model.likelihood.plain
        at = model.value(belief.mean, x, aux)
        observed = jnp.ones(y.shape, bool) if mask is None else mask
        evidence = likelihood.log_likelihood(at.eta, x, y, observed)
        evidence = jnp.where(jnp.any(observed), evidence, 0.0)
        whitened = model.likelihood.whiten(at.eta, x, y, mask)
        trust = jnp.ones_like(evidence) if whitened.trust is None else whitened.trust
        share = jnp.where(jnp.any(observed), trust * trust, 0.0)
        score = evidence if whitened.trust is None else model.likelihood.trusted(trust, at.eta, x, y, observed)
        score = jnp.where(share > 0.0, score, 0.0)

        # a datum without trust is stored as zero: the gradient at an infinite one would be NaN
        memory = self.allocate_memory(belief, x, y.size).memory.put(x, jnp.where(share > 0.0, y, 0.0), observed, share)

        def loss(theta: Array) -> Array:
            def one(x: Array | None, y: Array, mask: Array) -> Array:
                return likelihood.log_likelihood(model.value(theta, x, aux).eta, x, y, mask)

            each = jax.vmap(one)(memory.X, memory.Y, memory.mask)
            known = memory.weight > 0.0
            some = jnp.maximum(jnp.sum(known.astype(theta.dtype)), 1.0)
            return -jnp.sum(jnp.where(known, memory.weight * jnp.where(known, each, 0.0), 0.0)) / some

        new = jax.lax.fori_loop(0, self.inner, lambda _, now: self._descend(now, jax.grad(loss)(now.mean)), belief)
        new = Point(new.mean, new.slope, new.size, new.steps, memory)
        sound = jnp.isfinite(score) & jnp.all(jnp.isfinite(new.mean)) & jnp.all(jnp.isfinite(new.size))
        if whitened.trust is not None:  # it must be a number >= 0
            sound = sound & ~jnp.any(jnp.isnan(whitened.residual))
        kept = jax.tree.map(lambda now, then: jnp.where(sound & (share > 0.0), now, then), new, belief)
        evidence = jnp.where(jnp.isnan(evidence), -jnp.inf, evidence)
        score = jnp.where(sound, score, -jnp.inf)
        forecast = likelihood.given(at.eta, x, at.scalar)
        return Update(kept, forecast, evidence, score, trust, jnp.zeros_like(score), sound)

    def _descend(self, now: Point, g: Float[Array, " D"]) -> Point:
        r"""One step of Adam: $m \leftarrow \beta_1 m + (1-\beta_1) g$, $v$ likewise of $g^2$, both bias-corrected."""
        steps = now.steps + 1.0
        slope = FADE * now.slope + (1.0 - FADE) * g
        size = FADE_SQUARE * now.size + (1.0 - FADE_SQUARE) * g * g
        m, v = slope / (1.0 - FADE**steps), size / (1.0 - FADE_SQUARE**steps)
        rate = jnp.asarray(self.rate, g.dtype)
        return Point(now.mean - rate * m / (jnp.sqrt(v) + LEAST), slope, size, steps, now.memory)
