r"""With which row a change began that the race with the elder has shown.

The race says that something has changed, and hardly when: before a change the method and its elder forecast alike, and
their score wanders. What tells is how much more the rows surprise the elder than it expects of itself,
$$e_s = -\log q_s(y_s) - \mathrm{H}(q_s),$$
with $q_s$ its probabilities and H their entropy: 0 in the mean as long as it is right, more from the first row of the
change on. With one spread and an unknown mean from row s on, the most likely first row before an alarm at t is
$$\hat s = \arg\max_s \frac{1}{\sqrt{t - s + 1}} \sum_{i=s}^{t} e_i.$$
"""

import numpy as np

from filtax.estimators.rivalry import LONGEST

__all__ = ["Onset", "best_start"]


class Onset:
    """What the latest rows showed, as far back as a change may have begun.

    >>> excess = np.repeat([0.0, 1.0], [30, 10])
    >>> Onset().since(excess, np.eye(40)[39] * 25)[39]  # the race had it begin with row 14, not with row 30
    np.float64(9.0)
    """

    def __init__(self) -> None:
        self.excess = np.zeros(LONGEST)

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of it, for a checkpoint."""
        return [self.excess]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Go on from what `arrays` told."""
        [self.excess] = arrays

    def since(self, excess: np.ndarray, alarms: np.ndarray) -> np.ndarray:
        """Rows since the first one of the change, at least 1, where there is an alarm; else 0.

        Args:
            excess: Of the next rows, (B,); 0 where no label came.
            alarms: What the race gave for them, (B,); 0 where there is no alarm.
        """
        whole, found = np.concatenate([self.excess, excess]), np.zeros(len(alarms))
        for row in np.flatnonzero(alarms).tolist():
            end = LONGEST + row + 1
            found[row] = max(1, LONGEST - 1 - best_start(whole[end - LONGEST : end]))
            whole[:end] = 0.0  # they belong to the regime before
        self.excess = whole[-LONGEST:]
        return found


def best_start(excess: np.ndarray) -> int:
    """The row from which on there is most of it, for its spread.

    >>> best_start(np.array([0.0, -1.0, 2.0, 1.0, 2.0]))
    2
    """
    total = np.cumsum(excess[::-1])
    return len(excess) - 1 - int(np.argmax(total / np.sqrt(np.arange(1, len(excess) + 1))))
