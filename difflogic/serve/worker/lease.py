"""Extend a worker's lease on its job with heartbeats, each time by the time limit of the current phase.

A thread that compiles sends no heartbeats, just like a thread that hangs. A phase may therefore take `first` seconds
when it is entered for the first time. Meanwhile another thread extends the lease by `stopped` seconds at a time, so
that the lease of a stopped process ends. From then on the phase is warm: its limit is 20 times the longest of the last
20 intervals between heartbeats, at least 12 s. For example, an epoch that usually takes 3 s must end within 60 s.
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
"""Phase of a job. starting: load an engine; compiling: until the first epochs are done; evaluating: evaluate and save;
drawing: draw the first state frame; finishing: draw the images of the results; working: post-processing."""
HEARTBEAT_S = 0.2
"""Minimum seconds between heartbeats to the store while only the epoch changes, since an epoch may take 1 ms."""
BEATS = 6
"""Number of times that the lease is extended within its duration, so that all but one extension may fail."""
RECENT = 20
"""Number of recent heartbeats that determine the time limit of a warm phase."""
COLD_FACTOR = 1.5
"""Minimum time limit before RECENT warm heartbeats, as a multiple of the longest cold interval (compilation)."""
EXIT_LEASE_LOST = 3
"""Exit status of a worker that has lost its lease."""


@dataclass(frozen=True)
class WorkerLimits:
    """Time limits of a worker in seconds; the limit is longest when a phase is first entered and compiles code."""

    first: float = 300.0
    """Maximum seconds for each of: starting, compiling, the first evaluation, the first frame, and result images."""
    stopped: float = 30.0
    """Maximum seconds without an extension of the lease, such as while a library is loaded from a slow disk."""
    heartbeat: float = 12.0
    """Minimum time limit in seconds between heartbeats of a warm phase."""
    factor: float = 20.0
    """Time limit of a warm phase as a multiple of its longest recent heartbeat interval, if it exceeds `heartbeat`."""
    follow_up: float = 3600.0
    """Maximum seconds for a complete post-processing job, which has no checkpoints."""
    stalled: float = 120.0
    """Maximum seconds for which a post-processing job may use no processor time."""
    idle: float = 60.0
    """Seconds without a job after which a post-processing worker ends."""
    stop: float = 60.0
    """Maximum seconds for saving and ending after a request to stop."""


class Lease:
    """Lease on a job, with heartbeats from the training thread, so that the lease ends if this thread hangs."""

    def __init__(self, store: Store, job: JobRecord, number: int, limits: WorkerLimits) -> None:
        self.store, self.job, self.number, self.limits = store, job, number, limits
        self.wanted: Wanted | None = None
        self.watched = False
        self.phase: Phase = "starting"
        self.progress: dict[str, Any] = {}
        """New values of the job's columns, which the next heartbeat stores, or `finish` if no heartbeat follows."""
        self._warm: dict[Phase, deque[float]] = {}
        """Seconds between the last heartbeats of each warm phase."""
        self._coldest = 0.0
        self._alive = self._reported = time.monotonic()

    def enter(self, phase: Phase, warm: bool = False) -> None:
        """Begin a phase, which is `warm` if it requires no compilation."""
        self._measure()
        # The time until now belongs to the old phase: it is measured before the new phase begins.
        self.phase = phase
        if warm:
            self.warm()
        self._heartbeat(phase=phase)

    def warm(self) -> None:
        """Mark the current phase as warm, so that its time limit depends on the measured heartbeats."""
        self._warm.setdefault(self.phase, deque(maxlen=RECENT))

    def is_warm(self, phase: Phase) -> bool:
        return phase in self._warm

    def alive(self, **progress: Any) -> None:
        """Record a heartbeat with `progress`; send it to the store unless one was sent within the last HEARTBEAT_S."""
        self._measure()
        self.progress |= progress
        # An epoch may take only a millisecond, so `progress` collects all changes since the last heartbeat.
        if time.monotonic() - self._reported >= HEARTBEAT_S:
            self._heartbeat()

    def report(self, **progress: Any) -> None:
        """Record a heartbeat with `progress`, and send it to the store immediately."""
        self._measure()
        self._heartbeat(**progress)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Run a thread within the context that extends the lease while the current phase is not warm."""
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
            except LeaseLostError:  # the training thread notices too, unless it has just released the job
                break
            except StoreError as error:
                say(str(error))
        self.store.close()

    def _heartbeat(self, **progress: Any) -> None:
        """Send a heartbeat. End the process if the lease is lost, so that it does not disturb the job's next worker."""
        self._reported = time.monotonic()
        self.progress |= progress
        try:
            answer = self.store.heartbeat(self.job.id, self.number, self.duration(), resident_memory(), **self.progress)
        except LeaseLostError as error:
            say(f"{error} This worker stops the job immediately.")
            os._exit(EXIT_LEASE_LOST)
        except StoreError as error:  # the next heartbeat may succeed; if none does, the lease ends
            say(str(error))
            return
        # Cleared only after a success, so that the next heartbeat repeats the values of a failed one.
        self.progress.clear()
        self.wanted, self.watched = answer.wanted, answer.watched
        # The log grows with every evaluation.
        trim(self.store.job_folder(self.job.id).log)

    def duration(self) -> float:
        """Return the duration of the lease: the maximum seconds until this worker's next heartbeat."""
        limits, usual = self.limits, self._warm.get(self.phase)
        if usual is None:
            return limits.stopped
        # An example: compiling took 60 s, and epochs take 0.1 s. After one epoch the limit is
        # 1.5 * 60 = 90 s; after 20 epochs it is the larger of 12 s and 20 * 0.1 s.
        cold = 0.0 if len(usual) == RECENT else COLD_FACTOR * self._coldest
        return max(limits.heartbeat, limits.factor * max(usual, default=0.0), cold)

    def _measure(self) -> None:
        now = time.monotonic()
        usual, seconds = self._warm.get(self.phase), now - self._alive
        if usual is not None:
            usual.append(seconds)
        elif self.phase != "starting":  # loading an engine says nothing about epochs
            self._coldest = max(self._coldest, seconds)
        self._alive = now
