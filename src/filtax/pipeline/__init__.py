"""A run on a user's own table: forecast and learn it row by row, survive a crash, leave a folder and a report.

run_pipeline(config, folder)    # to the end of the source, from the latest checkpoint if there is one
run = open_run(folder)          # what is there: records, events, scores
write_outputs(folder)           # predictions.parquet, metrics.json, report.html
"""

try:
    import pyarrow  # noqa: F401
except ModuleNotFoundError:
    message = "filtax.pipeline needs pyarrow, which is not installed; run pip install 'filtax[cli]'."
    raise ModuleNotFoundError(message, name="pyarrow") from None

from filtax.pipeline._config import Config
from filtax.pipeline._page import write_outputs
from filtax.pipeline._run import open_run
from filtax.pipeline._runner import run_pipeline

__all__ = ["Config", "open_run", "run_pipeline", "write_outputs"]
