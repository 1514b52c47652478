"""Keep a worker process alive for each device, and up to LANES for post-processing jobs while there are any.

    with Supervisor(Path("difflogic-jobs"), ["cpu"]):
        ...                              # workers take jobs
                                         # after the block they have saved and handed back their jobs

What may go wrong, how it is noticed, and what follows:

    a worker ends, crashes or is killed   its slot sees the exit status   expire_worker, then another worker starts
    a worker hangs                        its lease ends unprolonged      it is killed, then the same
    the supervisor itself is killed       workers see their stdin end     they save and hand back their jobs
    supervisor and workers are killed     the locks of their Presence     another supervisor expires them

It loads no engine: faults of engines are confined to child processes.
"""

from __future__ import annotations

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
from functools import partial
from pathlib import Path
from typing import Protocol

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
"""Command of a worker; the store's folder and the worker's settings follow."""
POLL_S = 0.1
HANG_CHECK_S = 0.5
"""Seconds between two checks for workers that hang."""
DEAD_CHECK_S = 2.0
"""Seconds between two checks for workers that ended together with their supervisors."""
MAX_BACK_OFF_S = 30.0
MOST_SWEEPS = 4
"""Number of sweeps at once: more of them would only wait for each other's trials."""
LANES = 3
"""Number of post-processing jobs at once: an export of seconds must not wait for an hour of simplification."""
OFFER_KEPT_S = 45.0
"""Seconds for which an engine counts as offered after its last worker was seen: it may be restarting."""


class Child(Protocol):
    """Worker that a supervisor has started, and that ends with it."""

    name: str
    device: str

    @property
    def status(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""

    @property
    def how(self) -> str:
        """Beginning of a sentence about how it ended."""

    def ask_to_stop(self) -> None:
        """Ask it to save, hand back its job and end."""

    def kill(self) -> None:
        """End it now, if it has not ended, and wait for that."""

    def close(self) -> None:
        """Release the resources of a worker that has ended."""


class ChildProcess:
    """Worker in a process of this machine, whose standard input ends with this process."""

    def __init__(
        self,
        store: Path,
        device: str,
        engines: Sequence[str],
        limits: WorkerLimits,
        max_memory: int | None = None,
        command: Sequence[str] = COMMAND,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the worker. Raises OSError."""
        self.device = device
        self.name = f"{device.replace(':', '-')}-{secrets.token_hex(4)}"
        settings = {"name": self.name, "device": device, "engines": [*engines], "max_memory": max_memory}
        self._process = subprocess.Popen(
            [*command, str(store), json.dumps(settings | {"limits": asdict(limits)})],
            # Nothing is written to the pipe: when this process ends, the worker sees the end of its input.
            stdin=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            start_new_session=True,  # Ctrl-C is for the supervisor alone, which lets its workers save
        )

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
    """Device, and the worker that has it."""

    device: str
    engines: list[str]
    node: str = ""
    """Node of a cluster that has the device; empty for this machine."""
    child: Child | None = None
    failures: int = 0
    """Number of workers in a row that did not start, or failed without a job: retries become less frequent."""
    due: float = 0.0
    """Earliest start of the next worker, on the monotonic clock."""

    @property
    def is_lane(self) -> bool:
        """True for jobs without a device, for which a worker runs only while there are any."""
        return self.device in (known.FOLLOW_UPS, SWEEPS)

    def back_off(self) -> float:
        """Delay the next worker by the number of failures, and return the seconds."""
        # The first failure may be an accident: the next worker starts at once. Then 0.5 s, 1 s, 2 s, ... up to 30 s.
        # The exponent is bounded: a device may be broken for days.
        wait = min(MAX_BACK_OFF_S, 0.5 * 2 ** min(self.failures - 2, 10)) if self.failures > 1 else 0.0
        self.due = time.monotonic() + wait
        return wait


class Supervisor:
    """Supervisor of the workers on this machine's devices; several may share a store.

    `difflogic.serve.cluster` has one for other machines.
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
        """Open the store for workers on `devices`, as `devices.parse` returns them, or on `slots` in their place.

        `max_memory`: bytes of device memory for a job. `command` starts a worker, with the variables `environment`
        besides those of this process.
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
        """Time when a worker was last seen for each engine, on the monotonic clock."""

    def __enter__(self) -> Supervisor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join()

    def stop(self) -> None:
        """Ask `run` to end; may be called from any thread."""
        self._over.set()

    def run(self) -> None:
        """Keep the workers alive until `stop` is called."""
        try:
            self.add(*self.open_slots())
            while not self._over.wait(POLL_S):
                self.refresh()
                for slot in self._slots:
                    self._guarded(partial(self._check_slot, slot))
                self._check_leases()
        finally:
            self._end()
            self._store.close()

    def open_slots(self) -> list[Slot]:
        """Return the slots that get workers from the beginning."""
        if self._given is not None:
            return list(self._given)
        trains, warning = known.usable(self._devices)
        if warning is not None:
            log_event("trouble with GPUs", logging.WARNING, why=warning)
        slots = [Slot(device, known.engines_of(device, trains)) for device in trains]
        lanes = [known.FOLLOW_UPS] * LANES + [SWEEPS] * MOST_SWEEPS
        return [*slots, *(Slot(lane, []) for lane in lanes)] if self._devices else []

    def start_worker(self, slot: Slot) -> Child:
        """Start the worker of a device. Raises OSError."""
        settings = slot.device, slot.engines, self.limits, self._max_memory, self._command, self.environment
        return ChildProcess(self._store.folder, *settings)

    def refresh(self) -> None:
        """Update the devices; those of this machine stay the same."""

    def add(self, *slots: Slot) -> None:
        """Start workers on these devices from now on."""
        self._slots += slots
        # An engine counts as offered before its worker is registered, so that no job is reported as waiting for one.
        self._offered |= {engine: time.monotonic() for slot in slots for engine in slot.engines}

    def _guarded(self, act: Callable[[], None]) -> None:
        """Call `act`; a disk error must not end the supervision, and is logged once, not ten times a second."""
        try:
            act()
            self._trouble = ""
        except (StoreError, OSError) as error:
            self._is_lost |= isinstance(error, StoreLostError)
            if str(error) != self._trouble:
                log_event("supervisor", logging.ERROR, why=str(error))
            self._trouble = str(error)

    def _reopen(self) -> None:
        """Replace the lost database by the one that a server has put in its place, if there is one."""
        # It is compared with the folders, so that no jobs of an old copy are run.
        Store.existing(self._store.folder).close()
        self._store.close()
        self._store, self._is_lost = Store.open(self._store.folder, durable=False), False

    def _check_slot(self, slot: Slot) -> None:
        """Start a missing worker, and expire one that has ended."""
        if slot.child is None:
            # A post-processing worker loads much and works seldom: it is started when a job waits.
            if time.monotonic() >= slot.due and (not slot.is_lane or self._lacks_a_lane(slot.device)):
                self._start(slot)
            return
        if (status := slot.child.status) is not None:
            self._expire(slot, slot.child, status, slot.child.how)

    def _lacks_a_lane(self, device: str) -> bool:
        """Return whether a job waits for which none of our workers is free; one that starts counts as free."""
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
            how = f"{how}, and last printed: {line.replace(f'{self._store.folder}/', '')}"
        lost = self._store.expire_worker(child.name, how)
        child.close()
        slot.child = None
        # A worker that had a job does not indicate a broken device: the job counts that try.
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
                self._guarded(partial(self._end_if_hung, slot))
        if now - self._dead_checked >= DEAD_CHECK_S:
            self._dead_checked = now
            if self._is_lost:
                self._guarded(self._reopen)
            self._guarded(lambda: _log_lost(self._store.expire_dead_workers()))
            self._guarded(self._explain_waiting)

    def _explain_waiting(self) -> None:
        """Report which jobs no worker takes; a worker that ended a moment ago counts, since the next one follows."""
        now = time.monotonic()
        self._offered |= dict.fromkeys(self._store.offered_engines(), now)
        self._store.explain_waiting([engine for engine, seen in self._offered.items() if now - seen < OFFER_KEPT_S])

    def _end_if_hung(self, slot: Slot) -> None:
        """Kill a worker whose lease has ended because it sent no heartbeat in time."""
        if (child := slot.child) is None or (job := self._store.overdue_job(child.name)) is None:
            return
        child.kill()
        # Kill first, then queue the job again: no two workers may hold it.
        self._expire(slot, child, -signal.SIGKILL, f"its worker hung while {job.phase}, and was stopped")

    def _end(self) -> None:
        """Let workers save and hand back their jobs; kill those that take longer than `WorkerLimits.stop`."""
        children = [slot.child for slot in self._slots if slot.child is not None]
        for child in children:
            child.ask_to_stop()
        # All have been asked: they save at the same time.
        deadline = time.monotonic() + self.limits.stop
        while time.monotonic() < deadline and any(child.status is None for child in children):
            time.sleep(POLL_S)
        for child in children:
            late = child.status is None
            child.kill()
            how = "its worker did not stop in time, and was killed" if late else child.how
            self._guarded(partial(self._expire_ended, child, how))
        log_event("workers stopped")

    def _expire_ended(self, child: Child, how: str) -> None:
        _log_lost(self._store.expire_worker(child.name, how))


def _log_lost(lost: Sequence[JobRecord]) -> None:
    for job in lost:
        log_event("job lost its worker", logging.WARNING, job=job.id, status=job.status, why=job.reason)
