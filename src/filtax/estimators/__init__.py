"""Estimators: river's verbs for dicts, scikit-learn's for arrays and tables, on a bank of competing filters.

Regressor      a number, with an interval
Classifier     a label, with probabilities; classes may appear at any time
Segmenter      where a stream of readings changed
Fleet          thousands of keyed streams of one of these
load, save     an estimator in a folder of checkpoints
"""

from filtax.estimators._persistence import load, save
from filtax.estimators.classifier import Chances, Classifier
from filtax.estimators.fleet import Fleet
from filtax.estimators.regressor import Forecast, Regressor
from filtax.estimators.segmenter import Segmenter

__all__ = ["Chances", "Classifier", "Fleet", "Forecast", "Regressor", "Segmenter", "load", "save"]
