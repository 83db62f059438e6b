"""q(theta): what is believed of the parameters, and the few operations that models and priors ask of a belief.

All methods are written for one belief and are mapped over hypotheses by the framework. The Gaussian has three forms
with one meaning, which differ in rounding and cost; a fourth, the diagonal, drops correlations, and a fifth, the
low-rank one, keeps the strongest.
"""

from filtax.beliefs.collapse import Collapsed, collapse
from filtax.beliefs.conditioned import Conditioned
from filtax.beliefs.conjugate import Beta, Gamma
from filtax.beliefs.covariance import Covariance
from filtax.beliefs.diagonal import Diagonal
from filtax.beliefs.divergence import kl
from filtax.beliefs.ensemble import Ensemble
from filtax.beliefs.low_rank import LowRank
from filtax.beliefs.moment_match import moment_match
from filtax.beliefs.normal_inverse_gamma import NormalInverseGamma
from filtax.beliefs.particles import Particles
from filtax.beliefs.precision import Precision
from filtax.beliefs.square_root import SquareRoot

__all__ = [
    "Beta",
    "Collapsed",
    "Conditioned",
    "Covariance",
    "Diagonal",
    "Ensemble",
    "Gamma",
    "LowRank",
    "NormalInverseGamma",
    "Particles",
    "Precision",
    "SquareRoot",
    "collapse",
    "kl",
    "moment_match",
]
