"""Where data come from: generated streams with a known truth, and features that never look ahead."""

from filtax.streams.features import fill, harmonics, hourly_features, lagged
from filtax.streams.load import hourly_load
from filtax.streams.synthetic import (
    LinearSystem,
    Stream,
    constant_velocity,
    drifting_regression,
    piecewise_regression,
    tracking_2d,
)

__all__ = [
    "LinearSystem",
    "Stream",
    "constant_velocity",
    "drifting_regression",
    "fill",
    "harmonics",
    "hourly_features",
    "hourly_load",
    "lagged",
    "piecewise_regression",
    "tracking_2d",
]
