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
PATIENCE_S = 300.0


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


def spec(of: Config, engine: str = "cpu", **fields: Any) -> JobSpec:
    return JobSpec("train", of.name, of.to_dict(), engine, **fields)


def by_hand(of: Config, path: Path, engine: str = "cpu") -> Path:
    """The run folder of a run that nothing disturbs."""
    Trainer(of, open_engine(engine)).run(out=path)
    return path


def wait(condition: Callable[[], object], what: str, seconds: float = PATIENCE_S) -> None:
    """Wait until the condition holds. Raises TimeoutError where it does not come to that."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Waited {seconds:.0f} s for {what}.")
        time.sleep(0.02)


def ended(store: Store, job: str) -> JobRecord:
    """The job, once it is over. Raises TimeoutError."""
    wait(lambda: store.job(job).is_over, f"job {job} to end")
    return store.job(job)
