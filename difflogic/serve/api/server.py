"""uvicorn with the application: on a socket that is bound before, with streams that end when it is to stop."""

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
"""Seconds for answers under way, once the server is to stop."""
BACKLOG = 100
"""Connections that the system keeps until they are accepted, all of which may be open for a moment beside the rest."""


def listen(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 is any that is free. Raises UsageError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        found = socket.create_server((host, port), family=family, backlog=BACKLOG)
        # asyncio does so where a socket says that its protocol is TCP, which one that was bound before does not: else
        # the second piece of an answer waits 40 ms for the client's acknowledgement of the first.
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found
    except (OSError, OverflowError) as error:
        words = getattr(error, "strerror", None) or error
        raise UsageError(f"Cannot listen on {host}, port {port}: {words}. Choose another --host or --port.") from error


def check_tls(certificate: Path, key: Path) -> None:
    """Raises UsageError where TLS cannot be spoken with these files."""
    try:
        # Without a password of ours the library would ask for one in the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: b"")
    except ssl.SSLError as error:
        raise UsageError(
            f"{certificate} and {key} are no certificate and its key: expected two PEM files that belong together, the "
            "key without a password."
        ) from error
    except OSError as error:
        wrong = next((each for each in (certificate, key) if not os.access(each, os.R_OK)), certificate)
        raise UsageError(f"Cannot read {wrong} for TLS: {error.strerror or error}.") from error


class Server(uvicorn.Server):
    """Runs an application until it is told to stop, or a signal does."""

    def __init__(self, app: FastAPI, ready: Callable[[], None]) -> None:
        """`ready` is called when requests are answered."""
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
        if settings.tls:  # uvicorn has no option for it, and asyncio waits for a minute
            loop: Any = asyncio.get_running_loop()
            loop.create_server = partial(loop.create_server, ssl_handshake_timeout=settings.connections.request_s)
        await super().startup(sockets)
        if not self.should_exit:
            self._ready()

    def stop(self) -> None:
        """End soon; safe from signal handlers in the server's thread."""
        self.should_exit = True
        # Streams of events never end by themselves: uvicorn would wait for them until its patience is over.
        self._context.feed.close()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.stop()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn's, a signal ends the server and not the process: workers are still to be stopped."""
        # In tests the server runs in a thread, where signals cannot be set.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[signal.Signals, Any] = {each: signal.signal(each, self.handle_exit) for each in watched()}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
