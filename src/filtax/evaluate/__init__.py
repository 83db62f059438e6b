"""How good a method is, judged as it will be used: predict, then learn, beside baselines that anybody could have.

`prequential` runs a method through a stream and reports; `compare` puts several reports into one table. The metrics
(`rmse`, `log_score`, `coverage(0.9)`, ...) and views (`rolling`, `by_calendar`, ...) serve any forecasts; `f1` and
`covering` score change points against several annotators; `average_accuracy`, `forgetting` and the transfers score
continual learning.
"""

from filtax.evaluate.baselines import Baseline, last_value, naive_plus_change, running_mean, seasonal_naive
from filtax.evaluate.buckets import by_calendar
from filtax.evaluate.compare import compare
from filtax.evaluate.continual import (
    average_accuracy,
    backward_transfer,
    forgetting,
    forward_transfer,
    learning_accuracy,
)
from filtax.evaluate.forecast import Forecast
from filtax.evaluate.label_baselines import LabelBaseline, last_class, majority_class
from filtax.evaluate.metrics import (
    Metric,
    accuracy,
    brier,
    coverage,
    crps,
    log_score,
    mae,
    metric,
    per_horizon,
    pit,
    rmedse,
    rmse,
)
from filtax.evaluate.prequential import prequential
from filtax.evaluate.report import Report, Run
from filtax.evaluate.segmentation import covering, detection_delays, f1
from filtax.evaluate.views import ewma, expanding, rolling

__all__ = [
    "Baseline",
    "Forecast",
    "LabelBaseline",
    "Metric",
    "Report",
    "Run",
    "accuracy",
    "average_accuracy",
    "backward_transfer",
    "brier",
    "by_calendar",
    "compare",
    "coverage",
    "covering",
    "crps",
    "detection_delays",
    "ewma",
    "expanding",
    "f1",
    "forgetting",
    "forward_transfer",
    "last_class",
    "last_value",
    "learning_accuracy",
    "log_score",
    "mae",
    "majority_class",
    "metric",
    "naive_plus_change",
    "per_horizon",
    "pit",
    "prequential",
    "rmedse",
    "rmse",
    "rolling",
    "running_mean",
    "seasonal_naive",
]
