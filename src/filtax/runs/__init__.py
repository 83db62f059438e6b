"""A run on a user's own table: learn it online, survive a crash, compare with baselines, leave a folder and a report.

carry_on(config, folder)     learn to the end of the source, from the latest checkpoint if there is one
open_run(folder)             read what is there
write_outputs(run)           predictions, scores and the report
"""

from filtax.runs.config import Config
from filtax.runs.job import Progress, carry_on
from filtax.runs.results import Run, open_run, scores, verdict

__all__ = ["Config", "Progress", "Run", "carry_on", "open_run", "scores", "verdict"]
