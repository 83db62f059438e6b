"""q(theta): what is believed of the parameters, and the few operations that models and priors ask of a belief.

All methods are written for one belief and are mapped over hypotheses by the framework. The Gaussian has three forms
with one meaning, which differ in rounding and cost (`Pending` is the covariance of many parameters); a fourth, the
diagonal, drops correlations; a fifth, the low-rank one, keeps the strongest; and blocks of any of them drop those
between one another.
"""

from typing import TYPE_CHECKING

from filtax.gathering import on_demand

if TYPE_CHECKING:
    from filtax.beliefs.blocks import Blocks
    from filtax.beliefs.collapse import Collapsed, collapse
    from filtax.beliefs.conditioned import Conditioned
    from filtax.beliefs.conjugate import Beta, Gamma
    from filtax.beliefs.covariance import Covariance
    from filtax.beliefs.diagonal import Diagonal
    from filtax.beliefs.divergence import kl
    from filtax.beliefs.ensemble import Ensemble
    from filtax.beliefs.low_rank import LowRank
    from filtax.beliefs.marginalised import Marginalised
    from filtax.beliefs.moment_match import moment_match
    from filtax.beliefs.normal_inverse_gamma import NormalInverseGamma
    from filtax.beliefs.particles import Particles
    from filtax.beliefs.pending import Pending
    from filtax.beliefs.point import Memory, Point
    from filtax.beliefs.precision import Precision
    from filtax.beliefs.square_root import SquareRoot

__all__ = [
    "Beta",
    "Blocks",
    "Collapsed",
    "Conditioned",
    "Covariance",
    "Diagonal",
    "Ensemble",
    "Gamma",
    "LowRank",
    "Marginalised",
    "Memory",
    "NormalInverseGamma",
    "Particles",
    "Pending",
    "Point",
    "Precision",
    "SquareRoot",
    "collapse",
    "kl",
    "moment_match",
]

on_demand(
    __name__,
    blocks="Blocks",
    collapse="Collapsed collapse",
    conditioned="Conditioned",
    conjugate="Beta Gamma",
    covariance="Covariance",
    diagonal="Diagonal",
    divergence="kl",
    ensemble="Ensemble",
    low_rank="LowRank",
    marginalised="Marginalised",
    moment_match="moment_match",
    normal_inverse_gamma="NormalInverseGamma",
    particles="Particles",
    pending="Pending",
    point="Memory Point",
    precision="Precision",
    square_root="SquareRoot",
)
