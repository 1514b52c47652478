"""A training run in NumPy: the train step in the order of the equations, and the judge of every other."""

from __future__ import annotations

import numpy as np

from difflogic import control as c
from difflogic import prng
from difflogic.bits import pack
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
        self._logits = state.logits.copy()
        self._mu, self._nu = state.optimizer.mu.copy(), state.optimizer.nu.copy()
        self._control = np.zeros(c.WORDS, dtype=np.uint32)
        self._control[c.DATA_KEY], self._control[c.TRAIN_KEY] = state.data_key, state.train_key
        self._control[c.STEP], self._control[c.EPOCH] = state.optimizer.step, state.epoch
        self._control[c.SKIPPED] = state.skipped
        self._start = np.zeros((1, config.model.channels, self._shape.cells), dtype=np.float32)
        flat_target = job.target.reshape(-1, config.task.loss_channels).T
        self._targets = np.tile(flat_target, (1, config.train.batch)).astype(np.float32)
        self._waiting: list[EpochMetrics] = []

    def train(self, epochs: int) -> None:
        for _ in range(epochs):
            self._train_step()

    def _train_step(self) -> None:
        seed_grid(self._shape, self._control, self._start)
        masks = self._masks(prng.split(self._control[c.TRAIN_KEY])[1])
        loss, gradients = soft_gradients(self._shape, self._layout, self._logits, masks, self._start[0], self._targets)
        commit(loss, gradients, self._control)
        adamw(self._hyper, self._control, gradients, self._logits, self._mu, self._nu)
        skipped = bool(self._control[c.NONFINITE])
        self._waiting.append(EpochMetrics(int(self._control[c.EPOCH]), float(np.float32(loss)), skipped))

    def _masks(self, key: prng.Key) -> np.ndarray | None:
        """Fire masks `[T, H*W]`, or None for a synchronous automaton."""
        if not self._job.config.train.asynchronous:
            return None
        masks = np.empty((self._shape.steps, self._shape.cells_per_grid), dtype=np.float32)
        fire_mask(self._shape, self._job.config.train.fire_rate, key, masks)
        return masks

    def drain(self) -> list[EpochMetrics]:
        drained, self._waiting = self._waiting, []
        return drained

    def evaluate(self) -> Evaluation:
        masks = self._masks(self._job.probe_key)
        batch = self._start[0].T.reshape(-1, self._shape.height, self._shape.width, self._shape.channels)
        wrong = []
        for grids in (self._job.probes, batch):
            words = hard_rollout(self._shape, self._layout, self._logits, masks, pack(grids))
            wrong.append(hard_loss(words[-1], self._job.target, len(grids)))
        return Evaluation(
            hard_loss=wrong[0][0],
            train_hard_loss=wrong[1][0],
            values=len(self._job.probes) * self._job.target.size,
            wrong_probes=wrong[0][1],
        )

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
