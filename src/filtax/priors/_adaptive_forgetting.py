r"""(M.3) How much the datum itself says is to be forgotten: the share that is most probable (OU), or OUPR.

CPP-OU keeps the share $\upsilon^* = \arg\max_{\upsilon\in[0,1]} p(y \mid x, \upsilon)$ of the belief, and takes the
rest from the initial one, as an Ornstein-Uhlenbeck step does; 1 keeps all, 0 resets (errata E15). For one share the
maximum is searched on a grid that is refined, or, with a `rate`, approached by a few gradient steps from 1, as in the
experiments of the thesis: a single datum then moves the belief less. For one share for each parameter (Galashov 2024)
the gradient of the evidence is climbed. The forecast is made before the datum is known, with the whole belief.

Under OUPR one hypothesis goes on and one begins; given the datum the first has probability $\nu$. Above the threshold
the belief keeps the share $\nu$; below it the belief is reset (errata E14). The forecast and the evidence are those of
the two hypotheses before the datum.

Thesis: eq:cprior-cpp-d, eqn:nut; eq:SPR-equation-gt, eq:SPR-equation-Gt, eq:rl-oupr-weight, algo:rl-spr-step.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax import _validation as checks
from filtax.priors._dynamics import Continue, static
from filtax.priors._reset import replace_new
from filtax.protocols import Hypotheses, Proposal, over_hypotheses
from filtax.protocols import static as structure

POINTS = 11  # of the grid over [0, 1]
START = 8.0  # initial logit of each share
LEAST, MOST = 1e-4, 50.0  # decay: where the slope is taken instead of at 0, and where everything is forgotten
ROUNDS = 2  # refinements, each five times finer


class EmpiricalOU(Continue):
    """The share kept is an empirical Bayes estimate from the datum itself."""

    step: Any
    steps: int = structure()
    each_parameter: bool = structure()
    rate: Any = None
    name = "OU"
    shown = {"each_parameter": False, "rate": None, "steps": 10, "step": 2.5}  # noqa: RUF012
    needs = ("mix",)
    greedy = True

    def revise(
        self, proposal: Proposal, beliefs: PyTree, log_score: Array, initial: PyTree, ask: Callable
    ) -> tuple[Proposal, PyTree]:
        """Mix by the share under which the datum is most probable."""

        def mixed(keep: Array) -> PyTree:
            return over_hypotheses(lambda belief: belief.mix(initial, keep), beliefs)

        def value(keep: Array) -> Array:
            return jnp.sum(ask(mixed(keep)))

        if self.each_parameter:
            return proposal, mixed(self._climb(value, initial))
        search = _search if self.rate is None else self._approach
        return proposal, mixed(search(value, log_score.dtype))

    def _approach(self, value: Callable[[Array], Array], dtype: Any) -> Array:
        """Plain ascent in the decay d of the share exp(-d / 2), from d = 0; d never falls below 0.

        At d = 0 the share that is mixed in has a square root without a gradient, so the slope is taken near it.
        """

        def uphill(_: Array, decay: Array) -> Array:
            slope = jax.grad(lambda d: value(jnp.exp(-0.5 * d)))(jnp.maximum(decay, LEAST))
            return jnp.clip(decay + jnp.asarray(self.rate) * jnp.where(jnp.isfinite(slope), slope, 0.0), 0.0, MOST)

        return jnp.exp(-0.5 * jax.lax.fori_loop(0, self.steps, uphill, jnp.zeros((), dtype)))

    def _climb(self, value: Callable[[Array], Array], initial: PyTree) -> Array:
        """Ascent in the logit of each share from a share of 0.9997, by steps whose length falls linearly.

        The length of a step does not depend on the slope, which vanishes where a share is near 0 or 1.
        """

        def uphill(i: Array, logit: Array) -> Array:
            slope = jax.grad(lambda logit: value(jax.nn.sigmoid(logit)))(logit)
            square = jnp.mean(slope * slope)
            sound = jnp.isfinite(square) & (square > 0.0)
            size = jnp.sqrt(jnp.where(sound, square, 1.0))  # a root has no gradient at 0
            length = jnp.asarray(self.step) * (1.0 - i / self.steps).astype(slope.dtype)
            return logit + jnp.where(sound, length * slope / size, 0.0)

        return jax.nn.sigmoid(jax.lax.fori_loop(0, self.steps, uphill, jnp.full_like(initial.mean, START)))


def _search(value: Callable[[Array], Array], dtype: Any) -> Array:
    """Maximise over [0, 1]; of two equals the larger share, so that a missing datum keeps everything."""
    grid = jnp.linspace(1.0, 0.0, POINTS, dtype=dtype)
    width = 1.0 / (POINTS - 1)
    best = grid[jnp.nanargmax(jax.vmap(value)(grid))]
    for _ in range(ROUNDS):
        grid = jnp.clip(best + width * jnp.linspace(1.0, -1.0, POINTS, dtype=dtype), 0.0, 1.0)
        best = grid[jnp.nanargmax(jax.vmap(value)(grid))]
        width *= 0.2
    return best


def empirical_ou(
    *, each_parameter: Any = False, steps: Any = 10, step: Any = 2.5, rate: Any = None, dynamics: Any = None
) -> EmpiricalOU:
    """Keep the share of the belief under which the datum is most probable (CPP-OU).

    Args:
        each_parameter: One share for each parameter instead of one for all.
        steps: Gradient steps, for the shares of single parameters or with a rate.
        step: Length of the first step for the shares of single parameters, in logits.
        rate: Learning rate of the ascent for one share; searched to the maximum by default.
        dynamics: How the parameters move besides; not at all by default.

    >>> import filtax as fx
    >>> fx.method("LG+CPP-OU", model=fx.models.linear(noise=1.0)).name
    'LG+CPP-OU'
    """
    checks.whole("empirical_ou(steps=...)", steps, least=1, most=checks.REPEATS)
    checks.positive("empirical_ou(step=...)", step)
    checks.flag("empirical_ou(each_parameter=...)", each_parameter)
    if rate is not None:
        checks.positive("empirical_ou(rate=...)", rate, hint="It is a learning rate.")
    return EmpiricalOU(static() if dynamics is None else dynamics, step, steps, bool(each_parameter), rate)


class OrnsteinReset(Continue):
    """Mix above the threshold, reset below; for one surviving hypothesis (RL[1])."""

    threshold: Any
    name = "OUPR"
    shown = {"threshold": 0.5}  # noqa: RUF012
    needs = ("mix",)
    greedy = True

    def __call__(self, proposal: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        return replace_new(proposal.is_new, super().__call__(proposal, initial, dt), initial)

    def revise(
        self, proposal: Proposal, beliefs: PyTree, log_score: Array, initial: PyTree, ask: Callable
    ) -> tuple[Proposal, PyTree]:
        """Mix or reset, by the probability that the regime goes on given the datum."""
        scored = proposal.hypotheses.log_weight + log_score
        scored = jnp.where(jnp.any(scored > -jnp.inf), scored, proposal.hypotheses.log_weight)
        responsibility = jax.nn.softmax(scored)
        nu = jnp.sum(jnp.where(proposal.is_new, 0.0, responsibility))
        goes_on = nu > jnp.asarray(self.threshold)
        mixed = over_hypotheses(lambda belief: belief.mix(initial, nu), beliefs)
        beliefs = jax.tree.map(lambda new, old: jnp.where(goes_on, new, old), mixed, beliefs)
        alive = jnp.where(goes_on, ~proposal.is_new & (responsibility > 0.0), proposal.is_new)
        weight = jnp.where(alive, 0.0, -jnp.inf).astype(nu.dtype)
        hypotheses = Hypotheses(proposal.hypotheses.belief, proposal.hypotheses.aux, weight)
        return Proposal(hypotheses, proposal.is_new, proposal.log_reset), replace_new(proposal.is_new, beliefs, initial)


def ou_reset(threshold: Any = 0.5, dynamics: Any = None) -> OrnsteinReset:
    """Forget gradually or reset, as the datum decides (OUPR).

    Args:
        threshold: In [0, 1], on the probability that the regime goes on; 0 always mixes, 1 always resets.
        dynamics: How the parameters move besides; not at all by default.

    >>> import filtax as fx
    >>> fx.method("LG+RL[1]-OUPR(hazard=0.1)", model=fx.models.linear(noise=1.0)).name
    'LG+RL[1]-OUPR(hazard=0.1)'
    """
    checks.share("ou_reset(threshold=...)", threshold, hint="Below this probability of going on the belief is reset.")
    return OrnsteinReset(static() if dynamics is None else dynamics, threshold)
