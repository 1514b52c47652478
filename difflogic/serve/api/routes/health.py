"""What anybody may ask: signs of life, for whoever looks after the server, and which addresses there are."""

import json
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from difflogic.serve.api.context import ServiceContext, errors, reply
from difflogic.serve.api.replies import Health, Readiness
from difflogic.serve.errors import ApiError
from difflogic.serve.store.claims import ALIVE_S

router = APIRouter(tags=["server"])


@router.get("/api/v1/health", response_model=Health, responses=errors(421))
async def health() -> Any:
    """Whether the server is alive; anybody may ask."""
    return reply({"status": "alive"})


@router.get("/api/v1/ready", response_model=Readiness, responses=errors(421, 503))
def ready(context: ServiceContext) -> Any:
    """Whether jobs are taken: the store can be written, and a worker was seen of late; anybody may ask."""
    context.store.check_writable()
    alive = [each for each in context.store.workers() if each.engines and context.store.clock() - each.seen < ALIVE_S]
    if not alive:
        raise ApiError(503, "no_worker", "No worker was seen recently: jobs would wait.")
    return reply({"status": "ready", "workers": len(alive)})


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Counters."},
               **errors(401, 421, 503)},
)  # fmt: skip
async def metrics(request: Request, context: ServiceContext) -> Response:
    """Counters for Prometheus; without a token on a server that only this machine can reach."""
    # A proxy on this machine passes on requests from others: then "only this machine can reach it" is not true.
    forwarded = "x-forwarded-for" in request.headers or "forwarded" in request.headers
    if forwarded or not context.settings.is_local:
        await context.authenticator.caller(request)
    return Response(await to_thread.run_sync(context.telemetry.text), media_type=CONTENT_TYPE_LATEST)


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> HTMLResponse:
    """The OpenAPI document, every address with what it takes and answers, as a page without script and network."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("difflogic.serve.api", "routes"), autoescape=True, trim_blocks=True)
    environment.filters["json"] = partial(json.dumps, indent=1, ensure_ascii=False)
    return HTMLResponse(environment.get_template("document.html").render(document=request.app.openapi()))
