"""How good a method is, judged as it will be used: predict, then learn, beside baselines that cost nothing.

`prequential` runs a method through a stream and returns a report; `compare` puts several reports into one table. A
metric is given by its name ("rmse", "log_score", "coverage(0.9)", ...) or taken from `metrics`; `rolling` applies it to
a moving window. `f1` and `covering` score change points against several annotators; `continual` scores continual
learning.
"""

from filtax.evaluate import continual, metrics
from filtax.evaluate._baselines import (
    Baseline,
    last_class,
    last_value,
    majority_class,
    running_mean,
    seasonal_naive,
)
from filtax.evaluate._comparison import Report, Run, compare
from filtax.evaluate._forecast import Forecast
from filtax.evaluate._prequential import prequential
from filtax.evaluate._segmentation import covering, detection_delays, f1
from filtax.evaluate.metrics import Metric, metric, rolling

__all__ = [
    "Baseline",
    "Forecast",
    "Metric",
    "Report",
    "Run",
    "compare",
    "continual",
    "covering",
    "detection_delays",
    "f1",
    "last_class",
    "last_value",
    "majority_class",
    "metric",
    "metrics",
    "prequential",
    "rolling",
    "running_mean",
    "seasonal_naive",
]
