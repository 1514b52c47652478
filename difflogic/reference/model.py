"""A training run in NumPy: the train step in the order of the equations, and the judge of every other."""

from __future__ import annotations

import dataclasses

import numpy as np

from difflogic import control as c
from difflogic.bits import WORD, pack
from difflogic.engine import EngineInfo, EpochMetrics, Evaluation, Job, OptimizerState, TrainState
from difflogic.layout import flat_layout
from difflogic.reference.adamw import adamw
from difflogic.reference.commit import commit
from difflogic.reference.fire_mask import fire_mask
from difflogic.reference.hard_loss import hard_loss
from difflogic.reference.rollout import hard_rollout, soft_gradients
from difflogic.reference.seed_grid import seed_grid
from difflogic.shape import Hyper, Shape

INFO = EngineInfo(engine="reference", adapter="NumPy", driver=np.__version__, software=True)


class ReferenceModel:
    """Implements `difflogic.engine.TrainingModel`."""

    def __init__(self, job: Job, state: TrainState) -> None:
        config = job.config
        self.info = INFO
        self._job = job
        self._layout = flat_layout(job.circuit)
        grid = (config.train.batch, config.task.height, config.task.width, config.model.channels)
        self._shape = Shape.of(job.circuit, grid, config.task.steps, config.task.loss_channels)
        self._hyper = Hyper.of(config.train)
        self._fire_rate, self._asynchronous = config.train.fire_rate, config.train.asynchronous
        self._logits = state.logits.copy()
        self._mu, self._nu = state.optimizer.mu.copy(), state.optimizer.nu.copy()
        self._control = np.zeros(c.WORDS, dtype=np.uint32)
        self._control[c.DATA_KEY], self._control[c.TRAIN_KEY] = state.data_key, state.train_key
        self._control[c.STEP], self._control[c.EPOCH] = state.optimizer.step, state.epoch
        self._control[c.SKIPPED] = state.skipped
        self._start = np.zeros((config.model.channels, self._shape.cells), dtype=np.float32)
        flat_target = job.fixed_target.reshape(-1, config.task.loss_channels).T
        self._targets = np.tile(flat_target, (1, config.train.batch)).astype(np.float32)
        self._hard_targets = np.where(flat_target > 0.5, np.uint32(0xFFFFFFFF), np.uint32(0))
        self._history = np.empty((1, 2), dtype=np.float32)
        self._waiting: list[EpochMetrics] = []

    def train(self, epochs: int) -> None:
        for _ in range(epochs):
            self._train_step()

    def _train_step(self) -> None:
        shape, control = self._shape, self._control
        seed_grid(shape, control, self._start)
        masks = None
        if self._asynchronous:
            masks = np.empty((shape.steps, shape.cells_per_grid), dtype=np.float32)
            fire_mask(shape, self._fire_rate, control, masks)
        partials, gradients = soft_gradients(
            shape, self._layout, self._logits, masks, self._start, self._targets, control
        )
        commit(partials, control, self._history)
        adamw(self._hyper, control, gradients, self._logits, self._mu, self._nu)
        loss, skipped = self._history[0]
        self._waiting.append(EpochMetrics(int(control[c.EPOCH]), float(loss), bool(skipped)))

    def drain(self) -> list[EpochMetrics]:
        drained, self._waiting = self._waiting, []
        return drained

    def evaluate(self) -> Evaluation:
        shape = self._shape
        fire = self._job.probe_masks
        masks = None if fire is None else fire.reshape(shape.steps, shape.cells_per_grid)
        batch = self._start.T.reshape(shape.batch, shape.height, shape.width, shape.channels)
        probes = self._count_wrong(self._job.probes, masks)
        return Evaluation(
            hard_loss=int(probes[:, 0].sum()),
            train_hard_loss=int(self._count_wrong(batch, masks)[:, 0].sum()),
            values=self._job.values,
            wrong_probes=int(np.bitwise_count(probes[:, 1]).sum()),
        )

    def _count_wrong(self, grids: np.ndarray, masks: np.ndarray | None) -> np.ndarray:
        """`[groups, 2]`: wrong values after a hard rollout, and the bits of the samples with any."""
        words = hard_rollout(self._shape, self._layout, self._logits, masks, pack(grids))
        shape = dataclasses.replace(self._shape, batch=-(-len(grids) // WORD))
        counts = np.empty((shape.batch, 2), dtype=np.uint32)
        hard_loss(shape, len(grids), words[-1], self._hard_targets, counts)
        return counts

    def to_cpu(self) -> TrainState:
        control = self._control
        optimizer = OptimizerState(self._mu.copy(), self._nu.copy(), int(control[c.STEP]))
        return TrainState(
            logits=self._logits.copy(),
            optimizer=optimizer,
            data_key=control[c.DATA_KEY].copy(),
            train_key=control[c.TRAIN_KEY].copy(),
            epoch=int(control[c.EPOCH]),
            skipped=int(control[c.SKIPPED]),
        )

    def max_epochs_per_call(self) -> int:
        return 1

    def close(self) -> None:
        """Nothing to free."""
