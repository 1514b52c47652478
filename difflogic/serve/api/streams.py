"""Server-sent events: one job's, or those of all jobs of an owner. Every stream can be taken up again where it ended.

The id of a job's events is `EPOCH.VERSION`, what the listener has seen, with restarts `EPOCH.VERSION.ATTEMPT`: of
another attempt all rows come. That of all jobs' is a version of the store. For example `120.57.2`: the rows up to epoch
120 of attempt 2 and version 57 of the job have been sent; a browser that lost the connection gives it back as
Last-Event-ID, and the stream goes on with epoch 121.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from anyio import to_thread

from difflogic.serve.api.broadcast import ChangeFeed, JobFeed, arrived, encoded
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.store import Store

HEARTBEAT_S = 15.0
BEGIN = "retry: 1000\n\n"
"""Where the connection is lost, a browser comes back after so many milliseconds."""
HEARTBEAT = ": still here\n\n"
POSITION = re.compile(r"([0-9]{1,15})\.([0-9]{1,15})(?:\.([0-9]{1,3}))?")


@dataclass
class Position:
    """What a listener has seen of a job: its epoch, its version, its attempt, and how many frames."""

    epoch: int = 0
    version: int = -1
    attempt: int = 0
    frames: int = 0

    @classmethod
    def of(cls, last: str | None, after: int, attempt: int = 0) -> Position:
        """The position that a Last-Event-ID names; without one, after an epoch of an attempt."""
        found = POSITION.fullmatch(last or "")
        return cls(after, attempt=attempt) if found is None else cls(int(found[1]), int(found[2]), int(found[3] or 0))

    def __str__(self) -> str:
        return f"{self.epoch}.{self.version}" + (f".{self.attempt}" if self.attempt else "")


def event(name: str, text: str, position: object) -> str:
    """The text of one event; its data are JSON without line breaks."""
    return f"event: {name}\nid: {position}\ndata: {text}\n\n"


async def of_job(
    feed: ChangeFeed, job: JobRecord, position: Position, is_current: Callable[[], bool] = lambda: True
) -> AsyncGenerator[str]:
    """Events of one job: `job`, `rows` and `frame` as they come, and `end` where nothing comes any more.

    The stream ends where its listener would not be let in again: `is_current` says so.
    """
    yield BEGIN
    async with feed.follow(job) as job_feed:
        while not feed.closing and is_current():
            # Taken before the look at the feed: what changes from here on sets this event.
            news = job_feed.changed.next()
            if job_feed.is_gone:
                yield event("end", json.dumps({"status": "deleted"}), position)
                return
            # One version of the job for this round, although the feed may move on while rows are sent.
            now = job_feed.job
            async for text in _unseen(feed, job_feed, now, position):
                yield text
            if now.is_over and job_feed.job is now:  # not where a retry came while the rows were sent
                yield event("end", json.dumps({"status": now.status}), position)
                return
            # A comment keeps proxies from closing the connection, and shows which clients are gone.
            while not await arrived(news, HEARTBEAT_S):
                yield HEARTBEAT


async def _unseen(feed: ChangeFeed, job_feed: JobFeed, now: JobRecord, position: Position) -> AsyncGenerator[str]:
    """What the listener has not seen; as one text where that is little, which costs least to send."""
    texts = []
    # Another run folder: its epochs are counted from 1 again. The job's result says how the earlier attempt ended.
    if now.attempt != position.attempt:
        position.attempt, position.epoch = now.attempt, 0
    if now.version != position.version:
        position.version = now.version
        texts.append(event("job", job_feed.text, position))
    # Each text is yielded before the next rows are fetched: a slow listener never holds more than two in memory.
    while position.epoch < job_feed.epoch and job_feed.job.attempt == now.attempt:
        new = await feed.rows(job_feed, now, position.epoch)
        # A crash cut the rows back to a checkpoint: nothing follows this epoch until training is there again.
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


def of_owner(
    feed: ChangeFeed, store: Store, owner: str | None, last: str | None, is_current: Callable[[], bool] = lambda: True
) -> AsyncGenerator[str]:
    """Events `job` and `deleted` of every job of an owner (None: of all), from now on or after the version seen last.

    The stream ends as that of a job does.
    """
    # "Now" is taken before the answer begins: the listener lists the jobs after that, so that no change falls between.
    seen = int(last) if last and re.fullmatch("[0-9]{1,15}", last) else feed.version
    return _since(feed, store, owner, seen, is_current)


async def _since(
    feed: ChangeFeed, store: Store, owner: str | None, seen: int, is_current: Callable[[], bool]
) -> AsyncGenerator[str]:
    yield f"{BEGIN}id: {seen}\n\n"
    while not feed.closing and is_current():
        news = feed.changed.next()
        version = feed.version
        new = await to_thread.run_sync(_changes, store, owner, seen) if seen < version else []
        if new:
            seen = new[-1][0]
            yield "".join(event(name, text, number) for number, name, text in new)
            continue
        seen = max(seen, version)
        while not await arrived(news, HEARTBEAT_S):
            yield HEARTBEAT


def _changes(store: Store, owner: str | None, since: int) -> list[tuple[int, str, str]]:
    """Version, event and its data of each change after a version, in the order in which they happened."""
    changed = [(job.version, "job", encoded(job)) for job in store.changes(since, owner)]
    # Deletions beyond a full page of changes wait for the next page, so that the position never skips a change.
    most = changed[-1][0] if len(changed) == 1000 else None
    gone = [
        (version, "deleted", json.dumps({"id": job}))
        for version, job, _ in store.deletions(since, owner)
        if most is None or version <= most
    ]
    return sorted([*changed, *gone])
