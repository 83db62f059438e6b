"""q(theta): what is believed of the parameters, and the few operations that models and priors ask of a belief.

All methods are written for one belief and are mapped over hypotheses by the framework. The Gaussian has three forms
with one meaning, which differ in rounding and cost (`Pending` is the covariance of many parameters); a fourth, the
diagonal, drops correlations; a fifth, the low-rank one, keeps the strongest; and blocks of any of them drop those
between one another.
"""

from typing import TYPE_CHECKING

from filtax import _lazy

if TYPE_CHECKING:
    from filtax.beliefs._blocks import Blocks
    from filtax.beliefs._conjugate import Beta, Gamma, NormalInverseGamma
    from filtax.beliefs._covariance import Covariance, Pending
    from filtax.beliefs._diagonal import Diagonal
    from filtax.beliefs._ensemble import Ensemble
    from filtax.beliefs._gaussian import Conditioned
    from filtax.beliefs._kl import kl
    from filtax.beliefs._low_rank import LowRank
    from filtax.beliefs._mixture_reduction import Collapsed, collapse, moment_match
    from filtax.beliefs._particles import Marginalised, Particles
    from filtax.beliefs._point_estimate import Memory, Point
    from filtax.beliefs._precision import Precision
    from filtax.beliefs._square_root import SquareRoot

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

__getattr__, __dir__ = _lazy(
    __name__,
    __all__,
    _blocks="Blocks",
    _gaussian="Conditioned",
    _conjugate="Beta Gamma NormalInverseGamma",
    _covariance="Covariance Pending",
    _diagonal="Diagonal",
    _ensemble="Ensemble",
    _kl="kl",
    _low_rank="LowRank",
    _mixture_reduction="Collapsed collapse moment_match",
    _particles="Marginalised Particles",
    _point_estimate="Memory Point",
    _precision="Precision",
    _square_root="SquareRoot",
)
