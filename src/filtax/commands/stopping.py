"""Signals that ask a command to stop: the first may wait for a checkpoint, the second does not."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from typing import Any, NoReturn

__all__ = ["Asked", "asked_to_stop", "deaf", "leave_now"]

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Asked(list[int]):
    """The signals that came.

    Attributes:
        patient: Whether the first one waits to be looked at; else it interrupts.
    """

    patient: bool = False


@contextmanager
def asked_to_stop(patient: bool) -> Iterator[Asked]:
    """Collect the first signal, so that a run can end at a checkpoint; the second one ends it at once.

    A run that waits for standard input is ended by the first.
    """
    asked = Asked()
    asked.patient = patient

    def note(number: int, frame: Any) -> None:
        asked.append(number)
        if len(asked) > 1 or not asked.patient:
            raise KeyboardInterrupt

    def lost(told: Any) -> None:  # where nothing may be raised, as while memory is cleared up: it is sent once more
        if told.exc_type is KeyboardInterrupt and asked:
            Timer(0.01, os.kill, (os.getpid(), asked.pop())).start()
        else:
            otherwise(told)

    heard = STOPPING if current_thread() is main_thread() else ()
    before = {number: signal.signal(number, note) for number in heard}
    otherwise, sys.unraisablehook = sys.unraisablehook, lost
    try:
        yield asked
    finally:
        sys.unraisablehook = otherwise
        for number, handler in before.items():
            signal.signal(number, handler)


def deaf() -> None:
    """Let no signal change how a process ends that has nothing left to do but to end."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def leave_now(code: int) -> NoReturn:
    """End the process here: threads that still compile would meet an interpreter that is gone, and abort."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
