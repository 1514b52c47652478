"""Engine with scripted losses."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

import numpy as np

from difflogic.engine.api import Engine, EpochMetrics, Evaluation, Model
from difflogic.engine.job import Job, TrainState
from difflogic.engine.population import open_in_turn
from difflogic.model.circuit import Circuit


class Scripted:
    """Engine and model with scripted losses."""

    def __init__(self, engine: Engine, hard_losses: dict[int, int], skipped: tuple[int, ...] = ()) -> None:
        self.info, self.rollout = engine.info, engine.rollout
        self.hard_losses, self.skipped = hard_losses, skipped
        self.calls: list[int] = []
        self.closed = False

    def open(
        self, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None = None, reserved: int = 0
    ) -> Model:
        return open_in_turn([partial(self.play, *run) for run in zip(jobs, states, strict=True)])

    def memory(self, jobs: Sequence[Job], max_memory: int | None = None, reserved: int = 0) -> int:
        return 0

    def rollout_memory(self, circuit: Circuit, grid: tuple[int, ...], steps: int, asynchronous: bool) -> int:
        return 0

    def play(self, job: Job, state: TrainState) -> Scripted:
        self.state = state
        self.waiting: list[EpochMetrics] = []
        return self

    def epochs_per_call(self) -> int:
        return 3

    def train(self, epochs: int) -> None:
        self.calls.append(epochs)
        for _ in range(epochs):
            epoch = self.state.epoch + 1
            self.state = dataclasses.replace(self.state, epoch=epoch)
            loss = np.inf if epoch in self.skipped else float(epoch)
            self.waiting.append(EpochMetrics(epoch, loss, epoch in self.skipped))

    def fetch_metrics(self) -> list[list[EpochMetrics]]:
        metrics, self.waiting = self.waiting, []
        return [metrics]

    def evaluate(self) -> list[Evaluation]:
        wrong = self.hard_losses.get(self.state.epoch, 9)
        return [Evaluation(hard_loss=wrong, train_hard_loss=4, values=120, wrong_probes=min(wrong, 4))]

    def states(self) -> list[TrainState]:
        return [self.state]

    def close(self) -> None:
        self.closed = True
