"""Signals that ask a command to stop: the first may wait for a checkpoint, the second does not."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

__all__ = ["asked_to_stop"]


@contextmanager
def asked_to_stop(patient: bool) -> Iterator[list[int]]:
    """Collect the first signal, so that a run can end at a checkpoint; the second one ends it at once.

    A run that waits for standard input is ended by the first.
    """
    asked: list[int] = []

    def note(number: int, frame: Any) -> None:
        asked.append(number)
        if len(asked) > 1 or not patient:
            raise KeyboardInterrupt

    heard = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if current_thread() is main_thread() else ()
    before = {number: signal.signal(number, note) for number in heard}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
