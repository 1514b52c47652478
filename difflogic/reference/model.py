"""Training in NumPy: the train step in the order of the equations; all engines are tested against it."""

import dataclasses

import numpy as np

from difflogic.core import prng
from difflogic.core.bits import WORD, pack_grids, pack_targets
from difflogic.engine import control as c
from difflogic.engine.api import EngineInfo, EpochMetrics, Evaluation
from difflogic.engine.events import Hardening
from difflogic.engine.job import Job, TrainState
from difflogic.engine.shape import Array, Hyper, Shape
from difflogic.model.layout import flat_layout
from difflogic.reference.kernels.adamw import adamw
from difflogic.reference.kernels.clip_norm import clip_norm
from difflogic.reference.kernels.coefficients import Parameters
from difflogic.reference.kernels.commit import commit
from difflogic.reference.kernels.draw_corners import draw_corners
from difflogic.reference.kernels.draw_faults import draw_faults
from difflogic.reference.kernels.draw_pool import draw_pool
from difflogic.reference.kernels.draw_samples import draw_samples
from difflogic.reference.kernels.fire_mask import fire_mask
from difflogic.reference.kernels.hard_loss import hard_loss
from difflogic.reference.kernels.harden import harden
from difflogic.reference.kernels.rule_target import rule_target
from difflogic.reference.kernels.same_start import same_start
from difflogic.reference.kernels.sample_losses import sample_losses
from difflogic.reference.kernels.seed_boards import seed_boards
from difflogic.reference.kernels.seed_grid import seed_grid
from difflogic.reference.kernels.write_back import write_back
from difflogic.reference.rollout import RolloutSpec, cells_last, hard_rollout, soft_gradients

INFO = EngineInfo(engine="reference", adapter="NumPy", driver=np.__version__, software=True)


class ReferenceModel:
    """Implementation of `difflogic.engine.api.Model` for one model."""

    def __init__(self, job: Job, state: TrainState) -> None:
        self.info = INFO
        self._job = job
        self._layout = flat_layout(job.circuit)
        shape = self._shape = Shape.training(job.circuit, job.config)
        self._hyper = Hyper.of(job.config)
        self._logits = state.logits.copy()
        self._mu, self._nu = state.optimizer.mu.copy(), state.optimizer.nu.copy()
        self._pool = None if state.pool is None else state.pool.copy()
        self._control = c.words_of(state)
        self._start = np.zeros((shape.channels, shape.cells), dtype=np.float32)
        self._fresh = np.zeros_like(self._start)
        self._places = np.zeros(shape.batch, dtype=np.int64)
        self._corners = np.zeros((len(shape.damage_steps), shape.batch, 2), dtype=np.int64)
        self._fault_key = np.zeros(2, dtype=np.uint32)
        self._targets = cells_last(job.first_targets())
        self._history = np.empty((1, 2), dtype=np.float32)
        self._waiting: list[EpochMetrics] = []

    def train(self, epochs: int) -> None:
        for _ in range(epochs):
            self._train_step()

    def _train_step(self) -> None:
        shape, control = self._shape, self._control
        self._draw_starts()
        spec = self._draw_spec()
        done = soft_gradients(spec, self._logits, self._start, self._targets, control)
        # The same order as in a GPU's train step. `commit` must come before `adamw`, which reads its step and flag.
        if self._hyper.clip_by == "norm":
            clip_norm(self._hyper, done.gradients, control)
        commit(done.loss_partials, control, self._history)
        self._step(done.gradients)
        if self._pool is not None and not self._job.config.pool.starts:
            losses, last = np.empty(shape.batch, dtype=np.float32), done.states[-1]
            with np.errstate(over="ignore", invalid="ignore"):  # the values of a skipped epoch
                sample_losses(shape, last, self._targets, losses)
            resets = self._job.config.pool.reset
            write_back(shape, resets, control, last, self._fresh, losses, self._places, self._pool)
        loss, skipped = self._history[0]
        self._waiting.append(EpochMetrics(int(control[c.EPOCH]), float(loss), bool(skipped)))

    def _step(self, gradients: Array) -> None:
        """Update the logits of gates, then those of candidates, by AdamW; only logits of gates may be input-wise."""
        gates, plain = self._layout.gates, dataclasses.replace(self._hyper, input_wise=False)
        arrays = gradients, self._logits, self._mu, self._nu
        adamw(self._hyper, self._control, *(each[:gates] for each in arrays))
        adamw(plain, self._control, *(each[gates:] for each in arrays))

    def _draw_starts(self) -> None:
        """Sample this epoch's initial states (from the pool or data set, if any), and targets that depend on them."""
        shape, control, job = self._shape, self._control, self._job
        # With a pool, new initial states are only stored, to replace the worst samples once the losses are known.
        into = self._start if self._pool is None else self._fresh
        if job.start is not None:
            same_start(shape, job.start.reshape(-1, shape.channels), into)
        elif job.config.task.start == "boards":
            seed_boards(shape, control, into)
        else:
            seed_grid(shape, control, into)
        if self._pool is not None:
            draw_pool(shape, control, self._pool, self._start, self._places)
        if job.rule is not None:
            rule_target(shape, self._start, job.rule, self._targets[0])
        if job.data is not None:
            draw_samples(shape, control, job.data.x, job.data.y, self._start, self._targets)

    def _draw_spec(self) -> RolloutSpec:
        """Return a spec with the epoch's sampled fire masks, damage, faults and hardened gates."""
        shape, control, config = self._shape, self._control, self._job.config
        masks = None
        if config.train.asynchronous:
            masks = np.empty((shape.steps, shape.cells_per_grid), dtype=np.float32)
            fire_mask(shape, config.train.fire_rate, control, masks)
        draw_corners(shape, control, self._corners)
        draw_faults(control, self._fault_key)
        hardened = None
        if config.hardening.share or config.task.stuck_gates:
            coefficients = np.empty((self._layout.gates, 4), dtype=np.float32)
            candidates = self._layout.wire_logits(self._logits)
            shares = None if candidates is None else np.empty_like(candidates)
            logits = self._logits[: len(coefficients)]
            harden(Hardening.of(config.hardening), shape.faults, control, logits, coefficients, candidates, shares)
            hardened = Parameters(coefficients, shares)
        return RolloutSpec(shape, self._layout, masks, self._corners, hardened, self._job.faults(self._fault_key))

    def fetch_metrics(self) -> list[list[EpochMetrics]]:
        metrics, self._waiting = self._waiting, []
        return [metrics]

    def evaluate(self) -> list[Evaluation]:
        job, shape = self._job, self._shape
        sizes = shape.batch, shape.height, shape.width
        grids = self._start.T.reshape(*sizes, shape.channels).astype(np.uint8)
        targets = np.moveaxis(self._targets.reshape(*self._targets.shape[:2], *sizes), 1, -1)
        probes = self._count_wrong(job.probes, job.probe_targets, job.probe_damage, job.probe_fault_key)
        batch = self._count_wrong(grids, targets, self._corners, self._fault_key)
        judged = Evaluation(
            hard_loss=int(probes[:, 0].sum()),
            train_hard_loss=int(batch[:, 0].sum()),
            values=job.values,
            wrong_probes=int(np.bitwise_count(probes[:, 1]).sum()),
        )
        return [judged]

    def _count_wrong(self, grids: Array, targets: Array, corners: Array | None, key: prng.Key) -> Array:
        """Run a hard rollout; return each group's number of mismatches and bits of mismatched samples, `[groups, 2]`.

        `targets` are `[J, B, H, W, loss_channels]`.
        """
        shape, fire = self._shape, self._job.probe_masks
        masks = None if fire is None else fire.reshape(shape.steps, shape.cells_per_grid)
        spec = RolloutSpec(shape, self._layout, masks, corners, faults=self._job.faults(key))
        _, judged = hard_rollout(spec, self._logits, pack_grids(grids))
        hard_targets = pack_targets(targets)
        counts = np.zeros((-(-len(grids) // WORD), 2), dtype=np.uint32)
        packed = dataclasses.replace(shape, batch=len(counts))
        for mark, words in enumerate(judged):
            hard_loss(packed, mark, words, hard_targets, counts)
        return counts

    def states(self) -> list[TrainState]:
        pool = None if self._pool is None else self._pool.copy()
        return [c.state_of(self._control, self._logits.copy(), self._mu.copy(), self._nu.copy(), pool)]

    def epochs_per_call(self) -> int:
        return 1

    def close(self) -> None:
        """Do nothing: there is nothing to free."""
