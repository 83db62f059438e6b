"""Where a series changed: segments looking back, alarms while it comes.

segment(y)                      cut a whole series: changes, their probabilities, the run-length posterior
detect(y)                       alarms as they could have been given, each with the estimated start of the new regime
calibrate(rate, length, key)    the threshold of an alarm for a chosen rate of false ones
watch(method, state, X, Y)      the same for any method with run lengths, in bounded memory
change_marginals, best_segmentation, changes_from_marginals, spread_changes   what a kept posterior says of the whole
find_period(y)                  does the series repeat itself?
"""

from filtax.segmentation.calibrate import calibrate
from filtax.segmentation.detect import Alarms, detect
from filtax.segmentation.period import find_period
from filtax.segmentation.plan import ONLINE, RETROSPECTIVE, Settings
from filtax.segmentation.segment import Segmentation, segment
from filtax.segmentation.segments import best_segmentation, change_marginals, changes_from_marginals, spread_changes
from filtax.segmentation.watch import Watched, watch

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
