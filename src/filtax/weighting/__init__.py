"""(A.2) Weighting functions nu(psi): how much each hypothesis counts."""

from filtax.weighting.bounded import Bounded, bounded
from filtax.weighting.exact import Exact
from filtax.weighting.fixed_share import FixedShare, fixed_share

__all__ = ["Bounded", "Exact", "FixedShare", "bounded", "fixed_share"]
