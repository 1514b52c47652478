"""Notify event streams of changes in the store, with one poll for all streams and one feed per job.

A feed only notifies its listeners, and never pushes data to them. Each listener stores its position (the last epoch
and version) and reads new rows from the job's file. A slow listener therefore does not delay other listeners, but gets
more rows per event and fewer state frames (see `worker.observer`).
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
from difflogic.serve.api.words import reply_of
from difflogic.serve.log import LOGGER, log_event
from difflogic.serve.store.jobs import JobRecord, UnknownJobError
from difflogic.serve.store.store import Store

POLL_S = 0.4
"""Seconds between polls of the store and of the state frames, for up to FEW_LISTENERS listeners."""
FEW_LISTENERS = 20
"""Number of listeners above which the time between polls grows, since serving must not slow down training."""
MAX_POLL_S = 3.0
"""Maximum seconds between polls."""
FRAMES_FOR_S = 15.0
"""Seconds for which a worker writes state frames after a request, more than ASK_AGAIN_S."""
ASK_AGAIN_S = 4.0
"""Seconds between requests for state frames while a running job has listeners."""
BATCH_ROWS = 500
"""Maximum number of rows per event, unless a single epoch of a large population has more."""
CHANGES_PER_POLL = 1000
"""Maximum number of changes read per poll."""


class Broadcast:
    """Notifier that wakes all listeners, which then read the changes.

    A listener calls `next()` for an event, reads, and then waits for this event. A change during the read sets the
    event, so that the listener does not miss the change.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Set the event that all listeners are waiting for, and create the next event."""
        event, self._event = self._event, asyncio.Event()
        event.set()

    def next(self) -> asyncio.Event:
        """Return the event that the next call of `notify` sets."""
        return self._event


async def arrived(event: asyncio.Event, seconds: float) -> bool:
    """Wait at most `seconds` for `event`, and return whether it is set."""
    with suppress(TimeoutError):
        return await asyncio.wait_for(event.wait(), seconds)
    return False


@dataclass
class JobFeed:
    """Latest record, epoch and state frame of a job, shared by all of the job's listeners."""

    job: JobRecord
    text: str
    """Record of the job as JSON."""
    epoch: int
    """Epoch of the newest row in the metrics."""
    listeners: int = 0
    frame: str | None = None
    frame_mark: tuple[int, int] | None = None
    """Modification time and inode of the frame's file, which identify the frame."""
    frames: int = 0
    """Number of frames read so far; a listener with a smaller number has not sent the newest frame yet."""
    reading: tuple[tuple[int, int, int], asyncio.Future[Excerpt]] | None = None
    """Latest read of rows: ((attempt, epoch before the rows, newest epoch), future with the rows)."""
    is_gone: bool = False
    """True if the job was deleted."""
    changed: Broadcast = field(default_factory=Broadcast)


class ChangeFeed:
    """Task that polls the store while the server runs, and notifies the feeds of changed jobs."""

    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self._store, self._telemetry = store, telemetry
        self._job_feeds: dict[str, JobFeed] = {}
        self._epochs: dict[str, tuple[int, int]] = {}
        """Attempt and epoch up to which the telemetry has counted a job's epochs, by job id."""
        self._ended: deque[tuple[str, str | None]] = deque(maxlen=CHANGES_PER_POLL)
        """Ids and end times of the jobs whose end the telemetry has counted."""
        self._began = datetime.fromtimestamp(store.clock(), UTC).isoformat(timespec="seconds")
        self._frames_asked = -ASK_AGAIN_S
        self.streams = Counter[str]()
        """Number of open streams per owner, updated by each stream."""
        self.version = 0
        self.changed = Broadcast()
        """Notifier for every change of any job."""
        self.closing = False

    async def start(self) -> None:
        """Read the current version of the store, after which changes are reported."""
        self.version = await to_thread.run_sync(self._store.version)

    def close(self) -> None:
        """End all streams."""
        self.closing = True
        self.wake()

    def wake(self) -> None:
        """Wake all streams, which then check whether they have to end."""
        self.changed.notify()
        for feed in self._job_feeds.values():
            feed.changed.notify()

    @property
    def listeners(self) -> int:
        """Number of open streams over all owners."""
        return self.streams.total()

    @property
    def poll_s(self) -> float:
        """Seconds until the next poll, which increase with the number of listeners."""
        return min(MAX_POLL_S, POLL_S * max(1.0, self.listeners / FEW_LISTENERS))

    async def run(self) -> None:
        """Poll the store until this task is cancelled."""
        while True:
            await asyncio.sleep(self.poll_s)
            try:
                await self._poll()
            except (StoreError, OSError) as error:
                log_event("change feed", logging.ERROR, why=str(error))
            except Exception:  # noqa: BLE001  it is logged, and the next poll may succeed
                LOGGER.exception("change feed")

    async def _poll(self) -> None:
        (jobs, deleted, version), with_frames = await to_thread.run_sync(self._read_store)
        if version != self.version:
            await self._publish(jobs, deleted)
            self.version = version
            self.changed.notify()
        for feed in with_frames:  # a listener that was woken above has the frame already
            feed.changed.notify()

    async def _publish(self, jobs: list[JobRecord], deleted: list[tuple[int, str, str]]) -> None:
        for job in jobs:
            self._count(job)
            if (feed := self._job_feeds.get(job.id)) is not None:
                await self._advance(feed, job, encoded(job))
        for _, identity, _ in deleted:
            self._epochs.pop(identity, None)
            if (feed := self._job_feeds.get(identity)) is not None:
                feed.is_gone = True
                feed.changed.notify()

    def _read_store(self) -> tuple[tuple[list[JobRecord], list[tuple[int, str, str]], int], list[JobFeed]]:
        """Return the result of `_changed`, and the feeds with a new frame; also ask workers for further frames."""
        running = [feed for feed in list(self._job_feeds.values()) if feed.job.status == "running"]
        now = time.monotonic()
        # One request serves all listeners of a job. It is renewed long before the worker stops writing frames.
        if now - self._frames_asked >= ASK_AGAIN_S:
            self._frames_asked = now
            for feed in running:
                self._store.watch(feed.job.id, FRAMES_FOR_S)
        return self._changed(), [feed for feed in running if self._read_frame(feed)]

    def _changed(self) -> tuple[list[JobRecord], list[tuple[int, str, str]], int]:
        """Return the jobs changed and deleted since the last poll, and the version up to which both are complete."""
        version = self._store.version()
        if version == self.version:
            return [], [], version
        # The version is read before the jobs: `max` below covers a change between the two reads.
        jobs = self._store.changes(self.version, limit=CHANGES_PER_POLL)
        # The next poll reads the remaining changes.
        if len(jobs) == CHANGES_PER_POLL:
            version = jobs[-1].version
        deleted = [deletion for deletion in self._store.deletions(self.version) if deletion[0] <= version]
        return jobs, deleted, max([version, *(job.version for job in jobs)])

    def _count(self, job: JobRecord) -> None:
        """Count a job's new epochs, and its end, in the telemetry."""
        attempt, before = self._epochs.get(job.id, (job.attempt, job.progress))
        if attempt == job.attempt:
            self._telemetry.epochs.inc(max(0, job.progress - before) * job.asked.population)
        if job.is_over:
            self._epochs.pop(job.id, None)
            # Renaming also changes a job that is over: its end is counted only once.
            if (job.ended or "") >= self._began and (job.id, job.ended) not in self._ended:
                self._ended.append((job.id, job.ended))
                self._telemetry.ended.labels(job.status).inc()
        else:
            self._epochs[job.id] = job.attempt, job.progress

    async def _advance(self, feed: JobFeed, job: JobRecord, text: str) -> None:
        if job.version < feed.job.version:  # a new listener has opened the feed with a later version
            return
        just_began = feed.job.status != "running" and job.status == "running"
        if job.attempt != feed.job.attempt:  # a new attempt has another run folder, with other frames
            await to_thread.run_sync(self._read_frame, feed, job)
        last = await to_thread.run_sync(self._last_epoch, job)
        # All three are set together, after the epoch is read, so that no listener sees a job's end before its rows.
        feed.job, feed.text, feed.epoch = job, text, last
        if just_began:
            await to_thread.run_sync(self._store.watch, job.id, FRAMES_FOR_S)
        feed.changed.notify()

    async def rows(self, feed: JobFeed, job: JobRecord, epoch: int) -> Excerpt:
        """Return the rows of a job after `epoch` for one event; equal requests share one read. Raises OSError."""
        key, last = (job.attempt, epoch, feed.epoch), feed.reading
        # Failed and empty reads are repeated: a crash may have removed the rows.
        if last is None or last[0] != key or (last[1].done() and (last[1].exception() or not last[1].result())):
            path, epochs = self._store.job_folder(job).run / JSONL, jsonl.epochs_in(BATCH_ROWS, job.asked.population)
            read = to_thread.run_sync(jsonl.after, path, epoch, epochs, job.asked.population)
            feed.reading = last = key, asyncio.ensure_future(read)
        return await asyncio.shield(last[1])  # other listeners may wait for the same read

    def _last_epoch(self, job: JobRecord) -> int:
        return jsonl.last_epoch(self._store.job_folder(job).run / JSONL)

    def _read_frame(self, feed: JobFeed, job: JobRecord | None = None) -> bool:
        """Read the newest state frame of `job` (default: the feed's job), and return whether the frame is new."""
        path = self._store.job_folder(job or feed.job).frame
        try:
            status = path.stat()
            # Two frames may have the same modification time, but each is a new file with another inode.
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
        """Yield the feed that all listeners of a job share; the last listener to leave removes the feed."""
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
            # Rows and frames of a job are read only while it has listeners. Later listeners read the file.
            if feed.listeners == 0:
                del self._job_feeds[job.id]

    def _open(self, earlier: JobRecord) -> JobFeed:
        """Return a new feed with the current state of a job.

        The job is read before its rows, without an `await` in between. Any later change has a higher version than the
        job, and `_publish` notifies about it.
        """
        try:
            job = self._store.job(earlier.id)
            feed = JobFeed(job, encoded(job), self._last_epoch(job))
        except UnknownJobError:
            feed = JobFeed(earlier, encoded(earlier), 0, is_gone=True)
        self._job_feeds[earlier.id] = feed
        return feed


def encoded(job: JobRecord) -> str:
    """Return the result of `reply_of`, a job with its description, as JSON text."""
    return json.dumps(reply_of(job), allow_nan=False)
