r"""(M.3) Dynamics: how parameters move while a regime lasts; and the prior under which every hypothesis follows them.

Static   $\theta' = \theta$
ACI      $\theta' = \theta + e$, $e \sim N(0, q I)$, a random walk
SP       $\theta' = s\,\theta + e$, $e \sim N(0, q I)$, shrink and perturb
OU       $\mu' = \gamma\mu + (1-\gamma)\mu_0$, $\Sigma' = \gamma^2\Sigma + (1-\gamma^2)\Sigma_0$
LSSM     $\theta' = F\theta + b + e$, $e \sim N(0, Q)$, or $\theta' = f(\theta) + e$, linearised at the mean

With one rate $\gamma$ for each parameter, D their diagonal matrix, the OU covariance is
$D\Sigma D + (I-D^2)^{1/2}\Sigma_0(I-D^2)^{1/2}$, which stays positive semidefinite. Without data it converges to the
initial belief.

Over a time step dt the variance of ACI grows by q dt, and shrinkage is s^dt, so that two steps equal one of their sum;
OU rates compose likewise. Linear dynamics take F and Q as functions of dt.

Thesis: prop:kf-equations, algo:linear-kalman-filter (errata E3), algo:extended-kalman-filter (errata E5: the mean moves
by f itself, the covariance by its Jacobian), and the section on the conditional prior of chapter 3.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from filtax import _validation as checks
from filtax.linalg import psd_root
from filtax.protocols import Dynamics, Prior, Proposal, over_hypotheses
from filtax.protocols import static as structure


class Static(Dynamics):
    """Parameters that do not move.

    >>> Static().name
    'Static'
    """

    name = "Static"
    shown = {}  # noqa: RUF012
    needs = ()
    moves = False

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """The same belief."""
        return belief


class AdditiveInflation(Dynamics):
    """A random walk: the variance of each parameter grows by q at each step.

    >>> additive_inflation(0.1).q
    0.1
    """

    q: Any
    name = "ACI"
    shown = {"q": None}  # noqa: RUF012
    needs = ("add",)
    moves = True

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """The belief after one step."""
        q = jnp.asarray(self.q)
        return belief.add(_finite(q if dt is None else q * dt, belief.mean.dtype))


class ShrinkPerturb(Dynamics):
    """Shrink the parameters towards zero, then perturb them.

    >>> shrink_perturb(0.99, 0.01).shrink
    0.99
    """

    shrink: Any
    q: Any
    name = "SP"
    shown = {"shrink": None, "q": None}  # noqa: RUF012
    needs = ("affine",)
    moves = True

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """Theta -> shrink theta + e, e ~ N(0, q)."""
        shrink, q = jnp.asarray(self.shrink), jnp.asarray(self.q)
        if dt is not None:
            shrink, q = shrink**dt, q * _steps_worth(shrink, dt)
        return belief.affine(shrink, None, jnp.sqrt(_finite(q, belief.mean.dtype)))


class OrnsteinUhlenbeck(Dynamics):
    """Relax towards the initial belief at a rate.

    >>> ornstein_uhlenbeck(0.99).rate
    0.99
    """

    rate: Any
    name = "OU"
    shown = {"rate": None}  # noqa: RUF012
    needs = ("mix",)
    moves = True

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """The belief of which the share rate^dt is kept."""
        rate = jnp.asarray(self.rate)
        return belief.mix(initial, rate if dt is None else rate**dt)


class LinearDynamics(Dynamics):
    """F, b and a square root of Q; or functions of dt that return F and Q.

    >>> linear_dynamics(F=jnp.eye(2), Q=0.04).root.round(3).item()
    0.2
    """

    F: Any
    b: Any
    root: Any
    F_of: Callable | None = structure(default=None)
    Q_of: Callable | None = structure(default=None)
    name = "LSSM"
    shown = {}  # noqa: RUF012
    needs = ("affine",)
    moves = True

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """The belief after one step, or after one of length dt."""
        if dt is not None and any(part is not None for part in (self.F, self.b, self.root)):
            raise ValueError(
                "step(dt=...): linear_dynamics with a constant F, b or Q does not know what another time step does; "
                "give F and Q as functions of dt, such as Q=lambda dt: q * dt, and no b."
            )
        gap = 1.0 if dt is None else dt
        dtype = belief.mean.dtype
        F = self.F if self.F_of is None else _at("F", self.F_of, gap)
        F = F if self.F_of is None else checks.returned("linear_dynamics: F", F).astype(dtype)
        root = self.root
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
    """f and a square root of Q.

    >>> nonlinear_dynamics(jnp.sin, Q=0.04).name
    'LSSM'
    """

    f: Callable = structure()
    root: Any
    name = "LSSM"
    shown = {}  # noqa: RUF012
    needs = ("affine",)
    moves = True

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


def noise_root(Q: Any) -> Array:
    """Square root of a process noise: of variances element by element, of a matrix by its eigenvectors.

    >>> noise_root(jnp.array([4.0, 9.0])).tolist()
    [2.0, 3.0]
    """
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
