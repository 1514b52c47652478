"""Train a circuit on the processor."""

import math
import time
from itertools import groupby

import numpy as np

from difflogic.core import bits
from difflogic.cpu import phases
from difflogic.cpu.hard.hard_workspace import HardWorkspace
from difflogic.cpu.workspace import SoftWorkspace, shared_start
from difflogic.engine import control as c
from difflogic.engine.api import EngineInfo, EpochMetrics, Evaluation
from difflogic.engine.job import Job, TrainState
from difflogic.engine.shape import Hyper, Shape

CALL_SECONDS = 0.1
"""Target duration of one call of `train` in seconds; signals are handled only between calls."""


class CpuModel:
    """Model of one run on the processor, see `difflogic.engine.api.Model`."""

    def __init__(self, job: Job, state: TrainState, info: EngineInfo, threads: int) -> None:
        config, circuit = job.config, job.circuit
        shape = Shape.training(circuit, config)
        self.info = info
        self._job = job
        hyper, masked = Hyper.of(config), config.train.asynchronous
        self.work = SoftWorkspace(circuit, shape, threads, hyper, masked, job, start=shared_start(job))
        self.work.set_targets(job.first_targets())
        self.epoch = phases.epoch(shape, job, self.work.steps.spread)
        """Phases of a train step."""
        self._probe_words, self._probe_targets = bits.pack_grids(job.probes), bits.pack_targets(job.probe_targets)
        # Evaluation grids and batch are evaluated together, in separate groups. Words have 64 bits here and 32 on the
        # GPU, and groups of 32 samples are the common unit. For example, 40 evaluation grids are two groups and a batch
        # of 17 is one: three groups fit into two 64-bit words, with one half empty.
        groups, masks = _groups(len(job.probes)) + _groups(shape.batch), job.probe_masks
        self._hard = HardWorkspace(circuit, shape, math.ceil(groups / 2), 2, threads, masks is not None)
        if masks is not None:
            self._hard.set_masks(masks)
        self._waiting: list[EpochMetrics] = []
        self._epochs_per_call = 1
        self.work.set_logits(state.logits, state.optimizer.mu, state.optimizer.nu)
        self.work.buffers.control[:] = c.words_of(state)
        if state.pool is not None:
            self.work.buffers.pool[:] = state.pool.reshape(len(state.pool), -1)

    def train(self, epochs: int) -> None:
        if epochs < 1:
            return
        first = int(self.work.buffers.control[c.EPOCH]) + 1
        begin = time.perf_counter()
        history = self.work.run(self.epoch, epochs)
        seconds = (time.perf_counter() - begin) / epochs
        # Compiled code handles no signal: Ctrl-C waits until the call returns, so that calls must be short.
        self._epochs_per_call = max(1, int(CALL_SECONDS / max(seconds, 1e-6)))
        self._waiting += [
            EpochMetrics(epoch, float(loss), bool(skipped)) for epoch, (loss, skipped) in enumerate(history, first)
        ]

    def fetch_metrics(self) -> list[list[EpochMetrics]]:
        metrics, self._waiting = self._waiting, []
        return [metrics]

    def epochs_per_call(self) -> int:
        return self._epochs_per_call

    def evaluate(self) -> list[Evaluation]:
        job, shape = self._job, self.work.shape
        first, groups = _groups(len(job.probes)), _groups(shape.batch)
        self._damage(first)
        batch = bits.pack_grids(self.work.start().astype(np.uint8))
        self._hard.set_start(np.concatenate([self._probe_words, batch], axis=1))
        self._hard.run(self.work.buffers.logits)
        targets = np.concatenate([self._probe_targets, bits.pack_targets(self.work.targets())], axis=2)
        missing = 2 * self._hard.shape.cells - targets.shape[2]  # padding that completes 64-bit words
        values, counted = np.moveaxis(np.pad(targets, [(0, 0), (0, 0), (0, missing), (0, 0)]), -1, 0)
        wrong = (self._hard.loss_states() ^ values) & counted
        wrong = wrong.reshape(*wrong.shape[:2], -1, shape.cells_per_grid)
        of_probes, of_batch = wrong[:, :, :first], wrong[:, :, first : first + groups]
        evaluation = Evaluation(
            hard_loss=int(np.bitwise_count(of_probes).sum(dtype=np.int64)),
            train_hard_loss=int(np.bitwise_count(of_batch).sum(dtype=np.int64)),
            values=job.values,
            wrong_probes=int(np.bitwise_count(np.bitwise_or.reduce(of_probes, axis=(0, 1, 3))).sum()),
        )
        return [evaluation]

    def _damage(self, first: int) -> None:
        """Set the damage of the evaluation grids and, from sample group `first` on, of the last epoch's batch."""
        job, buffers = self._job, self.work.buffers
        of_probes = job.damage_of_probes(len(job.probes))
        # The batch's initial states already have the damage and faults of step 0: bits must not flip back.
        of_batch = job.damage(buffers.corners, buffers.faults.key, self.work.shape.batch, first=1)
        if of_probes is not None and of_batch is not None:
            self._hard.set_damage([(0, of_probes), (first, of_batch)])

    def states(self) -> list[TrainState]:
        shape, buffers = self.work.shape, self.work.buffers
        logits, mu, nu = map(self.work.per_gate, (buffers.logits, buffers.mu, buffers.nu))
        pool = buffers.pool.reshape(-1, shape.height, shape.width, shape.channels).copy() if buffers.pool.size else None
        return [c.state_of(buffers.control, logits, mu, nu, pool)]

    @property
    def nbytes(self) -> int:
        soft, hard = self.work, self._hard
        tuples = (soft.buffers, soft.program, soft.grid, hard.buffers, hard.plan, hard.program)
        return sum(value.nbytes for fields in tuples for value in fields if isinstance(value, np.ndarray))

    def close(self) -> None:
        """Do nothing, since the buffers are freed with the object."""


def _groups(samples: int) -> int:
    """Return the number of groups of 32 samples that contain `samples` samples."""
    return -(-samples // bits.WORD)


def time_phases(model: CpuModel) -> list[tuple[str, int, float]]:
    """Run one train step phase by phase; return (name, number of CA steps or 1, seconds) for each kind of phase."""
    times = []
    for name, run in groupby(model.epoch, key=lambda phase: phases.NAMES[phase[0]]):
        part = np.array(list(run))
        begin = time.perf_counter()
        model.work.run(part)
        per_step = part[0, 0] in (phases.FORWARD, phases.BACKWARD)
        times.append((name, len(part) if per_step else 1, time.perf_counter() - begin))
    return times
