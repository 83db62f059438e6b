"""(A.2) Weighting functions nu(psi): how much each hypothesis counts."""

from filtax.weighting.exact import Exact

__all__ = ["Exact"]
