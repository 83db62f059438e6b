r"""(A.1) Variational Gaussian filters: the Gaussian nearest to prior times likelihood, in any Gaussian form.

They minimise $\mathrm{KL}(q \,\|\, p(y \mid \theta)\,\pi(\theta))$ over $q = N(\mu', \Sigma')$, where
$$\Sigma'^{-1} = \Sigma^{-1} - E_q[\nabla^2\ell], \qquad \mu' = \mu + \Sigma\,E_q[\nabla\ell]$$
hold with $\ell$ the log likelihood and q on both sides. Each inner iteration starts again from the prior
$(\mu, \Sigma)$, so that a datum counts once, and conditions it on the expected score and curvature under the last q.
That is a Newton step preconditioned by $\Sigma'$: exact at once for a linear-Gaussian model, where the printed
iteration of the mean diverges as soon as $\rho(\Sigma H^\top R^{-1} H) > 1$.

One loop has four rules:

RVGA    the fixed point itself; a step that overshoots is shortened (implicit)
BONG    one natural-gradient step from the prior, of length 1 (explicit)
BLR     natural-gradient steps of a given length
BBB     plain gradient steps of a given length, in mean and factor of the covariance

A rule needs of a family its mean, `spread`, `sample` and `condition` alone, so the first three serve every Gaussian
form, the low-rank one too; BBB needs a factor of the covariance.

Axes: D parameters, O outputs, N rows of a pseudo-datum. Cost: `iterations` conditionings; a step of BBB is O(D² N) in
full, O(D N) for a diagonal.
Thesis: sec:rvga, sec:variational-bayes, eq:rvga-target-gauss, algo:rvga-update (errata E6).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from filtax import _validation as checks
from filtax.beliefs import Diagonal, SquareRoot
from filtax.linalg import matmul, trace
from filtax.models import Linearised, Model
from filtax.posteriors._extended import FORMS, Extended, GaussianPosterior, Mask, RandomKey
from filtax.posteriors._gaussian_expectations import PseudoDatum, blend, over_mean, over_outputs, over_samples
from filtax.protocols import Module, Update, static, with_fields

RULES = {"implicit": "RVGA", "explicit": "BONG", "natural": "BLR", "gradient": "BBB"}
DEFAULTS = {
    "implicit": {"iterations": 4},
    "explicit": {},
    "natural": {"iterations": 10, "step": 0.5},
    "gradient": {"iterations": 10, "step": 0.1},
}
EXPECTATIONS = ("quadrature", "linearised")
FACTORED = ("root", "diagonal")  # forms that hold a factor of their covariance
SLOPES = (-9.0, 0.0)  # of the output variance as a function of the input variance; clipped outside


class Variational(GaussianPosterior):
    """The recursive variational Gaussian approximation and its relatives.

    Attributes:
        rule: "implicit" (RVGA), "explicit" (BONG), "natural" (BLR) or "gradient" (BBB).
        iterations: Inner iterations; the explicit rule has one.
        step: Length of a step in (0, 1], of the natural and the gradient rule.
        samples: Average over this many samples of theta, an even number; needs `init(key=...)`. By default, a fixed
            rule over the outputs is used.
        expectation: That rule: "quadrature", or "linearised" for the mean alone.
        form: Of the belief, as for `Extended`; "auto" takes the square root where samples are drawn or gradients taken.
        rank: With a rank the precision is diagonal plus low rank, as for `Extended`; "spherical" is then a form too.
        spare: Columns that data fill between cuts.

    >>> Variational(samples=10).start(jnp.zeros(40), jnp.ones(40), has_dynamics=True).root.shape
    (40, 40)
    """

    rule: str = static(default="implicit")
    iterations: Any = static(default=4)
    step: Any = 1.0
    samples: Any = static(default=None)
    expectation: str = static(default="quadrature")
    form: str = static(default="auto")
    rank: Any = static(default=None)
    spare: Any = static(default=None)

    @property
    def name(self) -> str:
        """RVGA, BONG, BLR or BBB."""
        return RULES.get(self.rule, "Variational")

    @property
    def families(self) -> tuple[type, ...]:
        """Beliefs that it works on."""
        if self.rule == "gradient" and self.rank is None:
            return tuple(FORMS[form] for form in FACTORED)
        return super().families

    @property
    def _forms(self) -> tuple[str, ...]:
        return FACTORED if self.rule == "gradient" else super()._forms

    @property
    def _low_rank_form(self) -> str:
        return "diagonal" if self.form == "auto" else self.form

    @property
    def shown(self) -> dict[str, Any]:
        """Settings that are part of the name, with the defaults of its rule."""
        family = {} if self.rule == "gradient" else {"rank": None, "spare": None}
        return {**DEFAULTS[self.rule], "samples": None, "expectation": "quadrature", "form": "auto", **family}

    @property
    def needs_key(self) -> bool:
        """Whether it draws samples."""
        return self.samples is not None

    def __check_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"Variational(rule={self.rule!r}) must be one of {', '.join(RULES)}.")
        name = self.name
        checks.whole(f"{name}(iterations=...)", self.iterations, least=1, most=checks.REPEATS)
        if self.rule == "explicit" and self.iterations != 1:
            raise ValueError(f"BONG(iterations={self.iterations}): it takes one step; use BLR or RVGA to iterate.")
        checks.finite(f"{name}(step=...)", self.step)
        step = checks.concrete(self.step)
        if step is not None and not ((step > 0.0) & (step <= 1.0)).all():
            raise ValueError(f"{name}(step={self.step!r}) must lie above 0 and at most at 1: it is a share of the way.")
        if "step" not in DEFAULTS[self.rule] and (step is None or (step != 1.0).any()):
            raise ValueError(f"{name}(step={self.step!r}): it chooses its own steps; use BLR for a fixed one.")
        if self.samples is not None:
            checks.whole(f"{name}(samples=...)", self.samples, least=2, hint="They are drawn in pairs.")
            if self.samples % 2:
                raise ValueError(f"{name}(samples={self.samples!r}) must be even: they are drawn in pairs.")
        if self.expectation not in EXPECTATIONS or (self.samples and self.expectation == "linearised"):
            hint = " Samples take its place: leave one of them out." if self.samples else ""
            raise ValueError(f"{name}(expectation={self.expectation!r}) is one of {', '.join(EXPECTATIONS)}.{hint}")
        if self.rule == "gradient" and self.rank is not None:
            raise ValueError(
                f"BBB(rank={self.rank!r}): it steps in a factor of the covariance, and a low-rank precision has none; "
                "use BLR with this rank, or BBB(form=diagonal)."
            )

    def start(self, mean: Float[Array, " D"], cov: Array, has_dynamics: bool) -> PyTree:
        """Initial belief; where samples are drawn it is a root, because a covariance would be factored each time."""
        if self.rank is None and self.form == "auto" and (self.samples or self.rule == "gradient"):
            return SquareRoot.start(mean, cov)
        return super().start(mean, cov, has_dynamics)

    def update(
        self, belief: PyTree, model: Model, x: Array | None, y: Array, mask: Mask, aux: PyTree, key: RandomKey
    ) -> Update:
        """Condition on y; forecast and evidence are those of the belief before it."""
        first = Extended().update(belief, model, x, y, mask, aux, key)
        datum = _Datum(model, x, y, mask, aux, key, first.ok)
        solve = {"implicit": self._implicit, "gradient": self._gradient}.get(self.rule, self._explicit)
        new, ok = solve(belief, datum)
        return with_fields(first, belief=new, ok=first.ok & ok)

    def _implicit(self, prior: PyTree, datum: "_Datum") -> tuple[PyTree, Array]:
        """Iterate to the fixed point, with damped steps."""

        def inner(carry: tuple, _: None) -> tuple[tuple, None]:
            q, damping, ok = carry
            pseudo, sound = self._average(prior, q, damping.width, datum)
            conditioned = prior.condition(pseudo.jacobian, pseudo.whitener, pseudo.residual)
            there = datum.linearise(conditioned.belief)
            spread = conditioned.belief.project_cov(there.jacobian)
            ahead = self._rule(there, spread, datum)
            damping = damping.next_width(spread)
            q, damping = damping.damped_step(prior, q, conditioned.belief, pseudo, ahead)
            return (q, damping, ok & sound & conditioned.ok), None

        damping = DampingState.start(prior.mean, prior.project_cov(datum.linearise(prior).jacobian))
        carry = (prior, damping, jnp.ones((), bool))
        (q, _, ok), _ = jax.lax.scan(inner, carry, length=self.iterations)
        return q, ok

    def _explicit(self, prior: PyTree, datum: "_Datum") -> tuple[PyTree, Array]:
        """Natural-gradient steps of a given length: each mixes a new pseudo-datum into the last one."""
        q, pseudo, ok, plain = prior, None, jnp.ones((), bool), jnp.ones((), prior.mean.dtype)
        for _ in range(self.iterations):
            new, sound = self._average(prior, q, plain, datum)
            pseudo = new if self.rule == "explicit" else blend(pseudo, new, jnp.asarray(self.step))
            conditioned = prior.condition(pseudo.jacobian, pseudo.whitener, pseudo.residual)
            q, ok = conditioned.belief, ok & sound & conditioned.ok
        return q, ok

    def _gradient(self, prior: PyTree, datum: "_Datum") -> tuple[PyTree, Array]:
        """Plain gradient steps; the first one that is not finite and all later ones are dropped."""

        def inner(carry: tuple, _: None) -> tuple[tuple, None]:
            at, ok = carry
            pseudo, sound = self._average(prior, at.belief(prior), jnp.ones((), prior.mean.dtype), datum)
            moved = at.descend(prior, pseudo, jnp.asarray(self.step, prior.mean.dtype))
            ok = ok & sound & moved.finite
            return (jax.tree.map(lambda new, old: jnp.where(ok, new, old), moved, at), ok), None

        carry = (GradientState.start(prior), jnp.ones((), bool))
        (at, ok), _ = jax.lax.scan(inner, carry, length=self.iterations)
        return at.belief(prior), ok

    def _average(self, prior: PyTree, q: PyTree, width: Array, datum: "_Datum") -> tuple[PseudoDatum, Array]:
        """Expected score and curvature under q, about the mean of the prior; none where they are not finite."""
        if self.samples is None:
            at = datum.linearise(q)
            pseudo = self._rule(at, width * q.project_cov(at.jacobian), datum)
        else:
            d = datum
            pseudo = over_samples(q, width, d.model, d.x, d.y, d.mask, d.aux, d.key, self.samples)
        r = pseudo.residual
        finite = jnp.all(jnp.isfinite(pseudo.whitener)) & jnp.isfinite(jnp.sum(r * r))
        pseudo = pseudo if datum.mask is None else pseudo.unless(~(finite & datum.ok))
        return pseudo.about(q.mean - prior.mean), finite

    def _rule(self, at: Linearised, spread: Array, datum: "_Datum") -> PseudoDatum:
        if self.expectation == "linearised":
            return over_mean(datum.model, at, datum.x, datum.y, datum.mask)
        return over_outputs(datum.model, at, spread, datum.x, datum.y, datum.mask)


class _Datum(NamedTuple):
    """What stays the same over the inner iterations; with one key, each of them moves the same samples."""

    model: Model
    x: Array | None
    y: Array
    mask: Array | None
    aux: PyTree
    key: Any
    ok: Array

    def linearise(self, q: PyTree) -> Linearised:
        return self.model.linearise(q.mean, self.x, self.aux)


class DampingState(Module):
    r"""What keeps the inner iteration from overshooting, without a step size to choose.

    Two things can go wrong. The mean overshoots where the curvature grows along the step, as for a count far above its
    forecast. The variance oscillates where a wider q meets more curvature, as for a count of zero under a vague prior.
    Both show in numbers that the iteration has at hand; elsewhere nothing is changed, and a linear-Gaussian model is
    solved at once.

    `pull` is $\Sigma^{-1}(\mu_i - \mu)$; `width` the factor on the variance of q for the next average; `given` the log
    of the output variance that the average used, and `last` the previous such value with the one that it led to.
    """

    pull: Float[Array, " D"]
    width: Float[Array, ""]
    given: Float[Array, ""]
    last: tuple[Float[Array, ""], Float[Array, ""]]

    @classmethod
    def start(cls, mean: Float[Array, " D"], spread: Float[Array, "O O"]) -> "DampingState":
        """The state at the prior, where the pull is zero."""
        size = _log_size(spread)
        return cls(jnp.zeros_like(mean), jnp.ones((), mean.dtype), size, (size, size))

    def damped_step(
        self, prior: PyTree, old: PyTree, new: PyTree, pseudo: PseudoDatum, ahead: PseudoDatum
    ) -> tuple[PyTree, "DampingState"]:
        r"""Take the step of the mean from `old` to `new`, or a part of it where it overshoots.

        The pull of the new mean follows from the pseudo-datum, $G^\top(r - G(\mu_{new} - \mu))$ with G its rows, so the
        prior is never inverted. Past the optimum the slope of the objective along the step changes sign; `ahead`, the
        pseudo-datum at the new mean, gives its size there. Up to half the size it had, it is left to the next step.
        Beyond, with $\beta$ the largest change of an output, the share $\log(1+\beta)/\beta$ of the step is taken. That
        is safe where the log of the curvature changes by at most one for a unit of eta (Sun and Tran-Dinh, 2019), as it
        does for labels and counts.
        """
        move, G, r = new.mean - old.mean, pseudo.rows, pseudo.residual
        pull = _times(G.T, r - _times(G, new.mean - prior.mean))
        change = _times(ahead.jacobian, move)
        before = jnp.sum(_times(G, move) * (r - _times(G, old.mean - prior.mean))) - jnp.sum(move * self.pull)
        after = jnp.sum(_times(ahead.whitener, change) * ahead.residual) - jnp.sum(move * pull)
        beta = jnp.max(jnp.abs(change))
        some = (beta > 0.0) & jnp.isfinite(beta)
        safe = jnp.where(some, beta, 1.0)
        share = jnp.where(some & ~(after >= -0.5 * before), jnp.log1p(safe) / safe, 1.0)
        mean = jnp.where(share == 1.0, new.mean, old.mean + share * move)
        return new.at(mean), with_fields(self, pull=(1.0 - share) * self.pull + share * pull)

    def next_width(self, spread: Float[Array, "O O"]) -> "DampingState":
        """Choose the variance for the next average by the secant through the last two given and resulting ones."""
        got = _log_size(spread)
        given, came = self.last
        gap = self.given - given
        slope = jnp.where(gap != 0.0, (got - came) / jnp.where(gap != 0.0, gap, 1.0), 0.0)
        following = self.given + (got - self.given) / (1.0 - jnp.clip(slope, *SLOPES))
        return DampingState(self.pull, jnp.exp(following - got), following, (self.given, got))


def _log_size(spread: Array) -> Array:
    """Log of the total variance; 0 where it is zero or not finite."""
    size = trace(spread)
    some = (size > 0.0) & jnp.isfinite(size)
    return jnp.log(jnp.where(some, size, 1.0))


class GradientState(Module):
    r"""The position of a gradient descent relative to the prior: m, and M as a matrix or as its diagonal.

    The objective of Bayes by backprop is $\mathrm{KL}(q \,\|\, \pi) - E_q[\ell]$ with $\pi = N(\mu, AA^\top)$ the
    belief before the datum. In units of that belief, $q = N(\mu + Am,\, AM(AM)^\top)$ with M lower triangular, it is
    $$\tfrac12\bigl(|m|^2 + |M|^2\bigr) - \textstyle\sum_i\log M_{ii} - E_q[\ell],$$
    so that nothing is inverted and a step length has no unit. With G the rows and r the residual of the pseudo-datum
    under q, about the prior's mean, and $V = A^\top G^\top$,
    $$\nabla_m = m - V(r - V^\top m), \qquad \nabla_M = M + VV^\top M - \mathrm{diag}(1/M_{ii}),$$
    by the identities of Bonnet and Price. The steps are in m, in M below its diagonal, and in $\log M_{ii}$; a diagonal
    belief has the last alone. Steps longer than $2/(1 + |V|^2)$ diverge, unlike natural gradients.
    """

    shift: Float[Array, " D"]
    factor: Float[Array, "D *D"]

    @classmethod
    def start(cls, prior: PyTree) -> "GradientState":
        """The position of the prior itself."""
        here = jnp.zeros_like(prior.mean)
        return cls(here, jnp.eye(here.size, dtype=here.dtype) if isinstance(prior, SquareRoot) else here + 1.0)

    @property
    def finite(self) -> Bool[Array, ""]:
        """Whether all its numbers are finite."""
        return jnp.all(jnp.isfinite(self.shift)) & jnp.all(jnp.isfinite(self.factor))

    def belief(self, prior: PyTree) -> Any:
        """The belief at this position, in the form of the prior."""
        if isinstance(prior, SquareRoot):
            mean = prior.mean + matmul(prior.root, self.shift[:, None])[:, 0]
            return SquareRoot(mean, matmul(prior.root, self.factor))
        mean = prior.mean + jnp.sqrt(prior.var) * self.shift
        return Diagonal(mean, prior.var * jnp.square(self.factor), prior.decoupled)

    def descend(self, prior: PyTree, pseudo: PseudoDatum, step: Float[Array, ""]) -> "GradientState":
        """Take one gradient step, with the pseudo-datum averaged here and written about the prior's mean."""
        full = isinstance(prior, SquareRoot)
        G = pseudo.rows
        V = matmul(G, prior.root).T if full else (G * jnp.sqrt(prior.var)[None, :]).T
        left = pseudo.residual - matmul(V.T, self.shift[:, None])[:, 0]
        shift = self.shift - step * (self.shift - matmul(V, left[:, None])[:, 0])
        if not full:
            square = jnp.square(self.factor)
            return GradientState(shift, self.factor * jnp.exp(step * (1.0 - square - square * jnp.sum(V * V, axis=1))))
        M = self.factor
        slope = M + matmul(V, matmul(V.T, M))
        scale = jnp.diagonal(M)
        on = scale * jnp.exp(step * (1.0 - scale * jnp.diagonal(slope)))
        eye = np.eye(len(M), dtype=bool)
        return GradientState(shift, jnp.where(eye, on[None, :], jnp.tril(M - step * slope, -1)))


def _times(A: Array, v: Array) -> Array:
    return matmul(A, v[:, None])[:, 0]
