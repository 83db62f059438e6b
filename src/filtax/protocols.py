"""What the five choices exchange: a bank of hypotheses, what is proposed for it, and what one datum did to it.

A bank has C slots, fixed for a compilation. A slot that no hypothesis uses has log weight -inf and still holds a
valid belief.
"""

from collections.abc import Callable
from typing import Any, Protocol

import jax
from jaxtyping import Array, Bool, Float, Key, PyTree

from filtax.module import Module

__all__ = [
    "Auxiliary",
    "Dynamics",
    "Hypotheses",
    "Posterior",
    "Prior",
    "Proposal",
    "Update",
    "Weighting",
    "over_hypotheses",
]

LARGE = 4096  # numbers in one hypothesis above which a loop over hypotheses beats a batch of them


class Hypotheses(Module):
    """The mixture over hypotheses: a belief, an auxiliary value and a log weight in each of C slots."""

    belief: PyTree
    aux: PyTree
    log_weight: Float[Array, " C"]


class Proposal(Module):
    """A bank after (M.2): which slots are newborn, and the log weight each old hypothesis gave to a reset.

    `rounded` is what the last digit of the log weights could not hold (see `hazards.going_on`); None where they are
    long enough.
    """

    hypotheses: Hypotheses
    is_new: Bool[Array, " C"]
    log_reset: Float[Array, " C"]
    rounded: Float[Array, " C"] | None = None


class Update(Module):
    """What (A.1) returns for one hypothesis.

    `log_evidence` is the plain predictive density: the law, the scores. `log_score` is what (A.2) weighs with; a robust
    model makes it differ. `trust` is None where every datum is believed in full. `strain` is how many times larger the
    variance of what was not known is than that of the noise.
    """

    belief: PyTree
    forecast: PyTree
    log_evidence: Float[Array, ""]
    log_score: Float[Array, ""]
    trust: Float[Array, ""] | None
    conditioning_ratio: Float[Array, ""]
    ok: Bool[Array, ""]


class Auxiliary(Protocol):
    """(M.2) The auxiliary variable psi: which hypotheses there are."""

    slots: int

    def start(self, dtype: Any) -> tuple[PyTree, Float[Array, " C"]]:
        """Auxiliary values and log weights before any datum."""
        ...

    def expand(self, hypotheses: Hypotheses, initial: PyTree, dt: Array | None) -> Proposal:
        """Let one tick pass: the hypotheses that may hold now, in the same C slots."""
        ...

    def slots_needed(self, t: int) -> int | None:
        """Slots that the tick after t needs, or None when the bank never grows."""
        ...

    def report(self, hypotheses: Hypotheses, age: Array) -> tuple[Array | None, Array]:
        """Change probability (None if none is ever suspected) and most probable run length; `age` counts the data."""
        ...


class Dynamics(Protocol):
    """How theta moves under one hypothesis while time passes."""

    needs: tuple[str, ...]

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """Belief before the tick to belief after it."""
        ...


class Prior(Protocol):
    """(M.3) The conditional prior pi(theta; psi), for the whole bank.

    A prior may also have `settle(proposed, beliefs, log_score, initial, ask)`, which acts once it is known how the
    proposed hypotheses score and returns a proposal and its beliefs; `ask(beliefs)` tells the scores of others.
    """

    dynamics: Any

    def __call__(self, proposed: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        """Beliefs (C, ...) before the datum."""
        ...


class Posterior(Protocol):
    """(A.1) How one hypothesis absorbs one datum."""

    def start(self, mean: Array, cov: Array, has_dynamics: bool) -> PyTree:
        """Initial belief of the family this posterior works on."""
        ...

    def forecast(self, belief: PyTree, model: Any, x: Array | None, aux: PyTree, plugin: bool = False) -> PyTree:
        """Predictive distribution of y."""
        ...

    def update(
        self,
        belief: PyTree,
        model: Any,
        x: Array | None,
        y: Array,
        mask: Array | None,
        aux: PyTree,
        key: Key[Array, ""] | None,
    ) -> Update:
        """Posterior belief, forecast and evidence. `mask` None promises a complete datum, which is then not guarded."""
        ...


class Weighting(Protocol):
    """(A.2) From the log weights after the evidence to those kept."""

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        """Normalised log weights; -inf for what is dropped."""
        ...


def over_hypotheses(function: Callable, *batched: PyTree) -> PyTree:
    """Map over hypotheses: plainly for one, as a batch for small beliefs, as a loop for large ones.

    >>> import jax.numpy as jnp
    >>> each(lambda a: 2 * a, jnp.ones((1, 3))).shape
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
