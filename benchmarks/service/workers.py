"""Test the recovery of jobs after workers are killed, abort, hang, or have a full disk."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.service import jobs
from benchmarks.service.outcome import Outcome
from benchmarks.service.same import differences
from difflogic.serve.store.store import Store
from difflogic.serve.worker.lease import WorkerLimits
from difflogic.serve.worker.supervisor import Supervisor

KILLS_A_JOB = 3
"""Maximum number of kills per job, less than the number of its tries."""
AIMED = 0.75
"""Share of kills at a random epoch of training; all other kills are at random times."""
LONG = 15_000
"""Number of epochs of a job, about ten seconds, enough to be killed at the intended epoch."""
FAULTS = ("abort", "hang", "full")
"""Kinds of faults of `benchmarks.service.faulty`."""


def kill_workers(folder: Path, count: int, seed: int = 0, epochs: int = LONG) -> Outcome:
    """Kill workers at random moments until `count` kills were in training; kills in other phases are additional.

    Jobs are so long that they still train at the time of the kill.
    """
    outcome, draw = Outcome("SIGKILL of a worker"), random.Random(seed)
    config = jobs.config(epochs=epochs)
    # All jobs have the same configuration, so that they must have the same result after any number of kills.
    expected = jobs.by_hand(config, folder / "hand")
    store = Store.open(folder / "store")
    begin = time.monotonic()
    with Supervisor(store.folder, ["cpu"]):
        life = _life(store)
        while outcome.phases.get("training", 0) < count:
            job, _ = store.submit("bench", jobs.spec_of(config))
            for _ in range(min(KILLS_A_JOB, count - outcome.phases.get("training", 0))):
                jobs.wait(lambda job=job: store.job(job.id).status != "queued", "a worker")
                if draw.random() < AIMED:
                    in_training(
                        store, job.id, draw.randrange(min(store.job(job.id).saved_progress, epochs - 1), epochs)
                    )
                else:
                    time.sleep(draw.uniform(0, life))
                _kill(store, job.id, outcome)
            _compare(store, job.id, expected, outcome)
    outcome.seconds = time.monotonic() - begin
    return outcome


def in_training(store: Store, job: str, epoch: int = 0) -> None:
    """Wait until the job is in training and has reached `epoch`, or is over."""

    def is_trained() -> bool:
        now = store.job(job)
        return now.is_over or (now.phase == "training" and now.progress >= epoch)

    jobs.wait(is_trained, "the job to be trained", every_s=0.002)


def _life(store: Store) -> float:
    """Return the seconds from the claim of a job to its end, in a new worker."""
    job, _ = store.submit("bench", jobs.spec_of(jobs.config()))
    jobs.wait(lambda: store.job(job.id).status != "queued", "a worker")
    begin = time.monotonic()
    jobs.ended(store, job.id)
    return time.monotonic() - begin


def _kill(store: Store, job: str, outcome: Outcome) -> None:
    """Kill the worker that runs the job, if there is one, and wait until the service detects the loss."""
    holder = next((each for each in store.workers() if each.job == job), None)
    if holder is None:
        return
    with suppress(ProcessLookupError):
        before = store.job(job)
        os.kill(holder.pid, signal.SIGKILL)
        if before.status == "running":
            outcome.hit(before.phase)
            lost = time.monotonic()
            jobs.wait(
                lambda: store.job(job).lost_tries > before.lost_tries or store.job(job).is_over, "the loss to be seen"
            )
            outcome.detected_s.append(time.monotonic() - lost)


def _compare(store: Store, job: str, right: Path, outcome: Outcome) -> None:
    """Wait for the end of a job, compare its run with `right`, and delete the job if they are equal."""
    outcome.jobs += 1
    found = jobs.ended(store, job)
    what = (
        differences(store.job_folder(job).run, right) if found.status == "done" else [f"{found.status}: {found.reason}"]
    )
    if what:
        outcome.wrong.append(f"{job}: {', '.join(what[:5])}")
    else:
        store.delete(job)


def faults(folder: Path, kind: str, count: int, seed: int = 0, limits: WorkerLimits | None = None) -> Outcome:
    """Run jobs whose first worker has a fault of `benchmarks.service.faulty` at a random epoch."""
    outcome, draw = Outcome(kind), random.Random(seed)
    device = "gpu:0" if kind == "abort" else "cpu"
    config = jobs.config() if device == "cpu" else jobs.config(epochs=60, interval=10)
    expected = jobs.by_hand(config, folder / "hand", device)
    store = Store.open(folder / "store")
    begin = time.monotonic()
    for number in range(count):
        mark = folder / f"mark-{number}"
        epoch = draw.randrange(config.train.eval_interval, config.train.epochs - config.train.eval_interval)
        command = [sys.executable, "-m", "benchmarks.service.faulty", kind, str(epoch), str(mark)]
        with Supervisor(store.folder, [device], limits, command=command):
            job, _ = store.submit("bench", jobs.spec_of(config, engine=device if device == "cpu" else "gpu"))
            jobs.wait(mark.exists, "the fault")
            happened = time.monotonic()
            outcome.hit(store.job(job.id).phase)
            jobs.wait(lambda job=job: store.job(job.id).lost_tries, "the fault to be seen")
            outcome.detected_s.append(time.monotonic() - happened)
            outcome.reasons.append(str(store.job(job.id).reason))
            _compare(store, job.id, expected, outcome)
    outcome.seconds = time.monotonic() - begin
    return outcome
