"""(A.1) A Gaussian posterior over blocks of parameters, each in a form of its own: PULSE.

Any linearising posterior, on a belief without correlations between blocks. For PULSE there are two: the coordinates of
the hidden layers' subspace, and the last layer in full. How the blocks share a datum is the business of the belief
(`filtax.beliefs.Blocks`).

Cost: that of the blocks: O(d²O + L²O + O³) for dense forms of d and L coordinates.
Thesis: sec:PULSE, theorem:pulse, algo:pulse-update (errata E32, E33).
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, PyTree

from filtax import checks
from filtax.beliefs import Blocks
from filtax.models import Model
from filtax.module import Module
from filtax.posteriors.extended import FORMS, Extended, check_form, gaussian_belief
from filtax.protocols import Update

__all__ = ["Blockwise", "blockwise"]


class Blockwise(Module):
    """A posterior `inner` on independent blocks; use `blockwise` to make one, or the name PULSE.

    `sizes` is None until the model says how its coordinates divide.

    >>> Blockwise(("root", "diagonal"), sizes=(2, 3)).start(jnp.zeros(5), jnp.ones(5), drifts=False).mean.shape
    (5,)
    """

    forms: tuple[str | Callable, ...] = eqx.field(static=True)
    sizes: tuple[int, ...] | None = eqx.field(static=True, default=None)
    coupled: bool = eqx.field(static=True, default=True)
    inner: Any = Extended()
    name = "PULSE"
    shown = {"hidden": "auto", "last": "auto", "coupled": True, "iterations": 1}  # noqa: RUF012
    families = (Blocks,)

    def __check_init__(self) -> None:
        for form in self.forms:
            if not callable(form) and form not in ("auto", *FORMS):
                raise ValueError(f"PULSE: form {form!r} must be one of auto, {', '.join(FORMS)}.")
        if not isinstance(self.coupled, bool):
            raise ValueError(f"PULSE(coupled={self.coupled!r}) must be True or False.")
        if set(FORMS.values()) - set(getattr(self.inner, "families", ())):
            given = getattr(self.inner, "name", type(self.inner).__name__)
            raise ValueError(
                f"blockwise(inner=...): {given} holds no Gaussian of its own form; use LG, IEKF, OB or IW."
            )

    @property
    def hidden(self) -> str | Callable:
        """Form of the first block."""
        return self.forms[0]

    @property
    def last(self) -> str | Callable:
        """Form of the last block."""
        return self.forms[-1]

    @property
    def iterations(self) -> int:
        """How often the inner posterior relinearises."""
        return getattr(self.inner, "iterations", 1) if isinstance(self.inner, Extended) else 1

    @property
    def judges(self) -> bool:
        """Whether the inner posterior weighs each datum itself."""
        return getattr(self.inner, "judges", False)

    @property
    def needs_covariance(self) -> bool:
        """Whether the inner posterior needs Gaussian noise."""
        return getattr(self.inner, "needs_covariance", False)

    @property
    def needs_key(self) -> bool:
        """Whether the inner posterior draws samples."""
        return getattr(self.inner, "needs_key", False)

    def fitted(self, model: Model) -> "Blockwise":
        """Take the sizes of the blocks from a model that has blocks; sizes that were given stay."""
        if self.sizes is not None:
            return self
        sizes = getattr(model.predictor, "sizes", ())
        if len(sizes) != len(self.forms):
            raise ValueError(
                f"PULSE: the model has {'one block' if sizes else 'no blocks'} of parameters but PULSE needs a hidden "
                "part and a last layer; give model=filtax.models.subspace(model, A, params, last=True)."
            )
        return Blockwise(self.forms, sizes, self.coupled, self.inner)

    def gather(self, cov: tuple, mean: Array) -> tuple[Array, ...]:
        """Check one covariance for each block, a variance, a vector or a matrix; none is made for all of them."""
        sizes = self._checked_sizes(mean.size)
        if len(cov) != len(sizes):
            raise ValueError(
                f"init(cov=...) holds {len(cov)} covariances but there are {len(sizes)} blocks; give as many."
            )
        for part, n in zip(cov, sizes, strict=True):
            checks.covariance_like("init(cov=...)", part, singular=True)
            if np.ndim(part) and np.shape(part)[0] != n:
                raise ValueError(
                    f"init(cov=...) has shape {np.shape(part)} for a block of {n} parameters; give ({n},)."
                )
        parts = [checks.floats(part).astype(mean.dtype) for part in cov]
        for part in parts:
            checks.finite(f"init(cov=...) as {mean.dtype}", part)
        return tuple(part if part.ndim else jnp.broadcast_to(part, (n,)) for part, n in zip(parts, sizes, strict=True))

    def check_start(self, mean: Array, cov: Array | tuple[Array, ...]) -> None:
        """Refuse what a form cannot hold, and correlations between blocks."""
        whole = cov if isinstance(cov, tuple) or cov.ndim else jnp.broadcast_to(cov, mean.shape)
        parts = self._cut(mean.size, whole)
        numbers = checks.concrete(whole) if not isinstance(whole, tuple) and whole.ndim == 2 else None
        if numbers is not None and np.count_nonzero(numbers) != sum(np.count_nonzero(part) for part in parts):
            raise ValueError(
                "init(cov=...) has correlations between blocks, which PULSE cannot hold; give one covariance for each "
                "block: cov=(hidden, last)."
            )
        for form, part in zip(self.forms, parts, strict=True):
            if part.size and isinstance(form, str):
                check_form(form, part)

    def start(self, mean: Float[Array, " D"], cov: Array | tuple[Array, ...], drifts: bool) -> PyTree:
        """Initial belief: each block in its form."""
        parts = zip(self.forms, self._cut(mean.size, mean), self._cut(mean.size, cov), strict=True)
        begin = lambda form, m, c: form(m, c) if callable(form) else gaussian_belief(form, m, c, drifts)  # noqa: E731
        return Blocks(tuple(begin(form, m, c) if m.size else None for form, m, c in parts), self.coupled)

    def forecast(self, belief: PyTree, model: Model, x: Array | None, aux: PyTree, plugin: bool = False) -> PyTree:
        """Predictive of y, as the inner posterior makes it."""
        return self.inner.forecast(belief, model, x, aux, plugin)

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
        """Condition the belief on y, as the inner posterior does."""
        return self.inner.update(belief, model, x, y, mask, aux, key)

    def _checked_sizes(self, size: int) -> tuple[int, ...]:
        sizes = self.sizes or ()
        if len(sizes) != len(self.forms) or sum(sizes) != size:
            raise ValueError(
                f"PULSE: blocks of sizes {sizes} and forms {self.forms} do not divide {size} parameters; give "
                "blockwise(forms, sizes=...) one size for each form."
            )
        return sizes

    def _cut(self, size: int, value: Array | tuple[Array, ...]) -> list[Array]:
        if isinstance(value, tuple):
            return list(value)
        ends = np.cumsum((0, *self._checked_sizes(size)))
        cuts = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        return [value[at] if value.ndim == 1 else value[at, at] for at in cuts]


def blockwise(forms: Any, sizes: Any = None, coupled: bool = True, inner: Any = None) -> Blockwise:
    """Divide the parameters into independent blocks.

    Args:
        forms: For each block the form of its belief: "auto", "root", "covariance", "precision" or "diagonal"; or a
            function from (mean, cov) to a belief of your own family.
        sizes: How many parameters each block has; those of the model if left out.
        coupled: Blocks share each datum by one joint solve; False lets each take it whole, as PULSE did at first.
        inner: Any posterior on Gaussian forms, such as `Extended()`, which is the default.

    >>> import filtax as fx
    >>> split = blockwise(["root", "diagonal"], sizes=(1, 2))
    >>> pair = fx.method("C-Static", model=fx.models.linear(noise=1.0), posterior=split)
    >>> state, _ = pair.step(pair.init(mean=jnp.zeros(3), cov=1.0), jnp.ones(3), 4.0)
    >>> pair.belief(state).mean.round(2).tolist()
    [1.0, 1.0, 1.0]
    """
    forms = tuple(forms)
    sizes = sizes if sizes is None else tuple(int(n) for n in sizes)
    return Blockwise(forms, sizes, coupled, Extended() if inner is None else inner)
