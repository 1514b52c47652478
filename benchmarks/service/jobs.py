"""Short jobs, what they should come to, and waiting for them."""

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
"""Timeout in seconds: a guard against hangs, not a limit on speed.

A supervisor ends a worker that hangs after `WorkerLimits.first` at the latest. Anything else that takes long is a busy
machine, where post-processing jobs, which have the lowest rank, wait for all others.
"""


def config(seed: int = 23, epochs: int = EPOCHS, interval: int = INTERVAL) -> Config:
    """54 gates on a checkerboard of 5x6 cells: about a second of training on a processor."""
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
    """A training on the processor, unless `fields` say otherwise: those of a job, and options of its request."""
    asked = {name: fields.pop(name) for name in [*fields] if name not in JobSpec.__dataclass_fields__}
    fields = {"request": asked} | fields
    return JobSpec(**{"kind": "train", "name": config.name, "config": config.to_dict(), "engine": "cpu"} | fields)


def by_hand(config: Config, path: Path, engine: str = "cpu", **options: Any) -> Path:
    """The run folder of a run that nothing disturbs; `options` are those of `Trainer.run`."""
    Trainer(config, open_engine(engine)).run(out=path, **options)
    return path


def wait(condition: Callable[[], object], what: str = "it", every_s: float = 0.02) -> None:
    """Wait until the condition holds. Raises TimeoutError where it does not come to that."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Waited {PATIENCE_S:.0f} s for {what}.")
        time.sleep(every_s)


def ended(store: Store, job: str) -> JobRecord:
    """The job, once it is over. Raises TimeoutError."""
    wait(lambda: store.job(job).is_over, f"job {job} to end: {store.job(job)}")
    return store.job(job)
