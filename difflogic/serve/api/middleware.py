"""Process all requests: check the host, limit the body, set security headers, log, count, and respond to failures."""

import logging
import time
from urllib.parse import urlsplit

from anyio import CancelScope
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from difflogic.errors import StoreError
from difflogic.serve.api.bodies import FORM, media_type
from difflogic.serve.api.settings import ServeSettings, is_address
from difflogic.serve.api.telemetry import Telemetry
from difflogic.serve.errors import REFUSALS, ApiError
from difflogic.serve.log import LOGGER, log_event
from difflogic.serve.store.jobs import UnavailableError

# The page loads scripts, styles and fonts only from this server, and has no inline scripts and styles.
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
"""Headers for the response to a partly read request, whose rest must not be parsed as another request."""
INTERNAL = ApiError(500, "internal", "Internal server error: see the server's log.")
METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT")
"""HTTP methods that are counted by name. All others count as `other`, since clients must not create labels."""


class _Exchange:
    """Request and its response, with the status of the response and the seconds until the response begins."""

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
            # The framework responds to an invalid Range in plain text, which becomes JSON like all other errors.
            if message["status"] in (400, 416) and headers.get("content-type", "").startswith("text/plain"):
                error = ApiError(message["status"], *REFUSALS[message["status"]])
                ranges = {name: headers[name] for name in ("content-range",) if name in headers}
                await JSONResponse(error.body, error.status, ranges)(self._scope, self._receive, self.send)
                self._is_replaced = True
                return
            self.status, self.seconds = message["status"], time.perf_counter() - self._start
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)

    async def refuse(self, error: ApiError) -> None:
        """Respond with `error`, unless another response has already begun, which then ends early."""
        if not self.status:
            await JSONResponse(error.body, error.status, CLOSE)(self._scope, self._receive, self.send)


class ServiceMiddleware:
    """ASGI middleware that checks, limits, logs and counts every request, and responds to failures."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, telemetry: Telemetry) -> None:
        self._app, self._settings, self._telemetry = app, settings, telemetry
        # Host names, besides IP addresses, that requests may name: a protection against DNS rebinding. A server that
        # other machines can reach accepts any name, unless names are configured.
        checks = settings.is_local or bool(settings.names)
        self._names = {name.lower() for name in ("localhost", settings.host, *settings.names)} if checks else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send)
        try:
            self._check_host(scope)
            root = self._settings.root_path
            if root and scope["path"] == root:
                # The page uses relative paths, so its own address must end in a slash.
                await RedirectResponse(f"{root}/", 308)(scope, receive, exchange.send)
                return
            # Some proxies remove the prefix from the path, others do not. Routing requires it, so add it if missing.
            if not scope["path"].startswith(f"{root}/"):
                scope["path"] = root + scope["path"]
            scope["root_path"] = root
            caps = self._settings.caps
            limited = _limited(scope, receive, caps.upload if media_type(Headers(scope=scope)) == FORM else caps.body)
            answer = self._head if scope["method"] == "HEAD" else self._app
            await answer(scope, limited, exchange.send)
        except ApiError as error:
            await exchange.refuse(error)
        except StoreError as error:
            log_event("store", logging.ERROR, why=str(error))
            public = "The store is currently unavailable: see the server's log."
            await exchange.refuse(ApiError(503, "store", str(error) if isinstance(error, UnavailableError) else public))
        except Exception:  # noqa: BLE001  the client gets an answer to any error, and the log the traceback
            LOGGER.exception("failed")
            await exchange.refuse(INTERNAL)
        finally:
            self._note(scope, exchange)

    async def _head(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the headers of the GET response without its body, which may be an endless stream of events."""
        # The scope is copied: from the method HEAD of the original, the server knows that it must send no body.
        get_scope = {**scope, "method": "GET"}
        with CancelScope() as answer:

            async def begin(message: Message) -> None:
                if message["type"] == "http.response.start":
                    await send(message)
                    await send({"type": "http.response.body", "body": b""})
                    answer.cancel()

            await self._app(get_scope, receive, begin)
        if "route" in get_scope:  # needed by the counters in `_note`
            scope["route"] = get_scope["route"]

    def _check_host(self, scope: Scope) -> None:
        host = Headers(scope=scope).get("host")
        if host is None or self._names is None:  # browsers always send a host
            return
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = ""
        if name not in self._names and not is_address(name):
            message = "Unknown host name: use the server's IP address, or start it with --allow-host NAME."
            raise ApiError(421, "other_host", message, CLOSE)

    def _note(self, scope: Scope, exchange: _Exchange) -> None:
        # Counters use the route's pattern, since the path contains ids and would create a counter for each job.
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


def _limited(scope: Scope, receive: Receive, most: int) -> Receive:
    """Return an ASGI `receive` that raises ApiError if the announced or received body has more than `most` bytes."""
    length = Headers(scope=scope).get("content-length", "")
    announced = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0
    too_large = ApiError(413, "too_large", f"The body must have at most {most} bytes.", CLOSE)
    received = 0

    async def read() -> Message:
        nonlocal received
        if announced > most:
            raise too_large
        message = await receive()
        received += len(message.get("body", b""))
        if received > most:
            raise too_large
        return message

    return read
