"""(A.2) Weighting functions nu(psi): how much each hypothesis counts."""

from typing import TYPE_CHECKING

from filtax.gathering import on_demand

if TYPE_CHECKING:
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

on_demand(
    __name__,
    bounded="Bounded bounded",
    diverse="Diverse diverse",
    exact="Exact",
    fixed_share="FixedShare fixed_share",
    gated="Gated gated",
    responsibilities="Responsibilities responsibilities",
    retrospective="Retrospective retrospective",
    sampled="Sampled sampled",
)
