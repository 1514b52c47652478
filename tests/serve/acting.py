"""A worker that does as its job is called, so that a test which steps in while a job runs never comes too late.

    stand         it stands still as soon as it has this job, like a process that a signal stops
    die           it ends at once, whenever it takes this job
    hold 60       at epoch 60 it waits, with signs of life, until someone asks for the job or ends the worker
    hold 2.60     the same at epoch 60 of attempt 2; there may be several of these
    hold          as a post-processing job, it never ends

It holds a job at a place once: who takes it up again goes on. It leaves diagrams blank, as tests/conftest.py does.
"""

import os
import signal
import sys
import time
from pathlib import Path

from difflogic.runs import plots
from difflogic.serve.worker import follow_up_process, observer, worker
from difflogic.serve.worker.lease import Lease, WorkerLimits
from difflogic.serve.worker.log import say
from difflogic.serve.worker.observer import ServiceObserver
from difflogic.serve.worker.supervisor import Supervisor

COMMAND = (sys.executable, "-P", __file__)


def acting(folder: Path, limits: WorkerLimits | None = None) -> Supervisor:
    """A supervisor of such a worker on the processor, for the store in a folder."""
    return Supervisor(folder, ["cpu"], limits, command=COMMAND)


WORKS = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
while True: pass
"""
"""Post-processing job that computes without end; like a real one, it ends when its worker is gone: its input closes."""


class _Holding(ServiceObserver):
    def _moved(self, epoch: int) -> None:
        name, _, places = self._lease.job.name.partition(" ")
        for place in places.split() if name == "hold" else ():
            attempt, _, first = place.rpartition(".")
            if int(attempt or 0) == self._folder.attempt and int(first) <= epoch and _is_first(self._lease, place):
                while self._lease.wanted is None and not self._stopping():
                    self._lease.report(progress=epoch)
                    time.sleep(0.05)
        super()._moved(epoch)


def _is_first(lease: Lease, place: str) -> bool:
    """Whether the job was not held there before; a file beside its log says so."""
    mark = lease.store.job_folder(lease.job.id).path / f"held-{place}"
    is_first = not mark.exists()
    mark.touch()
    return is_first


class _Worker(worker.WorkerProcess):
    def _train(self, lease: Lease) -> None:
        if lease.job.name == "die":
            say("the driver is broken")
            os._exit(7)
        if lease.job.name == "stand" and _is_first(lease, "whole"):
            signal.raise_signal(signal.SIGSTOP)
        super()._train(lease)

    def _follow(self, lease: Lease) -> None:
        if lease.job.name == "hold" and _is_first(lease, "whole"):
            follow_up_process.COMMAND = (sys.executable, "-c", WORKS)
        super()._follow(lease)


if __name__ == "__main__":
    observer.ServiceObserver = _Holding
    worker.WorkerProcess = _Worker
    plots._png = lambda _: b""
    worker.main()
