"""(A.2) Weighting functions nu(psi): how much each hypothesis counts."""

from filtax.weighting.bounded import Bounded, bounded
from filtax.weighting.diverse import Diverse, diverse
from filtax.weighting.exact import Exact
from filtax.weighting.fixed_share import FixedShare, fixed_share
from filtax.weighting.gated import Gated, gated
from filtax.weighting.responsibilities import Responsibilities, responsibilities
from filtax.weighting.retrospective import Retrospective, retrospective
from filtax.weighting.sampled import Sampled, sampled

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
