r"""(A.1) Variational Gaussian filters: the Gaussian nearest to prior times likelihood, in any Gaussian form.

They minimise $\mathrm{KL}(q \,\|\, p(y \mid \theta)\,\pi(\theta))$ over $q = N(\mu', \Sigma')$, where
$$\Sigma'^{-1} = \Sigma^{-1} - E_q[\nabla^2\ell], \qquad \mu' = \mu + \Sigma\,E_q[\nabla\ell]$$
hold with $\ell$ the log likelihood and q on both sides. Each inner iteration starts again from the prior
$(\mu, \Sigma)$, so that a datum counts once, and conditions it on the averaged score and curvature of the last q. That
is a Newton step preconditioned by $\Sigma'$: exact at once for a linear-Gaussian model, where the printed iteration of
the mean diverges as soon as $\rho(\Sigma H^\top R^{-1} H) > 1$.

One loop, four rules:

RVGA    the fixed point itself; a step that overshoots is shortened (implicit)
BONG    one natural-gradient step from the prior, of length 1 (explicit)
BLR     natural-gradient steps of a given length
BBB     plain gradient steps of a given length, in mean and factor of the covariance

A rule asks of a family no more than its mean, `spread`, `sample` and `condition`, so that the first three serve every
Gaussian form, the low-rank one too; what BBB asks for is in `descent`.

Cost: `iterations` conditionings. Thesis: sec:rvga, eq:rvga-target-gauss, algo:rvga-update (errata E6).
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from filtax import checks
from filtax.beliefs import LowRank
from filtax.models import Linearised, Model
from filtax.posteriors.averages import Site, blend, over_mean, over_outputs, over_samples
from filtax.posteriors.damping import begin, shorten, widen
from filtax.posteriors.descent import STEPPED, Place
from filtax.posteriors.extended import (
    DENSE,
    FORMS,
    Extended,
    check_form,
    check_rank,
    gaussian_belief,
    low_rank_belief,
)
from filtax.protocols import Posterior, Update

__all__ = ["Variational"]

RULES = {"implicit": "RVGA", "explicit": "BONG", "natural": "BLR", "gradient": "BBB"}
DEFAULTS = {
    "implicit": {"iterations": 4},
    "explicit": {},
    "natural": {"iterations": 10, "step": 0.5},
    "gradient": {"iterations": 10, "step": 0.1},
}
EXPECTATIONS = ("quadrature", "linearised")


class Variational(Posterior):
    """The recursive variational Gaussian approximation and its relatives.

    Attributes:
        rule: "implicit" (RVGA), "explicit" (BONG), "natural" (BLR) or "gradient" (BBB).
        iterations: Inner iterations; the explicit rule has one.
        step: Length of a step in (0, 1], of the natural and the gradient rule.
        samples: Average over this many samples of theta, an even number; needs `init(key=...)`. By a fixed rule over
            the outputs if left out.
        expectation: That rule: "quadrature", or "linearised" for the mean alone.
        form: Of the belief, as for `Extended`; "auto" takes the square root where samples are drawn or gradients taken.
        rank: With a rank the precision is diagonal plus low rank, as for `Extended`; "spherical" is then a form too.
        spare: Columns that data fill between cuts.

    >>> Variational(samples=10).start(jnp.zeros(40), jnp.ones(40), drifts=True).root.shape
    (40, 40)
    """

    rule: str = eqx.field(static=True, default="implicit")
    iterations: Any = eqx.field(static=True, default=4)
    step: Any = 1.0
    samples: Any = eqx.field(static=True, default=None)
    expectation: str = eqx.field(static=True, default="quadrature")
    form: str = eqx.field(static=True, default="auto")
    rank: Any = eqx.field(static=True, default=None)
    spare: Any = eqx.field(static=True, default=None)

    @property
    def name(self) -> str:
        """RVGA, BONG, BLR or BBB."""
        return RULES[self.rule]

    @property
    def families(self) -> tuple[type, ...]:
        """Beliefs that it works on."""
        if self.rank is not None:
            return (LowRank,)
        return tuple(FORMS[form] for form in STEPPED) if self.rule == "gradient" else DENSE

    @property
    def shown(self) -> dict[str, Any]:
        """Settings that a name spells out, with the defaults of its rule."""
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
        self._check_family()

    def _check_family(self) -> None:
        """Refuse a family that there is not, or that the rule cannot serve."""
        name, forms = self.name, STEPPED if self.rule == "gradient" else FORMS
        if self.rank is None:
            if self.form not in ("auto", *forms):
                raise ValueError(f"{name}(form={self.form!r}) must be one of auto, {', '.join(forms)}.")
            if self.spare is not None:
                raise ValueError(f"{name}(spare={self.spare!r}) goes with a rank; give rank= too, or leave it out.")
        elif self.rule == "gradient":
            raise ValueError(
                f"BBB(rank={self.rank!r}): it steps in a factor of the covariance, and a low-rank precision has none; "
                "use BLR with this rank, or BBB(form=diagonal)."
            )
        else:
            check_rank(name, self._low_rank_form, self.rank, self.spare)

    @property
    def _low_rank_form(self) -> str:
        return "diagonal" if self.form == "auto" else self.form

    def check_start(self, mean: Array, cov: Array) -> None:
        """Refuse what the chosen form cannot hold."""
        if self.rank is None:
            return check_form(self.form, cov)
        check_form(self._low_rank_form, cov)
        return check_rank(self.name, self._low_rank_form, self.rank, self.spare, mean.size)

    def start(self, mean: Float[Array, " D"], cov: Array, has_dynamics: bool) -> PyTree:
        """Initial belief. To sample from a covariance it would be factored at each iteration; a root need not be."""
        if self.rank is not None:
            return low_rank_belief(self._low_rank_form, mean, cov, self.rank, self.spare)
        rooted = self.form == "auto" and (self.samples or self.rule == "gradient")
        return gaussian_belief("root" if rooted else self.form, mean, cov, has_dynamics)

    def forecast(self, belief: PyTree, model: Model, x: Array | None, aux: PyTree, plugin: bool = False) -> PyTree:
        """Predictive of y, as the extended filter makes it: how a datum is absorbed changes no forecast."""
        return Extended().forecast(belief, model, x, aux, plugin)

    def update(
        self,
        belief: PyTree,
        model: Model,
        x: Array | None,
        y: Array,
        mask: Bool[Array, " W"] | None,
        aux: PyTree,
        key: Key[Array, ""] | None,
    ) -> Update:
        """Condition on y; forecast and evidence are those of the belief before it."""
        first = Extended().update(belief, model, x, y, mask, aux, key)
        datum = _Datum(model, x, y, mask, aux, key, first.ok)
        solve = {"implicit": self._implicit, "gradient": self._gradient}.get(self.rule, self._explicit)
        new, ok = solve(belief, datum)
        ok = first.ok & ok
        return Update(
            new, first.forecast, first.log_evidence, first.log_score, first.trust, first.conditioning_ratio, ok
        )

    def _implicit(self, prior: PyTree, datum: "_Datum") -> tuple[PyTree, Array]:
        """Iterate to the fixed point, each step no longer than is safe."""

        def inner(carry: tuple, _: None) -> tuple[tuple, None]:
            q, pace, ok = carry
            site, sound = self._average(prior, q, pace.width, datum)
            done = prior.condition(site.jacobian, site.whitener, site.residual)
            there = datum.linearise(done.belief)
            spread = done.belief.project_cov(there.jacobian)
            ahead = self._rule(there, spread, datum)
            q, pace = shorten(widen(pace, spread), prior, q, done.belief, site, ahead)
            return (q, pace, ok & sound & done.ok), None

        pace = begin(prior.mean, prior.project_cov(datum.linearise(prior).jacobian))
        carry = (prior, pace, jnp.ones((), bool))
        (q, _, ok), _ = jax.lax.scan(inner, carry, length=self.iterations)
        return q, ok

    def _explicit(self, prior: PyTree, datum: "_Datum") -> tuple[PyTree, Array]:
        """Natural-gradient steps of a given length: the site of each is blended into the last."""
        q, site, ok, plain = prior, None, jnp.ones((), bool), jnp.ones((), prior.mean.dtype)
        for _ in range(self.iterations):
            new, sound = self._average(prior, q, plain, datum)
            site = new if self.rule == "explicit" else blend(site, new, jnp.asarray(self.step))
            done = prior.condition(site.jacobian, site.whitener, site.residual)
            q, ok = done.belief, ok & sound & done.ok
        return q, ok

    def _gradient(self, prior: PyTree, datum: "_Datum") -> tuple[PyTree, Array]:
        """Plain gradient steps; one that ends in no number is not taken, nor any after it."""

        def inner(carry: tuple, _: None) -> tuple[tuple, None]:
            place, ok = carry
            site, sound = self._average(prior, place.belief(prior), jnp.ones((), prior.mean.dtype), datum)
            moved = place.descend(prior, site, jnp.asarray(self.step, prior.mean.dtype))
            ok = ok & sound & moved.finite
            return (jax.tree.map(lambda new, old: jnp.where(ok, new, old), moved, place), ok), None

        carry = (Place.start(prior), jnp.ones((), bool))
        (place, ok), _ = jax.lax.scan(inner, carry, length=self.iterations)
        return place.belief(prior), ok

    def _average(self, prior: PyTree, q: PyTree, width: Array, datum: "_Datum") -> tuple[Site, Array]:
        """Score and curvature under q, about the mean of the prior; nothing, where they are not finite."""
        if self.samples is None:
            at = datum.linearise(q)
            site = self._rule(at, width * q.project_cov(at.jacobian), datum)
        else:
            d = datum
            site = over_samples(q, width, d.model, d.x, d.y, d.mask, d.aux, d.key, self.samples)
        finite = jnp.all(jnp.isfinite(site.whitener)) & jnp.isfinite(jnp.sum(site.residual * site.residual))
        site = site if datum.mask is None else site.unless(~(finite & datum.ok))
        return site.seen_from(q.mean - prior.mean), finite

    def _rule(self, at: Linearised, spread: Array, datum: "_Datum") -> Site:
        if self.expectation == "linearised":
            return over_mean(datum.model, at, datum.x, datum.y, datum.mask)
        return over_outputs(datum.model, at, spread, datum.x, datum.y, datum.mask)


class _Datum(NamedTuple):
    """What stays the same over the inner iterations. The key is that of the tick: each moves the same samples."""

    model: Model
    x: Array | None
    y: Array
    mask: Array | None
    aux: PyTree
    key: Any
    ok: Array

    def linearise(self, q: PyTree) -> Linearised:
        return self.model.linearise(q.mean, self.x, self.aux)
