"""Test jobs whose workers are killed, abort, hang, or meet a full disk."""

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
"""Fewer than the tries that a job has."""
AIMED = 0.75
"""The part of the blows that wait until the job is being trained, at a random epoch; the others come at any time."""
LONG = 15_000
"""Epochs of a job: some ten seconds, in which it is hit where it was meant to be."""
FAULTS = ("abort", "hang", "full")
"""Kinds of `benchmarks.service.faulty`."""


def kill_workers(folder: Path, count: int, seed: int = 0, epochs: int = LONG) -> Outcome:
    """SIGKILL of a worker at random moments, until `count` of them were within training; others come on top.

    Jobs are so long that one is still trained when the blow comes that was aimed at it.
    """
    outcome, draw = Outcome("SIGKILL of a worker"), random.Random(seed)
    config = jobs.config(epochs=epochs)
    # What every job must come to, however often its worker is killed: all of them have the same configuration.
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
    """Wait until the job is trained, from an epoch on, or is over."""

    def is_trained() -> bool:
        now = store.job(job)
        return now.is_over or (now.phase == "training" and now.progress >= epoch)

    jobs.wait(is_trained, "the job to be trained", every_s=0.002)


def _life(store: Store) -> float:
    """Seconds from a job's claim to its end, in a new worker."""
    job, _ = store.submit("bench", jobs.spec_of(jobs.config()))
    jobs.wait(lambda: store.job(job.id).status != "queued", "a worker")
    begin = time.monotonic()
    jobs.ended(store, job.id)
    return time.monotonic() - begin


def _kill(store: Store, job: str, outcome: Outcome) -> None:
    """Kill the worker that holds the job, if there is one."""
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
    """Wait for the end, compare, and make room."""
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
    """Jobs whose first worker goes wrong by itself, as `benchmarks.service.faulty` does, at a random epoch."""
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
