"""An engine whose losses are written beforehand."""

from __future__ import annotations

import dataclasses

import numpy as np

from difflogic.engine import Engine, EpochMetrics, Evaluation, Job, TrainState


class Scripted:
    """An engine and model in one whose losses are written beforehand."""

    def __init__(self, engine: Engine, hard_losses: dict[int, int], skipped: tuple[int, ...] = ()) -> None:
        self.info = engine.info
        self.hard_losses, self.skipped = hard_losses, skipped
        self.calls: list[int] = []
        self.closed = False

    def open_model(self, job: Job, state: TrainState) -> Scripted:
        self.state = state
        self.waiting: list[EpochMetrics] = []
        return self

    def max_epochs_per_call(self) -> int:
        return 3

    def train(self, epochs: int) -> None:
        self.calls.append(epochs)
        for _ in range(epochs):
            epoch = self.state.epoch + 1
            self.state = dataclasses.replace(self.state, epoch=epoch)
            loss = np.inf if epoch in self.skipped else float(epoch)
            self.waiting.append(EpochMetrics(epoch, loss, epoch in self.skipped))

    def drain(self) -> list[EpochMetrics]:
        drained, self.waiting = self.waiting, []
        return drained

    def evaluate(self) -> Evaluation:
        wrong = self.hard_losses.get(self.state.epoch, 9)
        return Evaluation(hard_loss=wrong, train_hard_loss=4, values=120, wrong_probes=min(wrong, 4))

    def to_cpu(self) -> TrainState:
        return self.state

    def close(self) -> None:
        self.closed = True
