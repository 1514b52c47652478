"""A supervisor with real workers for tests, what they should come to, and how to wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from difflogic.config.schema import Config
from difflogic.devices.open import open_engine
from difflogic.serve.store.jobs import JobRecord, JobSpec
from difflogic.serve.store.store import Store
from difflogic.train.trainer import Trainer
from tests.train.tiny import tiny_config

EPOCHS = 1500
PATIENCE_S = 900.0
"""A guard against a test that hangs, and no judgement of speed.

A supervisor ends a worker that hangs after `WorkerLimits.first` at the latest. Whatever else takes long is a busy
machine, where follow-ups, which have the lowest rank, wait for everybody else.
"""


def short_config(epochs: int = EPOCHS, **train: Any) -> Config:
    """A second or two of training, saved 30 times."""
    return tiny_config(epochs=epochs, eval_interval=50, **train)


def spec_of(config: Config, **fields: Any) -> JobSpec:
    return JobSpec(**{"kind": "train", "name": config.name, "config": config.to_dict(), "engine": "cpu"} | fields)


def by_hand(config: Config, path: Path, **options: Any) -> Path:
    """The run folder of a run that nothing disturbs."""
    Trainer(config, open_engine("cpu")).run(out=path, **options)
    return path


def wait(condition: Callable[[], object], what: str = "it") -> None:
    """Until the condition holds; fails loudly where it does not come to that."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:.0f} s for {what}"
        time.sleep(0.02)


def ended(store: Store, job: str) -> JobRecord:
    """The job, once it is over."""
    wait(lambda: store.job(job).is_over, f"job {job} to end: {store.job(job)}")
    return store.job(job)


def reached(store: Store, job: str, epoch: int, attempt: int = 0) -> None:
    """Wait until the job has trained so many epochs, with restarts those of an attempt."""

    def there() -> bool:
        now = store.job(job)
        return (now.attempt, now.epoch) >= (attempt, epoch)

    wait(there, f"job {job} to reach epoch {epoch} of attempt {attempt}: {store.job(job)}")


def held(store: Store, config: Config, epoch: int, **fields: Any) -> str:
    """A job that an acting worker holds at an epoch, until something is asked of it or the worker is ended."""
    job = store.submit("ann", spec_of(config, name=f"hold {epoch}", **fields))[0].id
    reached(store, job, epoch)
    return job
