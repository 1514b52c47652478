"""Routes that stream server-sent events of one job, or of all jobs of an owner; a broken stream can be resumed.

The id of a job's event is `EPOCH.VERSION`, or `EPOCH.VERSION.ATTEMPT` if the job has restarts: `120.57.2` means
that the rows up to epoch 120 of attempt 2, and version 57 of the job, have been sent. A browser that lost its
connection sends the id as Last-Event-ID, and the stream resumes with epoch 121, or with the first epoch of a later
attempt. In a stream of all jobs, the id of an event is a version of the store.
"""

import json
import math
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Self

from anyio import CancelScope, to_thread
from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from difflogic.serve.api.broadcast import ChangeFeed, JobFeed, arrived, encoded
from difflogic.serve.api.context import ALWAYS, Context, CurrentCaller, OwnJob, ServiceContext, errors
from difflogic.serve.errors import ApiError
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.store import Store

router = APIRouter(tags=["events"])

STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events, without end."}
}
Last = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=40, pattern=r"^[0-9.]*$", description="The id of the last event seen."),
]
HEARTBEAT_S = 15.0
BEGIN = "retry: 1000\n\n"
"""First lines of a stream, which make a browser reconnect one second after a lost connection."""
HEARTBEAT = ": still here\n\n"
POSITION = re.compile(r"([0-9]{1,15})\.([0-9]{1,15})(?:\.([0-9]{1,3}))?")


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


@dataclass
class Position:
    """Position of a listener in a job's stream: epoch, version, attempt and number of frames received so far."""

    epoch: int = 0
    version: int = -1
    attempt: int = 0
    frames: int = 0

    @classmethod
    def of(cls, last: str | None, after: int, attempt: int = 0) -> Self:
        """Return the position in the Last-Event-ID `last` or, if it is invalid, the position after epoch `after`."""
        match = POSITION.fullmatch(last or "")
        return cls(after, attempt=attempt) if match is None else cls(int(match[1]), int(match[2]), int(match[3] or 0))

    def __str__(self) -> str:
        return f"{self.epoch}.{self.version}" + (f".{self.attempt}" if self.attempt else "")


@router.get("/jobs/{job}/events", response_class=EventStream, responses={**STREAM, **errors(*ALWAYS, 404, 429)})
async def of_job(
    context: ServiceContext,
    caller: CurrentCaller,
    job: OwnJob,
    last: Last = None,
    after: Annotated[int, Query(ge=0, le=2**53, description="Rows after this epoch, without a Last-Event-ID.")] = 0,
) -> EventStream:
    """Stream events of a job: `job`, `rows` of metrics, state `frame`, `end`. Their ids are EPOCH.VERSION[.ATTEMPT]."""
    position, is_current = Position.of(last, after, job.attempt), partial(context.authenticator.is_current, caller)
    return EventStream(context, caller.owner, events_of_job(context.feed, job, position, is_current))


@router.get("/events", response_class=EventStream, responses={**STREAM, **errors(*ALWAYS, 429)})
async def of_owner(context: ServiceContext, caller: CurrentCaller, last: Last = None) -> EventStream:
    """Stream events of all your jobs: `job`, `deleted`. Their ids are versions."""
    # The version is read before the response begins. The listener lists the jobs later, and so misses no change.
    sent = int(last) if last and re.fullmatch("[0-9]{1,15}", last) else context.feed.version
    is_current = partial(context.authenticator.is_current, caller)
    events = events_of_owner(context.feed, context.store, caller.sees, sent, is_current)
    return EventStream(context, caller.owner, events)


def event(name: str, text: str, position: object) -> str:
    """Return a server-sent event as text; its data `text` is JSON without line breaks, its id is `position`."""
    return f"event: {name}\nid: {position}\ndata: {text}\n\n"


async def events_of_job(
    feed: ChangeFeed, job: JobRecord, position: Position, is_current: Callable[[], bool] = lambda: True
) -> AsyncGenerator[str]:
    """Yield the events of a job as they occur (`job`, `rows`, `frame`), and finally `end`.

    The stream also ends once `is_current` returns False, when the listener's token or session is no longer valid.
    """
    yield BEGIN
    async with feed.follow(job) as job_feed:
        while not feed.closing and is_current():
            # The event is taken before the feed is read, so that any later change sets it.
            news = job_feed.changed.next()
            if job_feed.is_gone:
                yield event("end", json.dumps({"status": "deleted"}), position)
                return
            # This round uses one version of the job, although the feed may get a later version while rows are sent.
            now = job_feed.job
            async for text in _unseen(feed, job_feed, now, position):
                yield text
            if now.is_over and job_feed.job is now:  # not if the job was retried while the rows were sent
                yield event("end", json.dumps({"status": now.status}), position)
                return
            # A comment keeps proxies from closing the connection, and detects clients that are gone.
            while not await arrived(news, HEARTBEAT_S):
                yield HEARTBEAT


async def _unseen(feed: ChangeFeed, job_feed: JobFeed, now: JobRecord, position: Position) -> AsyncGenerator[str]:
    """Yield the events that the listener has not received yet; a few events are joined to one text for speed."""
    texts = []
    # A new attempt has another run folder, with epochs from 1. The job's result says how the earlier attempt ended.
    if now.attempt != position.attempt:
        position.attempt, position.epoch = now.attempt, 0
    if now.version != position.version:
        position.version = now.version
        texts.append(event("job", job_feed.text, position))
    # Each text is yielded before the next rows are read, so that a slow listener keeps at most two in memory.
    while position.epoch < job_feed.epoch and job_feed.job.attempt == now.attempt:
        new = await feed.rows(job_feed, now, position.epoch)
        # A crash removed rows after a checkpoint: no rows follow this epoch until training has reached it again.
        if not new:
            break
        position.epoch = new.until
        texts.append(event("rows", new.text, position))
        if len(texts) > 1:
            yield "".join(texts)
            texts.clear()
    if job_feed.frame is not None and job_feed.frames != position.frames:
        position.frames = job_feed.frames
        texts.append(event("frame", job_feed.frame, position))
    if texts:
        yield "".join(texts)


async def events_of_owner(
    feed: ChangeFeed, store: Store, owner: str | None, sent: int, is_current: Callable[[], bool] = lambda: True
) -> AsyncGenerator[str]:
    """Yield the events `job` and `deleted` after version `sent` for the jobs of `owner`, or all jobs for None."""
    yield f"{BEGIN}id: {sent}\n\n"
    while not feed.closing and is_current():
        news = feed.changed.next()
        version = feed.version
        new = await to_thread.run_sync(_changes, store, owner, sent) if sent < version else []
        if new:
            sent = new[-1][0]
            yield "".join(event(name, text, number) for number, name, text in new)
            continue
        sent = max(sent, version)
        while not await arrived(news, HEARTBEAT_S):
            yield HEARTBEAT


def _changes(store: Store, owner: str | None, since: int) -> list[tuple[int, str, str]]:
    """Return the version, name and data of the event for each change after version `since`, in order."""
    changes = [(job.version, "job", encoded(job)) for job in store.changes(since, owner)]
    # Deletions beyond a full page of changes wait for the next page, so that the position skips no change.
    most = changes[-1][0] if len(changes) == 1000 else math.inf
    deletions = store.deletions(since, owner)
    gone = [(version, "deleted", json.dumps({"id": job})) for version, job, _ in deletions if version <= most]
    return sorted([*changes, *gone])
