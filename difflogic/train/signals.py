"""Requests to save and end a run at its next safe point, by a program or by signals: Ctrl-C, SIGTERM and others."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable
from types import FrameType
from typing import Any

OVER = "the limit of"
"""First words of the reason to stop if a run reached its time limit."""
INSISTENT = (signal.SIGINT, signal.SIGTERM)
"""Signals that end the process if received twice; other signals, such as SIGXCPU, are repeated by the system."""
WATCHED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGXCPU")
"""Names of the signals that stop a run. Some systems lack the last four."""


def watched() -> list[signal.Signals]:
    """Return the signals that stop a run: those in `WATCHED` that exist on this system and are not ignored.

    Shell scripts start background jobs with SIGINT ignored, and nohup starts commands with SIGHUP ignored.
    """
    numbers = [signal.Signals[name] for name in WATCHED if name in signal.Signals.__members__]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


class Stop:
    """Request to save and end a run after the current call of the engine. Any thread may make the request."""

    def __init__(self, other: Stop | None = None) -> None:
        """Make a request that `other`, if given, also triggers; then only `other` can interrupt evaluations."""
        self._other = other
        self._reason: signal.Signals | str | None = None

    @property
    def reason(self) -> signal.Signals | str | None:
        """Reason to stop, a signal or a text; None until a stop is requested."""
        return self._reason or (None if self._other is None else self._other.reason)

    @property
    def is_urgent(self) -> bool:
        """True if a running evaluation should also be interrupted; False if only training should end."""
        return self.reason is not None if self._other is None else self._other.is_urgent

    def ask(self, reason: signal.Signals | str) -> None:
        """Request a stop. Only the first request has an effect."""
        if self._reason is None:
            self._reason = reason


class Deadline(Stop):
    """Request to stop after a time limit."""

    def __init__(self, other: Stop, seconds: float, used: float = 0.0) -> None:
        """Start a limit of `seconds`, of which `used` have already passed."""
        super().__init__(other)
        self._seconds = seconds
        self._end = time.monotonic() + seconds - used

    @property
    def reason(self) -> signal.Signals | str | None:
        if super().reason is None and time.monotonic() >= self._end:
            self.ask(f"{OVER} {self._seconds:g} s")
        return super().reason


class StopSignals(Stop):
    """Context manager whose signal handlers request a stop; `received` is the first signal.

    A second Ctrl-C or SIGTERM ends the process as usual. Python handles signals only in the main thread, so in other
    threads the manager receives no signal.
    """

    def __init__(self) -> None:
        super().__init__()
        self.received: signal.Signals | None = None
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            self._handlers = {number: signal.signal(number, self._receive) for number in watched()}
        return self

    def __exit__(self, *_: object) -> None:
        self._restore(list(self._handlers))

    def _receive(self, number: int, frame: FrameType | None) -> None:
        received = signal.Signals(number)
        if self.received is None:
            self.received = received
            self.ask(received)
        if received in INSISTENT:
            self._restore(INSISTENT)

    def _restore(self, numbers: Iterable[signal.Signals]) -> None:
        for number in [each for each in numbers if each in self._handlers]:
            handler = self._handlers.pop(number)
            # None means that the handler was not set from Python, so that Python cannot restore it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
