"""What every engine does: the interface that `reference/`, `cpu/` and `gpu/` share.

An engine computes; it knows nothing of files, progress or experiments. `Engine` holds the stateless
calls that tests and notebooks use, and opens a `TrainingModel`, which keeps one training run's state
where the engine computes and is driven by `train/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from difflogic import prng, rules, starts
from difflogic.batch import Batch, Mode
from difflogic.circuit import ArraysByNetwork, Circuit
from difflogic.config import Config
from difflogic.damage import Damage

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class EngineInfo:
    """What ran the numbers: printed at the start and kept in the run's manifest."""

    engine: str
    """`reference`, `gpu`, ..."""
    adapter: str = ""
    adapter_type: str = ""
    backend: str = ""
    driver: str = ""
    software: bool = False
    """True where a "GPU" is a program on the CPU (lavapipe, SwiftShader, WARP)."""
    variant: dict[str, int] = field(default_factory=dict)
    """Tuning values in use; they change speed, never results."""


@dataclass(frozen=True, eq=False)
class OptimizerState:
    """AdamW's moments, flat `[G, 16]` float32, and the number of steps taken."""

    mu: Floats
    nu: Floats
    step: int = 0

    @classmethod
    def fresh(cls, circuit: Circuit) -> OptimizerState:
        zeros = np.zeros((circuit.gates, 16), dtype=np.float32)
        return cls(zeros, zeros.copy(), 0)


@dataclass(frozen=True, eq=False)
class TrainState:
    """Everything that a train step reads and changes: save it, and training continues bit for bit."""

    logits: Floats
    """`[G, 16]`, the order of `Circuit.flat_logits`."""
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
    """`[J, loss_channels, P*H*W]`: what each wrong value costs, once the circuit is settled (`difflogic.settling`)."""

    @classmethod
    def initial(cls, job: Job) -> TrainState:
        """The notebook's key discipline: both chains start from `PRNGKey(seed)`, training after one split.

        So does the data chain of `boards`. A pool starts full of fresh starts.
        """
        key = prng.key_from_seed(job.config.seed)
        split = prng.split(key)[0]
        data_key = split if job.config.task.start == "boards" else key
        pool = job.config.train.pool
        return cls(
            logits=job.circuit.flat_logits().astype(np.float32),
            optimizer=OptimizerState.fresh(job.circuit),
            data_key=data_key,
            train_key=split,
            pool=job.fresh(prng.fold_in(data_key, starts.POOL_STREAM), pool) if pool else None,
        )


@dataclass(frozen=True, eq=False)
class Job:
    """One training run as an engine sees it: numbers and arrays, no files and no names."""

    config: Config
    circuit: Circuit
    """Gives the wiring; the logits come from the TrainState."""
    target: Floats | None
    """`[H, W, loss_channels]`, 0 or 1: what states should be; None where `rule` makes it from the start."""
    probes: npt.NDArray[np.uint8]
    """`[P, H, W, C]`, 0 or 1: start grids for hard evaluation, which training never sees."""
    probe_masks: Floats | None = None
    """`[T, H, W, 1]`, 0 or 1: the fire masks of every hard evaluation; None for a synchronous automaton."""
    start: npt.NDArray[np.uint8] | None = None
    """`[H, W, C]`, 0 or 1: every fresh start; None where each epoch draws (`random`, `boards`)."""
    rule: npt.NDArray[np.uint8] | None = None
    """`[512]`, 0 or 1, as in `difflogic.rules`: the target is one generation from channel 0 of the start."""
    probe_damage: npt.NDArray[np.int64] | None = None
    """`[len(damage_steps), P, 2]`: row and column of each probe's damage; None without damage."""

    def __post_init__(self) -> None:
        assert (self.probe_masks is not None) == self.config.train.asynchronous
        assert (self.target is None) == (self.rule is not None)
        assert (self.probe_damage is not None) == bool(self.config.task.damage_steps)

    def targets(self, grids: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """`[B, H, W, loss_channels]`: what each of the starts `grids [B, H, W, C]` should become."""
        if self.rule is not None:
            return rules.apply(self.rule, grids[..., 0], self.circuit.periodic)[..., None]
        target = (self.fixed_target > 0.5).astype(np.uint8)
        return np.broadcast_to(target, (len(grids), *target.shape))

    def fresh(self, key: prng.Key, count: int) -> npt.NDArray[np.uint8]:
        """`[count, H, W, C]` start grids, drawn from `key` where they are not all the same."""
        task = self.config.task
        return starts.draw(task.start, key, (count, task.height, task.width, self.circuit.channels), self.start)

    def damage_of_probes(self, count: int) -> Damage | None:
        """What happens to the first `count` probes; None without damage."""
        return self.damage(None if self.probe_damage is None else self.probe_damage[:, :count])

    def damage(self, corners: npt.NDArray[np.int64] | None) -> Damage | None:
        """The task's damage with its squares at `corners [len(damage_steps), B, 2]`; None where there are none."""
        task = self.config.task
        return None if corners is None else Damage(task.damage_side, task.damage_steps, corners)

    @property
    def fixed_target(self) -> Floats:
        """`target`, where it is the same for every start."""
        assert self.target is not None
        return self.target

    @property
    def values(self) -> int:
        """Values that one hard evaluation compares: `P * H * W * loss_channels`, after each judged step."""
        task = self.config.task
        return len(task.judged_steps) * self.probes[..., : task.loss_channels].size


@dataclass(frozen=True)
class EpochMetrics:
    """What one epoch leaves behind. `soft_loss` is a sum over batch, cells, loss channels and judged steps."""

    epoch: int
    """1 for the first."""
    soft_loss: float
    """NaN where it was not computed: see `difflogic.settling`."""
    skipped: bool = False
    """True where the gradient was not finite and the step was not taken."""


@dataclass(frozen=True)
class Evaluation:
    """The hard circuit of the current logits after the judged steps: counts of wrong cells.

    `hard_loss` counts wrong values over all probes, `train_hard_loss` over the last epoch's own
    batch (both sum over the loss channels and the judged steps, as the soft loss does).
    """

    hard_loss: int
    train_hard_loss: int
    values: int
    """Compared values per full evaluation: `P * H * W * loss_channels`, after each judged step."""
    wrong_probes: int
    """Probes with at least one wrong value after any of them."""

    @property
    def accuracy(self) -> float:
        """Share of right values in the loss channels, 0 to 1."""
        return 1 - self.hard_loss / self.values


class TrainingModel(Protocol):
    """One training run held by an engine."""

    info: EngineInfo
    """The engine's, with the variant that this run really uses."""

    def train(self, epochs: int) -> None:
        """Do `epochs` train steps; their metrics wait until `drain`."""

    def drain(self) -> list[EpochMetrics]:
        """Metrics of every epoch since the last call, in order; waits for work under way."""

    def evaluate(self) -> Evaluation:
        """Judge the hard circuit on the probes and on the last epoch's batch."""

    def to_cpu(self) -> TrainState:
        """An exact copy of the state."""

    def max_epochs_per_call(self) -> int:
        """The most epochs `train` should be asked for at once to stay responsive to signals."""

    def close(self) -> None:
        """Free what the engine holds; the model cannot be used afterwards."""


class PopulationModel(Protocol):
    """Several training runs of one shape, held by an engine and always at the same epoch.

    Each is, bit for bit, what the same engine makes of it alone. Lists have one entry per run.
    """

    info: EngineInfo
    """As in `TrainingModel`."""

    def train(self, epochs: int) -> None:
        """Do `epochs` train steps of every run; their metrics wait until `drain_all`."""

    def drain_all(self) -> list[list[EpochMetrics]]:
        """`TrainingModel.drain` of every run."""

    def evaluate_all(self) -> list[Evaluation]:
        """`TrainingModel.evaluate` of every run."""

    def to_cpu_all(self) -> list[TrainState]:
        """`TrainingModel.to_cpu` of every run."""

    def max_epochs_per_call(self) -> int:
        """As in `TrainingModel`."""

    def close(self) -> None:
        """Free what the engine holds."""


class Engine(Protocol):
    """The stateless face of an engine. `x`: float32 `[B, H, W, C]`; `masks`: `[T, H, W, 1]`.

    What a circuit or batch cannot be raises CircuitError or DataError.
    """

    info: EngineInfo

    def rollout(
        self,
        circuit: Circuit,
        x: npt.ArrayLike,
        steps: int,
        mode: Mode = "soft",
        masks: npt.ArrayLike | None = None,
        damage: Damage | None = None,
    ) -> Floats:
        """States `[T+1, B, H, W, C]`, the start included. Hard mode takes 0/1 grids and is exact.

        A state that is damaged is shown damaged, as the next step sees it.
        """

    def loss_and_gradients(self, circuit: Circuit, batch: Batch) -> tuple[float, ArraysByNetwork]:
        """The soft loss, a sum, and its gradients in the logits' shapes, not clipped."""

    def train_step(
        self, circuit: Circuit, state: OptimizerState | None, batch: Batch, lr: float = 0.05
    ) -> tuple[Circuit, OptimizerState, dict[str, Any]]:
        """One clipped AdamW step; `state=None` starts fresh. Metrics: `soft_loss`, `skipped`."""

    def open_model(self, job: Job, state: TrainState) -> TrainingModel:
        """Hold `state` where this engine computes, ready to train."""


@runtime_checkable
class MemoryLimited(Protocol):
    """An engine that chooses how to work by the memory that it may take."""

    def limit_memory(self, max_memory: int) -> None:
        """Models opened from now on take at most so many bytes, or are refused with LimitError."""


@runtime_checkable
class Weighed(Protocol):
    """A model that knows what it takes."""

    @property
    def nbytes(self) -> int:
        """Bytes of the machine's memory, from when it is opened."""


@runtime_checkable
class PopulationEngine(Protocol):
    """An engine that trains several runs better together than one after another."""

    def open_population(self, jobs: Sequence[Job], states: Sequence[TrainState]) -> PopulationModel:
        """Hold every state, ready to train. Raises LimitError, which says how many fit, where not all do."""
