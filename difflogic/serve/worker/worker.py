"""A worker: one process for one device, that takes a training, does it, and takes the next.

python -m difflogic.serve.worker STORE --name NAME --device cpu --engines auto,cpu

Without a device, as `follow-ups`, it does simplify, export and evaluate, and lets trainings go first.

It lives as long as its standard input is open: whoever started it holds the other end. SIGTERM, or that end closed,
lets it save, hand back its job and end.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

from difflogic.errors import DeviceError, DifflogicError, LimitError, RunFolderError
from difflogic.memory import resident_memory
from difflogic.serve.devices import FOLLOW_UPS
from difflogic.serve.errand import Errand
from difflogic.serve.job_log import last_words, logged_to, say
from difflogic.serve.jobs import Job, LeaseLostError
from difflogic.serve.lease import LOST, Lease
from difflogic.serve.phases import Limits
from difflogic.serve.presence import Presence
from difflogic.serve.store import Store

if TYPE_CHECKING:
    from difflogic.train.loop import Run
    from difflogic.train.placement import Placement

IDLE_S = 0.3
"""Between two looks for a job."""
SEEN_S = 5.0
ROOM = 16 << 20
"""Bytes that must be free before a job is taken."""
PULSE_S = 0.5
Ending = Literal["done", "failed"]
NICE = 10
"""Of a worker that does follow-ups."""
BROKEN = 4
"""Exit status of a worker whose device cannot be used."""


class Worker:
    """Runs in the main thread of its process, which hears the signals."""

    def __init__(self, store: Store, name: str, device: str, engines: list[str], limits: Limits, memory: int | None):
        self.store, self.name, self.device, self.engines = store, name, device, engines
        self.limits, self.max_memory = limits, memory
        self.stopping = False
        self._room = True
        self._placements: dict[str, Placement] = {}

    def run(self) -> None:
        """Jobs until it is told to stop; follow-ups until there are none."""
        signal.signal(signal.SIGTERM, self._stop)
        presence = Presence(self.store.folder, self.name)
        try:
            about = "simplify, export and evaluate" if self.device == FOLLOW_UPS else self.device
            self.store.enter(self.name, self.device, about, os.getpid(), self.engines)
            seen = self._worked = time.monotonic()
            while not self.stopping and not self._has_rested():
                if self._has_room() and (claimed := self._claim()) is not None:
                    self._do(*claimed)
                    self._worked = time.monotonic()
                elif time.monotonic() - seen > SEEN_S:
                    self.store.see(self.name, resident_memory())
                    seen = time.monotonic()
                else:
                    time.sleep(IDLE_S)
            self.store.leave(self.name)
        finally:
            presence.close()

    def _has_rested(self) -> bool:
        return self.device == FOLLOW_UPS and time.monotonic() - self._worked > self.limits.rest

    def _claim(self) -> tuple[Job, int] | None:
        return self.store.claim(self.name, self.device, self.engines, self.limits.first)

    def _has_room(self) -> bool:
        """False while the disk is full: every job that is taken then would fail, one after another."""
        had, self._room = self._room, shutil.disk_usage(self.store.folder).free >= ROOM
        if had and not self._room:
            say(f"worker {self.name} takes no job: less than {ROOM >> 20} MiB are free in {self.store.folder}")
        return self._room

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True

    def _do(self, job: Job, number: int) -> None:
        lease = Lease(self.store, job, number, self.limits)
        with logged_to(self.store.place(job.id).log):
            say(f"{job.kind} on {self.device}, try {job.attempts + 1}")
            try:
                self._train(lease) if job.kind == "train" else self._follow(lease)
            except LeaseLostError as error:
                say(str(error))
                os._exit(LOST)

    # training -----------------------------------------------------------------------------------------

    def _train(self, lease: Lease) -> None:
        from difflogic.serve.training import train
        from difflogic.serve.watch import Watch

        job = lease.job
        try:
            placement = self._placement(job.engine)
        except DeviceError as error:
            lease.store.fall(job.id, lease.number, _clause(error))
            say(f"{error} This worker ends.")
            sys.exit(BROKEN)
        watch = Watch(lease, placement.engine, lambda: self.stopping)
        try:
            run = train(job, self.store.place(job.id).run, placement, watch)
        except (RunFolderError, OSError) as error:
            self._fall(lease, _disk(error))
        except LimitError as error:
            self._end(lease, "failed", str(error))
        except DeviceError as error:
            self._fall(lease, _clause(error))
        except (DifflogicError, MemoryError) as error:
            self._end(lease, "failed", str(error) or "There was not enough memory.")
        else:
            self._leave(lease, run)

    def _placement(self, engine: str) -> Placement:
        from difflogic.train.placement import place

        selector = engine if engine in ("cpu", "reference") else self.device
        if selector not in self._placements:
            placement = place(selector, trusted=True)
            limited = placement.limited(self.max_memory) if self.device != "cpu" else placement
            self._placements[selector] = limited
            self.store.describe(self.name, limited.engine.info.adapter or self.device)
        return self._placements[selector]

    def _leave(self, lease: Lease, run: Run) -> None:
        progress = lease.progress | {"epoch": run.state.epoch}
        if run.interrupted is None:
            self._end(lease, "done", **progress)
        else:
            self.stopping = self.stopping or lease.wanted is None
            released = self.store.release(lease.job.id, lease.number, **progress)
            say(f"stopped at epoch {run.state.epoch}: {released.status}")

    def _end(
        self,
        lease: Lease,
        status: Ending,
        reason: str | None = None,
        result: dict[str, Any] | None = None,
        **progress: Any,
    ) -> None:
        say(reason or status)
        public = None if reason is None else self._public(reason)
        self.store.finish(lease.job.id, lease.number, status, public, result, **progress)

    def _fall(self, lease: Lease, reason: str) -> None:
        say(reason)
        self.store.fall(lease.job.id, lease.number, reason)

    def _public(self, text: str) -> str:
        """Without the path of the store."""
        return text.replace(f"{self.store.folder}{os.sep}", "")

    # follow-ups ---------------------------------------------------------------------------------------

    def _follow(self, lease: Lease) -> None:
        lease.enter("working", warm=True)  # the signs of life come from here, at all times
        with Errand(self.store.folder, lease.job.id) as errand:
            while not errand.is_over(PULSE_S):
                lease.tell()
                if lease.wanted is not None or self.stopping:
                    say("stopped before its end")
                    self.store.release(lease.job.id, lease.number)
                    return
                if errand.seconds > self.limits.follow_up:
                    self._end(lease, "failed", f"It took longer than {self.limits.follow_up:.0f} s, the most it may.")
                    return
                if errand.still_s > self.limits.still:
                    self._fall(lease, f"it stood still for {self.limits.still:.0f} s")
                    return
            outcome = errand.outcome()
        if isinstance(outcome, str):
            words = last_words(self.store.place(lease.job.id).log)
            self._fall(lease, self._public(f"{outcome}, with the last words: {words}"))
        else:
            self._end(lease, outcome.status, outcome.reason, outcome.result)


def _clause(error: Exception) -> str:
    """An error's sentence as the end of another one."""
    return str(error).rstrip(".")


def _disk(error: Exception) -> str:
    """What the system says of a file, in words for the job; where it says nothing, the folder is locked."""
    found = error if isinstance(error, OSError) else error.__cause__
    if not isinstance(found, OSError):
        return "another process holds its run folder"
    return f"its run could not be saved ({found.strerror or found}); the last checkpoint is kept"


def _end_with_parent(limits: Limits) -> None:
    """Stop in good order when standard input ends; after a while in any case."""
    while os.read(0, 1):  # not `sys.stdin`, whose lock a thread must not hold when Python ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(limits.stop)
    os._exit(1)


def _give_way() -> None:
    """Whoever trains goes first, by this process's rank and, where Linux has them, that of its session."""
    os.nice(NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(NICE), encoding="ascii")


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser()
    parser.add_argument("store", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--engines", required=True)
    parser.add_argument("--limits", type=Limits.from_json, default=Limits())
    parser.add_argument("--max-memory", type=int)
    options = parser.parse_args()
    threading.Thread(target=_end_with_parent, args=(options.limits,), daemon=True).start()
    engines = [each for each in options.engines.split(",") if each]
    if options.device == FOLLOW_UPS:
        _give_way()
    try:
        store = Store.existing(options.store, durable=False)
        Worker(store, options.name, options.device, engines, options.limits, options.max_memory).run()
    except DifflogicError as error:
        say(str(error))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
