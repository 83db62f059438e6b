"""(A.2) Weighting functions nu(psi): how much each hypothesis counts."""

from typing import TYPE_CHECKING

from filtax import _lazy

if TYPE_CHECKING:
    from filtax.weighting._bayes import Exact, bounded, diverse, fixed_share, sampled
    from filtax.weighting._learned import gated, responsibilities, retrospective

__all__ = [
    "Exact",
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
    _bayes="Exact bounded diverse fixed_share sampled",
    _learned="gated responsibilities retrospective",
)
