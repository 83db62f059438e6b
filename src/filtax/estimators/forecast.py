"""Names that `segmenter` imports from here."""

from filtax.estimators._forecast import Chances

__all__ = ["Chances"]
