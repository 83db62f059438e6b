"""Estimators: river's verbs for dicts, scikit-learn's for arrays, on the filters below.

Regressor      a number, with a forecast distribution
Classifier     a label, with probabilities; classes may appear at any time
"""

from filtax.estimators.classifier import Classifier
from filtax.estimators.regressor import Regressor

__all__ = ["Classifier", "Regressor"]
