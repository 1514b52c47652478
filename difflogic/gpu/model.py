"""Training of one or more models of equal shape, with the complete state on the device."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core import bits
from difflogic.engine import control as c
from difflogic.engine.api import EngineInfo, EpochMetrics, Evaluation
from difflogic.engine.events import Hardening
from difflogic.engine.job import Job, TrainState
from difflogic.engine.shape import Array, Hyper
from difflogic.errors import DataError
from difflogic.gpu.device import DeviceVerbs, computing
from difflogic.gpu.plan import HISTORY, Plan
from difflogic.gpu.submit import SUBMIT_SECONDS, Dispatch, encode
from difflogic.gpu.workspace import Workspace, to_chunks


@dataclass(frozen=True)
class _Submit:
    """Pending submit of train steps, whose metrics are copied into the buffer `staging`."""

    staging: Any
    first_epoch: int
    epochs: int
    sent_at: float


class GpuModel:
    """GPU implementation of `difflogic.engine.api.Model`; the M models share every dispatch."""

    def __init__(self, device: DeviceVerbs, jobs: Sequence[Job], plan: Plan) -> None:
        config = jobs[0].config
        self.device, self.plan, self._jobs = device, plan, jobs
        hardening = Hardening.of(config.hardening)
        self.workspace = Workspace(device, plan, Hyper.of(config), config.train.fire_rate, hardening)
        self._upload_task()
        entry = len(jobs) * 8
        # Two buffers, so that one can be read while the next submit already copies into the other.
        self._staging = [device.staging("history staging", HISTORY * entry) for _ in range(2)]
        self._counts_staging = device.staging("counts staging", self.workspace.buffers["counts"].size)
        self._pending: _Submit | None = None
        self._waiting: list[list[EpochMetrics]] = [[] for _ in jobs]
        self._epoch = 0
        self._turn = 0
        self._epochs_per_submit = 1
        self._ready_at = 0.0

    @classmethod
    def from_cpu(cls, device: DeviceVerbs, jobs: Sequence[Job], states: Sequence[TrainState], plan: Plan) -> GpuModel:
        """Upload models to the device, ready to train. Raises LimitError if they do not fit into memory."""
        model = cls(device, jobs, plan)
        model.upload(states)
        return model

    @cached_property
    def info(self) -> EngineInfo:
        """Description of the device and of the schedule in use."""
        return computing(self.device).info(self.plan.launch)

    def upload(self, states: Sequence[TrainState]) -> None:
        """Replace the training state, and compute coefficients from its logits. Raises DataError if epochs differ."""
        self.fill(states)
        self.workspace.submit(self.workspace.coefficients)

    def fill(self, states: Sequence[TrainState]) -> None:
        """Upload logits, moments, counters and keys. Raises DataError if the states are of different epochs."""
        epochs = sorted({state.epoch for state in states})
        if len(epochs) > 1:
            raise DataError(f"Expected all models of a population at the same epoch, got epochs {epochs}.")
        workspace = self.workspace
        workspace.upload("logits", np.stack([state.logits for state in states]), "state")
        workspace.upload("mu", np.stack([state.optimizer.mu for state in states]), "state")
        workspace.upload("nu", np.stack([state.optimizer.nu for state in states]), "state")
        workspace.upload("control", np.stack([c.words_of(state) for state in states]), "state")
        if self.plan.batch_source.pool:
            workspace.upload("pool", np.stack([pool_words(state.pool) for state in states]), "state")
        self._epoch = states[0].epoch

    def _upload_task(self) -> None:
        """Upload constant data: targets, evaluation grids with damage and faults, shared initial state, and rule."""
        plan, workspace, jobs = self.plan, self.workspace, self._jobs
        shape = plan.shape
        targets = np.stack([job.first_targets() for job in jobs])
        by_cell = targets.reshape(plan.models, shape.targets, -1, shape.loss_channels)
        workspace.upload("targets", to_chunks(by_cell, plan.chunks), "task")
        cells = plan.groups * shape.cells_per_grid
        hard_targets = np.zeros((plan.models, shape.targets, cells, shape.loss_channels, 2), dtype=np.uint32)
        for model, job in enumerate(jobs):
            of_probes = bits.pack_targets(job.probe_targets).swapaxes(1, 2)
            hard_targets[model, :, : of_probes.shape[1]] = of_probes
        workspace.upload("hard_targets", hard_targets, "task")
        # The evaluation grids stay in `words` 0 for the entire run: `pack` puts the training batch behind them.
        words = [to_chunks(bits.pack_grids(job.probes).T, plan.hard_chunks) for job in jobs]
        workspace.upload(workspace.words(0), np.stack(words), "task")
        masks = [job.probe_masks for job in jobs if job.probe_masks is not None]
        if masks:
            workspace.upload("hard_masks", np.stack(masks), "task")
        corners = [job.probe_damage for job in jobs if job.probe_damage is not None]
        if corners:
            workspace.upload("corners", corner_words(np.stack(corners), plan), "task")
        if plan.shape.faults.states:
            workspace.set_faults([job.probe_fault_key for job in jobs], jobs[0].listed)
        if jobs[0].start is not None:
            workspace.upload("same", jobs[0].start.astype(np.float32), "task")
        if jobs[0].rule is not None:
            workspace.upload("rule", jobs[0].rule.astype(np.uint32), "task")
        if jobs[0].data is not None:  # shared by all models, whose seeds select different batches
            codes = jobs[0].data.y
            workspace.upload("x", bit_words(jobs[0].data.x), "task")
            workspace.upload("y", np.stack([bit_words(codes > 0), bit_words(codes >= 0)], axis=-1), "task")

    # training -----------------------------------------------------------------------------------------

    @cached_property
    def train_step(self) -> list[Dispatch]:
        """Dispatches of one complete train step, in order."""
        workspace, config = self.workspace, self._jobs[0].config
        fire = [workspace.dispatch("fire_mask")] if config.train.asynchronous else []
        harden = [workspace.dispatch("harden")] if config.hardening.share or config.task.stuck_gates else []
        drawn = [*harden, *workspace.seed, *fire, *workspace.corners]
        return [*drawn, *workspace.forward, *workspace.backward, *workspace.update]

    def train(self, epochs: int) -> None:
        """Queue `epochs` train steps, divided into submits, with at most two submits pending at a time."""
        submit_queue, device = self.workspace.submit_queue, computing(self.device)
        while epochs > 0:
            count = min(epochs, self._epochs_per_submit)
            # Short train steps share a submit; long ones take several, since a submit cannot be interrupted.
            *before, last = [self.train_step * count] if count > 1 else submit_queue.pieces(self.train_step)
            if before:
                self._collect()
            sent_at = time.perf_counter()
            submit_queue.submit(before)
            encoder = encode(device, last)
            staging = self._staging[self._turn]
            self._copy_history(encoder, staging, count)
            # Wait after encoding and before submitting, so that the device is busy while Python encodes.
            commands = encoder.finish()
            self._collect()
            device.queue.submit([commands])
            self._pending = _Submit(staging, self._epoch, count, sent_at)
            self._epoch += count
            self._turn = 1 - self._turn
            epochs -= count

    def _copy_history(self, encoder: Any, staging: Any, count: int) -> None:
        """Encode a copy of the last `count` entries of the metrics ring into `staging`, oldest entry first."""
        entry = self.plan.models * 8
        # `commit` writes epoch e at place e % 64, so that the last `count` may lie in two pieces, the older at the end.
        start = self._epoch % HISTORY
        first = min(count, HISTORY - start)
        history = self.workspace.buffers["history"]
        encoder.copy_buffer_to_buffer(history, start * entry, staging, 0, first * entry)
        if first < count:
            encoder.copy_buffer_to_buffer(history, 0, staging, first * entry, (count - first) * entry)

    def _collect(self) -> None:
        """Wait for the pending submit, store its metrics, and adapt the next submit's size to its duration."""
        if self._pending is None:
            return
        done, self._pending = self._pending, None
        size = done.epochs * self.plan.models * 8
        read = computing(self.device).read_staging(done.staging, size, np.uint32, "metrics")
        words = read.reshape(done.epochs, -1, 2)
        losses, skips = words[..., 0].T.view(np.float32).tolist(), words[..., 1].T.astype(bool).tolist()
        epochs = range(done.first_epoch + 1, done.first_epoch + done.epochs + 1)
        for waiting, *columns in zip(self._waiting, losses, skips, strict=True):
            waiting += map(EpochMetrics, epochs, *columns)
        now = time.perf_counter()
        # A submit begins to run when the previous one ends. The time that it waited does not count as its duration.
        per_epoch = (now - max(done.sent_at, self._ready_at)) / done.epochs
        self._ready_at = now
        self._epochs_per_submit = max(1, min(HISTORY, int(SUBMIT_SECONDS / max(per_epoch, 1e-6))))
        self.workspace.submit_queue.learn(self.train_step, per_epoch)

    def fetch_metrics(self) -> list[list[EpochMetrics]]:
        self._collect()
        metrics, self._waiting = self._waiting, [[] for _ in self._jobs]
        return metrics

    def epochs_per_call(self) -> int:
        return self._epochs_per_submit

    def evaluate(self) -> list[Evaluation]:
        return [self._evaluation(*each) for each in zip(self._jobs, self._counts(), strict=True)]

    def _evaluation(self, job: Job, counts: Array) -> Evaluation:
        """Return the evaluation of a model from its `counts` `[groups, 2]`, one model's result of `_counts`."""
        probe_groups = self.plan.probe_groups
        return Evaluation(
            hard_loss=int(counts[:probe_groups, 0].sum(dtype=np.int64)),
            train_hard_loss=int(counts[probe_groups:, 0].sum(dtype=np.int64)),
            values=job.values,
            wrong_probes=int(np.bitwise_count(counts[:probe_groups, 1]).sum()),
        )

    def _counts(self) -> Array:
        """Run an evaluation; return `[M, groups, 2]`: mismatches and bit mask of mismatched samples, per 32 samples."""
        counts = self.workspace.buffers["counts"]
        submit_queue, device = self.workspace.submit_queue, computing(self.device)
        *before, last = submit_queue.pieces(self.workspace.evaluation)
        if before:
            self._collect()
        submit_queue.submit(before)
        encoder = encode(device, last)
        encoder.copy_buffer_to_buffer(counts, 0, self._counts_staging, 0, counts.size)
        device.queue.submit([encoder.finish()])
        # A short evaluation is submitted while the device still trains, so that it begins without waiting for the host.
        self._collect()
        words = device.read_staging(self._counts_staging, counts.size, np.uint32, "evaluation")
        return words.reshape(self.plan.models, self.plan.groups, 2)

    # state --------------------------------------------------------------------------------------------

    def states(self) -> list[TrainState]:
        self._collect()
        download = self.workspace.download
        shape = (self.plan.models, self.plan.layout.parameters, 16)
        floats = [download(name, np.float32, "checkpoint").reshape(shape) for name in ("logits", "mu", "nu")]
        words = download("control", np.uint32, "checkpoint").reshape(-1, c.WORDS)
        return [c.state_of(*each) for each in zip(words, *floats, self._pools(), strict=True)]

    def _pools(self) -> list[npt.NDArray[np.uint8] | None]:
        """Download the sample pool of each model; each entry is None without a pool."""
        plan = self.plan
        if not plan.batch_source.pool:
            return [None] * plan.models
        shape = plan.shape
        words = self.workspace.download("pool", np.uint32, "checkpoint").reshape(
            plan.models, plan.batch_source.pool, -1
        )
        values = np.unpackbits(
            words.astype("<u4").view(np.uint8), axis=2, count=shape.cells_per_grid * shape.channels, bitorder="little"
        )
        return list(values.reshape(plan.models, plan.batch_source.pool, shape.height, shape.width, shape.channels))

    def close(self) -> None:
        self._collect()
        self.workspace.close()
        for staging in (*self._staging, self._counts_staging):
            staging.destroy()


def corner_words(corners: npt.NDArray[np.int64], plan: Plan) -> npt.NDArray[np.uint32]:
    """Return `corners` of damage squares for all samples of the plan, `[M, D, samples, 2]`, padded with zeros."""
    words = np.zeros((*corners.shape[:2], plan.corner_samples, 2), dtype=np.uint32)
    words[:, :, : corners.shape[2]] = corners
    return words


def pool_words(pool: npt.NDArray[np.uint8] | None) -> npt.NDArray[np.uint32]:
    """Pack binary grids `[pool, H, W, C]` into words of 32 values, `[pool, ceil(H*W*C / 32)]`."""
    if pool is None:
        raise DataError("Expected a state with a sample pool, as in the configuration, got a state without one.")
    return bit_words(pool)


def bit_words(values: Array) -> npt.NDArray[np.uint32]:
    """Pack each binary array of `[N, ...]` into words of 32 values, `[N, words]`."""
    packed = np.packbits(values.reshape(len(values), -1), axis=1, bitorder="little")
    padded = np.pad(packed, [(0, 0), (0, -packed.shape[1] % 4)])
    return np.ascontiguousarray(padded).view("<u4").astype(np.uint32)
