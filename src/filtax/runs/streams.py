"""The stream of a plan: of numbers or of labels, and the records that it fills."""

from collections.abc import Callable
from typing import Any

import numpy as np

from filtax.runs.fan import Fan
from filtax.runs.labels import LabelStream
from filtax.runs.ledger import record_type
from filtax.runs.numbers import NumberStream
from filtax.runs.plan import Plan

__all__ = ["kind_of", "make_stream", "tell_skipped"]


def make_stream(plan: Plan, note: dict[str, Any] | None = None) -> NumberStream | LabelStream:
    """The stream of a plan, with room for what a note tells of.

    >>> from filtax.runs.config import Config
    >>> plan = Plan(Config("-", "y", method="LG+C-Static", prior=1.0), (), (), None, 1)
    >>> type(make_stream(plan)).__name__
    'LabelStream'
    """
    note = note or {}
    if plan.heads:
        return LabelStream(plan, note.get("labels"), note.get("met"))
    make = Fan if plan.steps else NumberStream
    return make(plan, note.get("keys"), note.get("met"))


def kind_of(stream: NumberStream | LabelStream, clock: str | None) -> np.dtype:
    """The type of the records of a stream; times are whole microseconds unless they are plain numbers."""
    return record_type(stream.names, clock is not None and clock != "number")


def tell_skipped(skipped: list[str], warn: Callable[[str], object] | None) -> None:
    """Say why newer checkpoints were passed over.

    >>> tell_skipped(["000002.json: it was cut short."], print)
    000002.json: it was cut short; the checkpoint before it is used.
    """
    for reason in skipped:
        if warn is not None:
            warn(f"{reason.rstrip('.')}; the checkpoint before it is used.")
