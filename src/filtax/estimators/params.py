"""Names that `segmenter` imports from here."""

from filtax.estimators._parameters import Estimator, one_at_a_time

__all__ = ["Estimator", "one_at_a_time"]
