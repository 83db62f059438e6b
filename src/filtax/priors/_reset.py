r"""(M.3) Prior reset: a new hypothesis starts from the initial belief (PR) or from the beliefs before it (MMPR).

MMPR matches the moments of the beliefs that the reset could have come from, each weighted by $\nu(r)H(r)$ before the
datum, and normalised (errata E13): parameters after a change are then like those before it. The hypotheses that go on
follow the dynamics.

In a model that counts time from the beginning of a regime, such as `since_change`, the parameters have another meaning
in each regime. With a `frame`, beliefs are expressed in the frame of the new regime before their moments are matched:
$\theta \to F(r)\theta$ where r steps lie between the two origins. For a polynomial $\sum_j a_j u^j$ with
$u = r/\text{unit}$ an origin s steps later means $a'_i = \sum_{j \ge i} \binom{j}{i} (s/\text{unit})^{j-i} a_j$.

Thesis: eq:cprior-rl-pr, eq:cprior-cpt-mmpr, algo:rl-mmpr-step (errata E12, E13, E19; Fearnhead and Liu 2011).
"""

from math import comb
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from filtax import _validation as checks
from filtax.beliefs import moment_match
from filtax.priors._dynamics import Continue, static
from filtax.protocols import Module, Prior, Proposal, RunLengthValue, over_hypotheses
from filtax.protocols import static as structure


class Reset(Prior):
    """New hypotheses start from a reset belief; the others follow the dynamics.

    >>> reset().name
    'PR'
    """

    dynamics: Any
    matched: bool = structure(default=False)
    frame: Any = None
    shown = {}  # noqa: RUF012

    @property
    def name(self) -> str:
        """PR, or MMPR with matched moments."""
        return "MMPR" if self.matched else "PR"

    @property
    def needs(self) -> tuple[str, ...]:
        """Methods of a belief that it calls."""
        return () if not self.matched else ("moment_match",) if self.frame is None else ("moment_match", "affine")

    def __call__(self, proposal: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        """Beliefs before the datum, (C, ...)."""
        start = moment_match(self._moved(proposal), proposal.log_reset) if self.matched else initial
        return replace_new(proposal.is_new, Continue(self.dynamics)(proposal, initial, dt), start)

    def _moved(self, proposal: Proposal) -> PyTree:
        """Beliefs before the step, in the frame of a regime that begins with it."""
        if self.frame is None:
            return proposal.hypotheses.belief
        aux = proposal.hypotheses.aux
        if not isinstance(aux, RunLengthValue):
            raise ValueError("MMPR(frame=...): the frame moves by the run length; use RL, RLCC, CPT or CPL.")

        def move(belief: PyTree, run: Array) -> PyTree:
            return belief.affine(self.frame(run, belief.mean), None, None)

        return over_hypotheses(move, proposal.hypotheses.belief, aux.runlength)


def replace_new(is_new: Bool[Array, " C"], beliefs: PyTree, start: PyTree) -> PyTree:
    """Beliefs (C, ...) in which each new hypothesis holds that of `start`, which is one belief or one for each.

    >>> replace_new(jnp.array([False, True]), jnp.ones((2, 1)), jnp.zeros(1)).tolist()
    [[1.0], [0.0]]
    """

    def pick(old: Array, new: Array) -> Array:
        return jnp.where(is_new.reshape((-1,) + (1,) * (old.ndim - 1)), new, old)

    return jax.tree.map(pick, beliefs, start)


def reset(dynamics: Any = None) -> Reset:
    """Start from the initial belief at a change (PR).

    Args:
        dynamics: How the parameters move between changes, such as `additive_inflation(0.01)`; not at all by default.

    >>> import filtax as fx
    >>> fx.method("LG+RL[4]-PR(hazard=0.1)", model=fx.models.linear(noise=1.0)).prior.name
    'PR'
    """
    return Reset(static() if dynamics is None else dynamics)


def moment_matched_reset(dynamics: Any = None, frame: Any = None) -> Reset:
    """Start at a change from one Gaussian with the moments of the beliefs before it (MMPR).

    Args:
        dynamics: How the parameters move between changes; not at all by default.
        frame: For models that count time from the beginning of a regime: `polynomial_shift(...)`, or a function
            (r, theta) -> F, (D, D), of the steps r between the old origin and the new one.

    >>> moment_matched_reset().name
    'MMPR'
    """
    if frame is not None and not callable(frame):
        raise ValueError(f"MMPR(frame=...) must be a function of r and theta, got {frame!r:.40}; see polynomial_shift.")
    return Reset(static() if dynamics is None else dynamics, matched=True, frame=frame)


class PolynomialShift(Module):
    """The matrix F(r) of a polynomial; parameters lie in rows of `outputs`, powers first, and the others stay.

    >>> polynomial_shift(1, unit=10.0)(jnp.asarray(5), jnp.zeros(3)).tolist()
    [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    unit: Any
    degree: int = structure()
    outputs: int = structure()

    def __call__(self, run: Array, theta: Float[Array, " D"]) -> Float[Array, "D D"]:
        """F for an origin `run` steps later."""
        s = run.astype(theta.dtype) / jnp.asarray(self.unit, theta.dtype)
        D, n, O = theta.size, self.degree + 1, self.outputs
        if D < n * O:
            raise ValueError(
                f"polynomial_shift(degree={self.degree}, outputs={O}) moves {n * O} parameters but there are {D}; "
                "give the degree of the model."
            )
        rows = [[comb(j, i) * s ** (j - i) if j >= i else jnp.zeros_like(s) for j in range(n)] for i in range(n)]
        shift = jnp.kron(jnp.stack([jnp.stack(row) for row in rows]), jnp.eye(O, dtype=theta.dtype))
        return jnp.eye(D, dtype=theta.dtype).at[: n * O, : n * O].set(shift)


def polynomial_shift(degree: Any = 1, *, unit: Any = 100.0, outputs: Any = 1) -> PolynomialShift:
    """Move the origin of a polynomial in the run length, for `moment_matched_reset(frame=...)`.

    Args:
        degree: Of the polynomial, at least 0; 1 for `filtax.models.since_change`.
        unit: Steps in one unit of time, as in the model.
        outputs: Number of outputs O; coefficients lie in rows of O, as in `since_change`.

    >>> import filtax as fx
    >>> from filtax.priors import moment_matched_reset
    >>> linked = moment_matched_reset(frame=polynomial_shift(1, unit=10.0))
    >>> fx.method("RL[5]-MMPR(hazard=0.1)", model=fx.models.since_change(1.0, unit=10.0), prior=linked).prior.name
    'MMPR'
    """
    checks.whole("polynomial_shift(degree=...)", degree, least=0)
    checks.positive("polynomial_shift(unit=...)", unit, hint="It is a number of steps.")
    checks.whole("polynomial_shift(outputs=...)", outputs, least=1)
    return PolynomialShift(unit, degree, outputs)
