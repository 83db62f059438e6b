"""Where a series changed: segments after its end, and alarms while it comes.

segment(y)                      cut a whole series: changes, their probabilities, the run-length posterior
detect(y)                       alarms from the past of each reading alone, with the estimated start of the new regime
calibrate(rate, length, key)    the threshold of an alarm for a chosen rate of false alarms
watch(method, state, X, Y)      alarms of any method with run lengths, in bounded memory
change_marginals, best_segmentation, changes_from_marginals, spread_changes   changes from a kept run-length posterior
find_period(y)                  the length of the cycle of a series, if it has one
"""

from filtax.segmentation._alarms import Alarms, Watched, calibrate, detect, watch
from filtax.segmentation._cycle import find_period
from filtax.segmentation._plan import ONLINE, RETROSPECTIVE, Settings
from filtax.segmentation._segments import (
    Segmentation,
    best_segmentation,
    change_marginals,
    changes_from_marginals,
    segment,
    spread_changes,
)

__all__ = [
    "ONLINE",
    "RETROSPECTIVE",
    "Alarms",
    "Segmentation",
    "Settings",
    "Watched",
    "best_segmentation",
    "calibrate",
    "change_marginals",
    "changes_from_marginals",
    "detect",
    "find_period",
    "segment",
    "spread_changes",
    "watch",
]
