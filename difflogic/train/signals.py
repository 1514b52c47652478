"""A request to stop at the next safe place; Ctrl-C and SIGTERM make one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any

WATCHED = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """A request to end a run after the epochs under way, saved: whoever holds it may ask, from any thread."""

    def __init__(self) -> None:
        self.reason: signal.Signals | str | None = None
        """Why, once somebody has asked: a signal, or words."""

    def ask(self, reason: signal.Signals | str) -> None:
        """Only the first one's reason is kept."""
        if self.reason is None:
            self.reason = reason


class StopSignals(Stop):
    """While open, the first signal asks to stop, and is kept in `received`; a second one acts as if nobody watched.

    Python lets only the main thread watch signals; elsewhere nothing is ever received. A signal that the starting
    process has ignored stays ignored: a script's background jobs do not hear the terminal's Ctrl-C.
    """

    def __init__(self, watched: Sequence[signal.Signals] = WATCHED) -> None:
        super().__init__()
        self._watched = watched
        self.received: signal.Signals | None = None
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            heard = [number for number in self._watched if signal.getsignal(number) is not signal.SIG_IGN]
            self._handlers = {number: signal.signal(number, self._receive) for number in heard}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        self.ask(self.received)
        self._restore()

    def _restore(self) -> None:
        while self._handlers:
            number, handler = self._handlers.popitem()
            # None: a handler that was not set from Python and cannot be put back from it
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
