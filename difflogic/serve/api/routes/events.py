"""Routes that stream server-sent events of one job, or of all jobs of an owner."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Any

from anyio import CancelScope
from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from difflogic.serve.api import streams
from difflogic.serve.api.context import ALWAYS, Context, CurrentCaller, OwnJob, ServiceContext, errors
from difflogic.serve.errors import ApiError

router = APIRouter(tags=["events"])

STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events, without end."}
}
Last = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=40, pattern=r"^[0-9.]*$", description="The id of the last event seen."),
]


class EventStream(StreamingResponse):
    """Response that streams server-sent events, and asks proxies not to buffer them."""

    media_type = "text/event-stream"

    # No caller passes `status_code`, but FastAPI reads its default for the OpenAPI document.
    def __init__(self, context: Context, owner: str, events: AsyncGenerator[str], status_code: int = 200) -> None:
        super().__init__(events, status_code, {"X-Accel-Buffering": "no"})
        self._events, self._context, self._owner = events, context, owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events, and remove the listener when the connection ends. Raises ApiError for too many streams."""
        most = self._context.settings.connections.streams
        if self._context.feed.streams[self._owner] >= most:
            raise ApiError(429, "too_many_streams", f"You already have {most} open event streams: close some of them.")
        self._count_listeners(1)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._count_listeners(-1)
            # The request is being cancelled: without the shield the listener would not be removed.
            with CancelScope(shield=True):
                await self._events.aclose()

    def _count_listeners(self, change: int) -> None:
        self._context.telemetry.streams.inc(change)
        self._context.feed.streams[self._owner] += change


@router.get("/jobs/{job}/events", response_class=EventStream, responses={**STREAM, **errors(*ALWAYS, 404, 429)})
async def of_job(
    context: ServiceContext,
    caller: CurrentCaller,
    job: OwnJob,
    last: Last = None,
    after: Annotated[int, Query(ge=0, le=2**53, description="Rows after this epoch, without a Last-Event-ID.")] = 0,
) -> EventStream:
    """Stream events of a job: `job`, `rows` of metrics, state `frame`, `end`. Their ids are EPOCH.VERSION[.ATTEMPT]."""
    is_current = partial(context.authenticator.is_current, caller)
    position = streams.Position.of(last, after, job.attempt)
    return EventStream(context, caller.owner, streams.of_job(context.feed, job, position, is_current))


@router.get("/events", response_class=EventStream, responses={**STREAM, **errors(*ALWAYS, 429)})
async def of_owner(context: ServiceContext, caller: CurrentCaller, last: Last = None) -> EventStream:
    """Stream events of all your jobs: `job`, `deleted`. Their ids are versions."""
    is_current = partial(context.authenticator.is_current, caller)
    return EventStream(
        context, caller.owner, streams.of_owner(context.feed, context.store, caller.sees, last, is_current)
    )
