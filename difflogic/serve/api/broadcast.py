"""What changes in the store, passed on to every stream of events: one poll for all of them, one feed for each job.

The feed never pushes data to a listener. It says only that there is more, and the listener, which knows its own
position (the epoch and the version that it saw last), takes what it lacks when it can: rows from the job's file. So a
slow listener holds nobody up: it gets more rows at once and fewer frames.
"""

import asyncio
import json
import logging
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from anyio import to_thread

from difflogic.errors import StoreError
from difflogic.runs import jsonl
from difflogic.runs.journal import JSONL
from difflogic.runs.jsonl import Excerpt
from difflogic.serve.api.telemetry import Telemetry
from difflogic.serve.api.words import told
from difflogic.serve.log import LOGGER, log_event
from difflogic.serve.store.jobs import JobRecord, UnknownJobError
from difflogic.serve.store.store import Store

POLL_S = 0.4
"""Seconds between two polls of the store, and of the state frames, while few listen."""
FEW_LISTENERS = 20
"""With more listeners than these the polls get rarer and the batches larger: serving takes no time from training."""
MAX_POLL_S = 3.0
"""Seconds between two polls, however many listen."""
FRAMES_FOR_S = 15.0
"""Seconds for which a worker makes frames after it was asked for them; longer than ASK_AGAIN_S."""
ASK_AGAIN_S = 4.0
"""Seconds between two requests for state frames, while somebody listens to a job that runs."""
BATCH_ROWS = 500
"""The most rows in one event, unless one epoch of a large population has more."""
CHANGES_PER_POLL = 1000
"""The most changes that one poll reads."""


class Broadcast:
    """Wakes everybody who waits, each of whom then looks for what is new.

    A listener takes `next()` before it looks, and waits for that event after it looked: a change that comes between the
    two has set the event already, so that nothing is missed.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Set the event that everybody waits for, and begin another."""
        event, self._event = self._event, asyncio.Event()
        event.set()

    def next(self) -> asyncio.Event:
        """The event that the next `notify` sets."""
        return self._event


async def arrived(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event; return False if it did not come in so many seconds."""
    with suppress(TimeoutError):
        return await asyncio.wait_for(event.wait(), seconds)
    return False


@dataclass
class JobFeed:
    """What is newest of one job, shared by all who listen to it: its state, how far its rows are, its state frame."""

    job: JobRecord
    text: str
    """The job as JSON."""
    epoch: int
    """The epoch of the newest row."""
    listeners: int = 0
    frame: str | None = None
    frame_mark: tuple[int, int] | None = None
    """Time and inode of the frame's file: a new frame is a new file."""
    frames: int = 0
    """How many frames were read so far; a listener that saw fewer has a new one to send."""
    reading: tuple[tuple[int, int, int], asyncio.Future[Excerpt]] | None = None
    """The rows that were asked for last, by attempt, the epoch before them, and the newest epoch."""
    is_gone: bool = False
    """Whether the job was deleted."""
    changed: Broadcast = field(default_factory=Broadcast)


class ChangeFeed:
    """The task that polls the store while the server runs, and passes changes on to the feeds of jobs."""

    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self._store, self._telemetry = store, telemetry
        self._job_feeds: dict[str, JobFeed] = {}
        self._epochs: dict[str, tuple[int, int]] = {}
        """The attempt and epoch of each job up to which its epochs are counted in the telemetry."""
        self._ended: deque[tuple[str, str | None]] = deque(maxlen=CHANGES_PER_POLL)
        """The jobs whose end is counted, with the time of that."""
        self._began = datetime.fromtimestamp(store.clock(), UTC).isoformat(timespec="seconds")
        self._frames_asked = -ASK_AGAIN_S
        self.streams = Counter[str]()
        """Number of streams by owner; they count themselves."""
        self.version = 0
        self.changed = Broadcast()
        """Notifies of every change of any job."""
        self.closing = False

    async def start(self) -> None:
        """Begin with the store as it is now: what happened before is no news."""
        self.version = await to_thread.run_sync(self._store.version)

    def close(self) -> None:
        """End every stream."""
        self.closing = True
        self.wake()

    def wake(self) -> None:
        """Let every stream see whether it is to end."""
        self.changed.notify()
        for feed in self._job_feeds.values():
            feed.changed.notify()

    @property
    def listeners(self) -> int:
        """Number of all streams."""
        return self.streams.total()

    @property
    def poll_s(self) -> float:
        """Seconds until the next poll: they grow with the number of listeners."""
        return min(MAX_POLL_S, POLL_S * max(1.0, self.listeners / FEW_LISTENERS))

    async def run(self) -> None:
        """Poll until it is cancelled."""
        while True:
            await asyncio.sleep(self.poll_s)
            try:
                await self._poll()
            except (StoreError, OSError) as error:
                log_event("change feed", logging.ERROR, why=str(error))
            except Exception:  # noqa: BLE001  it is told, and whoever listens is not left alone
                LOGGER.exception("change feed")

    async def _poll(self) -> None:
        (jobs, deleted, version), with_frames = await to_thread.run_sync(self._read_store)
        if version != self.version:
            await self._publish(jobs, deleted)
            self.version = version
            self.changed.notify()
        for feed in with_frames:  # whoever arrived of a change above has the frame already
            feed.changed.notify()

    async def _publish(self, jobs: list[JobRecord], deleted: list[tuple[int, str, str]]) -> None:
        for job in jobs:
            self._count(job)
            if (found := self._job_feeds.get(job.id)) is not None:
                await self._advance(found, job, encoded(job))
        for _, identity, _ in deleted:
            self._epochs.pop(identity, None)
            if (found := self._job_feeds.get(identity)) is not None:
                found.is_gone = True
                found.changed.notify()

    def _read_store(self) -> tuple[tuple[list[JobRecord], list[tuple[int, str, str]], int], list[JobFeed]]:
        """What changed in the store, and the feeds that have a new frame; it also asks workers for more frames."""
        running = [feed for feed in list(self._job_feeds.values()) if feed.job.status == "running"]
        now = time.monotonic()
        # One request for all listeners of a job, renewed long before the worker would stop making frames.
        if now - self._frames_asked >= ASK_AGAIN_S:
            self._frames_asked = now
            for feed in running:
                self._store.watch(feed.job.id, FRAMES_FOR_S)
        return self._changed(), [feed for feed in running if self._read_frame(feed)]

    def _changed(self) -> tuple[list[JobRecord], list[tuple[int, str, str]], int]:
        """Jobs changed and deleted since the last look, and the version up to which that is all."""
        version = self._store.version()
        if version == self.version:
            return [], [], version
        # The version is read before the jobs: a change between the two is among them, and counted by `max` below.
        jobs = self._store.changes(self.version, limit=CHANGES_PER_POLL)
        # There may be more: only what was read so far is published, and the next poll goes on after it.
        if len(jobs) == CHANGES_PER_POLL:
            version = jobs[-1].version
        deleted = [each for each in self._store.deletions(self.version) if each[0] <= version]
        return jobs, deleted, max([version, *(job.version for job in jobs)])

    def _count(self, job: JobRecord) -> None:
        """Add to the telemetry the epochs that a job trained since it was last counted, and its end."""
        attempt, before = self._epochs.get(job.id, (job.attempt, job.progress))
        if attempt == job.attempt:
            self._telemetry.epochs.inc(max(0, job.progress - before) * job.asked.population)
        if job.is_over:
            self._epochs.pop(job.id, None)
            # A job that is renamed when it is over changes too.
            if (job.ended or "") >= self._began and (job.id, job.ended) not in self._ended:
                self._ended.append((job.id, job.ended))
                self._telemetry.ended.labels(job.status).inc()
        else:
            self._epochs[job.id] = job.attempt, job.progress

    async def _advance(self, feed: JobFeed, job: JobRecord, text: str) -> None:
        if job.version < feed.job.version:  # a listener that came since has opened the feed with what is newer
            return
        just_began = feed.job.status != "running" and job.status == "running"
        if job.attempt != feed.job.attempt:  # another run folder: its frames begin again
            await to_thread.run_sync(self._read_frame, feed, job)
        last = await to_thread.run_sync(self._last_epoch, job)
        # All at once, after the reading: no listener may find the job at its end, but not yet its rows.
        feed.job, feed.text, feed.epoch = job, text, last
        if just_began:
            await to_thread.run_sync(self._store.watch, job.id, FRAMES_FOR_S)
        feed.changed.notify()

    async def rows(self, feed: JobFeed, job: JobRecord, epoch: int) -> Excerpt:
        """Rows of a job after an epoch, for one event. Who asks for the same at once shares them. Raises OSError."""
        asked, last = (job.attempt, epoch, feed.epoch), feed.reading
        # What failed, or found nothing since a crash had just cut the rows back, is read again.
        if last is None or last[0] != asked or (last[1].done() and (last[1].exception() or not last[1].result())):
            path, epochs = self._store.job_folder(job).run / JSONL, jsonl.epochs_in(BATCH_ROWS, job.asked.population)
            read = to_thread.run_sync(jsonl.after, path, epoch, epochs, job.asked.population)
            feed.reading = last = asked, asyncio.ensure_future(read)
        return await asyncio.shield(last[1])  # whoever leaves leaves it to the others

    def _last_epoch(self, job: JobRecord) -> int:
        return jsonl.last_epoch(self._store.job_folder(job).run / JSONL)

    def _read_frame(self, feed: JobFeed, job: JobRecord | None = None) -> bool:
        """Read the newest state frame of a job, by default as the feed knows it; returns whether it is a new one."""
        path = self._store.job_folder(job or feed.job).frame
        try:
            status = path.stat()
            # Two frames may fall into one tick of the file system's clock, but a frame is always a new file.
            mark = (status.st_mtime_ns, status.st_ino)
            if mark == feed.frame_mark:
                return False
            feed.frame = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return False
        feed.frame_mark = mark
        feed.frames += 1
        return True

    @asynccontextmanager
    async def follow(self, job: JobRecord) -> AsyncIterator[JobFeed]:
        """The feed of a job, shared by all who listen to it at the same time; the last to leave closes it."""
        feed = self._job_feeds.get(job.id) or self._open(job)
        feed.listeners += 1
        try:
            if feed.job.status == "running":
                await to_thread.run_sync(self._store.watch, job.id, FRAMES_FOR_S)
            if feed.frame is None:
                await to_thread.run_sync(self._read_frame, feed)
            yield feed
        finally:
            feed.listeners -= 1
            # Rows and frames of a job are read only while somebody listens. Who comes later reads the file.
            if feed.listeners == 0:
                del self._job_feeds[job.id]

    def _open(self, known: JobRecord) -> JobFeed:
        """A new feed, from the job as it is now.

        The job is read before its rows, and nothing is awaited between: whatever changes after that has a later version
        than the job, so that `_publish` passes it on.
        """
        try:
            job = self._store.job(known.id)
            feed = JobFeed(job, encoded(job), self._last_epoch(job))
        except UnknownJobError:
            feed = JobFeed(known, encoded(known), 0, is_gone=True)
        self._job_feeds[known.id] = feed
        return feed


def encoded(job: JobRecord) -> str:
    """A job as JSON."""
    return json.dumps(told(job), allow_nan=False)
