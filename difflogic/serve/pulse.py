"""What changes, told to everybody who listens: one look at the store for all of them, one tail per job.

A listener has a place of its own, the epoch and the version that it saw last, and is only told that there is more.
It takes what is new when it can: a slow one gets larger pieces and fewer frames, and holds nobody up.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from anyio import to_thread

from difflogic.errors import StoreError
from difflogic.serve import rows
from difflogic.serve.jobs import Job
from difflogic.serve.logs import LOGGER, tell
from difflogic.serve.rows import Rows
from difflogic.serve.store import Store
from difflogic.serve.telemetry import Telemetry

LOOK_S = 0.4
"""Between two looks at the store, and for state frames, while few listen."""
FEW = 20
"""Listeners; more of them wait longer for larger pieces, so that telling them takes no more time from training."""
SLOWEST_LOOK_S = 3.0
WATCH_S = 15.0
"""So long a worker makes frames after it was asked for them."""
WATCH_AGAIN_S = 4.0
"""Between two requests for state frames."""
KEPT = 20
"""Pieces of news that a tail keeps for listeners that are close behind."""
PIECE = 500
"""Rows in one piece, or one epoch's of a large population."""
AT_ONCE = 1000
"""Changes read at one look."""


class Signal:
    """Wakes everybody who waits; each then looks what is new."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def send(self) -> None:
        event, self._event = self._event, asyncio.Event()
        event.set()

    def ticket(self) -> asyncio.Event:
        """To be had before looking what is new, and then waited for: nothing is missed between."""
        return self._event


async def heard(ticket: asyncio.Event, seconds: float) -> bool:
    """False where nothing came in time."""
    try:
        await asyncio.wait_for(ticket.wait(), seconds)
    except TimeoutError:
        return False
    return True


@dataclass(frozen=True)
class Change:
    """A job as it is since a version, or its end."""

    version: int
    owner: str
    event: str
    """`job`, or `deleted`."""
    text: str
    """JSON."""


@dataclass(frozen=True)
class Piece:
    """Rows after an epoch."""

    after: int
    rows: Rows


@dataclass
class Tail:
    """What is newest of one job."""

    job: Job
    text: str
    """The job as JSON."""
    epoch: int
    """Of the newest row."""
    listeners: int = 0
    pieces: deque[Piece] = field(default_factory=lambda: deque(maxlen=KEPT))
    frame: str | None = None
    frame_mark: tuple[int, int] | None = None
    """The file's, by which a new frame is known."""
    frames: int = 0
    """Frames seen so far: the place of a listener among them."""
    is_gone: bool = False
    """The job was deleted."""
    signal: Signal = field(default_factory=Signal)

    def following(self, epoch: int) -> Rows | None:
        """The piece that goes on after an epoch; None where that was too long ago."""
        return next((piece.rows for piece in self.pieces if piece.after == epoch), None)


class Pulse:
    """One task that follows the store while the server runs."""

    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self._store, self._telemetry = store, telemetry
        self._tails: dict[str, Tail] = {}
        self._epochs: dict[str, int] = {}
        self._asked = -WATCH_AGAIN_S
        self.listeners = 0
        """Streams that are told of changes; they count themselves."""
        self.changes: deque[Change] = deque(maxlen=AT_ONCE)
        self.known_from = 0
        """`changes` has every change after this version."""
        self.version = 0
        self.signal = Signal()
        """Sent with every change of any job."""
        self.closing = False

    async def start(self) -> None:
        """From the store as it is now."""
        self.version = self.known_from = await to_thread.run_sync(self._store.version)

    def close(self) -> None:
        """End every stream."""
        self.closing = True
        self.signal.send()
        for tail in self._tails.values():
            tail.signal.send()

    @property
    def look_s(self) -> float:
        """Seconds until the next look: they grow with the listeners."""
        return min(SLOWEST_LOOK_S, LOOK_S * max(1.0, self.listeners / FEW))

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(self.look_s)
            try:
                await self._look()
            except (StoreError, OSError) as error:
                tell("pulse", logging.ERROR, why=str(error))
            except Exception:  # noqa: BLE001  it is told, and whoever listens is not left alone
                LOGGER.exception("pulse")

    async def _look(self) -> None:
        (jobs, gone, version), drawn = await to_thread.run_sync(self._news)
        if version != self.version:
            await self._pass_on(jobs, gone)
            self.version = version
            self.signal.send()
        for tail in drawn:  # whoever heard of a change above has the frame already
            tail.signal.send()

    async def _pass_on(self, jobs: list[Job], gone: list[tuple[int, str, str]]) -> None:
        news = []
        for job in jobs:
            self._count(job)
            text = encoded(job)
            if (found := self._tails.get(job.id)) is not None:
                await self._advance(found, job, text)
            news.append(Change(job.version, job.owner, "job", text))
        for number, identity, owner in gone:
            self._epochs.pop(identity, None)
            if (found := self._tails.get(identity)) is not None:
                found.is_gone = True
                found.signal.send()
            news.append(Change(number, owner, "deleted", json.dumps({"id": identity})))
        for change in sorted(news, key=lambda each: each.version):
            self._keep(change)

    def _news(self) -> tuple[tuple[list[Job], list[tuple[int, str, str]], int], list[Tail]]:
        """What changed in the store, and the tails that have a new frame."""
        running = [tail for tail in list(self._tails.values()) if tail.job.status == "running"]
        now = time.monotonic()
        if now - self._asked >= WATCH_AGAIN_S:
            self._asked = now
            for tail in running:
                self._store.watch(tail.job.id, WATCH_S)
        return self._changed(), [tail for tail in running if self._see_frame(tail)]

    def _changed(self) -> tuple[list[Job], list[tuple[int, str, str]], int]:
        """Jobs changed and deleted since the last look, and the version up to which that is all."""
        version = self._store.version()
        if version == self.version:
            return [], [], version
        jobs = self._store.changes(self.version, limit=AT_ONCE)
        if len(jobs) == AT_ONCE:
            version = jobs[-1].version
        gone = [each for each in self._store.deletions(self.version) if each[0] <= version]
        return jobs, gone, max([version, *(job.version for job in jobs)])

    def _keep(self, change: Change) -> None:
        if len(self.changes) == self.changes.maxlen:
            self.known_from = self.changes[0].version
        self.changes.append(change)

    def _count(self, job: Job) -> None:
        """Epochs trained, by what jobs say of themselves."""
        before = self._epochs.get(job.id, job.epoch)
        self._telemetry.epochs.inc(max(0, job.epoch - before) * job.population)
        if job.is_over:
            self._epochs.pop(job.id, None)
        else:
            self._epochs[job.id] = job.epoch

    async def _advance(self, tail: Tail, job: Job, text: str) -> None:
        while new := await to_thread.run_sync(self.rows, job, tail.epoch):
            tail.pieces.append(Piece(tail.epoch, new))
            tail.epoch = new.until
        just_began = tail.job.status != "running" and job.status == "running"
        tail.job, tail.text = job, text
        if just_began:
            await to_thread.run_sync(self._store.watch, job.id, WATCH_S)
        tail.signal.send()

    def rows(self, job: Job, epoch: int) -> Rows:
        """Rows of a job after an epoch, a piece at most. Raises OSError."""
        return rows.after(self._store.place(job.id).run, epoch, rows.epochs_in(PIECE, job.population), job.population)

    def _see_frame(self, tail: Tail) -> bool:
        """Whether there is a new one."""
        path = self._store.place(tail.job.id).frame
        try:
            status = path.stat()
            mark = (status.st_mtime_ns, status.st_ino)
            if mark == tail.frame_mark:
                return False
            tail.frame = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return False
        tail.frame_mark = mark
        tail.frames += 1
        return True

    @asynccontextmanager
    async def tail(self, job: Job) -> AsyncIterator[Tail]:
        """The tail of a job, shared by all who listen to it at the same time."""
        last = await to_thread.run_sync(rows.last, self._store.place(job.id).run)
        tail = self._tails.setdefault(job.id, Tail(job, encoded(job), last))
        tail.listeners += 1
        try:
            if job.status == "running":
                await to_thread.run_sync(self._store.watch, job.id, WATCH_S)
            yield tail
        finally:
            tail.listeners -= 1
            if tail.listeners == 0:
                del self._tails[job.id]


def encoded(job: Job) -> str:
    """A job as JSON."""
    return json.dumps(job.to_dict(), allow_nan=False)
