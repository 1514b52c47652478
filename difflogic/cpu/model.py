"""A training run on the processor."""

from __future__ import annotations

import math
import time

import numpy as np

from difflogic import bits
from difflogic import control as c
from difflogic.cpu import schedule
from difflogic.cpu.hard_workspace import HardWorkspace
from difflogic.cpu.tables import Array
from difflogic.cpu.workspace import Workspace
from difflogic.engine import EngineInfo, EpochMetrics, Evaluation, Job, OptimizerState, TrainState
from difflogic.shape import Hyper, Shape

CALL_SECONDS = 0.1
"""Aim for the length of one call: signals are heard between calls."""


class CpuModel:
    """Implements `difflogic.engine.TrainingModel`."""

    def __init__(self, job: Job, state: TrainState, info: EngineInfo, threads: int) -> None:
        config, circuit = job.config, job.circuit
        task, train = config.task, config.train
        grid = (train.batch, task.height, task.width, circuit.channels)
        shape = Shape.of(circuit, grid, task.steps, task.loss_channels)
        self.info = info
        self._job = job
        self._work = Workspace(circuit, shape, threads, Hyper.of(train), train.fire_rate, train.asynchronous)
        self._work.set_targets(job.fixed_target)
        self._hard = self._judge(shape, threads)
        self._waiting: list[EpochMetrics] = []
        self._epochs_per_call = 1
        self._upload(state)

    def _upload(self, state: TrainState) -> None:
        control = self._work.buffers.control
        self._work.set_logits(state.logits, state.optimizer.mu, state.optimizer.nu)
        control[c.DATA_KEY], control[c.TRAIN_KEY] = state.data_key, state.train_key
        control[c.STEP], control[c.EPOCH], control[c.SKIPPED] = state.optimizer.step, state.epoch, state.skipped

    def train(self, epochs: int) -> None:
        if epochs < 1:
            return
        first = int(self._work.buffers.control[c.EPOCH]) + 1
        begin = time.perf_counter()
        history = self._work.run(0, schedule.phases(self._work.shape.steps), epochs, drawn=True)
        seconds = (time.perf_counter() - begin) / epochs
        self._epochs_per_call = max(1, int(CALL_SECONDS / max(seconds, 1e-6)))
        rows = [EpochMetrics(first + i, float(loss), bool(skipped)) for i, (loss, skipped) in enumerate(history)]
        self._waiting += rows

    def drain(self) -> list[EpochMetrics]:
        drained, self._waiting = self._waiting, []
        return drained

    def max_epochs_per_call(self) -> int:
        return self._epochs_per_call

    # evaluation ---------------------------------------------------------------------------------------

    def _judge(self, shape: Shape, threads: int) -> HardWorkspace:
        """Probes and batch side by side: each fills its own groups of 32 samples."""
        job = self._job
        self._probe_words = bits.pack(job.probes)
        groups = _groups(len(job.probes)) + _groups(shape.batch)
        masks = job.probe_masks
        hard = HardWorkspace(job.circuit, shape, math.ceil(groups / 2), 2, threads, masks is not None)
        if masks is not None:
            hard.set_masks(masks)
        return hard

    def evaluate(self) -> Evaluation:
        shape, probes = self._work.shape, self._job.probes
        batch = bits.pack(self._work.start())
        self._hard.set_start(np.concatenate([self._probe_words, batch], axis=1))
        self._hard.run(self._work.buffers.logits)
        wrong = self._wrong(self._hard.state(shape.steps))
        first = _groups(len(probes))
        of_probes = wrong[:, :first] & _samples(len(probes))
        of_batch = wrong[:, first : first + _groups(shape.batch)] & _samples(shape.batch)
        return Evaluation(
            hard_loss=int(np.bitwise_count(of_probes).sum(dtype=np.int64)),
            train_hard_loss=int(np.bitwise_count(of_batch).sum(dtype=np.int64)),
            values=self._job.values,
            wrong_probes=int(np.bitwise_count(np.bitwise_or.reduce(of_probes, axis=(0, 2))).sum()),
        )

    def _wrong(self, words: Array) -> Array:
        """uint32 `[loss_channels, groups, H*W]`: a bit is 1 where a sample's value is wrong."""
        shape = self._work.shape
        target = np.where(self._job.fixed_target == 1, np.uint32(0xFFFFFFFF), np.uint32(0))
        expected = target.reshape(-1, 1, shape.loss_channels).transpose(2, 1, 0)
        got = words[: shape.loss_channels].reshape(shape.loss_channels, -1, shape.cells_per_grid)
        wrong: Array = got ^ expected
        return wrong

    # state --------------------------------------------------------------------------------------------

    def to_cpu(self) -> TrainState:
        work, buffers, control = self._work, self._work.buffers, self._work.buffers.control
        optimizer = OptimizerState(work.per_gate(buffers.mu), work.per_gate(buffers.nu), int(control[c.STEP]))
        return TrainState(
            logits=work.per_gate(buffers.logits),
            optimizer=optimizer,
            data_key=control[c.DATA_KEY].copy(),
            train_key=control[c.TRAIN_KEY].copy(),
            epoch=int(control[c.EPOCH]),
            skipped=int(control[c.SKIPPED]),
        )

    def close(self) -> None:
        """Nothing outlives a call."""


def _groups(samples: int) -> int:
    """Groups of 32 samples."""
    return -(-samples // bits.WORD)


def _samples(count: int) -> Array:
    """uint32 `[groups, 1]`: a bit for each of `count` samples."""
    full = np.full((_groups(count), 1), 0xFFFFFFFF, dtype=np.uint32)
    full[-1] = np.uint32((1 << (count - 1) % bits.WORD + 1) - 1)
    return full
