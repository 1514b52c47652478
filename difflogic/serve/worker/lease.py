"""Hold a worker's job under a lease, which heartbeats prolong for as long as the present phase may be silent.

A thread that compiles sends no heartbeat, and neither does one that hangs. So a phase may take `first` seconds when it
is entered for the first time; meanwhile another thread prolongs the lease by `stopped` seconds at a time, so that a
stopped process is noticed. In a warm phase the limit is 20 times the slowest of the last 20 heartbeats, and at least
12 s. An example: epochs of 0.3 s are due within 12 s, and epochs of 3 s within 60 s.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from difflogic.errors import StoreError
from difflogic.serve.store.jobs import JobRecord, LeaseLostError, Wanted
from difflogic.serve.store.store import Store
from difflogic.serve.worker.log import say, trim
from difflogic.system.memory import resident_memory

Phase = Literal["starting", "compiling", "training", "evaluating", "drawing", "finishing", "working"]
"""Phase of a job. starting: loading what an engine needs; compiling: until the first epochs are done; evaluating: and
saving; drawing: the first state frame; finishing: the results' images; working: post-processing."""
HEARTBEAT_S = 0.2
"""Seconds between two writes to the store while only the epoch changes: a write for every epoch would be too many."""
BEATS = 6
"""Number of times the lease is prolonged while it lasts: all but one may come late."""
RECENT = 20
"""Number of heartbeats that set the limit of a warm phase."""
COLD_FACTOR = 1.5
"""Multiple of the longest wait so far that is allowed until RECENT heartbeats have come; that wait had compiling."""
EXIT_LEASE_LOST = 3
"""Exit status of a worker that lost its lease."""


@dataclass(frozen=True)
class WorkerLimits:
    """Time limits of a worker's silence; the first entry of a phase has the most, since it may compile."""

    first: float = 300.0
    """Seconds for starting, compiling, the first evaluation and frame, and the results' images."""
    stopped: float = 30.0
    """Seconds for which all threads of the process may be silent, as while a library is loaded from a slow disk."""
    heartbeat: float = 12.0
    """Minimum limit in seconds between two heartbeats of a warm phase: a hang is noticed a second later."""
    factor: float = 20.0
    """Multiple of the slowest recent heartbeat that is the limit, if that is longer than `heartbeat`."""
    follow_up: float = 3600.0
    """Seconds for a complete post-processing job, which has no checkpoints."""
    stalled: float = 120.0
    """Seconds for which a post-processing job may use no processor time."""
    idle: float = 60.0
    """Seconds without a job after which a post-processing worker ends."""
    stop: float = 60.0
    """Seconds to save and end, when asked to."""


class Lease:
    """Lease on a job. The thread that trains sends the heartbeats, so that a hang of it is noticed."""

    def __init__(self, store: Store, job: JobRecord, number: int, limits: WorkerLimits) -> None:
        self.store, self.job, self.number, self.limits = store, job, number, limits
        self.wanted: Wanted | None = None
        self.watched = False
        self.phase: Phase = "starting"
        self.progress: dict[str, Any] = {}
        """Columns of the job that the next heartbeat writes, or `finish` if none follows."""
        self._warm: dict[Phase, deque[float]] = {}
        """Seconds between the last heartbeats of each warm phase."""
        self._coldest = 0.0
        self._alive = self._reported = time.monotonic()

    def enter(self, phase: Phase, warm: bool = False) -> None:
        """Begin a phase; if it is `warm`, nothing has to be compiled for it."""
        self._measure()
        # The time until now belongs to the phase that ends, and is measured before the new one begins.
        self.phase = phase
        if warm:
            self.warm()
        self._heartbeat(phase=phase)

    def warm(self) -> None:
        """Mark the current phase as warm: from now on the measured times limit its heartbeats."""
        self._warm.setdefault(self.phase, deque(maxlen=RECENT))

    def is_warm(self, phase: Phase) -> bool:
        return phase in self._warm

    def alive(self, **progress: Any) -> None:
        """Record a heartbeat, and send it to the store if the last one was sent HEARTBEAT_S ago."""
        self._measure()
        self.progress |= progress
        # An epoch may take a millisecond: `progress` collects the changes since the last heartbeat.
        if time.monotonic() - self._reported >= HEARTBEAT_S:
            self._heartbeat()

    def report(self, **progress: Any) -> None:
        """Record a heartbeat, and send it to the store at once."""
        self._measure()
        self._heartbeat(**progress)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Prolong the lease from a thread of its own while the present phase is not warm."""
        over = threading.Event()
        thread = threading.Thread(target=self._keep, args=(over,), name="lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _keep(self, over: threading.Event) -> None:
        while not over.wait(self.limits.stopped / BEATS):
            if self.is_warm(self.phase) or time.monotonic() - self._alive >= self.limits.first:
                continue
            try:
                self.store.prolong(self.job.id, self.number, self.limits.stopped)
            except LeaseLostError:  # the thread that trains notices too, unless it has just handed the job back
                break
            except StoreError as error:
                say(str(error))
        self.store.close()

    def _heartbeat(self, **progress: Any) -> None:
        """Send a heartbeat; end the process if the lease is lost, so that it does not disturb the job's next worker."""
        self._reported = time.monotonic()
        self.progress |= progress
        try:
            answer = self.store.heartbeat(self.job.id, self.number, self.duration(), resident_memory(), **self.progress)
        except LeaseLostError as error:
            say(f"{error} This worker drops the job at once.")
            os._exit(EXIT_LEASE_LOST)
        except StoreError as error:  # the next heartbeat may do better; if none does, the lease ends
            say(str(error))
            return
        # Only now: the next heartbeat writes what a failed one did not.
        self.progress.clear()
        self.wanted, self.watched = answer.wanted, answer.watched
        # The log grows with every evaluation.
        trim(self.store.job_folder(self.job.id).log)

    def duration(self) -> float:
        """Return the seconds for which this worker may now be silent: the length of the lease."""
        limits, usual = self.limits, self._warm.get(self.phase)
        if usual is None:
            return limits.stopped
        # An example: compiling took 60 s, and epochs take 0.1 s. After one epoch, which is no measure yet, the limit is
        # 1.5 * 60 = 90 s; after 20 epochs it is the larger of 12 s and 20 * 0.1 s.
        cold = 0.0 if len(usual) == RECENT else COLD_FACTOR * self._coldest
        return max(limits.heartbeat, limits.factor * max(usual, default=0.0), cold)

    def _measure(self) -> None:
        now = time.monotonic()
        usual, seconds = self._warm.get(self.phase), now - self._alive
        if usual is not None:
            usual.append(seconds)
        elif self.phase != "starting":  # no training yet
            self._coldest = max(self._coldest, seconds)
        self._alive = now
