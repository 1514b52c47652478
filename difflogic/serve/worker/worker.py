"""Run a worker: a process for one device that takes one job after another.

python -m difflogic.serve.worker.worker STORE '{"name": "cpu-1", "device": "cpu", "engines": ["auto", "cpu"], ...}'

With the device `follow-ups`, a worker runs post-processing jobs, at a lower priority than trainings.

The standard input of a worker is a pipe from its parent process. If the parent ends, which closes the pipe, or if a
stop signal such as SIGTERM arrives, the worker saves its job, releases it and ends.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

from difflogic.config.document import is_policy
from difflogic.devices.open import Placement, place
from difflogic.errors import DeviceError, DifflogicError, LimitError, RunFolderError
from difflogic.serve import log
from difflogic.serve.store.claims import SWEEPS
from difflogic.serve.store.jobs import JobRecord, LeaseLostError
from difflogic.serve.store.presence import Presence
from difflogic.serve.store.records import FULL
from difflogic.serve.store.store import Store
from difflogic.serve.worker.devices import FOLLOW_UPS
from difflogic.serve.worker.follow_up_process import FollowUpProcess
from difflogic.serve.worker.lease import EXIT_LEASE_LOST, Lease, WorkerLimits
from difflogic.serve.worker.log import last_words, logged_to, say
from difflogic.system.memory import resident_memory
from difflogic.train.signals import watched

if TYPE_CHECKING:
    from difflogic.serve.worker.observer import ServiceObserver
    from difflogic.serve.worker.training import TryOutcome

CLAIM_POLL_S = 0.3
"""Seconds between polls for a job."""
MARK_SEEN_S = 5.0
"""Seconds between updates of the last-seen time of a worker without a job."""
FOLLOW_UP_POLL_S = 0.5
"""Seconds between checks of the process of a post-processing job."""
Ending = Literal["done", "failed"]
NICE = 10
"""Niceness of a post-processing worker, which gives trainings a higher priority."""
ABOUT = {FOLLOW_UPS: "build, simplify, prove, export and evaluate", SWEEPS: "choose the trials of a sweep"}
"""Mapping from the device names of workers that need no device to descriptions of their work."""
EXIT_DEVICE_UNUSABLE = 4
"""Exit status of a worker whose device is unusable."""


class WorkerProcess:
    """Worker that takes and runs jobs in a loop in the main thread, where it receives signals."""

    def __init__(
        self, store: Store, name: str, device: str, engines: list[str], limits: WorkerLimits, max_memory: int | None
    ):
        self.store, self.name, self.device, self.engines = store, name, device, engines
        self.limits, self.max_memory = limits, max_memory
        self.stopping = False
        self._had_space = True
        self._placements: dict[str, Placement] = {}

    def run(self) -> None:
        """Run jobs until `stopping` is set; without a device, also end after `WorkerLimits.idle` s without a job."""
        presence = Presence(self.store.folder, self.name)
        try:
            about = ABOUT.get(self.device, self.device)
            self.store.register_worker(self.name, self.device, about, os.getpid(), self.engines)
            seen = self._worked = time.monotonic()
            # The loop sleeps between polls, but never between two jobs: it takes the next job immediately.
            while not (self.stopping or (self.device in ABOUT and time.monotonic() - self._worked > self.limits.idle)):
                claimed = None
                if self._has_disk_space():
                    claimed = self.store.claim(self.name, self.device, self.engines, self.limits.stopped)
                if claimed is not None:
                    self._run_job(*claimed)
                    self._worked = time.monotonic()
                elif time.monotonic() - seen > MARK_SEEN_S:
                    self.store.mark_seen(self.name, resident_memory())
                    seen = time.monotonic()
                else:
                    time.sleep(CLAIM_POLL_S)
            # This is not in `finally`: after an error the worker stays in the table, and the supervisor finds its job.
            self.store.unregister_worker(self.name)
        finally:
            presence.close()

    def _has_disk_space(self) -> bool:
        """Return whether the disk has space for jobs, since on a full disk every job would fail."""
        had, self._had_space = self._had_space, not self.store.is_full()
        if had and not self._had_space:
            log.log_event("a worker waits", logging.ERROR, worker=self.name, why=FULL)
        return self._had_space

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: end after the next checkpoint of the current job."""
        self.stopping = True

    def _run_job(self, job: JobRecord, number: int) -> None:
        lease = Lease(self.store, job, number, self.limits)
        with logged_to(self.store.job_folder(job.id).log):
            say(f"{job.kind} on {self.device}, try {job.lost_tries + 1}")
            try:
                with lease.kept():
                    self._train(lease) if job.kind == "train" else self._follow(lease)
            # Another worker may write into the same folder by now: the process ends without closing anything.
            except LeaseLostError as error:
                say(str(error))
                os._exit(EXIT_LEASE_LOST)

    # training -----------------------------------------------------------------------------------------

    def _train(self, lease: Lease) -> None:
        from difflogic.serve.worker import observer as watching
        from difflogic.serve.worker import training

        job = lease.job
        try:
            placement = self._placement(job)
        except DeviceError as error:
            lease.store.fail_try(job.id, lease.number, str(error).rstrip("."))  # it becomes part of a longer sentence
            say(f"{error} This worker ends.")
            # The supervisor starts another worker, after increasing delays if this fails repeatedly.
            sys.exit(EXIT_DEVICE_UNUSABLE)
        kind = watching.ServiceObserver if job.parent is None else watching.TrialObserver
        observer = kind(lease, placement.engine, lambda: self.stopping)
        try:
            outcome = training.train(self.store, job, placement, observer)
        # A new try may succeed after a full disk, a lost device or a locked folder.
        except (RunFolderError, OSError) as error:
            self._fail_try(lease, _why_not_saved(error))
        except LimitError as error:
            self._finish(lease, "failed", str(error))
        except DeviceError as error:
            self._fail_try(lease, str(error).rstrip("."))
        except (DifflogicError, MemoryError) as error:
            self._finish(lease, "failed", str(error) or "There was not enough memory.")
        else:
            self._report(lease, outcome, observer)

    def _placement(self, job: JobRecord) -> Placement:
        # A job for any GPU, or for `auto`, is trained on this worker's device. The processor trains the small networks
        # of agents, unless a GPU was requested.
        selector = job.engine if job.engine in ("cpu", "reference") else self.device
        if is_policy(job.config) and not job.engine.startswith("gpu"):
            selector = job.engine if job.engine == "reference" else "cpu"
        if selector not in self._placements:
            placement = place(selector, trusted=True)
            if placement.engine.info.engine == "gpu":
                placement = replace(placement, max_memory=self.max_memory)
            self._placements[selector] = placement
            self.store.describe_worker(self.name, placement.engine.info.adapter or self.device)
        return self._placements[selector]

    def _report(self, lease: Lease, outcome: TryOutcome, observer: ServiceObserver) -> None:
        # One transaction stores the end of the job together with progress that no heartbeat has sent yet.
        is_interrupted, final = outcome
        progress = lease.progress | final | {"trained_s": observer.trained_s}
        if not is_interrupted:
            self._finish(lease, "done", **progress)
        else:
            job = self.store.release(lease.job.id, lease.number, **progress)
            say(f"stopped at epoch {progress['progress']}: {job.status}")

    def _finish(self, lease: Lease, status: Ending, reason: str | None = None, **progress: Any) -> None:
        say(reason or status)
        public = None if reason is None else self._public(reason)
        self.store.finish(lease.job.id, lease.number, status, public, **progress)

    def _fail_try(self, lease: Lease, reason: str) -> None:
        say(reason)
        self.store.fail_try(lease.job.id, lease.number, reason)

    def _public(self, text: str) -> str:
        """Return `text` without the private path of the store, so that the job's owner may read it."""
        return text.replace(f"{self.store.folder}{os.sep}", "")

    # post-processing and sweeps -----------------------------------------------------------------------

    def _follow(self, lease: Lease) -> None:
        lease.enter("working", warm=True)  # the loop below sends heartbeats from the start
        # The context manager kills the process on every exit.
        with FollowUpProcess(self.store.folder, lease.job.id) as process:
            while not process.is_over(FOLLOW_UP_POLL_S):
                lease.report(**process.progress())
                if lease.wanted is not None or self.stopping:
                    say("stopped before its end")
                    self.store.release(lease.job.id, lease.number)
                    return
                if process.seconds > self.limits.follow_up and lease.job.kind != "sweep":
                    self._finish(lease, "failed", f"It exceeded the time limit of {self.limits.follow_up:.0f} s.")
                    return
                if process.stalled_s > self.limits.stalled:
                    self._fail_try(lease, f"it made no progress for {self.limits.stalled:.0f} s")
                    return
            lease.progress |= process.progress()
            outcome = process.outcome()
        if isinstance(outcome, str):
            line = last_words(self.store.job_folder(lease.job.id).log)
            self._fail_try(lease, self._public(f"{outcome}, and the job's log ends with: {line}"))
        else:
            self._finish(lease, **lease.progress | outcome)


def _why_not_saved(error: Exception) -> str:
    """Return why a run could not be saved: a system error, or another process that holds the folder."""
    cause = error if isinstance(error, OSError) else error.__cause__
    if not isinstance(cause, OSError):
        return "its run folder is in use by another process"
    return f"its run could not be saved ({cause.strerror or cause}); the last checkpoint remains"


def _end_with_parent(limits: WorkerLimits) -> None:
    """Stop this process when its parent ends, which closes stdin; kill it after another `WorkerLimits.stop` seconds."""
    while os.read(0, 1):  # not `sys.stdin`, whose lock a thread must not hold when Python ends
        pass
    # The handler of this signal completes the current epochs and saves the run.
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(limits.stop)
    os._exit(1)


def main() -> None:
    """Run the worker whose store and settings are given on the command line."""
    folder, about = Path(sys.argv[1]), json.loads(sys.argv[2])
    limits = WorkerLimits(**about.pop("limits"))
    log.set_up()  # lines go to the server's log between jobs, and to the job's log within a job
    threading.Thread(target=_end_with_parent, args=(limits,), daemon=True).start()
    if about["device"] == FOLLOW_UPS:  # a proof may use a processor for minutes, while a training runs for days
        os.nice(NICE)
        with contextlib.suppress(OSError):  # on Linux, the priority of the session is lowered too
            Path("/proc/self/autogroup").write_text(str(NICE), encoding="ascii")
    try:
        worker = WorkerProcess(Store.existing(folder, durable=False), limits=limits, **about)
        for number in watched():
            signal.signal(number, worker.stop)
        worker.run()
    except DifflogicError as error:
        log.log_event("a worker ended", logging.ERROR, worker=about["name"], why=str(error))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
