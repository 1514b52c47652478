"""The supervisor keeps one worker process alive for each device, and up to LANES for follow-ups while there are any.

    with Supervisor(Path("difflogic-jobs"), ["cpu"]):
        ...                              # workers take jobs
                                         # and here they have saved and handed back what they had

What may go wrong, and who notices:

    a worker ends, crashes or is killed   its slot sees the exit status   expire_worker, then another worker starts
    a worker hangs                        its lease ends unprolonged      it is killed, then the same
    the supervisor itself is killed       workers see their stdin end     they save and hand back their jobs
    supervisor and workers are killed     the locks of their Presence     another supervisor expires them

It loads no engine: whatever goes wrong there goes wrong in a child process.
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
"""Starts a worker, followed by its store and what it is."""
POLL_S = 0.1
HANG_CHECK_S = 0.5
"""Seconds between two looks for workers that hang."""
DEAD_CHECK_S = 2.0
"""Seconds between two looks for workers that are gone together with their supervisors."""
MAX_BACK_OFF_S = 30.0
MOST_SWEEPS = 4
"""Sweeps at once: more of them would only wait for each other's trials."""
LANES = 3
"""Follow-ups at once: a simplification may take an hour, and an export of seconds must not wait behind it."""
OFFER_KEPT_S = 45.0
"""Seconds for which an engine counts as offered after its last worker was seen: one that restarts is soon back."""


class Child(Protocol):
    """A worker that a supervisor has started, and ends by itself when that does."""

    name: str
    device: str

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""

    @property
    def how(self) -> str:
        """The beginning of a sentence that says how it ended."""

    def ask_to_stop(self) -> None:
        """Let it save, hand back its job and end."""

    def kill(self) -> None:
        """End it now, if it has not ended, and wait for that."""

    def close(self) -> None:
        """Let go of one that has ended."""


class ChildProcess:
    """A worker in a process of this machine, which sees its standard input end when this process does."""

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
        """Raises OSError."""
        self.device = device
        self.name = f"{device.replace(':', '-')}-{secrets.token_hex(4)}"
        what = {"name": self.name, "device": device, "engines": [*engines]}
        about = json.dumps({**what, "limits": asdict(limits), "max_memory": max_memory})
        self._process = subprocess.Popen(
            [*command, str(store), about],
            # A pipe that nobody writes to: when this process ends, the worker sees the end of its input.
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
    """A device, and the worker that has it."""

    device: str
    engines: list[str]
    node: str = ""
    """Where the device is; empty for this machine."""
    child: Child | None = None
    failures: int = 0
    """How many workers in a row did not start, or ended badly without a job in their hands: retries get rarer."""
    due: float = 0.0
    """When the next worker may be started, on the monotonic clock."""

    @property
    def is_lane(self) -> bool:
        """Whether it is for jobs that need no device, and has a worker only while there are such."""
        return self.device in (known.FOLLOW_UPS, SWEEPS)

    def back_off(self) -> float:
        """Put the next worker off, by what came of those before; returns the seconds."""
        # The first failure may be an accident: the next worker starts at once. Then 0.5 s, 1 s, 2 s, ... up to 30 s.
        # Above that the power is not computed: a device may be broken for days.
        wait = min(MAX_BACK_OFF_S, 0.5 * 2 ** min(self.failures - 2, 10)) if self.failures > 1 else 0.0
        self.due = time.monotonic() + wait
        return wait


class Supervisor:
    """Workers on the devices of this machine; several supervisors may share a store.

    `devices` are as `devices.parse` gives them. `difflogic.serve.cluster` has one for other machines.
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
        """`max_memory`: bytes of device memory that a job may take. `command` starts a worker, with variables of the
        `environment` beside those of this process. `slots`: what has workers, in place of `devices`.
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
        """Engines, and when a worker for them was last seen, on the monotonic clock."""

    def __enter__(self) -> Supervisor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join()

    def stop(self) -> None:
        """Let `run` end; may be called from anywhere."""
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
        """The devices that are to have workers from the beginning on."""
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
        of = self._store.folder, slot.device, slot.engines, self.limits, self._max_memory
        return ChildProcess(*of, self._command, self.environment)

    def refresh(self) -> None:
        """Look whether devices have come or gone; those of a machine stay."""

    def add(self, *slots: Slot) -> None:
        """Have workers on these devices from now on."""
        self._slots += slots
        # Before its worker is registered an engine counts as offered, so that no job is told that nobody takes it.
        self._offered |= {engine: time.monotonic() for slot in slots for engine in slot.engines}

    def _guarded(self, act: Callable[[], None]) -> None:
        """Act; trouble with the disk must not end the supervision, and is logged once, not ten times a second."""
        try:
            act()
            self._trouble = ""
        except (StoreError, OSError) as error:
            self._is_lost |= isinstance(error, StoreLostError)
            if str(error) != self._trouble:
                log_event("supervisor", logging.ERROR, why=str(error))
            self._trouble = str(error)

    def _reopen(self) -> None:
        """The database was lost: use the one that a server has put in its place, if there is one."""
        # With a look at the folders, so that nobody is given the jobs of an old copy.
        Store.existing(self._store.folder).close()
        self._store.close()
        self._store, self._is_lost = Store.open(self._store.folder, durable=False), False

    def _check_slot(self, slot: Slot) -> None:
        """Start a worker where there is none, and expire one that has ended."""
        if slot.child is None:
            # A worker of follow-ups loads much and works seldom: it is started when one waits.
            if time.monotonic() >= slot.due and (not slot.is_lane or self._lacks_a_lane(slot.device)):
                self._start(slot)
            return
        if (status := slot.child.status) is not None:
            self._expire(slot, slot.child, status, slot.child.how)

    def _lacks_a_lane(self, device: str) -> bool:
        """Whether a follow-up, or a sweep, waits that no worker of ours is free for; one that starts is free soon."""
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
        held = next((each.job for each in self._store.workers() if each.name == child.name), None)
        if held is not None and (words := last_words(self._store.job_folder(held).log)):
            how = f"{how}, and last printed: {words.replace(f'{self._store.folder}/', '')}"
        lost = self._store.expire_worker(child.name, how)
        child.close()
        slot.child = None
        # A worker that had a job is no sign of a broken device: the job counts that try.
        slot.failures = 0 if lost or status == 0 else slot.failures + 1
        level, wait = logging.WARNING if status else logging.INFO, slot.back_off()
        _log_lost(lost)
        log_event("worker ended", level, worker=child.name, why=how, next_in_s=wait)

    def _check_leases(self) -> None:
        now = time.monotonic()
        # A slot whose worker hangs does not see its exit, since there is none: the end of its lease is the only sign.
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
        """Say which jobs no worker takes; one that ended a moment ago counts, for the next one comes."""
        now = time.monotonic()
        self._offered |= dict.fromkeys(self._store.offered_engines(), now)
        self._store.explain_waiting([engine for engine, seen in self._offered.items() if now - seen < OFFER_KEPT_S])

    def _end_if_hung(self, slot: Slot) -> None:
        """Kill a worker whose lease has ended because it sent no heartbeat in time."""
        if (child := slot.child) is None or (job := self._store.overdue_job(child.name)) is None:
            return
        child.kill()
        # Kill first, then queue the job again: between the two nobody may hold it twice.
        self._expire(slot, child, -signal.SIGKILL, f"its worker hung while {job.phase}, and was stopped")

    def _end(self) -> None:
        """Let workers save and hand back their jobs; who does not within `WorkerLimits.stop` is killed."""
        children = [slot.child for slot in self._slots if slot.child is not None]
        for child in children:
            child.ask_to_stop()
        # All are asked before any is waited for: they save at the same time.
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
