"""What stands around every request: the check of the host's name, a limit on the body, headers against misuse of the
answer, the log, the counters, and an answer where something fails.
"""

from __future__ import annotations

import logging
import time
from urllib.parse import urlsplit

from anyio import CancelScope
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from difflogic.errors import StoreError
from difflogic.serve.api.bodies import FORM
from difflogic.serve.api.settings import ServeSettings, is_address
from difflogic.serve.api.telemetry import Telemetry
from difflogic.serve.errors import REFUSALS, ApiError
from difflogic.serve.log import LOGGER, log_event
from difflogic.serve.store.jobs import UnavailableError

# The page has no script, style or font from elsewhere, and nothing inline: the policy allows only that.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; frame-src 'self'; manifest-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
CLOSE = {"connection": "close"}
"""Headers of an answer to a request that was not read to its end: what is left of it must not be read as another."""
INTERNAL = ApiError(500, "internal", "The server failed; its log says why.")
METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT")
"""Any other method is counted as one, so that clients cannot make up labels."""


class ServiceMiddleware:
    """ASGI middleware: it refuses, limits, answers failures, and notes every request in the log and the counters."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, telemetry: Telemetry) -> None:
        self._app, self._settings, self._telemetry = app, settings, telemetry
        # Names by which a browser may ask for this server, besides IP addresses; any other is a sign of DNS rebinding.
        # A server that other machines reach takes any name, unless it was given names.
        checks = settings.is_local or bool(settings.names)
        self._names = {each.lower() for each in ("localhost", settings.host, *settings.names)} if checks else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # It knows whether an answer has begun, after which no other can be given.
        exchange = _Exchange(scope, receive, send)
        try:
            self._check_host(scope)
            root = self._settings.root_path
            if root and scope["path"] == root:
                # The page names its files by where it is itself: it must be in the folder, and not be the folder.
                await RedirectResponse(f"{root}/", 308)(scope, receive, exchange.send)
                return
            # Some proxies take away what they put before the path, others leave it; routes are found behind it.
            if not scope["path"].startswith(f"{root}/"):
                scope["path"] = root + scope["path"]
            scope["root_path"] = root
            limited = _limited(scope, receive, self._most(scope))
            answer = self._head if scope["method"] == "HEAD" else self._app
            await answer(scope, limited, exchange.send)
        except ApiError as error:
            await exchange.refuse(error)
        except StoreError as error:
            log_event("store", logging.ERROR, why=str(error))
            words = "The store cannot be used just now; the server's log says why."
            await exchange.refuse(ApiError(503, "store", str(error) if isinstance(error, UnavailableError) else words))
        except Exception:  # noqa: BLE001  whatever it is, the client gets an answer and the log the rest
            LOGGER.exception("failed")
            await exchange.refuse(INTERNAL)
        finally:
            self._note(scope, exchange)

    async def _head(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as a GET, as far as the headers: what would make a body is ended there, a stream of events too."""
        # A copy, for whoever passes the answer on has to know that it has no body.
        asked = {**scope, "method": "GET"}
        with CancelScope() as whole:

            async def begin(message: Message) -> None:
                if message["type"] == "http.response.start":
                    await send(message)
                    await send({"type": "http.response.body", "body": b""})
                    whole.cancel()

            await self._app(asked, receive, begin)
        if "route" in asked:  # for the counters
            scope["route"] = asked["route"]

    def _check_host(self, scope: Scope) -> None:
        host = Headers(scope=scope).get("host")
        if host is None or self._names is None:  # a request without it comes from no browser
            return
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = ""
        if name not in self._names and not is_address(name):
            words = "This server does not accept that host name: start it with --allow-host NAME, or use its address."
            raise ApiError(421, "other_host", words, CLOSE)

    def _most(self, scope: Scope) -> int:
        kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
        return self._settings.caps.upload if kind == FORM else self._settings.caps.body

    def _note(self, scope: Scope, exchange: _Exchange) -> None:
        # The pattern of the route and not the path: with ids in it every job would be a counter of its own.
        route = getattr(scope.get("route"), "path", "unknown")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._telemetry.requests.labels(method, route, str(exchange.status)).inc()
        self._telemetry.seconds.labels(method, route).observe(exchange.seconds)
        client = scope.get("client") or ("",)
        log_event(
            "request",
            method=scope["method"],
            path=scope["path"],
            status=exchange.status,
            ms=round(1000 * exchange.seconds, 1),
            client=client[0],
            owner=scope.get("state", {}).get("owner"),
        )


class _Exchange:
    """One request and its answer: the status, and the seconds until the answer began."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._start = time.perf_counter()
        self.status = 0
        self.seconds = 0.0
        self._is_replaced = False

    async def send(self, message: Message) -> None:
        if self._is_replaced:
            return
        if message["type"] == "http.response.start":
            headers = Headers(raw=message["headers"])
            # The framework refuses a Range as plain text: its errors get the form of all others.
            if message["status"] in (400, 416) and headers.get("content-type", "").startswith("text/plain"):
                error = ApiError(message["status"], *REFUSALS[message["status"]])
                kept = {name: headers[name] for name in ("content-range",) if name in headers}
                await JSONResponse(error.body, error.status, kept)(self._scope, self._receive, self.send)
                self._is_replaced = True
                return
            self.status, self.seconds = message["status"], time.perf_counter() - self._start
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)

    async def refuse(self, error: ApiError) -> None:
        """Answer, unless an answer has begun: that one is cut short."""
        if not self.status:
            await JSONResponse(error.body, error.status, CLOSE)(self._scope, self._receive, self.send)


def _limited(scope: Scope, receive: Receive, most: int) -> Receive:
    """`receive` until `most` bytes have come. Raises ApiError, at once where the request says that it is longer."""
    # The header is only a claim. A body that is longer than it says, or says nothing, is cut off while it comes.
    length = Headers(scope=scope).get("content-length", "")
    said = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0
    too_large = ApiError(413, "too_large", f"The body is larger than {most} bytes.", CLOSE)
    came = 0

    async def read() -> Message:
        nonlocal came
        if said > most:
            raise too_large
        message = await receive()
        came += len(message.get("body", b""))
        if came > most:
            raise too_large
        return message

    return read
