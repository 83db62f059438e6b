"""A row of the table of published methods: what builds it, for what, its choices, and where it comes from."""

from collections.abc import Callable
from typing import NamedTuple

from filtax.bone import Bone

__all__ = ["PUBLISHED", "Published", "row"]


class Published(NamedTuple):
    """A row of the table: how to build it, for what task and kind of change, and its choices M.2, M.3, A.1 and A.2.

    `auxiliary`, `prior`, `posterior` and `weighting` are those of the thesis' table, except where `docs/methods.md`
    says why not.

    >>> PUBLISHED["adams_mackay_2007"].auxiliary
    'RL'
    """

    build: Callable[..., Bone]
    task: str
    changes: str
    auxiliary: str
    prior: str
    posterior: str
    weighting: str


PUBLISHED: dict[str, Published] = {}


def row(task: str, changes: str, *choices: str) -> Callable[[Callable[..., Bone]], Callable[..., Bone]]:
    """Note a function as a row of the table.

    >>> callable(row("filtering", "gradual", "C", "LSSM", "LG", "DA[1]"))
    True
    """

    def note(build: Callable[..., Bone]) -> Callable[..., Bone]:
        PUBLISHED[build.__name__] = Published(build, task, changes, *choices)
        return build

    return note
