"""Features of timed rows that never look ahead."""

from filtax.streams.features import fill, harmonics, hourly_features, lagged
from filtax.streams.season import Season
from filtax.streams.timed import Made, TimedFeatures
from filtax.synthetic import hourly_load

__all__ = ["Made", "Season", "TimedFeatures", "fill", "harmonics", "hourly_features", "hourly_load", "lagged"]
