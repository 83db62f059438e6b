r"""(M.3) What a new regime starts from: the initial belief (PR), the beliefs before it (MMPR, MCI), or its data (Sub).

Hypotheses that go on follow the dynamics. MMPR matches the moments of the beliefs that the reset could have come from,
each weighted by $\nu(r)H(r)$ before the datum, and normalised (errata E13): parameters after a change are then like
those before it. MCI keeps the mean of the parent, and divides its covariance by $\beta$. Sub learns the remembered data
again, oldest first, each as far as it belongs: $\pi(\theta; s) \propto p(\theta) \prod_j p(y_j \mid \theta,
x_j)^{s_j}$, with what was folded into the initial belief in the place of $p(\theta)$. For linear models this is exact;
others are linearised again at each replay. Its cost is M updates for each hypothesis and step.

In a model that counts time from the beginning of a regime, such as `since_change`, the parameters have another meaning
in each regime. With a `frame`, MMPR expresses beliefs in the frame of the new regime before it matches their moments:
$\theta \to F(r)\theta$ where r steps lie between the two origins. For a polynomial $\sum_j a_j u^j$ with
$u = r/\text{unit}$ an origin s steps later means $a'_i = \sum_{j \ge i} \binom{j}{i} (s/\text{unit})^{j-i} a_j$.

Thesis: eq:cprior-rl-pr, eq:cprior-cpt-mmpr, algo:rl-mmpr-step (errata E12, E13, E19; Fearnhead and Liu 2011); CPL-MCI
(Li 2021) and CPL-Sub (Nguyen 2017, Kurle 2019, Nassar 2022) of chapter 3.
"""

from collections.abc import Callable
from math import comb
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from filtax import _validation as checks
from filtax.beliefs import moment_match
from filtax.priors._dynamics import Continue, static
from filtax.protocols import Hypotheses, Module, Proposal, RunLengthValue, over_hypotheses
from filtax.protocols import static as structure


class Reset(Continue):
    """New hypotheses start from a reset belief; the others follow the dynamics."""

    matched: bool = structure(default=False)
    frame: Any = None

    @property
    def name(self) -> str:
        """PR, or MMPR with matched moments."""
        return "MMPR" if self.matched else "PR"

    @property
    def needs(self) -> tuple[str, ...]:
        """Methods of a belief that it calls."""
        return () if not self.matched else ("moment_match",) if self.frame is None else ("moment_match", "affine")

    def __call__(self, proposal: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        start = moment_match(self._moved(proposal), proposal.log_reset) if self.matched else initial
        return replace_new(proposal.is_new, super().__call__(proposal, initial, dt), start)

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


class CovarianceInflation(Continue):
    """A new hypothesis has the belief of the one that it came from, with a larger covariance."""

    beta: Any
    name = "MCI"
    shown = {"beta": 0.5}  # noqa: RUF012
    needs = ("inflate",)
    of_parent = True

    def __call__(self, proposal: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        moved = super().__call__(proposal, initial, dt)
        wider = over_hypotheses(lambda belief: belief.inflate(1.0 / jnp.asarray(self.beta)), moved)
        return replace_new(proposal.is_new, moved, wider)


class Subset(Continue):
    """The data that belong are learned again; then the parameters follow the dynamics."""

    name = "Sub"
    of_members = True

    def replay(self, proposal: Proposal, initial: PyTree, dt: Array | None, relearn: Callable) -> PyTree:
        """Beliefs before the datum, (C, ...); `relearn(belief, aux, x, y, mask, power)` is (A.1) for one hypothesis."""
        hypotheses = proposal.hypotheses

        def one(belief: PyTree, aux: PyTree) -> PyTree:
            start = initial if aux.base is None else aux.base
            if aux.memory is None:
                return start
            power = jnp.where(aux.memory.weight > 0.0, aux.member, 0.0)
            rows = (aux.memory.X, aux.memory.Y, aux.memory.mask, power)

            def learn(belief: PyTree, row: tuple) -> tuple[PyTree, None]:
                return relearn(belief, aux, *row), None

            return jax.lax.scan(learn, start, rows, reverse=True)[0]

        beliefs = over_hypotheses(one, hypotheses.belief, hypotheses.aux)
        replayed = Hypotheses(beliefs, hypotheses.aux, hypotheses.log_weight)
        return self(Proposal(replayed, proposal.is_new, proposal.log_reset), initial, dt)


def replace_new(is_new: Bool[Array, " C"], beliefs: PyTree, start: PyTree) -> PyTree:
    """Beliefs (C, ...) in which each new hypothesis holds that of `start`, which is one belief or one for each."""

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


def covariance_inflation(beta: Any = 0.5, dynamics: Any = None) -> CovarianceInflation:
    """Widen the belief at a change (MCI).

    Args:
        beta: In (0, 1]; the covariance is divided by it.
        dynamics: How the parameters move between changes; not at all by default.

    >>> import filtax as fx
    >>> fx.method("LG+CPL[4]-MCI(hazard=0.1, beta=0.25)", model=fx.models.linear(noise=1.0)).prior.beta
    0.25
    """
    checks.share("covariance_inflation(beta=...)", beta, hint="The covariance is divided by it.")
    checks.positive("covariance_inflation(beta=...)", beta, hint="The covariance is divided by it.")
    return CovarianceInflation(static() if dynamics is None else dynamics, beta)


def subset(dynamics: Any = None) -> Subset:
    """Learn from the data that belong to the regime (Sub); for CPL and CPV.

    Args:
        dynamics: How the parameters move between those data and the next; not at all by default.

    >>> import filtax as fx
    >>> fx.method("LG+CPL[inf](memory=3)-Sub", model=fx.models.linear(noise=1.0)).prior.name
    'Sub'
    """
    return Subset(static() if dynamics is None else dynamics)


class PolynomialShift(Module):
    """The matrix F(r) of a polynomial; parameters lie in rows of `outputs`, powers first, and the others stay."""

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
