"""Keep a worker alive for each device, and start workers on demand for post-processing jobs (LANES) and sweeps.

    with Supervisor(Path("difflogic-jobs"), ["cpu"]):
        ...                              # workers take jobs
                                         # after the block, the workers have saved and released their jobs

Failures, how the supervisor detects them, and how it reacts to them:

    a worker ends, crashes or is killed   its slot sees the exit status   expire_worker, then another worker starts
    a worker hangs                        its lease ends                  it is killed and expired as above
    the supervisor itself is killed       workers see their stdin end     they save and release their jobs
    supervisor and workers are killed     the workers' locks are free     another supervisor expires them

The supervisor loads no engine, so that faults of an engine only end child processes.
"""

import json
import logging
import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from difflogic.errors import StoreError
from difflogic.serve.log import log_event
from difflogic.serve.store.claims import SWEEPS
from difflogic.serve.store.jobs import JobRecord, StoreLostError
from difflogic.serve.store.store import Store
from difflogic.serve.worker import devices as known
from difflogic.serve.worker.lease import WorkerLimits
from difflogic.serve.worker.log import how_it_ended, last_words
from difflogic.system.child import python_command

COMMAND = python_command("-m", "difflogic.serve.worker.worker")
"""Command that starts a worker, without its arguments, the store's folder and the worker's settings."""
POLL_S = 0.1
HANG_CHECK_S = 0.5
"""Seconds between checks for workers that hang."""
DEAD_CHECK_S = 2.0
"""Seconds between checks for workers that ended together with their supervisors."""
MAX_BACK_OFF_S = 30.0
MOST_SWEEPS = 4
"""Maximum number of simultaneous sweeps, since more would only wait for each other's trials."""
LANES = 3
"""Maximum number of simultaneous post-processing jobs, so that a short export does not wait for a long one."""
OFFER_KEPT_S = 45.0
"""Seconds for which an engine counts as offered after its last worker was seen, since the worker may restart."""


class Child(Protocol):
    """Interface of a worker that a supervisor has started, and that ends with its supervisor."""

    name: str

    @property
    def status(self) -> int | None:
        """Exit status of the worker, negative for a signal, or None while the worker runs."""

    @property
    def how(self) -> str:
        """Clause that describes how the worker ended."""

    def ask_to_stop(self) -> None:
        """Ask the worker to save its job, release it and end."""

    def kill(self) -> None:
        """Kill the worker if it is still running, and wait until it has ended."""

    def close(self) -> None:
        """Release the resources of a worker that has ended."""


class ChildProcess:
    """Worker in a child process, whose standard input closes when this process ends."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name, self._process = name, process

    @property
    def status(self) -> int | None:
        return self._process.poll()

    @property
    def how(self) -> str:
        return how_it_ended(self.status or 0)

    def ask_to_stop(self) -> None:
        if self.status is None:
            self._process.terminate()

    def kill(self) -> None:
        if self.status is None:
            self._process.kill()
        self._process.wait()
        self.close()

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()


@dataclass
class Slot:
    """Place for one worker on a device; the supervisor replaces a worker that has ended."""

    device: str
    engines: list[str]
    node: str = ""
    """Id of the cluster node with the device, or empty for this machine."""
    child: Child | None = None
    failures: int = 0
    """Number of consecutive workers that did not start, or failed without a job."""
    due: float = 0.0
    """Earliest start time of the next worker, on the monotonic clock."""

    def back_off(self) -> float:
        """Set the start time of the next worker, later after each failure, and return the delay in seconds."""
        # The first failure may be an accident, so the next worker starts at once. Then 0.5 s, 1 s, 2 s, ..., 30 s.
        # The exponent is bounded, since a device that is broken for days causes thousands of failures.
        wait = min(MAX_BACK_OFF_S, 0.5 * 2 ** min(self.failures - 2, 10)) if self.failures > 1 else 0.0
        self.due = time.monotonic() + wait
        return wait


class Supervisor:
    """Supervisor of the workers on this machine's devices. Several supervisors may share a store.

    The subclass in `difflogic.serve.cluster` is for the machines of a cluster.
    """

    def __init__(
        self,
        folder: Path,
        devices: Sequence[str] = (known.AUTO,),
        limits: WorkerLimits | None = None,
        max_memory: int | None = None,
        command: Sequence[str] = COMMAND,
        environment: Mapping[str, str] | None = None,
        slots: Sequence[Slot] | None = None,
    ) -> None:
        """Open the store for workers on `devices` (the result of `devices.parse`), or for `slots` if these are given.

        `max_memory` is the maximum device memory of a job in bytes. `command` starts a worker, with the variables in
        `environment` in addition to the variables of this process.
        """
        self._store = Store.open(folder, durable=False)
        self._devices = list(devices)
        self.limits = limits or WorkerLimits()
        self._max_memory = max_memory
        self._command, self.environment = command, environment
        self._slots: list[Slot] = []
        self._given = slots
        self._over = threading.Event()
        self._thread = threading.Thread(target=self.run, name="supervisor")
        self._hangs_checked = self._dead_checked = 0.0
        self._trouble = ""
        self._is_lost = False
        self._offered: dict[str, float] = {}
        """Mapping from an engine to the time when one of its workers was last seen, on the monotonic clock."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join()

    def stop(self) -> None:
        """Ask `run` to end. Any thread may call this method."""
        self._over.set()

    def run(self) -> None:
        """Keep the workers alive until `stop` is called."""
        try:
            self.add(*self.open_slots())
            while not self._over.wait(POLL_S):
                self.refresh()
                for slot in self._slots:
                    self._guarded(self._check_slot, slot)
                self._check_leases()
        finally:
            self._end()
            self._store.close()

    def open_slots(self) -> list[Slot]:
        """Return the slots whose workers start with the supervisor."""
        if self._given is not None:
            return list(self._given)
        trains, warning = known.usable(self._devices)
        if warning is not None:
            log_event("trouble with GPUs", logging.WARNING, why=warning)
        slots = [Slot(device, known.engines_of(device, trains)) for device in trains]
        lanes = [known.FOLLOW_UPS] * LANES + [SWEEPS] * MOST_SWEEPS
        return [*slots, *(Slot(lane, []) for lane in lanes)] if self._devices else []

    def start_worker(self, slot: Slot) -> Child:
        """Start a worker for the device of `slot`. Raises OSError."""
        name = f"{slot.device.replace(':', '-')}-{secrets.token_hex(4)}"
        settings = {"name": name, "device": slot.device, "engines": slot.engines, "max_memory": self._max_memory}
        process = subprocess.Popen(
            [*self._command, str(self._store.folder), json.dumps(settings | {"limits": asdict(self.limits)})],
            # Nothing is written to the pipe: when this process ends, the worker sees the end of its input.
            stdin=subprocess.PIPE,
            env={**os.environ, **(self.environment or {})},
            start_new_session=True,  # only the supervisor receives Ctrl-C, and lets its workers save
        )
        return ChildProcess(name, process)

    def refresh(self) -> None:
        """Do nothing, since the devices of a single machine do not change; subclasses update the slots."""

    def add(self, *slots: Slot) -> None:
        """Add slots, for which workers are started from now on."""
        self._slots += slots
        # An engine counts as offered before its worker is registered, so that no job is reported to lack its engine.
        self._offered |= {engine: time.monotonic() for slot in slots for engine in slot.engines}

    def _guarded(self, act: Callable[..., None], *arguments: Any) -> None:
        """Call `act`; log a store or disk error once, not ten times a second, and continue."""
        try:
            act(*arguments)
            self._trouble = ""
        except (StoreError, OSError) as error:
            self._is_lost |= isinstance(error, StoreLostError)
            if str(error) != self._trouble:
                log_event("supervisor", logging.ERROR, why=str(error))
            self._trouble = str(error)

    def _reopen(self) -> None:
        """Open the database that has replaced a lost one. Raises the errors of `Store.existing`."""
        # Opening compares the database with the folders, so that no jobs of an old copy are run.
        Store.existing(self._store.folder).close()
        self._store.close()
        self._store, self._is_lost = Store.open(self._store.folder, durable=False), False

    def _check_slot(self, slot: Slot) -> None:
        """Start the worker of a slot if it is missing, and expire a worker that has ended."""
        if slot.child is None:
            # Workers for post-processing and sweeps use much memory and are rarely busy, so they start on demand.
            is_lane = slot.device in (known.FOLLOW_UPS, SWEEPS)
            if time.monotonic() >= slot.due and (not is_lane or self._lacks_a_lane(slot.device)):
                self._start(slot)
            return
        if (status := slot.child.status) is not None:
            self._expire(slot, slot.child, status, slot.child.how)

    def _lacks_a_lane(self, device: str) -> bool:
        """Return whether a job is queued for `device` while all of this process's workers for it are busy."""
        if not self._store.awaits(device):
            return False
        busy = {worker.name for worker in self._store.workers() if worker.job is not None}
        lanes = [slot.child for slot in self._slots if slot.device == device and slot.child is not None]
        return all(child.name in busy for child in lanes)

    def _start(self, slot: Slot) -> None:
        try:
            slot.child = self.start_worker(slot)
            log_event("worker started", worker=slot.child.name, device=slot.device)
        except OSError as error:
            slot.failures += 1
            why = {"why": str(error), "next_in_s": slot.back_off()}
            log_event("worker not started", logging.ERROR, device=slot.device, **why)

    def _expire(self, slot: Slot, child: Child, status: int, how: str) -> None:
        # The log must be read before the job is queued again: the next worker writes into the same file.
        job = next((worker.job for worker in self._store.workers() if worker.name == child.name), None)
        if job is not None and (line := last_words(self._store.job_folder(job).log)):
            how = f"{how}, and the job's log ends with: {line.replace(f'{self._store.folder}/', '')}"
        lost = self._store.expire_worker(child.name, how)
        child.close()
        slot.child = None
        # The end of a worker with a job does not indicate a broken device: it counts as a try of the job.
        slot.failures = 0 if lost or status == 0 else slot.failures + 1
        level, wait = logging.WARNING if status else logging.INFO, slot.back_off()
        _log_lost(lost)
        log_event("worker ended", level, worker=child.name, why=how, next_in_s=wait)

    def _check_leases(self) -> None:
        now = time.monotonic()
        # A worker that hangs does not exit: the end of its lease is the only sign.
        if now - self._hangs_checked >= HANG_CHECK_S:
            self._hangs_checked = now
            for slot in self._slots:
                self._guarded(self._end_if_hung, slot)
        if now - self._dead_checked >= DEAD_CHECK_S:
            self._dead_checked = now
            if self._is_lost:
                self._guarded(self._reopen)
            self._guarded(lambda: _log_lost(self._store.expire_dead_workers()))
            self._guarded(self._explain_waiting)

    def _explain_waiting(self) -> None:
        """Store why jobs are not taken; workers that have just ended still count, since they will be replaced."""
        now = time.monotonic()
        self._offered |= dict.fromkeys(self._store.offered_engines(), now)
        self._store.explain_waiting([engine for engine, seen in self._offered.items() if now - seen < OFFER_KEPT_S])

    def _end_if_hung(self, slot: Slot) -> None:
        """Kill the worker of a slot if its lease has ended because it sent no heartbeat in time."""
        if (child := slot.child) is None or (job := self._store.overdue_job(child.name)) is None:
            return
        child.kill()
        # The worker is killed before the job is queued again, so that two workers never run the same job.
        self._expire(slot, child, -signal.SIGKILL, f"its worker hung while {job.phase}, and was stopped")

    def _end(self) -> None:
        """Let all workers save and release their jobs; kill those that take longer than `WorkerLimits.stop` seconds."""
        children = [slot.child for slot in self._slots if slot.child is not None]
        for child in children:
            child.ask_to_stop()
        # All workers were asked before this loop, so that they save in parallel.
        deadline = time.monotonic() + self.limits.stop
        while time.monotonic() < deadline and any(child.status is None for child in children):
            time.sleep(POLL_S)
        for child in children:
            late = child.status is None
            child.kill()
            how = "its worker did not stop in time, and was killed" if late else child.how
            self._guarded(self._expire_ended, child, how)
        log_event("workers stopped")

    def _expire_ended(self, child: Child, how: str) -> None:
        _log_lost(self._store.expire_worker(child.name, how))


def _log_lost(lost: Sequence[JobRecord]) -> None:
    for job in lost:
        log_event("job lost its worker", logging.WARNING, job=job.id, status=job.status, why=job.reason)
