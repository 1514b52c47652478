"""Training job of all contenders, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from difflogic.config import presets
from difflogic.config.schema import Config
from difflogic.core import prng
from difflogic.engine.job import Job, TrainState, make_job
from difflogic.engine.shape import Hyper
from difflogic.model.circuit import Circuit
from difflogic.reference.model import ReferenceModel

FIRST_SOFT_LOSS, FIRST_HARD_LOSS = 231.266, 256
"""First losses of the authors' code for the checkerboard with seed 23."""


@dataclass(frozen=True)
class Problem:
    """Training of a circuit with a configuration."""

    config: Config

    @classmethod
    def checkerboard(cls) -> Problem:
        return cls(presets.checkerboard(small=False))

    @cached_property
    def circuit(self) -> Circuit:
        return Circuit.initial(self.config.model, self.config.seed)

    @cached_property
    def job(self) -> Job:
        return make_job(self.config, self.circuit)

    @property
    def state(self) -> TrainState:
        return TrainState.initial(self.job)

    @property
    def hyper(self) -> Hyper:
        return Hyper.of(self.config)

    def target(self) -> np.ndarray:
        """Return the target of the batch, `[B, H, W, loss_channels]`."""
        return np.tile(self.job.target, (self.config.train.batch, 1, 1, 1))

    def starts(self, epochs: int) -> list[np.ndarray]:
        """Return the initial states of each of the first epochs, float32 `[B, H, W, C]`."""
        task, key = self.config.task, prng.key_from_seed(self.config.seed)
        shape = (self.config.train.batch, task.height, task.width, self.config.model.channels)
        grids = []
        for _ in range(epochs):
            key, sub = prng.split(key)
            grids.append(prng.randint_power_of_two(sub, shape, 2).astype(np.float32))
        return grids

    def expected_losses(self) -> list[float]:
        """Return the soft losses of the first two epochs: of the authors' code, and of the reference."""
        model = ReferenceModel(self.job, self.state)
        model.train(2)
        return [FIRST_SOFT_LOSS, model.fetch_metrics()[0][1].soft_loss]


def complaint(soft: list[float], hard: list[int], expected: list[float]) -> str | None:
    """Describe the error of the first two epochs' losses, or return None if they are right."""
    for epoch, (got, right, tolerance) in enumerate(zip(soft, expected, (2e-5, 1e-3), strict=True), start=1):
        if not abs(got - right) <= tolerance * right:
            return f"the soft loss of epoch {epoch} is {got}, expected {right}"
    if hard[0] != FIRST_HARD_LOSS:
        return f"the first hard loss is {hard[0]}, expected {FIRST_HARD_LOSS}"
    return None
