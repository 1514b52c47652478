"""End connections of clients that are too slow to send a request or to read the response.

uvicorn limits only complete requests, so a client that sends half of its headers could keep a connection open forever.
This module limits the time for sending and reading. With more open connections, clients have less time to send, so that
a flood of connections ends soon; normal clients require far less time.
"""

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from difflogic.serve.api.settings import ConnectionLimits
from difflogic.serve.api.telemetry import Telemetry

LEAST_S = 0.25
"""Minimum time limit of a request in seconds, for any number of open connections."""


class Connection(H11Protocol):
    """HTTP protocol of uvicorn with time limits for clients."""

    limits: ClassVar[ConnectionLimits]
    telemetry: ClassVar[Telemetry]
    _timer: asyncio.TimerHandle | None = None
    _until = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.telemetry.connections.set(len(self.connections))
        self._update_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.telemetry.connections.set(len(self.connections))
        self._wait(None)

    def data_received(self, data: bytes) -> None:
        # Received bytes extend the time limit by the time that they need at `rate`, a single byte hardly at all.
        self._until += len(data) / self.limits.rate
        super().data_received(data)
        self._update_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._update_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait(self.limits.write_s)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._wait(None)
        self._update_timer()

    def _update_timer(self) -> None:
        """Start the timer if the client has to send something; stop it while the server works on a response."""
        if self.flow.write_paused or self.transport.is_closing():
            return
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            self._wait(None)
        elif self._timer is None:
            share = 1 - len(self.connections) / self.limits.all
            self._wait(max(LEAST_S, self.limits.request_s * share))

    def _wait(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None:
            self._until = self.loop.time() + seconds
            self._timer = self.loop.call_at(self._until, self._end)

    def _end(self) -> None:
        # While the server itself pauses reading a body, the client is not to blame.
        if self.loop.time() < self._until or self.flow.read_paused:
            self._timer = self.loop.call_at(max(self._until, self.loop.time() + 1), self._end)
            return
        self.telemetry.turned_away.inc()
        self.transport.abort()
