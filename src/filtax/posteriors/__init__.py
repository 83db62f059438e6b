"""(A.1) Posteriors: how a belief absorbs a datum."""

from typing import TYPE_CHECKING

from filtax.gathering import on_demand

if TYPE_CHECKING:
    from filtax.posteriors.bernoulli_outliers import BernoulliOutliers
    from filtax.posteriors.blocks import Blockwise, LowRankForm, blockwise, pulse
    from filtax.posteriors.conjugate import Conjugate
    from filtax.posteriors.ensemble import EnsembleKalman, ensemble_kalman
    from filtax.posteriors.extended import Extended
    from filtax.posteriors.gradient import Gradient
    from filtax.posteriors.inverse_wishart_noise import InverseWishartNoise
    from filtax.posteriors.particle import Particle
    from filtax.posteriors.student_noise import StudentNoise
    from filtax.posteriors.taper import gaspari_cohn
    from filtax.posteriors.unknown_noise import UnknownNoise
    from filtax.posteriors.variational import Variational

__all__ = [
    "BernoulliOutliers",
    "Blockwise",
    "Conjugate",
    "EnsembleKalman",
    "Extended",
    "Gradient",
    "InverseWishartNoise",
    "LowRankForm",
    "Particle",
    "StudentNoise",
    "UnknownNoise",
    "Variational",
    "blockwise",
    "ensemble_kalman",
    "gaspari_cohn",
    "pulse",
]

on_demand(
    __name__,
    bernoulli_outliers="BernoulliOutliers",
    blocks="Blockwise LowRankForm blockwise pulse",
    conjugate="Conjugate",
    ensemble="EnsembleKalman ensemble_kalman",
    extended="Extended",
    gradient="Gradient",
    inverse_wishart_noise="InverseWishartNoise",
    particle="Particle",
    student_noise="StudentNoise",
    taper="gaspari_cohn",
    unknown_noise="UnknownNoise",
    variational="Variational",
)
