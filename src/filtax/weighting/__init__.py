"""(A.2) Weighting functions nu(psi): how much each hypothesis counts."""

from typing import TYPE_CHECKING

from filtax import _lazy

if TYPE_CHECKING:
    from filtax.weighting._exact import Exact, FixedShare, fixed_share
    from filtax.weighting._learned import Gated, Responsibilities, Retrospective, gated, responsibilities, retrospective
    from filtax.weighting._top_k import Bounded, Diverse, Sampled, bounded, diverse, sampled

__all__ = [
    "Bounded",
    "Diverse",
    "Exact",
    "FixedShare",
    "Gated",
    "Responsibilities",
    "Retrospective",
    "Sampled",
    "bounded",
    "diverse",
    "fixed_share",
    "gated",
    "responsibilities",
    "retrospective",
    "sampled",
]

__getattr__, __dir__ = _lazy(
    __name__,
    __all__,
    _exact="Exact FixedShare fixed_share",
    _learned="Gated Responsibilities Retrospective gated responsibilities retrospective",
    _top_k="Bounded Diverse Sampled bounded diverse sampled",
)
