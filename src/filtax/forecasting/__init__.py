"""Forecasting: a bank of competing filters behind one online pipeline.

    series = Series(steps=24)                   # one live series: rows in, forecasts with intervals out
    labels = Labels(known=3)                    # the same for labels: probabilities out
    pipe = pipeline(Layout.of(clock, (1, 2)))   # the pure function underneath

An expert is a value (`Expert`); `standard()` are those of the default bank, made by `baseline` and `profile`.
"""

from filtax.forecasting._clock import Clock
from filtax.forecasting._experts import Expert, baseline, filtered, profile
from filtax.forecasting._labels import Labels
from filtax.forecasting._layout import Layout
from filtax.forecasting._pipeline import pipeline, standard
from filtax.forecasting._series import Series

__all__ = ["Clock", "Expert", "Labels", "Layout", "Series", "baseline", "filtered", "pipeline", "profile", "standard"]
