"""Ctrl-C and SIGTERM as a request to stop at the next safe place."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

WATCHED = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """While open, the first signal is kept in `received`; a second one acts as if nobody watched.

    Python lets only the main thread watch signals; elsewhere nothing is ever received.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            self._handlers = {number: signal.signal(number, self._receive) for number in WATCHED}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        self._restore()

    def _restore(self) -> None:
        while self._handlers:
            number, handler = self._handlers.popitem()
            # None: a handler that was not set from Python and cannot be put back from it
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
