"""Create the FastAPI application with all routes and the middleware.

app = create_app(store, tokens, ServeSettings())
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from functools import partial
from importlib import resources
from pathlib import Path

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.staticfiles import NotModifiedResponse
from starlette.types import Scope

from difflogic.errors import StoreError
from difflogic.page.bundle import joined
from difflogic.serve import errors
from difflogic.serve.api.auth import Authenticator
from difflogic.serve.api.broadcast import ChangeFeed
from difflogic.serve.api.context import Context, reply
from difflogic.serve.api.middleware import ServiceMiddleware
from difflogic.serve.api.routes import about, events, health, jobs, results, session
from difflogic.serve.api.settings import ServeSettings
from difflogic.serve.api.telemetry import Telemetry
from difflogic.serve.api.tokens import Tokens
from difflogic.serve.api.usage import Throttled, Usage
from difflogic.serve.errors import ApiError
from difflogic.serve.store.jobs import ConflictError, QueueFullError, UnknownJobError
from difflogic.serve.store.queue import turns_of
from difflogic.serve.store.store import Store
from difflogic.version import __version__

THREADS = 8
"""Maximum number of requests that read the store or the disk simultaneously."""
WEB = Path(str(resources.files("difflogic.serve"))) / "web"
ABOUT = (
    "Queue trainings of cellular automata, follow them, and download the results. Every error is "
    '`{"error": {"code", "message"}}`; the message is one sentence. '
    "Every address with GET also supports HEAD, whose response has no body."
)


def create_app(store: Store, tokens: Tokens, settings: ServeSettings) -> FastAPI:
    """Return the application for a store. While the application runs, its change feed polls the store."""
    telemetry = Telemetry(store)
    authenticator, feed = Authenticator(store, tokens, settings, telemetry), ChangeFeed(store, telemetry)
    context = Context(
        store, settings, authenticator, feed, telemetry, Throttled(partial(turns_of, store)), Usage(store)
    )

    @contextlib.asynccontextmanager
    async def alive(_app: FastAPI) -> AsyncIterator[None]:
        # More threads would not make one disk or database faster; with fewer, short requests would wait for long ones.
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        await context.feed.start()
        # One task polls the store for all listeners.
        task = asyncio.create_task(context.feed.run())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    app = FastAPI(
        title="difflogic", version=__version__, description=ABOUT, lifespan=alive,
        docs_url=None, redoc_url=None, redirect_slashes=False,
        servers=[{"url": settings.root_path}] if settings.root_path else None,
    )  # fmt: skip
    app.state.context = context
    for module in (session, jobs, about, results, events):
        app.include_router(module.router, prefix="/api/v1")
    app.include_router(health.router)
    app.mount("/static", _Static(directory=WEB, check_dir=False), name="static")
    app.add_api_route("/", _page, include_in_schema=False)
    for kind in (ApiError, StoreError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _refused)
    # The middleware is added last, so that it also processes error responses of the framework.
    app.add_middleware(ServiceMiddleware, settings=settings, telemetry=telemetry)
    return app


class _Static(StaticFiles):
    """Static files of the web page. Browsers revalidate cached files on each use; `main.js` contains all scripts."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if path != "main.js":
            answer = await super().get_response(path, scope)
            answer.headers["Cache-Control"] = "no-cache"
            return answer
        text = joined("serve/web/main.js").encode()
        headers = {"Cache-Control": "no-cache", "ETag": f'"{hashlib.sha256(text).hexdigest()}"'}
        if self.is_not_modified(Headers(headers), Headers(scope=scope)):
            return NotModifiedResponse(Headers(headers))
        return Response(text, headers=headers, media_type="text/javascript")


async def _page() -> Response:
    return FileResponse(WEB / "index.html", media_type="text/html; charset=utf-8")


async def _refused(_request: Request, error: Exception) -> Response:
    """Return the response to an expected error of this package or of the framework. Raises any other error."""
    match error:
        case ApiError() as refusal:
            pass
        case HTTPException(__cause__=ApiError() as refusal):  # the reason why the middleware stopped reading
            pass
        case UnknownJobError():
            refusal = ApiError(404, "no_job", str(error))
        case ConflictError():
            refusal = ApiError(409, "queue_full" if isinstance(error, QueueFullError) else "conflict", str(error))
        case RequestValidationError():
            refusal = errors.invalid(error.errors())
        case HTTPException():
            words = errors.REFUSALS.get(error.status_code, ("refused", "The request was refused."))
            refusal = ApiError(error.status_code, *words, error.headers)
        case _:
            raise error
    return reply(refusal.body, refusal.status, refusal.headers)
