"""A run on a user's own table: forecast and learn it row by row, survive a crash, leave a folder and a report.

run_pipeline(config, folder)    # to the end of the source, from the latest checkpoint if there is one
run = open_run(folder)          # what is there: records, events, scores
write_outputs(folder)           # predictions.parquet, metrics.json, report.html
"""

from filtax.pipeline._config import Config
from filtax.pipeline._page import write_outputs
from filtax.pipeline._run import Run, open_run, write_predictions
from filtax.pipeline._runner import Progress, run_pipeline
from filtax.pipeline._scores import Scores, compare_runs, scores

__all__ = [
    "Config",
    "Progress",
    "Run",
    "Scores",
    "compare_runs",
    "open_run",
    "run_pipeline",
    "scores",
    "write_outputs",
    "write_predictions",
]
