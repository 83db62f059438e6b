"""(A.1) Posteriors: how a belief absorbs a datum."""

from typing import TYPE_CHECKING

from filtax import _lazy

if TYPE_CHECKING:
    from filtax.posteriors._adaptive_noise import BernoulliOutliers, InverseWishartNoise, StudentNoise
    from filtax.posteriors._blocks import Blockwise, LowRankForm, blockwise, pulse
    from filtax.posteriors._conjugate import Conjugate, UnknownNoise
    from filtax.posteriors._ensemble import EnsembleKalman, ensemble_kalman, gaspari_cohn
    from filtax.posteriors._extended import Extended
    from filtax.posteriors._gradient import Gradient
    from filtax.posteriors._particle import Particle
    from filtax.posteriors._variational import Variational

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

__getattr__, __dir__ = _lazy(
    __name__,
    __all__,
    _adaptive_noise="BernoulliOutliers InverseWishartNoise StudentNoise",
    _blocks="Blockwise LowRankForm blockwise pulse",
    _conjugate="Conjugate UnknownNoise",
    _ensemble="EnsembleKalman ensemble_kalman gaspari_cohn",
    _extended="Extended",
    _gradient="Gradient",
    _particle="Particle",
    _variational="Variational",
)
