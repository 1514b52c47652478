"""What becomes of jobs whose workers are killed, abort, hang, or find the disk full."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.service import jobs
from benchmarks.service.same import differences
from difflogic.serve.phases import Limits
from difflogic.serve.store import Store
from difflogic.serve.supervisor import Supervisor

KILLS_A_JOB = 3
"""Fewer than the tries that a job has."""
FAULTS = ("abort", "hang", "full")
"""Kinds of `benchmarks.service.faulty`."""


@dataclass
class Outcome:
    """What was done, and what was not as it should be."""

    kind: str
    events: int = 0
    """Kills or faults that hit a job under way."""
    jobs: int = 0
    wrong: list[str] = field(default_factory=list)
    """Jobs that did not end well, or differ from an undisturbed run, with what differs."""
    seconds: float = 0.0
    detected_s: list[float] = field(default_factory=list)
    """From the event until the job was taken from the worker."""
    phases: dict[str, int] = field(default_factory=dict)
    """What the jobs were doing when it happened."""

    def to_dict(self) -> dict[str, Any]:
        """For a results file."""
        told = {"case": self.kind, "events": self.events, "jobs": self.jobs, "wrong": len(self.wrong)}
        told |= {"seconds": round(self.seconds, 1), "phases": self.phases}
        if self.detected_s:
            ordered = sorted(self.detected_s)
            told |= {"detected_median_s": round(ordered[len(ordered) // 2], 2), "detected_max_s": round(ordered[-1], 2)}
        return told


def kill_workers(folder: Path, count: int, seed: int = 0) -> Outcome:
    """SIGKILL of a worker at `count` random moments of short jobs, from the claim to the last picture."""
    outcome, draw = Outcome("SIGKILL of a worker"), random.Random(seed)
    config = jobs.config()
    hand = jobs.by_hand(config, folder / "hand")
    store = Store.open(folder / "store")
    begin = time.monotonic()
    with Supervisor(store.folder, ["cpu"]):
        life = _life(store)
        while outcome.events < count:
            job, _ = store.submit("bench", jobs.draft(config))
            for _ in range(min(KILLS_A_JOB, count - outcome.events)):
                jobs.wait(lambda job=job: store.job(job.id).status != "queued", "a worker")
                time.sleep(draw.uniform(0, life))
                _kill(store, job.id, outcome)
            _judge(store, job.id, hand, outcome)
    outcome.seconds = time.monotonic() - begin
    return outcome


def _life(store: Store) -> float:
    """Seconds from a job's claim to its end, in a new worker."""
    job, _ = store.submit("bench", jobs.draft(jobs.config()))
    jobs.wait(lambda: store.job(job.id).status != "queued", "a worker")
    begin = time.monotonic()
    jobs.ended(store, job.id)
    return time.monotonic() - begin


def _kill(store: Store, job: str, outcome: Outcome) -> None:
    """Whoever holds the job, where anybody does."""
    holder = next((each for each in store.workers() if each.job == job), None)
    if holder is None:
        return
    with suppress(ProcessLookupError):
        before = store.job(job)
        os.kill(holder.pid, signal.SIGKILL)
        if before.status == "running":
            outcome.events += 1
            outcome.phases[str(before.phase)] = outcome.phases.get(str(before.phase), 0) + 1
            lost = time.monotonic()
            jobs.wait(
                lambda: store.job(job).attempts > before.attempts or store.job(job).is_over, "the loss to be seen"
            )
            outcome.detected_s.append(time.monotonic() - lost)


def _judge(store: Store, job: str, hand: Path, outcome: Outcome) -> None:
    """Wait for the end, compare, and make room."""
    outcome.jobs += 1
    found = jobs.ended(store, job)
    what = differences(store.place(job).run, hand) if found.status == "done" else [f"{found.status}: {found.reason}"]
    if what:
        outcome.wrong.append(f"{job}: {', '.join(what[:5])}")
    else:
        store.delete(job)


def faults(folder: Path, kind: str, count: int, limits: Limits | None = None, seed: int = 0) -> Outcome:
    """Jobs whose first worker goes wrong by itself, as `benchmarks.service.faulty` does, at a random epoch."""
    outcome, draw = Outcome(kind), random.Random(seed)
    device = "gpu:0" if kind == "abort" else "cpu"
    config = jobs.config() if device == "cpu" else jobs.config(epochs=60, interval=10)
    hand = jobs.by_hand(config, folder / "hand", device)
    store = Store.open(folder / "store")
    begin = time.monotonic()
    for number in range(count):
        mark = folder / f"mark-{number}"
        epoch = draw.randrange(config.train.eval_interval, config.train.epochs - config.train.eval_interval)
        command = [sys.executable, "-m", "benchmarks.service.faulty", kind, str(epoch), str(mark)]
        with Supervisor(store.folder, [device], limits, command=command):
            job, _ = store.submit("bench", jobs.draft(config, device if device == "cpu" else "gpu"))
            jobs.wait(mark.exists, "the fault")
            happened = time.monotonic()
            phase = str(store.job(job.id).phase)
            jobs.wait(lambda job=job: store.job(job.id).attempts, "the fault to be seen")
            outcome.detected_s.append(time.monotonic() - happened)
            outcome.events += 1
            outcome.phases[phase] = outcome.phases.get(phase, 0) + 1
            _judge(store, job.id, hand, outcome)
    outcome.seconds = time.monotonic() - begin
    return outcome
