"""Training jobs and training states, which engines receive and return, and functions that make jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.config.dataset import Dataset, held_out_samples
from difflogic.config.schema import Config
from difflogic.config.task import TaskConfig
from difflogic.core import prng, rules, text_picture
from difflogic.core.bits import IGNORED
from difflogic.engine import events
from difflogic.engine.events import Damage, FaultRates, Faults
from difflogic.errors import DataError, UsageError
from difflogic.model.circuit import Circuit
from difflogic.model.deployment import Scenario
from difflogic.system.brief import brief

Floats = npt.NDArray[np.float32]

PROBE_STREAM = 0x70726F62
"""Constant ("prob") that `fold_in` mixes into the seed's key to sample evaluation grids and their damage."""
PROBE_MASK_STREAM = 0x6D61736B
"""Constant ("mask") that `fold_in` mixes into the seed's key to sample the fire masks of hard evaluation."""


@dataclass(frozen=True, eq=False)
class OptimizerState:
    """Moments of AdamW, and the number of steps taken.

    The moments are float32 `[P, 16]`, in the order of `Circuit.flat_logits`.

        >>> difflogic.OptimizerState.fresh(circuit).step
        0
    """

    mu: Floats
    nu: Floats
    step: int = 0

    __repr__ = brief

    @classmethod
    def fresh(cls, circuit: Circuit) -> OptimizerState:
        """Make the state before the first step, whose moments are 0.

        Args:
            circuit: The circuit to be trained.

        Returns:
            The state.
        """
        zeros = np.zeros((circuit.parameters, 16), dtype=np.float32)
        return cls(zeros, zeros.copy(), 0)  # two arrays, since an engine may update each in place


@dataclass(frozen=True, eq=False)
class TrainState:
    """State of a training run. On the same device and driver, training from a saved state continues bit for bit."""

    logits: Floats
    """Logits, `[P, 16]`, in the order of `Circuit.flat_logits`."""
    optimizer: OptimizerState
    data_key: prng.Key
    """Random key of initial states; each epoch computes `data_key, sub = split(data_key)` and samples with `sub`."""
    train_key: prng.Key
    """Random key of masks, damage, faults and hard gates; an epoch uses k1 of `train_key, k1 = split(train_key)`."""
    epoch: int = 0
    """Number of completed epochs, including skipped epochs."""
    skipped: int = 0
    """Number of epochs whose loss or gradient was not finite; they were skipped and changed only keys and counters."""
    pool: npt.NDArray[np.uint8] | None = None
    """Sample pool, `[pool, H, W, C]` of 0 and 1; None for training without a pool."""
    costs: npt.NDArray[np.uint32] | None = None
    """Cost of each mismatch in a local search (`engine.search`), `[J, loss_channels, P*H*W]`; None outside a search."""

    __repr__ = brief

    @classmethod
    def initial(cls, job: Job) -> TrainState:
        """Make the state before the first epoch.

        As in the notebooks, both key chains begin with `PRNGKey(seed)`. The training key is split once before the first
        epoch, the data key only if `start` is `boards`. A pool is filled with sampled initial states.
        """
        key = prng.key_from_seed(job.config.seed)
        split = prng.split(key)[0]
        # The authors' notebooks for the two kinds of task split their first key differently. With the same keys, the
        # first losses can be compared with the notebooks' losses.
        data_key = split if job.config.task.start == "boards" else key
        pool = job.config.pool.size
        return cls(
            logits=job.circuit.flat_logits().astype(np.float32),
            optimizer=OptimizerState.fresh(job.circuit),
            data_key=data_key,
            train_key=split,
            pool=job.fresh(prng.fold_in(data_key, events.POOL_STREAM), pool) if pool else None,
        )


@dataclass(frozen=True, eq=False)
class Job:
    """Training run in the form that engines use: its configuration, circuit and arrays, without files."""

    config: Config
    circuit: Circuit
    """Circuit with its wiring and initial logits; the current logits are in the TrainState."""
    target: Floats | None
    """Target of all initial states, `[H, W, loss_channels]` of 0 and 1; None if `rule` or `data` defines targets."""
    probes: npt.NDArray[np.uint8]
    """Initial states of the evaluation grids, `[P, H, W, C]` of 0 and 1, for hard evaluation."""
    probe_masks: Floats | None = None
    """Fire masks of hard evaluation, `[T, H, W, 1]` of 0 and 1; None for a synchronous automaton."""
    start: npt.NDArray[np.uint8] | None = None
    """Initial state of all rollouts, `[H, W, C]` of 0 and 1, except channels from `data`; None if it is random."""
    rule: npt.NDArray[np.uint8] | None = None
    """Rule table `[512]` of 0 and 1 (`core.rules`), which maps channel 0 to the target; None for other tasks."""
    probe_damage: npt.NDArray[np.int64] | None = None
    """Row and column of each damaged square in evaluation grids, `[len(damage_steps), P, 2]`; None without damage."""
    data: Dataset | None = None
    """Data samples for training; None for a task without data samples."""
    held_out: Dataset | None = None
    """Data samples for evaluation, all samples if none are held out; None for a task without data samples."""

    __repr__ = brief

    def __post_init__(self) -> None:
        self.circuit.require_automaton()
        # For an engine a job is external data: inconsistencies are reported here, and not in a kernel.
        for name, is_needed in (
            ("probe_masks", self.config.train.asynchronous),
            ("probe_damage", bool(self.config.task.damage_steps)),
            ("data", self.config.task.target == "data"),
            ("rule", self.target is None and self.data is None),
        ):
            if (getattr(self, name) is not None) != is_needed:
                raise DataError(f"A job of this configuration {'requires' if is_needed else 'must not have'} {name}.")

    def targets(self, grids: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the targets `[B, H, W, loss_channels]` of the initial states `grids [B, H, W, C]`."""
        if self.rule is not None:
            return rules.apply(self.rule, grids[..., 0], self.circuit.periodic)[..., None]
        target = (self.fixed_target > 0.5).astype(np.uint8)
        return np.broadcast_to(target, (len(grids), *target.shape))

    @property
    def probe_targets(self) -> Floats:
        """Targets of the evaluation grids, `[J, P, H, W, loss_channels]`; values equal to IGNORED are not compared.

        J is 1 unless data samples have separate targets for all loss steps.
        """
        if self.held_out is not None:
            return self.held_out.targets
        return self.targets(self.probes)[None].astype(np.float32)

    def first_targets(self) -> Floats:
        """Return the fixed targets or, if they depend on the sample, placeholders, `[J, B, H, W, loss_channels]`."""
        task, batch = self.config.task, self.config.train.batch
        if self.target is not None:
            return np.broadcast_to(self.target, (1, batch, *self.target.shape))
        if self.data is not None:
            return np.zeros((self.config.data.targets, batch, *self.data.y.shape[2:]), dtype=np.float32)
        empty = np.zeros((batch, task.height, task.width, self.circuit.channels), dtype=np.uint8)
        return self.targets(empty)[None].astype(np.float32)

    def draw(self, key: prng.Key) -> tuple[npt.NDArray[np.uint8], Floats]:
        """Sample an epoch's initial states `[B, H, W, C]` and their targets; `key` is the epoch's data subkey."""
        batch = self.config.train.batch
        grids = self.fresh(key, batch)
        if self.data is None:
            return grids, self.targets(grids)[None].astype(np.float32)
        samples = self.data.only(events.draw_samples(key, batch, len(self.data)))
        grids[..., : self.config.data.channels] = samples.x
        return grids, samples.targets

    def fresh(self, key: prng.Key, count: int) -> npt.NDArray[np.uint8]:
        """Return `count` initial states, `[count, H, W, C]`, sampled with `key` if the task's are random."""
        task = self.config.task
        return events.draw_starts(task.start, key, (count, task.height, task.width, self.circuit.channels), self.start)

    def damage_of_probes(self, count: int) -> Damage | None:
        """Return the damage and faults of the first `count` evaluation grids; None if the task has neither."""
        corners = None if self.probe_damage is None else self.probe_damage[:, :count]
        return self.damage(corners, self.probe_fault_key, count)

    def damage(
        self, corners: npt.NDArray[np.int64] | None, key: prng.Key, samples: int, first: int = 0
    ) -> Damage | None:
        """Return the damage and faults of `samples` samples; None if the task has neither.

        The squares are at `corners [len(damage_steps), B, 2]`. Faults are sampled with `key` from step `first` on.
        """
        task = self.config.task
        if not task.disturbed:
            return None
        if corners is None:
            corners = np.zeros((0, samples, 2), dtype=np.int64)
        return Damage(task.damage_side, task.damage_steps, corners, self.faults(key, first))

    def faults(self, key: prng.Key, first: int = 0) -> Faults | None:
        """Return the faults of states, sampled with `key` from step `first` on; None if the task has no faults."""
        task = self.config.task
        return Faults(FaultRates.of(task)._replace(gates=0), key, self.listed, first) if task.faulty else None

    @property
    def probe_fault_key(self) -> prng.Key:
        return prng.fold_in(prng.key_from_seed(self.config.seed), PROBE_STREAM)

    @property
    def listed(self) -> npt.NDArray[np.uint8]:
        """Code of each cell, `[H*W]`: 1 if the task lists it as stuck at 0, 2 if listed as stuck at 1, otherwise 0."""
        task = self.config.task
        cells = np.zeros((task.height, task.width), dtype=np.uint8)
        for row, column, value in task.stuck_listed:
            cells[row, column] = 1 + value
        return cells.reshape(-1)

    @property
    def fixed_target(self) -> Floats:
        """Common target of all rollouts. Raises DataError if the target depends on the initial state."""
        if self.target is None:
            raise DataError("Expected a task with a fixed target, got one whose targets depend on the initial states.")
        return self.target

    @cached_property  # counting reads all evaluation grids, and each evaluation needs the result
    def values(self) -> int:
        """Number of values that a hard evaluation compares over all loss steps; IGNORED values do not count."""
        # Targets have one entry for all loss steps, or one for each. With 100 values in a single entry and 3 steps, 300
        # values are compared, 100 * 3 // 1; with 100 values in 3 entries it is 100, 100 * 3 // 3.
        targets = self.probe_targets
        return int(np.count_nonzero(targets != IGNORED)) * len(self.config.task.judged_steps) // len(targets)


def target(task: TaskConfig) -> Floats | None:
    """Return the target of a task, `[H, W, loss_channels]` of 0 and 1; None if it depends on the initial state.

    A checkerboard is in channel 0, and all other loss channels are 0.
    """
    if not task.is_fixed:
        return None
    if task.target == "picture":
        return text_picture.decode(task.picture, task.loss_channels).astype(np.float32)
    rows, columns = np.indices((task.height, task.width))
    grid = np.zeros((task.height, task.width, task.loss_channels), dtype=np.float32)
    # Squares of 2x2 cells: row 0 is 0 0 1 1 0 0 1 1, and row 2 is 1 1 0 0 1 1 0 0.
    grid[..., 0] = (columns // 2 + rows // 2) % 2
    return grid


def fixed_target(task: TaskConfig) -> npt.NDArray[np.uint8]:
    """Return the target of a task as bits, uint8. Raises UsageError if it depends on the initial state."""
    grid = target(task)
    if grid is None:
        raise UsageError(f"A task of {task.target} has no fixed target: it depends on the initial state.")
    return grid.astype(np.uint8)


def is_of_every_start(config: Config) -> bool:
    """Return whether a task has random initial states that all have the same target."""
    return config.task.is_fixed and start(config) is None


def start(config: Config) -> npt.NDArray[np.uint8] | None:
    """Return the initial state of all rollouts, `[H, W, C]` of 0 and 1; None if it is random."""
    return Scenario.of(config).grid(range(config.model.channels))


def probes(config: Config, held_out: Dataset | None = None) -> npt.NDArray[np.uint8]:
    """Return the initial states of the evaluation grids, `[P, H, W, C]`.

    These are all boards, the task's only initial state, bits from a separate random stream, or the initial states of
    held-out data samples.
    """
    task, train = config.task, config.train
    same = start(config)
    if task.start == "boards":
        return events.boards(np.arange(1 << task.height * task.width), task.height, task.width)
    if same is not None:
        # With a single initial state there is one evaluation grid, unless damage or faults differ between evaluation
        # grids.
        return np.repeat(same[None], probe_count(config), axis=0)
    key = prng.fold_in(prng.key_from_seed(config.seed), PROBE_STREAM)
    # Training only splits the seed's key, and never folds PROBE_STREAM into it.
    shape = (train.probes if held_out is None else len(held_out), task.height, task.width, config.model.channels)
    return events.draw_starts("random", key, shape, None) if held_out is None else begun(config, held_out, key)


def begun(config: Config, samples: Dataset, key: prng.Key) -> npt.NDArray[np.uint8]:
    """Return initial states for data samples, `[N, H, W, C]`; other channels are fixed, or random bits by `key`."""
    shape = (*samples.x.shape[:3], config.model.channels)
    grids = events.draw_starts("random", key, shape, _hidden(config))
    grids[..., : samples.x.shape[-1]] = samples.x
    return grids


def in_parts(samples: Dataset, most: int) -> Iterator[Dataset]:
    """Yield the data samples in consecutive parts of at most `most` samples."""
    for first in range(0, len(samples), most):
        yield samples.only(np.arange(first, min(first + most, len(samples))))


def differing(samples: Dataset, states: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return the mask of mismatches, `[J, B, H, W, loss_channels]`, in `states [J, B, H, W, C]` at the loss steps."""
    targets = samples.targets  # one for all loss steps, or one for each
    return np.asarray((states[..., : targets.shape[-1]] != targets) & (targets != IGNORED))


def _hidden(config: Config) -> npt.NDArray[np.uint8] | None:
    """Return the fixed initial state `[H, W, C]`, before data samples fill its first channels; None if it is random."""
    task = config.task
    if task.target == "data" and task.start == "zeros":
        return np.zeros((task.height, task.width, config.model.channels), dtype=np.uint8)
    return start(config)


def probe_count(config: Config) -> int:
    """Return the number of evaluation grids."""
    task, data = config.task, config.data
    if task.start == "boards":
        return 1 << task.height * task.width
    if task.target == "data":
        return held_out_samples(data.samples, data.held_out) or data.samples
    return config.train.probes if task.start == "random" or task.disturbed else 1


def judges(config: Config) -> str:
    """Return a description of the evaluation grids for messages, such as `all 32 evaluation grids`."""
    count = probe_count(config)
    if config.task.target == "data":
        return f"all {count} samples" + (" that were held out" if config.data.held_out else "")
    if count == 1:
        return "the initial state"
    return f"all {count} {'boards' if config.task.start == 'boards' else 'evaluation grids'}"


def make_job(config: Config, circuit: Circuit, data: Dataset | None = None) -> Job:
    """Return the job that trains `circuit`. Raises DataError if the task's data samples are missing or invalid."""
    task, train_data, held_out = config.task, None, None
    if task.target == "data":
        if data is None:
            raise DataError("The task's data samples are missing: give --data, or a run that contains them.")
        data.check(config)
        train_data, held_out = data.split(config.data.held_out)
    grids = probes(config, held_out)
    masks, damage = probe_masks(config), probe_damage(config, len(grids))
    rule = rules.table(task.rule) if task.target == "rule" else None
    return Job(config, circuit, target(task), grids, masks, _hidden(config), rule, damage, train_data, held_out)


def probe_masks(config: Config) -> Floats | None:
    """Return sampled fire masks for hard evaluation, `[T, H, W, 1]`; None for a synchronous automaton."""
    task, train = config.task, config.train
    if not train.asynchronous:
        return None
    key = prng.fold_in(prng.key_from_seed(config.seed), PROBE_MASK_STREAM)
    return events.draw_masks(key, task.steps, (task.height, task.width, 1), train.fire_rate)[1]


def probe_damage(config: Config, count: int) -> npt.NDArray[np.int64] | None:
    """Return sampled corners of evaluation grids' damage, `[len(damage_steps), count, 2]`; None without damage."""
    task = config.task
    if not task.damage_steps:
        return None
    key = prng.fold_in(prng.key_from_seed(config.seed), PROBE_STREAM)
    return events.draw_corners(key, len(task.damage_steps), count, task.height, task.width)
