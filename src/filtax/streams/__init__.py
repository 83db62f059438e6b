"""Where data come from: generated streams with a known truth, and features that never look ahead."""

from filtax.streams.datasets import Images, find_dataset, read_arrays, read_images, read_table
from filtax.streams.faulty import corrupted_table, heavy_tailed_regression, noisy_curve
from filtax.streams.features import fill, harmonics, hourly_features, lagged
from filtax.streams.fixed import fixed_labels, fixed_regression, parabola_regression
from filtax.streams.labels import jumping_labels, rotating_labels
from filtax.streams.load import hourly_load
from filtax.streams.moons import moons
from filtax.streams.parabolas import linked_parabolas
from filtax.streams.polynomial import piecewise_polynomial
from filtax.streams.season import Season
from filtax.streams.synthetic import (
    LinearSystem,
    Stream,
    constant_velocity,
    drifting_regression,
    piecewise_regression,
    tracking_2d,
)
from filtax.streams.tasks import TaskStream, permuted_tasks, rotated_tasks, split_tasks
from filtax.streams.timed import Made, TimedFeatures

__all__ = [
    "Images",
    "LinearSystem",
    "Made",
    "Season",
    "Stream",
    "TaskStream",
    "TimedFeatures",
    "constant_velocity",
    "corrupted_table",
    "drifting_regression",
    "fill",
    "find_dataset",
    "fixed_labels",
    "fixed_regression",
    "harmonics",
    "heavy_tailed_regression",
    "hourly_features",
    "hourly_load",
    "jumping_labels",
    "lagged",
    "linked_parabolas",
    "moons",
    "noisy_curve",
    "parabola_regression",
    "permuted_tasks",
    "piecewise_polynomial",
    "piecewise_regression",
    "read_arrays",
    "read_images",
    "read_table",
    "rotated_tasks",
    "rotating_labels",
    "split_tasks",
    "tracking_2d",
]
