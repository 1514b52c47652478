"""Routes without authentication: health and metrics of the server, and its documentation."""

import json
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from difflogic.serve.api.context import ServiceContext, errors, reply
from difflogic.serve.api.replies import Health, Readiness
from difflogic.serve.errors import ApiError
from difflogic.serve.store.claims import ALIVE_S

router = APIRouter(tags=["server"])


@router.get("/api/v1/health", response_model=Health, responses=errors(421))
async def health() -> Any:
    """Report that the server is alive; no token is needed."""
    return reply({"status": "alive"})


@router.get("/api/v1/ready", response_model=Readiness, responses=errors(421, 503))
def ready(context: ServiceContext) -> Any:
    """Report that jobs can run: the store is writable, and a worker was seen recently; no token is needed."""
    context.store.check_writable()
    now = context.store.clock()
    alive = [worker for worker in context.store.workers() if worker.engines and now - worker.seen < ALIVE_S]
    if not alive:
        raise ApiError(503, "no_worker", "No worker was seen recently, so jobs would remain queued.")
    return reply({"status": "ready", "workers": len(alive)})


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Counters."},
               **errors(401, 421, 503)},
)  # fmt: skip
async def metrics(request: Request, context: ServiceContext) -> Response:
    """Return metrics for Prometheus; no token is needed if only this machine can reach the server."""
    # A proxy on this machine forwards requests of other machines.
    forwarded = "x-forwarded-for" in request.headers or "forwarded" in request.headers
    if forwarded or not context.settings.is_local:
        await context.authenticator.caller(request)
    text = await to_thread.run_sync(generate_latest, context.telemetry.registry)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> HTMLResponse:
    """Return the OpenAPI document as a page without scripts and external files."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("difflogic.serve.api", "routes"), autoescape=True, trim_blocks=True)
    environment.filters["json"] = partial(json.dumps, indent=1, ensure_ascii=False)
    return HTMLResponse(environment.get_template("document.html").render(document=request.app.openapi()))
