"""Synthetic streams whose truth is known: regressions, labels, a tracked object, an hourly load, tasks of images.

Every generator is a pure function of its arguments; `key` is a whole number or a JAX key, and equal keys give equal
streams. `steps` is the length T. Numpy, float64; axes T time, D parameters, O outputs.
"""

from filtax.synthetic._labels import fixed_labels, jumping_labels, moons, rotating_labels
from filtax.synthetic._load import hourly_load
from filtax.synthetic._regression import (
    corrupted_table,
    fixed_regression,
    heavy_tailed_regression,
    linked_parabolas,
    noisy_curve,
    parabola_regression,
    piecewise_polynomial,
)
from filtax.synthetic._stream import LinearSystem, Stream, constant_velocity, tracking_2d
from filtax.synthetic._tasks import TaskStream, permuted_tasks, rotated_tasks, split_tasks

__all__ = [
    "LinearSystem",
    "Stream",
    "TaskStream",
    "constant_velocity",
    "corrupted_table",
    "fixed_labels",
    "fixed_regression",
    "heavy_tailed_regression",
    "hourly_load",
    "jumping_labels",
    "linked_parabolas",
    "moons",
    "noisy_curve",
    "parabola_regression",
    "permuted_tasks",
    "piecewise_polynomial",
    "rotated_tasks",
    "rotating_labels",
    "split_tasks",
    "tracking_2d",
]
