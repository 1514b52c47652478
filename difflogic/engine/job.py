"""An engine gets and gives back these: a job, the state of its training, and how both are made from a configuration."""

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
"""`fold_in` data of the probe grids ("prob"): far from the small counters that `split` and `bits` use."""
PROBE_MASK_STREAM = 0x6D61736B
"""`fold_in` data of the fire masks of hard evaluation ("mask"). Damage folds a stream of its own into the probes'."""


@dataclass(frozen=True, eq=False)
class OptimizerState:
    """AdamW's moments, and the number of steps taken.

    The moments are flat `[P, 16]` float32, as `Circuit.flat_logits`.

        >>> difflogic.OptimizerState.fresh(circuit).step
        0
    """

    mu: Floats
    nu: Floats
    step: int = 0

    __repr__ = brief

    @classmethod
    def fresh(cls, circuit: Circuit) -> OptimizerState:
        # Two arrays, since an engine may update each in place.
        """The state before the first step: moments of 0.

        Args:
            circuit: What is going to be trained.

        Returns:
            The state.
        """
        zeros = np.zeros((circuit.parameters, 16), dtype=np.float32)
        return cls(zeros, zeros.copy(), 0)


@dataclass(frozen=True, eq=False)
class TrainState:
    """Everything that a train step reads and changes: saved, it continues bit for bit on the same device and driver."""

    logits: Floats
    """`[P, 16]`, the order of `Circuit.flat_logits`."""
    optimizer: OptimizerState
    data_key: prng.Key
    """Each epoch: `data_key, sub = split(data_key)`; the start grids come from `sub`."""
    train_key: prng.Key
    """Each epoch: `train_key, k1 = split(train_key)`; the fire masks come from `k1`."""
    epoch: int = 0
    """Epochs done, skipped ones included."""
    skipped: int = 0
    """Epochs whose gradient was not finite; they changed nothing but the keys and the counters."""
    pool: npt.NDArray[np.uint8] | None = None
    """`[pool, H, W, C]`, 0 or 1: the sample pool; None where every epoch starts afresh."""
    costs: npt.NDArray[np.uint32] | None = None
    """`[J, loss_channels, P*H*W]`: what each wrong value costs, once the circuit is searched
    (`difflogic.engine.search`).
    """

    __repr__ = brief

    @classmethod
    def initial(cls, job: Job) -> TrainState:
        """The notebook's key discipline: both chains start from `PRNGKey(seed)`, training after one split.

        So does the data chain of `boards`. A pool starts full of fresh starts.
        """
        key = prng.key_from_seed(job.config.seed)
        split = prng.split(key)[0]
        # The authors' notebooks of the two kinds of task split their first key in different ways, and first losses
        # are compared with theirs.
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
    """One training run as an engine sees it: numbers and arrays, no files and no names."""

    config: Config
    circuit: Circuit
    """Gives the wiring; the logits come from the TrainState."""
    target: Floats | None
    """`[H, W, loss_channels]`, 0 or 1: what states should be; None where `rule` makes it from the start, or `data`
    holds it."""
    probes: npt.NDArray[np.uint8]
    """`[P, H, W, C]`, 0 or 1: start grids for hard evaluation, which training never sees."""
    probe_masks: Floats | None = None
    """`[T, H, W, 1]`, 0 or 1: the fire masks of every hard evaluation; None for a synchronous automaton."""
    start: npt.NDArray[np.uint8] | None = None
    """`[H, W, C]`, 0 or 1: every fresh start, but for the channels of `data`; None where each epoch draws (`random`,
    `boards`)."""
    rule: npt.NDArray[np.uint8] | None = None
    """`[512]`, 0 or 1, as in `difflogic.core.rules`: the target is one generation from channel 0 of the start."""
    probe_damage: npt.NDArray[np.int64] | None = None
    """`[len(damage_steps), P, 2]`: row and column of each probe's damage; None without damage."""
    data: Dataset | None = None
    """The samples that are learned from; the probes are those that are held out."""
    held_out: Dataset | None = None
    """Those that are held out."""

    __repr__ = brief

    def __post_init__(self) -> None:
        self.circuit.require_automaton()
        # A job is data from outside for an engine, so what does not fit is found here and not in a kernel.
        for name, wanted in (
            ("probe_masks", self.config.train.asynchronous),
            ("probe_damage", bool(self.config.task.damage_steps)),
            ("data", self.config.task.target == "data"),
            ("rule", self.target is None and self.data is None),
        ):
            if (getattr(self, name) is not None) != wanted:
                raise DataError(f"A job of this configuration {'needs' if wanted else 'has no'} {name}.")

    def targets(self, grids: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """`[B, H, W, loss_channels]`: what each of the starts `grids [B, H, W, C]` should become."""
        if self.rule is not None:
            return rules.apply(self.rule, grids[..., 0], self.circuit.periodic)[..., None]
        target = (self.fixed_target > 0.5).astype(np.uint8)
        return np.broadcast_to(target, (len(grids), *target.shape))

    @property
    def probe_targets(self) -> Floats:
        """`[J, P, H, W, loss_channels]`: what the probes should become, IGNORED where a value does not count.

        J is 1, but where samples have a target for each judged step.
        """
        if self.held_out is not None:
            return self.held_out.targets
        return self.targets(self.probes)[None].astype(np.float32)

    def first_targets(self) -> Floats:
        """`[J, B, H, W, loss_channels]` before any epoch: the task's, or what a rule makes of empty grids."""
        task, batch = self.config.task, self.config.train.batch
        if self.target is not None:
            return np.broadcast_to(self.target, (1, batch, *self.target.shape))
        if self.data is not None:
            return np.zeros((self.config.data.targets, batch, *self.data.y.shape[2:]), dtype=np.float32)
        empty = np.zeros((batch, task.height, task.width, self.circuit.channels), dtype=np.uint8)
        return self.targets(empty)[None].astype(np.float32)

    def draw(self, key: prng.Key) -> tuple[npt.NDArray[np.uint8], Floats]:
        """An epoch's fresh batch `[B, H, W, C]`, and its targets as of the probes; `key` is its data subkey."""
        batch = self.config.train.batch
        grids = self.fresh(key, batch)
        if self.data is None:
            return grids, self.targets(grids)[None].astype(np.float32)
        drawn = self.data.only(events.draw_samples(key, batch, len(self.data)))
        grids[..., : self.config.data.channels] = drawn.x
        return grids, drawn.targets

    def fresh(self, key: prng.Key, count: int) -> npt.NDArray[np.uint8]:
        """`[count, H, W, C]` start grids, drawn from `key` where they are not all the same."""
        task = self.config.task
        return events.draw_starts(task.start, key, (count, task.height, task.width, self.circuit.channels), self.start)

    def damage_of_probes(self, count: int) -> Damage | None:
        """Return what happens to the first `count` probes; None where nothing does."""
        corners = None if self.probe_damage is None else self.probe_damage[:, :count]
        return self.damage(corners, self.probe_fault_key, count)

    def damage(
        self, corners: npt.NDArray[np.int64] | None, key: prng.Key, samples: int, first: int = 0
    ) -> Damage | None:
        """Return what happens to so many samples; None where nothing does.

        Squares are at `corners [len(damage_steps), B, 2]`, and faults are drawn from `key`, see `Faults`.
        """
        task = self.config.task
        if not task.disturbed:
            return None
        if corners is None:
            corners = np.zeros((0, samples, 2), dtype=np.int64)
        return Damage(task.damage_side, task.damage_steps, corners, self.faults(key, first))

    def faults(self, key: prng.Key, first: int = 0) -> Faults | None:
        """The faults of states, without those of gates; None where there are none."""
        task = self.config.task
        return Faults(FaultRates.of(task)._replace(gates=0), key, self.listed, first) if task.faulty else None

    @property
    def probe_fault_key(self) -> prng.Key:
        return prng.fold_in(prng.key_from_seed(self.config.seed), PROBE_STREAM)

    @property
    def listed(self) -> npt.NDArray[np.uint8]:
        """`[H*W]`: 0 for a cell that works, 1 for one that the task has stuck at 0 and 2 at 1."""
        task = self.config.task
        cells = np.zeros((task.height, task.width), dtype=np.uint8)
        for row, column, value in task.stuck_listed:
            cells[row, column] = 1 + value
        return cells.reshape(-1)

    @property
    def fixed_target(self) -> Floats:
        """`target`, where it is the same for every start."""
        if self.target is None:
            raise DataError("The targets of a rule or of samples follow from the starts.")
        return self.target

    @cached_property  # all probes are looked through for it, and each evaluation asks
    def values(self) -> int:
        """Values that one hard evaluation compares: of each probe those that count, after each judged step."""
        # There is one entry for all judged steps, or one for each. 100 values that count in a single entry are compared
        # after each of 3 steps, 100 * 3 // 1 = 300. In three entries they are those of all steps together, 100 * 3 // 3
        # = 100.
        targets = self.probe_targets
        return int(np.count_nonzero(targets != IGNORED)) * len(self.config.task.judged_steps) // len(targets)


def target(task: TaskConfig) -> Floats | None:
    """`[H, W, loss_channels]` of 0 and 1; None where it depends on the start.

    A board is in channel 0, and further loss channels should stay 0.
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
    """`target` as bits. Raises UsageError where it depends on the start."""
    found = target(task)
    if found is None:
        raise UsageError(f"A task of {task.target} has no target of its own: what should be follows from the start.")
    return found.astype(np.uint8)


def is_of_every_start(config: Config) -> bool:
    """Return whether all starts should end in the same: they are drawn, and no target is of one alone."""
    return config.task.is_fixed and start(config) is None


def start(config: Config) -> npt.NDArray[np.uint8] | None:
    """`[H, W, C]` of 0 and 1, where every start is the same; else None."""
    return Scenario.of(config).grid(range(config.model.channels))


def probes(config: Config, held_out: Dataset | None = None) -> npt.NDArray[np.uint8]:
    """`[P, H, W, C]`: all boards, the one start, or fair bits from a stream that training never sees.

    Of samples those that are held out; where they are not at hand, they are as good as fair bits.
    """
    task, train = config.task, config.train
    same = start(config)
    if task.start == "boards":
        return events.boards(np.arange(1 << task.height * task.width), task.height, task.width)
    if same is not None:
        # Where all starts are the same one probe says it all, unless damage or faults are another in each.
        return np.repeat(same[None], probe_count(config), axis=0)
    key = prng.fold_in(prng.key_from_seed(config.seed), PROBE_STREAM)
    # Training walks a chain of splits from the same key, which never folds this number in.
    shape = (train.probes if held_out is None else len(held_out), task.height, task.width, config.model.channels)
    return events.draw_starts("random", key, shape, None) if held_out is None else begun(config, held_out, key)


def begun(config: Config, samples: Dataset, key: prng.Key) -> npt.NDArray[np.uint8]:
    """`[N, H, W, C]`: what samples begin with; `key` is where their other channels are drawn from, if they are."""
    shape = (*samples.x.shape[:3], config.model.channels)
    grids = events.draw_starts("random", key, shape, _hidden(config))
    grids[..., : samples.x.shape[-1]] = samples.x
    return grids


def in_parts(samples: Dataset, most: int) -> Iterator[Dataset]:
    """The samples in their order, at most so many at a time."""
    for first in range(0, len(samples), most):
        yield samples.only(np.arange(first, min(first + most, len(samples))))


def differing(samples: Dataset, states: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """`[J, B, H, W, ...]`: what is wrong in states `[J, B, H, W, C]` after the compared steps, of values that count."""
    wanted = samples.targets  # one for all compared steps, or one for each
    return np.asarray((states[..., : wanted.shape[-1]] != wanted) & (wanted != IGNORED))


def _hidden(config: Config) -> npt.NDArray[np.uint8] | None:
    """`[H, W, C]`: what starts that are not drawn have where no sample says it."""
    task = config.task
    if task.target == "data" and task.start == "zeros":
        return np.zeros((task.height, task.width, config.model.channels), dtype=np.uint8)
    return start(config)


def probe_count(config: Config) -> int:
    """Return how many `probes` there are."""
    task, data = config.task, config.data
    if task.start == "boards":
        return 1 << task.height * task.width
    if task.target == "data":
        return held_out_samples(data.samples, data.held_out) or data.samples
    return config.train.probes if task.start == "random" or task.disturbed else 1


def judges(config: Config) -> str:
    """Return what a circuit is evaluated on: `all 32 evaluation grids`, `all 512 boards`, `the initial state`."""
    count = probe_count(config)
    if config.task.target == "data":
        return f"all {count} samples" + (" that were held out" if config.data.held_out else "")
    if count == 1:
        return "the initial state"
    return f"all {count} {'boards' if config.task.start == 'boards' else 'evaluation grids'}"


def make_job(config: Config, circuit: Circuit, data: Dataset | None = None) -> Job:
    """The job of training `circuit` by `config`, on the samples `data` that it names, if it does.

    Raises DataError where they are missing, or others.
    """
    task, kept, held_out = config.task, None, None
    if task.target == "data":
        if data is None:
            raise DataError(
                "The task is in samples that are not at hand: give them with --data, or a run that has them."
            )
        data.check(config)
        kept, held_out = data.split(config.data.held_out)
    grids = probes(config, held_out)
    return Job(
        config,
        circuit,
        target(task),
        grids,
        probe_masks(config),
        _hidden(config),
        rules.table(task.rule) if task.target == "rule" else None,
        probe_damage(config, len(grids)),
        kept,
        held_out,
    )


def probe_masks(config: Config) -> Floats | None:
    """Fire masks `[T, H, W, 1]` of hard evaluation, drawn once; None for a synchronous automaton."""
    task, train = config.task, config.train
    if not train.asynchronous:
        return None
    key = prng.fold_in(prng.key_from_seed(config.seed), PROBE_MASK_STREAM)
    return events.draw_masks(key, task.steps, (task.height, task.width, 1), train.fire_rate)[1]


def probe_damage(config: Config, count: int) -> npt.NDArray[np.int64] | None:
    """Corners `[len(damage_steps), count, 2]` of the probes' damage, drawn once; None without damage."""
    task = config.task
    if not task.damage_steps:
        return None
    key = prng.fold_in(prng.key_from_seed(config.seed), PROBE_STREAM)
    return events.draw_corners(key, len(task.damage_steps), count, task.height, task.width)
