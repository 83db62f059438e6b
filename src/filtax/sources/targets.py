"""A row without a target teaches nothing. Where reading is to end at the first fault, that is one.

Otherwise such a row is handed on: whoever reads may still forecast it.
"""

import numpy as np

from filtax.sources.layout import Layout
from filtax.sources.numerals import show
from filtax.sources.raw import Raw
from filtax.sources.rejected import Rejected

__all__ = ["NO_TARGET", "leave_out_blank", "what_to_do"]

NO_TARGET = "there is no target"


def leave_out_blank(file: str, raw: Raw, layout: Layout) -> None:
    """Leave the first row without a target out of `raw`, in place, with a record of where the target would stand.

    The rows behind it are none of its business: reading ends there.

    Args:
        file: As named.
        raw: Rows of one block.
        layout: Which column is the target; where none is, as for rows that are only to be forecast, nothing is done.

    >>> layout = Layout("y", None, None, ("y",), {"y": "number"})
    >>> raw = Raw(np.array([[1.0], [np.nan], [np.nan]]), {}, np.arange(2, 5), np.arange(3), place=lambda *_: 7)
    >>> leave_out_blank("t.csv", raw, layout)
    >>> raw.line.tolist(), raw.before, print(*raw.rejected)
    t.csv:3:7: y: there is no target
    ([2, 4], [1], None)
    """
    target = layout.target
    if target is None or not len(raw.line):
        return
    text = layout.kinds[target] == "text"
    blank = raw.texts[target] == "" if text else np.isnan(raw.numbers[:, layout.numbers.index(target)])
    if not blank.any():
        return
    row = int(np.argmax(blank))
    place = raw.place(int(raw.offset[row]), target) if raw.place else 1
    reason = f"{show(target)[1:-1]}: {NO_TARGET}"
    raw.drop(np.arange(len(blank)) != row, {row: Rejected(file, int(raw.line[row]), place, reason)})


def what_to_do(fault: Rejected) -> str:
    """How to go on where reading ended.

    >>> what_to_do(Rejected("t.csv", 3, 7, "y: 'abc' is not a number"))
    'Repair it, or have what is bad left out and counted: --on-bad reject.'
    >>> what_to_do(Rejected("t.csv", 3, 7, "y: there is no target"))
    'Fill it in, or have such rows kept and not learned (a run forecasts them): --on-bad reject.'
    """
    if fault.reason.endswith(f": {NO_TARGET}"):
        return "Fill it in, or have such rows kept and not learned (a run forecasts them): --on-bad reject."
    return "Repair it, or have what is bad left out and counted: --on-bad reject."
