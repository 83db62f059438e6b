"""(A.2) Weighting functions nu(psi): how much each hypothesis counts."""

from filtax.weighting.bounded import Bounded, bounded
from filtax.weighting.exact import Exact

__all__ = ["Bounded", "Exact", "bounded"]
