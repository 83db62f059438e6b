"""Monitoring: outliers and changes, from forecasts and intervals as they were issued.

monitor = Monitor(level=0.9, false_alarms=0.001)
seen = monitor.learn(y, forecast, lower, upper)    # in batches or row by row, with the same result
"""

from filtax.monitoring._monitor import Monitor, Seen

__all__ = ["Monitor", "Seen"]
