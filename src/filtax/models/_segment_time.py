r"""(M.1) A line for each segment: the features are the time since the regime began, and x.

$\eta = \theta_0 + \theta_1 r / u + x^\top \theta_{2:}$, with r the run length of the hypothesis and u a unit of time.
Each hypothesis about the last change then has an intercept and a slope that count time from the beginning of its
segment; under an auxiliary variable without a run length r is 0, a constant.

Axes: M features of x, O outputs, D = (2 + M) O parameters. Cost: none beyond reading x.
Thesis: experiment:segmentation, whose segments have a level; eq:transition-rl-markov for r.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from filtax import _validation as checks
from filtax.models._gaussian import resolve
from filtax.models._linear import Linear
from filtax.models._model import Linearised, Model, Predictor
from filtax.protocols import RunLengthValue


class SinceChange(Predictor):
    """eta = H theta with features (1, r / unit, x).

    >>> from filtax.protocols import RunLengthValue
    >>> at = SinceChange(10.0).linearise(jnp.array([1.0, 2.0]), None, RunLengthValue(jnp.asarray(5), None))
    >>> at.eta.tolist(), at.jacobian.tolist()
    ([2.0], [[1.0, 0.5]])
    """

    unit: Any = 100.0

    def linearise(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree) -> Linearised:
        """Linear in theta; the features depend on the hypothesis."""
        if x is not None and x.ndim != 1:
            raise ValueError(f"since_change: x has shape {x.shape}; give features (M,), or None for a line alone.")
        run = jnp.asarray(aux.runlength if isinstance(aux, RunLengthValue) else 0, theta.dtype)
        line = jnp.stack([jnp.ones_like(run), run / jnp.asarray(self.unit, theta.dtype)])
        features = line if x is None else jnp.concatenate([line, x.astype(theta.dtype)])
        return Linear().linearise(theta, features, aux)


def since_change(noise: Any = None, *, unit: Any = 100.0, likelihood: Any = None) -> Model:
    """Predict y by a line for each segment between changes, plus a linear function of x.

    Args:
        noise: Variance, O variances, O x O covariance, or a function of x; relative (1.0) under NIG.
        unit: Steps in one unit of time: the slope is the rise over so many steps.
        likelihood: Instead of `noise`, any likelihood.

    Returns:
        A model for `filtax.method("RL[K]-PR(...)", model=...)` with D = 2 + M parameters for each output, in rows:
        intercepts, slopes, then the weights of x. Without x, give X = None to `scan`.

    >>> import filtax as fx
    >>> rl = fx.method("NIG+RL[20]-PR(hazard=0.01)", model=since_change(1.0))
    >>> y = jnp.concatenate([jnp.arange(30.0), 5.0 - jnp.arange(20.0)])
    >>> _, info = rl.scan(rl.init(mean=jnp.zeros(2), cov=100.0), None, y, keep=("runlength",))
    >>> info.runlength[-1].item()
    19
    """
    checks.positive("since_change(unit=...)", unit, hint="It is a number of steps.")
    return Model(SinceChange(unit), resolve("since_change", noise, likelihood))
