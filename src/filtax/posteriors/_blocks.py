"""(A.1) A Gaussian posterior over independent blocks of parameters, each in a form of its own: PULSE.

It is any linearising posterior on a belief without correlations between blocks. PULSE has two blocks: the coordinates
of the hidden layers' subspace, and the last layer in full. With a rank the hidden block is a belief of low rank, as in
LoFi, and no subspace is needed. `filtax.beliefs.Blocks` says how the blocks share a datum.

Cost: that of the blocks: O(d²O + L²O + O³) for dense forms of d and L coordinates; O(D K O) in the place of d²O for K
columns of low rank over D hidden parameters.
Thesis: sec:PULSE, theorem:pulse, algo:pulse-update (errata E32, E33).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from filtax import _validation as checks
from filtax.beliefs import Blocks, LowRank
from filtax.models import Model
from filtax.posteriors._extended import FORMS, Extended, Mask, RandomKey, check_form, check_rank, gaussian_belief
from filtax.protocols import Posterior, Update, static


@dataclass(frozen=True)
class LowRankForm:
    """The form of a block whose precision is diagonal, or "spherical", plus low rank, as in `Extended` with a rank.

    >>> LowRankForm(2, spare=1)(jnp.zeros(5), jnp.ones(5)).factor.shape
    (5, 3)
    """

    rank: Any
    spare: Any = None
    form: str = "diagonal"

    def __post_init__(self) -> None:
        check_rank("LowRankForm", self.form, self.rank, self.spare)

    def __call__(self, mean: Float[Array, " D"], cov: Array) -> LowRank:
        """Initial belief of the block."""
        return LowRank.start(mean, cov, self.rank, self.spare, self.form == "spherical")


class Blockwise(Posterior):
    """A posterior `inner` on independent blocks; use `blockwise` to make one, or the name PULSE.

    `sizes` is None until `fitted` takes them from the model.

    >>> Blockwise(("root", "diagonal"), sizes=(2, 3)).start(jnp.zeros(5), jnp.ones(5), has_dynamics=False).mean.shape
    (5,)
    """

    forms: tuple[str | Callable, ...] = static()
    sizes: tuple[int, ...] | None = static(default=None)
    coupled: Any = static(default=True)
    inner: Any = Extended()
    marginal: Any = static(default=False)
    name = "PULSE"
    families = (Blocks,)

    def __check_init__(self) -> None:
        for form in self.forms:
            if not callable(form) and form not in ("auto", *FORMS):
                raise ValueError(f"PULSE: form {form!r} must be one of auto, {', '.join(FORMS)}.")
        for form, size in zip(self.forms, self.sizes or (), strict=False):  # `init` refuses a wrong count
            if isinstance(form, LowRankForm):
                check_rank("PULSE", form.form, form.rank, form.spare, size, " of the block")
        checks.flag("PULSE(coupled=...)", self.coupled)
        checks.flag("PULSE(marginal=...)", self.marginal)
        if self.marginal and not self.coupled:
            raise ValueError(
                "PULSE(coupled=False, marginal=True): blocks that each take the whole residual do not see one another; "
                "leave one of the two out."
            )
        families = self.inner.families if isinstance(self.inner, Posterior) else ()
        if set(FORMS.values()) - set(families):
            given = self.inner.name if isinstance(self.inner, Posterior) else type(self.inner).__name__
            raise ValueError(
                f"blockwise(inner=...): {given} holds no Gaussian of its own form; use LG, IEKF, OB or IW."
            )

    @property
    def shown(self) -> dict[str, Any]:
        """Settings that are part of the name, with their defaults."""
        hidden = {"rank": None, "spare": None, "hidden": "auto" if self.rank is None else "diagonal"}
        return {**hidden, "last": "auto", "coupled": True, "marginal": False, "iterations": 1}

    @property
    def inner_families(self) -> tuple[type, ...]:
        """Families inside the blocks, to which the operations of a prior are handed on."""
        return (LowRank,) if any(isinstance(form, LowRankForm) for form in self.forms) else ()

    @property
    def hidden(self) -> str | Callable:
        """Form of the first block; if it is of low rank, that of its diagonal."""
        return _plain_form(self.forms[0])

    @property
    def rank(self) -> int | None:
        """Columns that a cut of the first block keeps, if it is of low rank."""
        return self.forms[0].rank if isinstance(self.forms[0], LowRankForm) else None

    @property
    def spare(self) -> int | None:
        """Columns that data fill between cuts of the first block."""
        return self.forms[0].spare if isinstance(self.forms[0], LowRankForm) else None

    @property
    def last(self) -> str | Callable:
        """Form of the last block."""
        return self.forms[-1]

    @property
    def iterations(self) -> int:
        """How often the inner posterior relinearises."""
        return self.inner.iterations if isinstance(self.inner, Extended) else 1

    @property
    def weighs_data(self) -> bool:
        """Whether the inner posterior finds the weight of each datum itself."""
        return self.inner.weighs_data

    @property
    def needs_covariance(self) -> bool:
        """Whether the inner posterior needs Gaussian noise."""
        return self.inner.needs_covariance

    @property
    def needs_key(self) -> bool:
        """Whether the inner posterior draws samples."""
        return self.inner.needs_key

    def fitted(self, model: Model) -> "Blockwise":
        """Take the sizes of the blocks from the model, if they were not given."""
        if self.sizes is not None:
            return self
        sizes = model.predictor.sizes
        if len(sizes) != len(self.forms):
            along = "A" if self.rank is None else "None"
            raise ValueError(
                f"PULSE: the model has {'one block' if sizes else 'no blocks'} of parameters but PULSE needs a hidden "
                f"part and a last layer; give model=filtax.models.subspace(model, {along}, params, last=True)."
            )
        return Blockwise(self.forms, sizes, self.coupled, self.inner, self.marginal)

    def block_covariances(self, cov: tuple, mean: Array) -> tuple[Array, ...]:
        """Check one covariance for each block: a variance, a vector or a matrix."""
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
        """Refuse a covariance that a form cannot hold, and correlations between blocks."""
        whole = cov if isinstance(cov, tuple) or cov.ndim else jnp.broadcast_to(cov, mean.shape)
        parts = self._cut(mean.size, whole)
        numbers = checks.concrete(whole) if not isinstance(whole, tuple) and whole.ndim == 2 else None
        if numbers is not None and np.count_nonzero(numbers) != sum(np.count_nonzero(part) for part in parts):
            raise ValueError(
                "init(cov=...) has correlations between blocks, which PULSE cannot hold; give one covariance for each "
                "block: cov=(hidden, last)."
            )
        for form, part in zip(self.forms, parts, strict=True):
            form = _plain_form(form)
            if part.size and isinstance(form, str):
                check_form(form, part)

    def start(self, mean: Float[Array, " D"], cov: Array | tuple[Array, ...], has_dynamics: bool) -> PyTree:
        """Initial belief: each block in its form."""
        parts = zip(self.forms, self._cut(mean.size, mean), self._cut(mean.size, cov), strict=True)

        def begin(form: str | Callable, m: Array, c: Array) -> PyTree:
            return form(m, c) if callable(form) else gaussian_belief(form, m, c, has_dynamics)

        blocks = tuple(begin(form, m, c) if m.size else None for form, m, c in parts)
        return Blocks(blocks, self.coupled, self.marginal)

    def forecast(self, belief: PyTree, model: Model, x: Array | None, aux: PyTree, plugin: bool = False) -> PyTree:
        """Predictive distribution of y, by the inner posterior."""
        return self.inner.forecast(belief, model, x, aux, plugin)

    def update(
        self, belief: PyTree, model: Model, x: Array | None, y: Array, mask: Mask, aux: PyTree, key: RandomKey
    ) -> Update:
        """Condition the belief on y, by the inner posterior."""
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


def _plain_form(form: str | Callable) -> str | Callable:
    """Form of a block; of a low-rank one that of its diagonal."""
    return form.form if isinstance(form, LowRankForm) else form


def blockwise(
    forms: Any, sizes: Any = None, coupled: bool = True, inner: Any = None, marginal: bool = False
) -> Blockwise:
    """Build a posterior on independent blocks of parameters.

    Args:
        forms: For each block the form of its belief: "auto", "root", "covariance", "precision" or "diagonal"; a
            `LowRankForm(rank)`; or a function from (mean, cov) to a belief of your own family.
        sizes: How many parameters each block has; those of the model by default.
        coupled: Blocks share each datum by one joint solve; with False each block takes the whole residual, as PULSE
            did at first.
        inner: Any posterior on Gaussian forms, such as `Extended()`, which is the default.
        marginal: Blocks keep their covariances in the joint posterior, instead of the smaller mean-field ones.

    >>> import filtax as fx
    >>> split = blockwise(["root", "diagonal"], sizes=(1, 2))
    >>> pair = fx.method("C-Static", model=fx.models.linear(noise=1.0), posterior=split)
    >>> state, _ = pair.step(pair.init(mean=jnp.zeros(3), cov=1.0), jnp.ones(3), 4.0)
    >>> pair.belief(state).mean.round(2).tolist()
    [1.0, 1.0, 1.0]
    """
    forms = tuple(forms)
    sizes = sizes if sizes is None else tuple(int(n) for n in sizes)
    return Blockwise(forms, sizes, coupled, Extended() if inner is None else inner, marginal)


def pulse(
    rank: Any = None,
    spare: Any = None,
    hidden: Any = "auto",
    last: Any = "auto",
    coupled: Any = True,
    marginal: Any = False,
    iterations: Any = 1,
) -> Blockwise:
    """Build the posterior that the name PULSE stands for: hidden coordinates and the last layer.

    Args:
        rank: With a rank the hidden block is of low rank, as in LoFi; it keeps so many columns at a cut.
        spare: Columns that data fill between cuts, as for LoFi.
        hidden: Form of the hidden block; with a rank "diagonal" or "spherical", that of its diagonal.
        last: Form of the last layer.
        coupled: Whether the blocks share each datum by one joint solve.
        marginal: Whether their covariances are those of the joint posterior, not the smaller mean-field ones.
        iterations: How often to relinearise.

    >>> pulse(rank=10).forms[0]
    LowRankForm(rank=10, spare=None, form='diagonal')
    """
    inner = Extended(iterations=iterations)
    if rank is None:
        if spare is not None:
            raise ValueError(f"PULSE(spare={spare!r}) goes with a rank; give rank= too, or leave it out.")
        if hidden == "spherical":
            raise ValueError("PULSE(hidden=spherical) goes with a rank; give rank= too, or use hidden=diagonal.")
        return Blockwise((hidden, last), None, coupled, inner, marginal)
    form = "diagonal" if hidden == "auto" else hidden
    if form not in ("diagonal", "spherical"):
        raise ValueError(
            f"PULSE(hidden={hidden!r}) does not go with a rank; use diagonal or spherical, or leave rank out."
        )
    check_rank("PULSE", form, rank, spare)
    return Blockwise((LowRankForm(rank, spare, form), last), None, coupled, inner, marginal)
