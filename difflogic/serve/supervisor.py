"""Keeps a worker alive for each device, and one for follow-ups while there are any: starts it again when it ends, ends
it when it hangs, tells the store.

    with Supervisor(Path("difflogic-jobs"), ["cpu"]):
        ...                              # workers take jobs
                                         # and here they have saved and handed back what they had

It loads no engine: whatever goes wrong there goes wrong in a child process.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

from difflogic.errors import DeviceError, StoreError
from difflogic.serve import devices as known
from difflogic.serve.child import COMMAND, Child, how_it_ended
from difflogic.serve.job_log import last_words
from difflogic.serve.jobs import Job
from difflogic.serve.logs import tell
from difflogic.serve.phases import Limits
from difflogic.serve.store import Store

TURN_S = 0.1
WATCH_S = 0.5
"""Between two looks for hung workers."""
REAP_S = 2.0
"""Between two looks for the jobs of workers whose supervisors are gone, too."""
LONGEST_BACK_OFF_S = 30.0
RETURN_S = 45.0
"""An engine whose workers are gone for longer is no longer offered."""


@dataclass
class _Seat:
    """A device and who works on it."""

    device: str
    engines: list[str]
    child: Child | None = None
    failures: int = 0
    """Workers in a row that ended badly without a job in their hands."""
    due: float = 0.0
    """When the next worker may be started, on the monotonic clock."""


class Supervisor:
    """Of one process; several may share a store. `devices`: as `devices.parse` gives them."""

    def __init__(
        self,
        folder: Path,
        devices: Sequence[str] = (known.AUTO,),
        limits: Limits | None = None,
        max_memory: int | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        """`max_memory`: bytes of device memory that a job may take. `command` starts a worker."""
        self._store = Store.open(folder, durable=False)
        self._devices = list(devices)
        self._limits = limits or Limits()
        self._max_memory = max_memory
        self._command = command
        self._seats: list[_Seat] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self.run, name="supervisor")
        self._watched = self._reaped = 0.0
        self._trouble = ""
        self._offered: dict[str, float] = {}
        """Engines, and when a worker for them was last seen, on the monotonic clock."""

    def __enter__(self) -> Supervisor:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._thread.join()

    def stop(self) -> None:
        """Let `run` end; may be called from anywhere."""
        self._over.set()

    def run(self) -> None:
        """Until `stop`."""
        try:
            self._seats = self._take_seats()
            self._offered = {engine: time.monotonic() for seat in self._seats for engine in seat.engines}
            while not self._over.wait(TURN_S):
                for seat in self._seats:
                    self._safely(partial(self._tend, seat))
                self._look_around()
        finally:
            self._end()
            self._store.close()

    def _take_seats(self) -> list[_Seat]:
        devices = self._devices
        if devices == [known.AUTO]:
            devices = [*self._hardware(), "cpu"]
        seats = [_Seat(device, known.engines_of(device, devices)) for device in devices]
        return [*seats, _Seat(known.FOLLOW_UPS, [])] if seats else []

    def _hardware(self) -> list[str]:
        try:
            return known.hardware_gpus()
        except DeviceError as error:
            tell("no GPU is used", logging.ERROR, why=str(error))
            return []

    def _safely(self, act: Callable[[], None]) -> None:
        """Trouble with the disk must not end the supervision; it is said once."""
        try:
            act()
            self._trouble = ""
        except (StoreError, OSError) as error:
            if str(error) != self._trouble:
                tell("supervisor", logging.ERROR, why=str(error))
            self._trouble = str(error)

    def _tend(self, seat: _Seat) -> None:
        """Start a worker where there is none, bury one that has ended."""
        if seat.child is None:
            if time.monotonic() >= seat.due and (seat.device != known.FOLLOW_UPS or self._store.awaits_follow_up()):
                self._start(seat)
            return
        status = seat.child.status
        if status is not None:
            self._bury(seat, seat.child, status, how_it_ended(status))

    def _start(self, seat: _Seat) -> None:
        seat.child = Child(self._store.folder, seat.device, seat.engines, self._limits, self._max_memory, self._command)
        tell("worker started", worker=seat.child.name, device=seat.device, process=seat.child.pid)

    def _bury(self, seat: _Seat, child: Child, status: int, how: str) -> None:
        held = self._held(child)
        if held is not None and (words := last_words(self._store.place(held.id).log)):
            how = f"{how}, with the last words: {words.replace(f'{self._store.folder}/', '')}"
        lost = self._store.bury(child.name, how)
        child.close()
        seat.child = None
        seat.failures = 0 if lost or status == 0 else seat.failures + 1
        wait = min(LONGEST_BACK_OFF_S, 0.5 * 2 ** (seat.failures - 2)) if seat.failures > 1 else 0.0
        seat.due = time.monotonic() + wait
        _tell(lost)
        tell("worker ended", logging.WARNING if status else logging.INFO, worker=child.name, why=how, next_in_s=wait)

    def _held(self, child: Child) -> Job | None:
        worker = next((each for each in self._store.workers() if each.name == child.name), None)
        return None if worker is None or worker.job is None else self._store.job(worker.job)

    def _look_around(self) -> None:
        now = time.monotonic()
        if now - self._watched >= WATCH_S:
            self._watched = now
            for seat in self._seats:
                self._safely(partial(self._watch, seat))
        if now - self._reaped >= REAP_S:
            self._reaped = now
            self._safely(lambda: _tell(self._store.reap()))
            self._safely(self._explain)

    def _explain(self) -> None:
        """Say which jobs no worker takes; one that ended a moment ago counts, for the next one comes."""
        now = time.monotonic()
        self._offered |= dict.fromkeys(self._store.offered(), now)
        self._store.explain([engine for engine, seen in self._offered.items() if now - seen < RETURN_S])

    def _watch(self, seat: _Seat) -> None:
        """End a worker that gave no sign of life in time."""
        child = seat.child
        job = None if child is None else self._store.overdue(child.name)
        if child is None or job is None:
            return
        child.kill()
        self._bury(seat, child, -signal.SIGKILL, f"its worker hung while {job.phase}, and was ended")

    def _end(self) -> None:
        """Workers save and hand back their jobs; who does not in time is ended."""
        children = [seat.child for seat in self._seats if seat.child is not None]
        for child in children:
            child.ask_to_stop()
        deadline = time.monotonic() + self._limits.stop
        while time.monotonic() < deadline and any(child.status is None for child in children):
            time.sleep(TURN_S)
        for child in children:
            late = child.status is None
            child.kill()
            how = "its worker did not stop in time, and was ended" if late else how_it_ended(child.status or 0)
            self._safely(partial(self._give_up, child, how))
        tell("workers stopped")

    def _give_up(self, child: Child, how: str) -> None:
        _tell(self._store.bury(child.name, how))


def _tell(lost: Sequence[Job]) -> None:
    for job in lost:
        tell("job lost its worker", logging.WARNING, job=job.id, status=job.status, why=job.reason)
