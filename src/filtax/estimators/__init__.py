"""Estimators: river's verbs for dicts, scikit-learn's for arrays, on the filters below.

Regressor      a number, with a forecast distribution
Classifier     a label, with probabilities; classes may appear at any time
Segmenter      where a stream of readings changed
Fleet          thousands of keyed streams of one of these, each of which learns what it would alone
load, save     an estimator in a folder of checkpoints
"""

from filtax.estimators.checkpoints import load, save
from filtax.estimators.classifier import Classifier
from filtax.estimators.fleet import Fleet
from filtax.estimators.forecast import Chances, Forecast
from filtax.estimators.regressor import Regressor
from filtax.estimators.segmenter import Segmenter

__all__ = ["Chances", "Classifier", "Fleet", "Forecast", "Regressor", "Segmenter", "load", "save"]
