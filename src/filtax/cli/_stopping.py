"""Signals that ask a command to stop: the first may wait for a checkpoint, the second does not.

Python runs the handler of a signal between two of its own instructions, so not before a native program returns, and one
may run for hours. A thread therefore ends the process where the handler does not.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread, Timer, current_thread, main_thread
from typing import Any, NoReturn

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TO_SAVE, TO_LEAVE = 5.0, 1.0  # seconds for a checkpoint after SIGTERM or SIGHUP, and to end after a second ^C


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


def watch_signals() -> None:
    """End this process a second after a second ^C, and five seconds after a SIGTERM or SIGHUP, whatever it does then.

    A regular end is mostly sooner. The exit code is 128 and the number of the signal.
    """
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)  # written to at once, also while a native program runs
    Thread(target=_end_when_asked, args=(heard,), daemon=True).start()


def _end_when_asked(heard: int) -> None:
    interrupted = False
    while (number := os.read(heard, 1)[0]) not in STOPPING or (number == signal.SIGINT and not interrupted):
        interrupted = interrupted or number == signal.SIGINT
    time.sleep(TO_LEAVE if number == signal.SIGINT else TO_SAVE)
    os._exit(128 + number)


def deaf() -> None:
    """Let no signal change how a process ends that has nothing left to do but to end."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def leave_now(code: int) -> NoReturn:
    """End the process here: threads that still compile would meet an interpreter that is gone, and abort."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
