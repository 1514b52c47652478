"""Dependencies of routes: the application's context, the caller, and the job in the path."""

import json
from dataclasses import dataclass, field
from typing import Annotated, Any

from anyio import CapacityLimiter
from fastapi import Depends, Path, Request, Security
from fastapi.responses import Response
from fastapi.security import APIKeyCookie, HTTPBearer

from difflogic.serve.api.auth import COOKIE, Authenticator, Caller
from difflogic.serve.api.broadcast import ChangeFeed
from difflogic.serve.api.replies import ErrorBody
from difflogic.serve.api.settings import ServeSettings
from difflogic.serve.api.telemetry import Telemetry
from difflogic.serve.api.usage import Throttled, Usage
from difflogic.serve.errors import ApiError
from difflogic.serve.store.jobs import ID, JobRecord
from difflogic.serve.store.queue import Turn
from difflogic.serve.store.store import Store

PICTURES = 2
"""Maximum number of requests with images that are processed simultaneously."""


@dataclass(frozen=True)
class Context:
    """Objects that all routes of an application share."""

    store: Store
    settings: ServeSettings
    authenticator: Authenticator
    feed: ChangeFeed
    telemetry: Telemetry
    turns: Throttled[dict[str, Turn]]
    """Positions of the queued jobs, by job id."""
    usage: Usage
    picture_threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(PICTURES))


async def context(request: Request) -> Context:
    """Return the context of the application that has received the request."""
    application_context: Context = request.app.state.context
    return application_context


# Routes declare their dependencies as types: a route that takes `OwnJob` cannot omit the check of the owner.
ServiceContext = Annotated[Context, Depends(context)]

bearer = HTTPBearer(auto_error=False, scheme_name="token", description="One of the server's tokens.")
cookie = APIKeyCookie(
    name=COOKIE, auto_error=False, scheme_name="session", description="The cookie that POST /session sets."
)


async def caller(
    request: Request,
    context: ServiceContext,
    _token: Annotated[Any, Security(bearer)],
    _session: Annotated[Any, Security(cookie)],
) -> Caller:
    """Return the sender of a request. Raises ApiError if it is not authenticated, or if it repeats a parameter.

    FastAPI calls this coroutine without a thread, since reading the store takes less time than starting a thread.
    """
    sender = await context.authenticator.caller(request)
    request.state.owner = sender.owner
    names = [name for name, _ in request.query_params.multi_items()]
    # No route takes a list: a repeated parameter is refused.
    if len(set(names)) < len(names):
        raise ApiError(422, "invalid_request", "A query parameter is repeated: give each parameter once.")
    return sender


CurrentCaller = Annotated[Caller, Depends(caller)]
Id = Annotated[str, Path(pattern=f"^{ID.pattern}$", description="The job's id.")]


async def own_job(job: Id, context: ServiceContext, caller: CurrentCaller) -> JobRecord:
    """Return the job with the id `job`. Raises UnknownJobError if the caller may not see it."""
    return context.store.job(job, caller.sees)


OwnJob = Annotated[JobRecord, Depends(own_job)]


def reply(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a response with `data` as JSON, without validating it against the model of the reply."""
    return reply_text(json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")), status, headers)


def reply_text(text: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a response with JSON text."""
    return Response(text, status, headers, media_type="application/json")


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the responses with the error statuses `statuses`, for the OpenAPI document of a route."""
    return {status: {"model": ErrorBody, "description": DESCRIPTIONS[status]} for status in sorted(statuses)}


DESCRIPTIONS = {
    400: "The request cannot be read.",
    401: "No token, or a wrong one.",
    403: "The session cookie came without its CSRF token, or the owner may not do this.",
    404: "It does not exist, or it belongs to someone else.",
    409: "The job's state, or an earlier request, forbids this.",
    413: "The body is too large.",
    415: "The body has a media type that this address does not take.",
    416: "The file is shorter than the requested range.",
    429: "The owner has too many event streams open.",
    421: "The Host header names another server.",
    422: "The request is well formed, but a value in it is not allowed.",
    507: "The owner's jobs have used up their quota.",
    503: "The store or the workers are not available at the moment.",
}
ALWAYS = (401, 421, 422, 503)
"""Error statuses of all routes that require a token."""
WRITES = (400, 403, 413)
"""Additional error statuses of all routes that change data."""
