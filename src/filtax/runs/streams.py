"""The stream of a plan: of numbers or of labels, and the records that it fills."""

from collections.abc import Callable
from typing import Any

import numpy as np

from filtax.io import Position
from filtax.runs.fan import Fan
from filtax.runs.labels import LabelStream
from filtax.runs.ledger import record_type
from filtax.runs.numbers import NumberStream
from filtax.runs.plan import Plan

__all__ = ["kind_of", "make_stream", "place_of", "tell_skipped"]


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


def place_of(manifest: dict[str, Any]) -> tuple[Position | None, str]:
    """Where in its source a checkpoint stands, as a position and in words.

    >>> place_of({"source": None, "note": {"rows": 7}})[1]
    'behind row 7'
    """
    words = f"behind row {manifest['note']['rows']}"
    if manifest["source"] is None:
        return None, words
    position = Position.from_json(manifest["source"])
    return position, f"{words}, line {position.line - 1} of {position.files[-1][0]}"


def tell_skipped(skipped: list[str], warn: Callable[[str], object] | None, where: str) -> None:
    """Say why newer checkpoints were passed over, and where the one that is used stands.

    >>> tell_skipped(["000002.json: it was cut short."], print, "behind row 7")
    000002.json: it was cut short; the checkpoint before it is used, which stands behind row 7.
    """
    for number, reason in enumerate(skipped, 1):
        stands = f", which stands {where}" if number == len(skipped) else ""
        if warn is not None:
            warn(f"{reason.rstrip('.')}; the checkpoint before it is used{stands}.")
