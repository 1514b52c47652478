"""The application: every address, behind the gate.

app = create_app(store, tokens, ServeSettings())
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import difflogic
from difflogic.errors import StoreError
from difflogic.serve import faults
from difflogic.serve.auth import Door
from difflogic.serve.context import Context, reply
from difflogic.serve.faults import ApiError
from difflogic.serve.gate import Gate
from difflogic.serve.jobs import ConflictError, QueueFullError, UnknownJobError
from difflogic.serve.pulse import Pulse
from difflogic.serve.routes import about, document, events, jobs, results, session, signs
from difflogic.serve.settings import ServeSettings
from difflogic.serve.store import Store
from difflogic.serve.telemetry import Telemetry
from difflogic.serve.tokens import Tokens

THREADS = 8
"""Requests that read the store or the disk at the same time; each is short."""
WEB = Path(str(resources.files("difflogic.serve"))) / "web"
ABOUT = (
    "Queue trainings of cellular automata, watch them learn, and take what they became. Every error is "
    '`{"error": {"code", "message"}}`, the message one sentence.'
)


def create_app(store: Store, tokens: Tokens, settings: ServeSettings) -> FastAPI:
    """The service on a store; its pulse beats while it runs."""
    telemetry = Telemetry(store)
    here = Context(store, settings, Door(store, tokens, settings, telemetry), Pulse(store, telemetry), telemetry)

    @contextlib.asynccontextmanager
    async def alive(_app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        await here.pulse.start()
        beating = asyncio.create_task(here.pulse.run())
        yield
        beating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beating

    app = FastAPI(
        title="difflogic", version=difflogic.__version__, description=ABOUT, lifespan=alive,
        docs_url=None, redoc_url=None, redirect_slashes=False,
    )  # fmt: skip
    app.state.context = here
    for module in (session, jobs, results, events, about):
        app.include_router(module.router, prefix="/api/v1")
    for module in (signs, document):
        app.include_router(module.router)
    app.mount("/static", _Static(directory=WEB, check_dir=False), name="static")
    app.add_api_route("/", _page, include_in_schema=False)
    app.add_exception_handler(ApiError, _fault)
    app.add_exception_handler(StoreError, _of_store)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_middleware(Gate, settings=settings, telemetry=telemetry)
    return app


class _Static(StaticFiles):
    """What a browser keeps, and asks each time whether it is still so."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        answer = super().file_response(*arguments, **options)
        answer.headers["Cache-Control"] = "no-cache"
        return answer


async def _page() -> Response:
    return FileResponse(WEB / "index.html", media_type="text/html; charset=utf-8")


def _answer(fault: ApiError) -> Response:
    return reply(fault.body, fault.status, fault.headers)


async def _fault(_request: Request, error: Any) -> Response:
    return _answer(error)


async def _of_store(_request: Request, error: Any) -> Response:
    if isinstance(error, UnknownJobError):
        return _answer(ApiError(404, "no_job", str(error)))
    if isinstance(error, ConflictError):
        return _answer(ApiError(409, "queue_full" if isinstance(error, QueueFullError) else "conflict", str(error)))
    raise error


async def _invalid(_request: Request, error: Any) -> Response:
    if any(each["type"] == "json_invalid" for each in error.errors()):
        return _answer(ApiError(400, "not_json", "The body is not valid JSON."))
    return _answer(faults.invalid(error.errors()))


async def _refused(_request: Request, error: Any) -> Response:
    """What the framework refuses; where it could not read a body, because of the gate's reason."""
    if isinstance(error.__cause__, ApiError):
        return _answer(error.__cause__)
    return _answer(faults.of_status(error.status_code, error.headers))
