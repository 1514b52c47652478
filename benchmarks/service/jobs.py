"""Short test jobs, their expected results, and functions that wait for jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from difflogic.config import presets
from difflogic.config.model import ModelConfig, NetworkConfig
from difflogic.config.schema import Config
from difflogic.devices.open import open_engine
from difflogic.serve.store.jobs import JobRecord, JobSpec
from difflogic.serve.store.store import Store
from difflogic.train.trainer import Trainer

EPOCHS, INTERVAL = 1500, 50
PATIENCE_S = 900.0
"""Timeout in seconds, which only detects hangs and does not limit the speed.

A supervisor ends a worker that hangs after `WorkerLimits.first` at the latest. Any other long wait is due to a busy
machine, on which post-processing jobs, with the lowest priority, wait for all other jobs.
"""


def config(seed: int = 23, epochs: int = EPOCHS, interval: int = INTERVAL) -> Config:
    """Return a small job: 54 gates on a checkerboard of 5x6 cells, with about a second of training on a CPU."""
    perceive = NetworkConfig((9, 8, 4, 2), ("first_kernel", "unique", "unique"))
    update = NetworkConfig((10, 12, 8, 4, 2), ("unique",) * 4)
    return presets.checkerboard(small=True).with_(
        name="short",
        model=ModelConfig(channels=2, kernels=2, perceive=perceive, update=update),
        task={"height": 5, "width": 6, "steps": 3},
        train={"epochs": epochs, "batch": 3, "eval_interval": interval, "probes": 4},
        initial={"logit": 2.0},
        seed=seed,
    )


def spec_of(config: Config, **fields: Any) -> JobSpec:
    """Return a training job on the CPU; `fields` are fields of `JobSpec`, and options of the request."""
    asked = {name: fields.pop(name) for name in [*fields] if name not in JobSpec.__dataclass_fields__}
    fields = {"request": asked} | fields
    return JobSpec(**{"kind": "train", "name": config.name, "config": config.to_dict(), "engine": "cpu"} | fields)


def by_hand(config: Config, path: Path, engine: str = "cpu", **options: Any) -> Path:
    """Train without the service, with `options` of `Trainer.run`; return the run folder, the expected result."""
    Trainer(config, open_engine(engine)).run(out=path, **options)
    return path


def wait(condition: Callable[[], object], what: str = "it", every_s: float = 0.02) -> None:
    """Wait until the condition is true. Raises TimeoutError after PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Waited {PATIENCE_S:.0f} s for {what}.")
        time.sleep(every_s)


def ended(store: Store, job: str) -> JobRecord:
    """Wait for the end of a job, and return its record. Raises TimeoutError."""
    wait(lambda: store.job(job).is_over, f"job {job} to end: {store.job(job)}")
    return store.job(job)
