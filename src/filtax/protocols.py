"""The roles of the five choices, and the values that they pass to each other.

A method answers five questions: (M.1) how data depend on parameters, (M.2) what else is unknown, (M.3) how parameters
move, (A.1) how a belief absorbs a datum, (A.2) which hypotheses are kept. Each role is a base class here. A method or
an attribute with a default is optional; the others are abstract: a class without them cannot be made.

Axes: D parameters, O outputs, W numbers in one y, C hypotheses.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from inspect import get_annotations
from typing import Any, TypeVar, dataclass_transform

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

__all__ = [
    "Auxiliary",
    "Belief",
    "Dynamics",
    "Hypotheses",
    "Module",
    "Posterior",
    "Prior",
    "Proposal",
    "RunLengthValue",
    "Update",
    "Weighting",
    "over_hypotheses",
    "pytree",
    "static",
    "with_fields",
]

Kind = TypeVar("Kind", bound=type)
Node = TypeVar("Node")
LARGE = 4096  # numbers in one hypothesis above which a loop over hypotheses beats a batch of them


def static(*, default: Any = MISSING) -> Any:
    """Declare a field of a pytree that is structure: it is hashed and compared, and never traced.

    >>> @pytree
    ... class Power:
    ...     exponent: int = static(default=2)
    >>> jax.tree.leaves(Power(3))
    []
    """
    return field(default=default, metadata={"static": True})


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field, static))
def pytree(cls: Kind) -> Kind:
    """Make a class an immutable dataclass and a pytree: fields are children, those declared `static()` are structure.

    JAX flattens dataclasses in C++, and rebuilds them through the constructor with whatever a tree was mapped to. It
    then passes `_class`, a static field, and a user does not: `__check_init__` runs only where `_class` is unset. That
    field also tells structures apart: JAX takes two dataclasses with as many children for equal whenever their hashes
    collide, and would run the program that it compiled for one with the other.

    >>> one, other = (pytree(type(name, (), {"__annotations__": {"rate": float}}))(0.5) for name in ("One", "Other"))
    >>> jax.tree.structure(one) == jax.tree.structure(other)
    False
    """
    if "__dataclass_fields__" in vars(cls):  # a part, which has been made one already
        return cls
    checked = "__check_init__" in dir(cls)
    if checked:
        cls.__post_init__ = _check_once  # pyright: ignore[reportAttributeAccessIssue]
    own_class = field(default=None if checked else cls, kw_only=True, repr=False, metadata={"static": True})
    cls.__annotations__ = {**get_annotations(cls), "_class": type | None}
    cls._class = own_class  # pyright: ignore[reportAttributeAccessIssue]
    dataclass(frozen=True, eq=False, repr=False)(cls)
    cls.__repr__ = eqx.tree_pformat  # pyright: ignore[reportAttributeAccessIssue]
    return jax.tree_util.register_dataclass(cls)


def _check_once(self: Any) -> None:
    """Let each class that a new object is of check its fields, the base first."""
    if self._class is None:
        object.__setattr__(self, "_class", type(self))
        for cls in reversed(type(self).__mro__):
            if "__check_init__" in vars(cls):
                cls.__check_init__(self)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field, static))
class Module(ABC):  # noqa: B024  (subclasses have abstract methods)
    """Base of the parts that users may write: each subclass is a `pytree`.

    >>> class Line(Module):
    ...     slope: float
    ...     def at(self, x):
    ...         return self.slope * x
    >>> float(jax.jit(Line(2.0).at)(3.0))
    6.0
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        pytree(cls)

    def __eq__(self, other: object) -> Any:
        """Whether structure and numbers are the same."""
        return eqx.tree_equal(self, other)

    def __hash__(self) -> int:
        """Of the numbers; arrays have none."""
        return hash(tuple(jax.tree.leaves(self)))


def with_fields(node: Node, **values: Any) -> Node:
    """A copy of a pytree with other values in some fields, in a third of the time that its constructor takes.

    >>> with_fields(Proposal(None, None, None), rounded=0.0).rounded
    0.0
    """
    new = object.__new__(type(node))
    vars(new).update(vars(node), **values)
    return new


class Hypotheses(Module):
    """C weighted hypotheses about the auxiliary variable, each with a belief about the parameters.

    C is fixed for a compilation. A slot that no hypothesis uses has log weight -inf, and holds a valid belief.
    """

    belief: PyTree
    aux: PyTree
    log_weight: Float[Array, " C"]


class Proposal(Module):
    """Hypotheses after a step and before its datum; `is_new` marks those that begin with this step.

    `log_reset` is the log weight that each old hypothesis gave to a reset. `rounded` is the rounding error of
    `log_weight`, kept so that small hazards add up (see `hazards.going_on`); None where the dtype is long enough.
    """

    hypotheses: Hypotheses
    is_new: Bool[Array, " C"]
    log_reset: Float[Array, " C"]
    rounded: Float[Array, " C"] | None = None


class RunLengthValue(Module):
    """What a hypothesis about the last change knows of its regime: its age in steps, and the expert that holds in it.

    A model or a prior that counts time from the beginning of a regime takes its run length from here.
    """

    runlength: Int[Array, " *C"]
    expert: Int[Array, " *C"] | None


class Update(Module):
    """What one datum did to one hypothesis.

    `log_evidence` is the log density of y under its forecast. `log_score` is what (A.2) weighs by: the same, unless a
    robust model bounds it. `trust` is None where every datum is believed in full. `conditioning_ratio` is how many
    times larger the variance of the forecast's mean is than that of the noise. `ok` is False if the datum was refused.
    """

    belief: PyTree
    forecast: PyTree
    log_evidence: Float[Array, ""]
    log_score: Float[Array, ""]
    trust: Float[Array, ""] | None
    conditioning_ratio: Float[Array, ""]
    ok: Bool[Array, ""]


class Belief(Module):
    """q(theta): a distribution over the parameters that owns its algebra.

    A family has `mean` (D,), `var` (D,) and `cov` (D, D), `sample(key, shape)`, and of `add`, `affine`, `mix`,
    `inflate` and `moment_match` those that the priors it is used with need.
    """

    squared = False  # whether it holds the covariance, not a root: half as many digits are resolved
    collapsed = None  # True where the members of an ensemble are far too close to each other

    def compress(self) -> Any:
        """Drop large arrays that are still zero; so a state stores the initial belief.

        The default compresses the beliefs inside this one.
        """
        return _of_inner(self, lambda inner: inner.compress())

    def decompress(self) -> Any:
        """Undo `compress`; a belief that was not compressed is returned as it is."""
        return _of_inner(self, lambda inner: inner.decompress())

    def at(self, mean: Float[Array, " D"]) -> Any:
        """Return this belief about another mean."""
        return eqx.tree_at(lambda belief: belief.mean, self, mean)

    def project_root(self, J: Float[Array, "O D"]) -> Float[Array, "O N"] | None:
        """A root of the covariance of J theta, with digits that the covariance itself has lost; None without a root."""
        return None

    def push(self, f: Callable[[Array], Array], noise: Array | None) -> Any:
        """Push theta through f and add noise: f is linearised at the mean, unless a family has members to push."""
        moved, F = f(self.mean), jax.jacfwd(f)(self.mean)  # pyright: ignore[reportAttributeAccessIssue]
        return self.affine(F, moved - F @ self.mean, noise)  # pyright: ignore[reportAttributeAccessIssue]

    def prepare(self, J: Float[Array, "O D"]) -> Any:
        """Return a belief that has computed once what the forecast through J and the update both need."""
        return self


def _of_inner(belief: Belief, function: Callable[[Any], Any]) -> Any:
    """A belief in which each belief inside it was replaced."""
    parts, structure = jax.tree.flatten(belief, lambda part: isinstance(part, Belief) and part is not belief)
    return structure.unflatten([function(part) if isinstance(part, Belief) else part for part in parts])


class Storing(Module):
    """A part that may store data in the values of (M.2)."""

    stores_data = False  # whether the shape of a datum must be known before the first of them

    def allocate_memory(self, aux: PyTree, initial: PyTree, x: Any, width: int) -> PyTree:
        """Auxiliary values with room for data like x and for y of `width` numbers."""
        return aux

    def memory_shape(self, aux: PyTree) -> tuple[Array | None, int]:
        """Array of the shape of the remembered x, None if nothing is remembered; and outputs per datum."""
        return None, 1


class Auxiliary(Storing):
    """(M.2) The auxiliary variable psi: which hypotheses there are, and how they follow from those before."""

    name = ""  # in the grammar of `filtax.method`
    shown = {}  # noqa: RUF012 -- settings that a name spells out, with their defaults
    slots = 1
    keep = None  # hypotheses that survive a step; None for all
    inner = None  # a second auxiliary variable inside each regime, such as an expert
    futures = 1  # hypotheses that a survivor becomes at a step
    regimes_end = False  # whether a regime may end, so that a new one needs a prior
    knows_parent = False  # whether a new hypothesis knows which one it came from
    subsets = False  # whether a hypothesis is a subset of the data

    @abstractmethod
    def start(self, dtype: Any) -> tuple[PyTree, Float[Array, " C"]]:
        """Auxiliary values and log weights before any datum."""

    def start_of(self, slots: int, dtype: Any) -> tuple[PyTree, Float[Array, " C"]]:
        """Do the same for a given number of slots, if it may grow."""
        return self.start(dtype)

    @abstractmethod
    def expand(self, hypotheses: Hypotheses, initial: PyTree, dt: Array | None) -> Proposal:
        """Let one step pass: the hypotheses that may hold now, in the same C slots."""

    def slots_needed(self, t: int) -> int | None:
        """Slots that the step after t needs; None if C does not grow."""
        return None

    @property
    def grows(self) -> bool:
        """Whether the number of hypotheses grows with t."""
        return type(self).slots_needed is not Auxiliary.slots_needed and self.slots_needed(0) is not None

    def report(self, hypotheses: Hypotheses, age: Array) -> tuple[Array | None, Array]:
        """Change probability (None if no change is ever suspected), and most probable run length.

        `age` counts the data since the stream began.
        """
        return None, age

    def store(self, aux: PyTree, x: Array | None, y: Array, mask: Array, relearn: Callable) -> PyTree:
        """Auxiliary values that remember the datum.

        `relearn(belief, aux, x, y, mask, power)` is the belief after a remembered datum that counts as `power` of one.
        """
        return aux


class Dynamics(Module):
    """How theta moves under one hypothesis while time passes."""

    name = ""
    shown = {}  # noqa: RUF012
    needs = ()  # methods that it calls of a belief
    moves = True  # False if the parameters stay where they are
    experts = None  # number of experts that it holds dynamics for

    @abstractmethod
    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """Belief before the step to belief after it."""

    def by_part(self, belief: PyTree) -> list[tuple["Dynamics", PyTree, int]]:
        """(dynamics, sub-belief, n) for each block of the parameters; the first n axes index experts."""
        return [(self, belief, 0)]


class Prior(Module):
    """(M.3) The conditional prior pi(theta; psi): what each hypothesis believes before the datum.

    It has `dynamics`, by which the parameters move between changes. It has no state: what lasts from one datum to the
    next lives in `Hypotheses.aux`, the values of (M.2).
    """

    name = ""  # empty for one that only follows its dynamics
    shown = {}  # noqa: RUF012
    needs = ()  # methods that it calls of a belief
    greedy = False  # whether `revise` picks one future from the datum, so one hypothesis survives
    of_parent = False  # whether a new hypothesis starts from the belief of the one that it came from
    of_members = False  # whether it learns the remembered data of a subset

    @abstractmethod
    def __call__(self, proposal: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        """Beliefs (C, ...) before the datum."""

    def replay(self, proposal: Proposal, initial: PyTree, dt: Array | None, relearn: Callable) -> PyTree:
        """Beliefs (C, ...) before the datum, for a prior that learns remembered data again.

        `relearn(belief, aux, x, y, mask, power)` is the belief after a remembered datum that counts as `power` of one.
        """
        return self(proposal, initial, dt)

    def revise(
        self, proposal: Proposal, beliefs: PyTree, log_score: Float[Array, " C"], initial: PyTree, ask: Callable
    ) -> tuple[Proposal, PyTree]:
        """Change a proposal whose scores are known; what it was given is returned if there is nothing to change.

        `ask(beliefs)` is the scores (C,) of other beliefs.
        """
        return proposal, beliefs


class Posterior(Module):
    """(A.1) How one hypothesis forecasts and absorbs one datum."""

    name = ""
    shown = {}  # noqa: RUF012
    families = ()  # classes that `start` may return
    inner_families = ()  # those of their blocks
    likelihood_needs = ()  # methods that it calls of a likelihood, beyond `whiten` and `predictive`
    weighs_data = False  # whether it finds the weight of each datum itself, so that the model must not
    needs_covariance = False  # whether the likelihood must be Gaussian, with a covariance
    draws = False  # whether its belief carries a random key
    needs_key = False  # whether `update` draws
    stores_data = False  # whether the shape of a datum must be known before the first of them

    def fitted(self, model: Any) -> "Posterior":
        """This posterior with what it takes from a model, such as the sizes of layers."""
        return self

    def check_start(self, mean: Array, cov: Any) -> None:
        """Refuse an initial mean or covariance that its family cannot hold."""

    def block_covariances(self, cov: tuple, mean: Array) -> tuple[Array, ...] | None:
        """One covariance for each block of parameters; None where a belief has no blocks."""
        return None

    @abstractmethod
    def start(self, mean: Float[Array, " D"], cov: Array, has_dynamics: bool) -> PyTree:
        """Initial belief of the family this posterior works on."""

    def allocate_memory(self, belief: PyTree, x: Any, width: int) -> PyTree:
        """A belief with room for data like x and for y of `width` numbers."""
        return belief

    @abstractmethod
    def forecast(self, belief: PyTree, model: Any, x: Array | None, aux: PyTree, plugin: bool = False) -> PyTree:
        """Predictive distribution of y."""

    @abstractmethod
    def update(
        self,
        belief: PyTree,
        model: Any,
        x: Array | None,
        y: Array,
        mask: Bool[Array, " W"] | None,
        aux: PyTree,
        key: Key[Array, ""] | None,
    ) -> Update:
        """Posterior belief, forecast and evidence. `mask` None promises a complete datum, which is then not guarded."""


class Weighting(Storing):
    """(A.2) Which hypotheses are kept, and with which weights."""

    needs_key = False  # whether it draws; it is then called with `key=`
    revives = False  # whether it gives weight to slots that hold no hypothesis
    pairs = False  # whether it expects two futures of each hypothesis
    searches = shares = gates = False  # whether it has `search`, `responsibilities`, `update_gate`: found by itself

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.searches = cls.search is not Weighting.search
        cls.shares = cls.responsibilities is not Weighting.responsibilities
        cls.gates = cls.update_gate is not Weighting.update_gate

    @abstractmethod
    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        """Normalised log weights; -inf for those dropped."""

    def search(self, auxiliary: Auxiliary, aux: PyTree, score: Callable[[PyTree], Array]) -> PyTree:
        """Auxiliary value under which the datum is most probable; `score(aux)` is its log score."""
        return aux

    def responsibilities(
        self, log_weight: Float[Array, " C"], log_score: Float[Array, " C"], expected: Callable[[Array], Array]
    ) -> Float[Array, " C"]:
        """Share of the datum that each hypothesis learns from.

        `expected(shares)` is the expected log-likelihood (C,) of beliefs that have learned from such shares.
        """
        ...

    def update_gate(
        self, aux: PyTree, log_weight: Float[Array, " C"], log_score: Float[Array, " C"], y: Array, mask: Array
    ) -> tuple[PyTree, Float[Array, " C"]]:
        """Auxiliary values and log weights after a step of the gate; `log_weight` is from before the datum."""
        ...


def over_hypotheses(function: Callable, *batched: PyTree) -> PyTree:
    """Map over hypotheses: plainly for one, as a batch for small beliefs, as a loop for large ones.

    >>> import jax.numpy as jnp
    >>> over_hypotheses(lambda a: 2 * a, jnp.ones((1, 3))).shape
    (1, 3)
    """
    leaves = jax.tree.leaves(batched)
    slots = leaves[0].shape[0]
    if slots == 1:
        single = function(*jax.tree.map(lambda leaf: leaf[0], batched))
        return jax.tree.map(lambda leaf: leaf[None], single)
    if sum(leaf.size for leaf in leaves) > LARGE * slots:
        return jax.lax.map(lambda one: function(*one), batched)
    return jax.vmap(function)(*batched)
