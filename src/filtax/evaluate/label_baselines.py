"""Forecasts of labels that cost nothing: the last class, and the class seen most.

As for numbers, the forecast of row t uses labels up to row t - 1 - delay, and a missing label is stepped over. Each
gives probabilities too. They start at one in C and move with what was seen, one count for each class to begin with
(Laplace's rule of succession): for the last class, with how often it came again; for the majority class, with the share
of each class.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from filtax.evaluate.arrays import Numbers
from filtax.evaluate.forecast import Forecast
from filtax.evaluate.past import known, last_seen, stream

__all__ = ["LabelBaseline", "last_class", "majority_class"]


@dataclass(frozen=True)
class LabelBaseline:
    """A rule that forecasts labels 0..C-1 from their own past.

    Attributes:
        name: Its line in the table.
        rule: From labels (T,), NaN where missing, the number of classes and the delay, to the label said at each row
            (NaN where there is none yet) and the probabilities (T, C).
        classes: Number of classes C. With None labels are 0 or 1 and the forecast mean is the probability of 1, (T,).

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import LabelBaseline
        >>> rule = lambda y, classes, delay: (np.zeros(len(y)), np.full((len(y), classes), 1 / classes))
        >>> LabelBaseline("always-0", rule, classes=4)(np.array([2.0])).mean
        array([[0.25, 0.25, 0.25, 0.25]])
    """

    name: str
    rule: Callable[[np.ndarray, int, int], tuple[np.ndarray, np.ndarray]]
    classes: int | None = None

    def __call__(self, y: Numbers, *, delay: int = 0) -> Forecast:
        """Forecast every label from those before it.

        Args:
            y: Labels, (T,); what is no label of 0..C-1 counts as missing. Also (T, O) where labels are 0 or 1.
            delay: Steps that a label comes late: 0 if it is known before the next forecast.

        Returns:
            T forecasts; `made` tells from which row on there is one.
        """
        y = stream(self.name, y, delay)
        if self.classes is not None and y.ndim != 1:
            raise ValueError(f"{self.name} takes one label per row, shape (T,), but y has shape {y.shape}.")
        classes = self.classes or 2
        y = np.where((y == np.floor(y)) & (y >= 0) & (y < classes), y, np.nan)
        columns = [self.rule(column, classes, delay) for column in y.reshape(len(y), -1).T]
        label = np.stack([said for said, _ in columns], axis=-1).reshape(y.shape)
        if self.classes is None:
            mean = np.stack([probability[:, 1] for _, probability in columns], axis=-1).reshape(y.shape)
        else:
            mean = columns[0][1]
        made = np.all((np.isfinite(label) | np.isnan(y)).reshape(len(y), -1), axis=1)
        return Forecast(mean=mean, label=label, made=made)


def last_class(classes: int | None = None) -> LabelBaseline:
    """Say the last label again.

    Args:
        classes: Number of classes; None if labels are 0 or 1 and a forecast is the probability of 1.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import last_class
        >>> said = last_class(classes=3)(np.array([2, 2, 0]))
        >>> said.label, said.mean[2]  # it was right once
        (array([nan,  2.,  2.]), array([0.25, 0.25, 0.5 ]))
    """

    def rule(y: np.ndarray, classes: int, delay: int) -> tuple[np.ndarray, np.ndarray]:
        row = last_seen(y, delay)
        label = np.where(row >= 0, y[row], np.nan)
        tried = np.isfinite(y) & np.isfinite(label)
        tries, hits = (known(np.cumsum(event), delay, 0) for event in (tried, tried & (y == label)))
        again = ((hits + 1.0) / (tries + classes))[:, None]
        return label, np.where(np.arange(classes) == label[:, None], again, (1.0 - again) / (classes - 1))

    return LabelBaseline("last-class", rule, _check_classes("last_class", classes))


def majority_class(classes: int | None = None) -> LabelBaseline:
    """Say the label that was seen most; the smaller one of a tie.

    Args:
        classes: Number of classes; None if labels are 0 or 1 and a forecast is the probability of 1.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import majority_class
        >>> said = majority_class(classes=2)(np.array([1, 1, 0]))
        >>> said.label, said.mean[2]
        (array([nan,  1.,  1.]), array([0.25, 0.75]))
    """

    def rule(y: np.ndarray, classes: int, delay: int) -> tuple[np.ndarray, np.ndarray]:
        counts = np.stack([known(np.cumsum(y == c), delay, 0) for c in range(classes)], axis=1)
        total = np.sum(counts, axis=1)
        label = np.where(total > 0, np.argmax(counts, axis=1), np.nan)
        return label, (counts + 1.0) / (total + classes)[:, None]

    return LabelBaseline("majority-class", rule, _check_classes("majority_class", classes))


def _check_classes(name: str, classes: int | None) -> int | None:
    if classes is not None and (not isinstance(classes, int | np.integer) or classes < 2):
        raise ValueError(f"{name}(classes={classes!r:.40}) must be 2 or more, or None for labels 0 and 1.")
    return classes
