"""Server-sent events: one job's, or those of all jobs of an owner. Every stream can be taken up again where it ended.

The id of a job's events is `EPOCH.VERSION`, what the listener has seen; that of all jobs' is a version of the store.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from anyio import to_thread

from difflogic.serve.jobs import Job
from difflogic.serve.pulse import Change, Pulse, Tail, encoded, heard
from difflogic.serve.store import Store

HEARTBEAT_S = 15.0
BEGIN = "retry: 1000\n\n"
"""Where the connection is lost, a browser comes back after so many milliseconds."""
HEARTBEAT = ": still here\n\n"
PLACE = re.compile(r"([0-9]{1,15})\.([0-9]{1,15})")


@dataclass
class Place:
    """What a listener has seen of a job."""

    epoch: int = 0
    version: int = -1
    frames: int = 0

    @classmethod
    def of(cls, last: str | None, after: int) -> Place:
        """By the Last-Event-ID, else from an epoch on."""
        found = PLACE.fullmatch(last or "")
        return cls(after) if found is None else cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.epoch}.{self.version}"


def event(name: str, text: str, place: object) -> str:
    """One event; JSON has no line breaks."""
    return f"event: {name}\nid: {place}\ndata: {text}\n\n"


async def of_job(pulse: Pulse, job: Job, place: Place) -> AsyncGenerator[str]:
    """`job`, `rows` and `frame` as they come, and `end` where nothing comes any more."""
    yield BEGIN
    async with pulse.tail(job) as tail:
        while not pulse.closing:
            ticket = tail.signal.ticket()
            if tail.is_gone:
                yield event("end", json.dumps({"status": "deleted"}), place)
                return
            now = tail.job
            async for text in _news(pulse, tail, now, place):
                yield text
            if now.is_over and tail.job is now:
                yield event("end", json.dumps({"status": now.status}), place)
                return
            while not await heard(ticket, HEARTBEAT_S):
                yield HEARTBEAT


async def _news(pulse: Pulse, tail: Tail, now: Job, place: Place) -> AsyncGenerator[str]:
    """What the listener has not seen; as one text where that is little, which costs least to send."""
    texts = []
    if now.version != place.version:
        place.version = now.version
        texts.append(event("job", tail.text, place))
    while place.epoch < tail.epoch:
        new = tail.following(place.epoch)
        if new is None:
            new = await to_thread.run_sync(pulse.rows, now, place.epoch)
        if not new:
            break
        place.epoch = new.until
        texts.append(event("rows", new.text, place))
        if len(texts) > 1:
            yield "".join(texts)
            texts.clear()
    if tail.frame is not None and tail.frames != place.frames:
        place.frames = tail.frames
        texts.append(event("frame", tail.frame, place))
    if texts:
        yield "".join(texts)


async def of_owner(pulse: Pulse, store: Store, owner: str, last: str | None) -> AsyncGenerator[str]:
    """`job` and `deleted` of every job of an owner, from now or from the version seen last on."""
    seen = int(last) if last is not None and re.fullmatch("[0-9]{1,15}", last) else pulse.version
    yield f"{BEGIN}id: {seen}\n\n"
    while not pulse.closing:
        ticket = pulse.signal.ticket()
        version = pulse.version
        if seen < pulse.known_from:
            new = await to_thread.run_sync(_older, store, owner, seen)
            seen = max([seen, *(each.version for each in new)]) if new else version
        else:
            new = [each for each in pulse.changes if each.version > seen and each.owner == owner]
            seen = version
        if new:
            yield "".join(event(each.event, each.text, each.version) for each in new)
            continue
        while not await heard(ticket, HEARTBEAT_S):
            yield HEARTBEAT


def _older(store: Store, owner: str, since: int) -> list[Change]:
    """Changes that are too long ago to be kept in memory."""
    changed = [Change(job.version, owner, "job", encoded(job)) for job in store.changes(since, owner)]
    most = changed[-1].version if len(changed) == 1000 else None
    gone = [
        Change(version, owner, "deleted", json.dumps({"id": job}))
        for version, job, _ in store.deletions(since, owner)
        if most is None or version <= most
    ]
    return sorted([*changed, *gone], key=lambda each: each.version)
