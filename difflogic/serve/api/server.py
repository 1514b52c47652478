"""Run the application with uvicorn on a bound socket, and end its event streams when the server stops."""

import asyncio
import contextlib
import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from difflogic.errors import UsageError
from difflogic.serve.api.connections import Connection
from difflogic.serve.api.context import Context
from difflogic.train.signals import watched

PATIENCE_S = 5
"""Maximum seconds for completing pending responses when the server stops."""
BACKLOG = 100
"""Maximum number of connections that the operating system queues before they are accepted."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `port`, or on any free port if `port` is 0. Raises UsageError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        # asyncio sets this option only for a socket that it has bound. Without the option the second part of a response
        # waits 40 ms for the client's acknowledgement of the first part.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"Cannot listen on {host}, port {port}: {why}. Choose another --host or --port.") from error


def check_tls(certificate: Path, key: Path) -> None:
    """Raise UsageError if `certificate` and `key` cannot be used for TLS."""
    try:
        # Without a password the library would ask for one in the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: b"")
    except ssl.SSLError as error:
        raise UsageError(
            f"Expected a TLS certificate and its key as PEM files, the key without a password, got {certificate} and "
            f"{key}."
        ) from error
    except OSError as error:
        wrong = next((path for path in (certificate, key) if not os.access(path, os.R_OK)), certificate)
        raise UsageError(f"Cannot read {wrong} for TLS: {error.strerror or error}.") from error


class Server(uvicorn.Server):
    """Server of an application that runs until `stop` is called or a signal arrives."""

    def __init__(self, app: FastAPI, ready: Callable[[], None]) -> None:
        """Set up the server, which calls `ready` once it accepts requests."""
        self._context: Context = app.state.context
        settings = self._context.settings
        own = {"limits": settings.connections, "telemetry": self._context.telemetry}
        certificate, key = settings.tls or (None, None)
        super().__init__(
            uvicorn.Config(
                app, http=type("_Connection", (Connection,), own), loop="asyncio",
                ws="none", lifespan="on", log_config=None, access_log=False, server_header=False, backlog=BACKLOG,
                proxy_headers=bool(settings.proxies), forwarded_allow_ips=list(settings.proxies),
                ssl_certfile=certificate, ssl_keyfile=key, timeout_graceful_shutdown=PATIENCE_S,
            )
        )  # fmt: skip
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        settings = self._context.settings
        if settings.tls:  # uvicorn has no option for this limit, and asyncio's default is a minute
            loop: Any = asyncio.get_running_loop()
            loop.create_server = partial(loop.create_server, ssl_handshake_timeout=settings.connections.request_s)
        await super().startup(sockets)
        if not self.should_exit:
            self._ready()

    def stop(self) -> None:
        """Ask the server to stop. Signal handlers in the server's thread may call this method."""
        self.should_exit = True
        # Event streams do not end by themselves: uvicorn would wait PATIENCE_S for them.
        self._context.feed.close()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.stop()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """On a signal within the context, end the server but not the process, which has to stop its workers first."""
        # In tests the server runs in a thread, where Python does not allow signal handlers.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[signal.Signals, Any] = {number: signal.signal(number, self.handle_exit) for number in watched()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
