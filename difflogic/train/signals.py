"""A request to stop at the next safe place; Ctrl-C and SIGTERM make one."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

OVER = "the limit of"
"""With these words begins the reason of what ended because its time was over."""
WATCHED = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """A request to end a run after the epochs under way, saved: whoever holds it may ask, from any thread."""

    def __init__(self, other: Stop | None = None) -> None:
        """`other`: what it asks for, this asks for too, which then ends the training alone."""
        self._other = other
        self._reason: signal.Signals | str | None = None

    @property
    def reason(self) -> signal.Signals | str | None:
        """Return why to stop, once somebody has asked: a signal, or words."""
        return self._reason or (None if self._other is None else self._other.reason)

    @property
    def is_urgent(self) -> bool:
        """Return whether an evaluation is not waited for either: not where the training alone is to end."""
        return self.reason is not None if self._other is None else self._other.is_urgent

    def ask(self, reason: signal.Signals | str) -> None:
        """Only the first one's reason is kept."""
        if self._reason is None:
            self._reason = reason


class Deadline(Stop):
    """Asks by itself when a time has passed; `used`: of the seconds, so many are over already."""

    def __init__(self, other: Stop, seconds: float, used: float = 0.0) -> None:
        super().__init__(other)
        self._seconds = seconds
        self._end = time.monotonic() + seconds - used

    @property
    def reason(self) -> signal.Signals | str | None:
        if super().reason is None and time.monotonic() >= self._end:
            self.ask(f"{OVER} {self._seconds:g} s")
        return super().reason


class StopSignals(Stop):
    """While open, the first signal asks to stop, and is kept in `received`; a second one acts as if nobody watched.

    Python lets only the main thread watch signals; elsewhere nothing is ever received. A signal that the starting
    process has ignored stays ignored: a script's background jobs do not hear the terminal's Ctrl-C.
    """

    def __init__(self) -> None:
        super().__init__()
        self.received: signal.Signals | None = None
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            # A shell starts background jobs of a script with SIGINT ignored, which must stay so.
            heard = [number for number in WATCHED if signal.getsignal(number) is not signal.SIG_IGN]
            self._handlers = {number: signal.signal(number, self._receive) for number in heard}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        # The first signal asks politely. With the handlers put back, the second one ends the process as usual.
        self.received = signal.Signals(number)
        self.ask(self.received)
        self._restore()

    def _restore(self) -> None:
        while self._handlers:
            number, handler = self._handlers.popitem()
            # None: a handler that was not set from Python and cannot be put back from it
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
