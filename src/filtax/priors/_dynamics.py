r"""(M.3) Dynamics: how parameters move while a regime lasts, and the prior under which every hypothesis follows them.

Static   $\theta' = \theta$
ACI      $\theta' = \theta + e$, $e \sim N(0, q I)$, a random walk
SP       $\theta' = s\,\theta + e$, $e \sim N(0, q I)$, shrink and perturb
OU       $\mu' = \gamma\mu + (1-\gamma)\mu_0$, $\Sigma' = \gamma^2\Sigma + (1-\gamma^2)\Sigma_0$
LSSM     $\theta' = F\theta + b + e$, $e \sim N(0, Q)$, or $\theta' = f(\theta) + e$, linearised at the mean

With one rate $\gamma$ for each parameter, D their diagonal matrix, the OU covariance is
$D\Sigma D + (I-D^2)^{1/2}\Sigma_0(I-D^2)^{1/2}$, which stays positive semidefinite. Without data it converges to the
initial belief.

Over a time step dt the variance of ACI grows by q dt, and shrinkage is s^dt, so that two steps equal one of their sum;
OU rates compose likewise. Linear dynamics take F and Q as functions of dt. Blocks of parameters and experts may have
dynamics of their own (eq:subspace-last-layer-ssm, eqn:MELSSM).

Thesis: prop:kf-equations, algo:linear-kalman-filter (errata E3), algo:extended-kalman-filter (errata E5: the mean moves
by f itself, the covariance by its Jacobian), and the section on the conditional prior of chapter 3.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from filtax import _validation as checks
from filtax.linalg import psd_root
from filtax.protocols import Dynamics, Prior, Proposal, over_hypotheses
from filtax.protocols import static as structure


class Static(Dynamics):
    """Parameters that do not move."""

    name = "Static"
    moves = False

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        return belief


class AdditiveInflation(Dynamics):
    """A random walk: the variance of each parameter grows by q at each step."""

    q: Any
    name = "ACI"
    shown = {"q": None}  # noqa: RUF012
    needs = ("add",)

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        q = jnp.asarray(self.q)
        return belief.add(_finite(q if dt is None else q * dt, belief.mean.dtype))


class ShrinkPerturb(Dynamics):
    """Shrink the parameters towards zero, then perturb them."""

    shrink: Any
    q: Any
    name = "SP"
    shown = {"shrink": None, "q": None}  # noqa: RUF012
    needs = ("affine",)

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        shrink, q = jnp.asarray(self.shrink), jnp.asarray(self.q)
        if dt is not None:
            shrink, q = shrink**dt, q * _steps_worth(shrink, dt)
        return belief.affine(shrink, None, jnp.sqrt(_finite(q, belief.mean.dtype)))


class OrnsteinUhlenbeck(Dynamics):
    """Relax towards the initial belief at a rate."""

    rate: Any
    name = "OU"
    shown = {"rate": None}  # noqa: RUF012
    needs = ("mix",)

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        rate = jnp.asarray(self.rate)
        return belief.mix(initial, rate if dt is None else rate**dt)


class LinearDynamics(Dynamics):
    """F, b and a square root of Q; or functions of dt that return F and Q."""

    F: Any
    b: Any
    root: Any
    F_of: Callable | None = structure(default=None)
    Q_of: Callable | None = structure(default=None)
    name = "LSSM"
    needs = ("affine",)

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """The belief after one step, or after one of length dt."""
        if dt is not None and any(part is not None for part in (self.F, self.b, self.root)):
            raise ValueError(
                "step(dt=...): linear_dynamics with a constant F, b or Q does not know what another time step does; "
                "give F and Q as functions of dt, such as Q=lambda dt: q * dt, and no b."
            )
        gap, dtype = 1.0 if dt is None else dt, belief.mean.dtype
        F, root = self.F, self.root
        if self.F_of is not None:
            F = checks.returned("linear_dynamics: F", _at("F", self.F_of, gap)).astype(dtype)
        if self.Q_of is not None:
            Q = _at("Q", self.Q_of, gap)
            numbers = checks.returned("linear_dynamics: Q", Q)
            checks.covariance_like("linear_dynamics: what Q returned", Q, singular=True)
            root = noise_root(numbers.astype(dtype))
        F, b, root = (None if value is None else jnp.asarray(value) for value in (F, self.b, root))
        D = belief.mean.size
        for name, value in (("F", F), ("Q", root)):
            if value is not None and value.shape not in ((), (1,), (D,), (D, D)):
                raise ValueError(
                    f"linear_dynamics({name}=...) returned shape {value.shape} but there are D = {D} parameters; "
                    f"return a number, ({D},) or ({D}, {D})."
                )
        return belief.affine(F, b, root)


class NonlinearDynamics(Dynamics):
    """f and a square root of Q."""

    f: Callable = structure()
    root: Any
    name = "LSSM"
    needs = ("affine",)

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """The belief after one step; of an ensemble or particles each member moves by f, otherwise f is linearised."""
        if dt is not None:
            raise ValueError(
                "step(dt=...): nonlinear_dynamics knows one time step only; write dt into f as a parameter."
            )
        return belief.push(self._value, None if self.root is None else jnp.asarray(self.root))

    def _value(self, theta: Array) -> Array:
        """f(theta), checked."""
        moved = checks.returned("nonlinear_dynamics: f", self.f(theta))
        if moved.shape != theta.shape:
            raise ValueError(
                f"nonlinear_dynamics: f returned shape {moved.shape} for parameters of shape {theta.shape}."
            )
        return moved


class Continue(Prior):
    """The prior without resets: every hypothesis follows the dynamics.

    >>> from filtax.priors import static
    >>> Continue(static()).dynamics.name
    'Static'
    """

    dynamics: Any

    def __call__(self, proposal: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        """Beliefs before the datum, (C, ...)."""
        before = proposal.hypotheses
        return over_hypotheses(lambda belief, aux: self.dynamics(belief, initial, aux, dt), before.belief, before.aux)


def static() -> Static:
    """Keep the parameters constant: no datum is ever forgotten.

    >>> import filtax as fx
    >>> fx.method("LG+C-Static", model=fx.models.linear(noise=1.0), prior=static()).name
    'LG+C-Static'
    """
    return Static()


def additive_inflation(q: Any) -> AdditiveInflation:
    """Let the parameters walk at random (ACI): each variance grows by q at each step, times dt.

    Args:
        q: Variance, or (D,) variances, at least 0. Zero is `static()`.

    >>> import filtax as fx
    >>> kf = fx.method("LG+C-ACI", model=fx.models.linear(noise=1.0), prior=additive_inflation(0.5))
    >>> kf.predict(kf.init(mean=jnp.zeros(1), cov=1.0), jnp.ones(1)).var.item()
    2.5
    """
    checks.positive(
        "additive_inflation(q=...)", q, zero=True, hint="It is the variance added to each parameter per step."
    )
    checks.one_or_more("additive_inflation(q=...)", q)
    return AdditiveInflation(q)


def shrink_perturb(shrink: Any, q: Any) -> ShrinkPerturb:
    """Shrink the parameters by a factor and add variance q at each step.

    Args:
        shrink: Factor in [0, 1], or (D,) of them; 1 is `additive_inflation(q)`.
        q: Variance, or (D,) variances, at least 0.

    >>> import filtax as fx
    >>> sp = fx.method("LG+C-SP", model=fx.models.linear(noise=1.0), prior=shrink_perturb(0.5, 0.0))
    >>> sp.predict(sp.init(mean=jnp.ones(1), cov=4.0), jnp.ones(1)).mean.item()
    0.5
    """
    checks.share("shrink_perturb(shrink=...)", shrink, hint="1 keeps the parameters, 0 forgets them.")
    checks.positive("shrink_perturb(q=...)", q, zero=True, hint="It is the variance added to each parameter per step.")
    checks.one_or_more("shrink_perturb(shrink=...)", shrink)
    checks.one_or_more("shrink_perturb(q=...)", q)
    return ShrinkPerturb(shrink, q)


def ornstein_uhlenbeck(rate: Any) -> OrnsteinUhlenbeck:
    """Relax towards the initial belief, which forgets old data slowly.

    Args:
        rate: Share kept at each step, in [0, 1], or (D,) of them. 1 is `static()`, 0 forgets everything at each step.

    >>> import filtax as fx
    >>> ou = fx.method("LG+C-OU", model=fx.models.linear(noise=1.0), prior=ornstein_uhlenbeck(0.0))
    >>> ou.predict(ou.init(mean=jnp.zeros(1), cov=3.0), jnp.ones(1)).var.item()
    4.0
    """
    checks.share("ornstein_uhlenbeck(rate=...)", rate, hint="It is the share of the belief kept per step.")
    checks.one_or_more("ornstein_uhlenbeck(rate=...)", rate)
    return OrnsteinUhlenbeck(rate)


def linear_dynamics(F: Any = None, b: Any = None, Q: Any = None) -> LinearDynamics:
    """Let the parameters follow a linear state-space model.

    Args:
        F: Transition: a factor, (D,) factors, a (D, D) matrix, or a function of dt that returns one; the identity
            by default.
        b: Added at each step: a number, or (D,).
        Q: Covariance of the process noise: a variance, (D,) variances, a (D, D) matrix that may be singular, or a
            function of dt that returns one; none by default.

    >>> import filtax as fx
    >>> walk = linear_dynamics(F=jnp.array([[1.0, 1.0], [0.0, 1.0]]), Q=0.0)
    >>> tracker = fx.method("LG+C-LSSM", model=fx.models.linear(noise=1.0), prior=walk)
    >>> tracker.predict(tracker.init(mean=jnp.array([0.0, 2.0]), cov=1.0), jnp.array([1.0, 0.0])).mean.item()
    2.0
    """
    if not callable(F) and F is not None:
        checks.finite("linear_dynamics(F=...)", F)
        if np.ndim(F) > 2 or (np.ndim(F) == 2 and np.shape(F)[0] != np.shape(F)[1]):
            raise ValueError(
                f"linear_dynamics(F=...) must be a factor, a vector or a square matrix, got shape {np.shape(F)}; "
                "give (D, D)."
            )
        F = checks.floats(F)
    if b is not None:
        checks.finite("linear_dynamics(b=...)", b)
        if np.ndim(b) > 1:
            raise ValueError(
                f"linear_dynamics(b=...) must be a number or a vector, got shape {np.shape(b)}; give (D,)."
            )
        b = checks.floats(b)
    F_of, Q_of = (value if callable(value) else None for value in (F, Q))
    if Q_of is None and Q is not None:
        checks.covariance_like("linear_dynamics(Q=...)", Q, singular=True)
    _check_together(F=F, b=b, Q=Q)
    root = None if Q is None or Q_of is not None else noise_root(Q)
    return LinearDynamics(None if F_of else F, b, root, F_of, Q_of)


def nonlinear_dynamics(f: Callable[[Array], Array], Q: Any = None) -> NonlinearDynamics:
    """Let the parameters follow theta -> f(theta) + e with e ~ N(0, Q).

    Args:
        f: Differentiable function from (D,) to (D,).
        Q: Covariance of the process noise: a variance, (D,) variances or a (D, D) matrix; none by default.

    >>> import filtax as fx
    >>> swing = nonlinear_dynamics(lambda s: jnp.array([s[0] + 0.1 * s[1], s[1] - jnp.sin(s[0])]), Q=0.01)
    >>> ekf = fx.method("LG+C-LSSM", model=fx.models.linear(noise=0.1), prior=swing)
    >>> ekf.predict(ekf.init(mean=jnp.array([0.0, 1.0]), cov=0.01), jnp.array([1.0, 0.0])).mean.round(2).item()
    0.1...
    """
    if not callable(f):
        raise ValueError(f"nonlinear_dynamics(f=...) must be a function of theta, got {type(f).__name__}.")
    if Q is not None:
        checks.covariance_like("nonlinear_dynamics(Q=...)", Q, singular=True)
    return NonlinearDynamics(f, None if Q is None else noise_root(Q))


class ByBlock(Dynamics):
    """Dynamics of any kinds, in the order of the blocks."""

    parts: tuple[Any, ...]
    needs = ("blockwise",)

    @property
    def name(self) -> str:
        """Name of the dynamics of the blocks that move; LSSM if they are of several kinds."""
        names = {part.name for part in self.parts if part.moves}
        return "Static" if not names else names.pop() if len(names) == 1 else "LSSM"

    @property
    def moves(self) -> bool:
        """Whether any block moves."""
        return any(part.moves for part in self.parts)

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        moves = [lambda belief, start, part=part: part(belief, start, aux, dt) for part in self.parts]
        return belief.blockwise(moves, initial)

    def by_part(self, belief: PyTree) -> list[tuple[Dynamics, PyTree, int]]:
        """The dynamics of each block that has parameters."""
        if len(self.parts) != len(belief.parts):
            raise ValueError(
                f"by_block holds {len(self.parts)} dynamics but the belief has {len(belief.parts)} blocks; give one "
                "for each."
            )
        pairs = zip(self.parts, belief.parts, strict=True)
        return [found for each, part in pairs if part is not None for found in each.by_part(part)]


def by_block(dynamics: Any) -> ByBlock:
    """Give each block of parameters dynamics of its own.

    Args:
        dynamics: For each block one of `filtax.priors`: for PULSE the hidden part, then the last layer. A matrix F or Q
            is that of the block.

    >>> import jax.numpy as jnp, filtax as fx
    >>> from filtax.posteriors import blockwise
    >>> split = blockwise(["root", "root"], sizes=(1, 2))
    >>> walk = by_block([fx.priors.static(), fx.priors.additive_inflation(0.5)])
    >>> pair = fx.method("C-ACI", model=fx.models.linear(noise=1.0), posterior=split, prior=walk)
    >>> pair.predict(pair.init(mean=jnp.zeros(3), cov=1.0), jnp.ones(3)).var.item()
    5.0
    """
    dynamics = tuple(dynamics) if isinstance(dynamics, list | tuple) else ()
    if not dynamics or not all(isinstance(part, Dynamics) for part in dynamics):
        raise ValueError(
            "by_block: give a list with one dynamics for each block, such as [static(), additive_inflation(0.01)]."
        )
    return ByBlock(dynamics)


class ByExpert(Dynamics):
    """Dynamics of one kind, stacked along an axis of experts."""

    stacked: Any

    @property
    def name(self) -> str:
        """Name of the kind."""
        return self.stacked.name

    @property
    def needs(self) -> tuple[str, ...]:
        """Methods of a belief that the dynamics call."""
        return self.stacked.needs

    @property
    def experts(self) -> int | None:
        """Number of experts; None for dynamics without settings, which are all alike."""
        leaves = jax.tree.leaves(self.stacked)
        return leaves[0].shape[0] if leaves else None

    @property
    def moves(self) -> bool:
        """Whether the parameters move."""
        return self.stacked.moves

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        mine = jax.tree.map(lambda leaf: leaf[aux.expert], self.stacked)
        return mine(belief, initial, aux, dt)

    def by_part(self, belief: PyTree) -> list[tuple[Dynamics, PyTree, int]]:
        """The stacked dynamics, whose numbers have an axis of experts."""
        return [(dynamics, part, 1) for dynamics, part, _ in self.stacked.by_part(belief)]


def by_expert(dynamics: list) -> ByExpert:
    """Give each expert dynamics of its own; all are of one kind and of equal shapes.

    >>> from filtax.priors import ornstein_uhlenbeck
    >>> by_expert([ornstein_uhlenbeck(0.9), ornstein_uhlenbeck(0.99)]).stacked.rate.tolist()
    [0.9..., 0.99...]
    """
    if not isinstance(dynamics, list | tuple) or not all(isinstance(one, Dynamics) for one in dynamics):
        raise ValueError(
            f"by_expert: the dynamics must be a list of those of filtax.priors, such as [static(), static()], got "
            f"{dynamics!r:.40}."
        )
    if not dynamics:
        raise ValueError("by_expert: the list of dynamics is empty; give one dynamics for each expert.")
    kinds = {jax.tree.structure(one) for one in dynamics}
    shapes = {tuple(jnp.shape(leaf) for leaf in jax.tree.leaves(one)) for one in dynamics}
    if len(kinds) != 1 or len(shapes) != 1:
        raise ValueError(
            f"by_expert: the {len(dynamics)} dynamics must be of one kind and of equal shapes, such as "
            "[additive_inflation(0.0), additive_inflation(0.1)]."
        )
    return ByExpert(jax.tree.map(lambda *leaves: jnp.stack([checks.floats(leaf) for leaf in leaves]), *dynamics))


def noise_root(Q: Any) -> Array:
    """Square root of a process noise: of variances element by element, of a matrix by its eigenvectors."""
    if np.ndim(Q) < 2:
        return jnp.sqrt(checks.floats(Q))
    if not checks.is_concrete(Q):
        return psd_root(Q)
    exact = np.asarray(Q, "float64")
    sd = np.sqrt(np.maximum(np.diag(exact), 0.0))
    unit = np.where(sd > 0.0, sd, 1.0)  # parameters in very different units keep their digits
    value, vector = np.linalg.eigh(exact / np.outer(unit, unit))
    return checks.placed((sd[:, None] * vector * np.sqrt(np.maximum(value, 0.0))).astype(checks.floats(Q).dtype))


def _finite(q: Array, dtype: Any) -> Array:
    """A variance that overflowed becomes the largest whose root can be squared: a belief ignores an infinite one."""
    return jnp.minimum(q, 0.25 * jnp.finfo(dtype).max)


def _steps_worth(shrink: Array, dt: Array) -> Array:
    r"""Noise of dt steps in units of that of one step, $(1 - s^{2dt})/(1 - s^2)$."""
    still = shrink >= 1.0
    safe = jnp.where(still, 0.5, shrink)
    return jnp.where(still, dt, (1.0 - safe ** (2.0 * dt)) / (1.0 - safe**2))


def _at(name: str, function: Callable, gap: Any) -> Any:
    """Value of a user's function of dt; if it fails, it was most likely written as a function of theta."""
    try:
        return function(gap)
    except Exception as error:  # whatever the user's own code raises
        raise ValueError(
            f"linear_dynamics({name}=...) is a function that failed for a step dt ({error!s:.60}); give a function "
            "of the number dt, and one of theta as nonlinear_dynamics(f, Q)."
        ) from error


def _check_together(**parts: Any) -> None:
    """Refuse empty arrays, and shapes for different numbers of parameters."""
    shapes = {name: np.shape(value) for name, value in parts.items() if value is not None and not callable(value)}
    for name in shapes:
        checks.one_or_more(f"linear_dynamics({name}=...)", parts[name])
    sized = {name: shape for name, shape in shapes.items() if shape not in ((), (1,))}  # a single number fits any D
    if len({shape[0] for shape in sized.values()}) > 1:
        given = " and ".join(f"{name} of shape {shape}" for name, shape in sized.items())
        raise ValueError(f"linear_dynamics: {given} do not fit together; give all for the same D parameters.")
