"""Interface of the engines: `reference/`, `cpu/` and `gpu/`.

An engine only computes, without files, progress or experiments. `Engine` has the stateless calls that tests and
notebooks use, and opens a `Model`, which holds the state of training runs on the engine's device and is driven by
`train/`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy.typing as npt

from difflogic.engine.batch import Batch, Mode
from difflogic.engine.events import Damage
from difflogic.engine.function import CircuitFunction
from difflogic.engine.job import Floats, Job, OptimizerState, TrainState
from difflogic.model.circuit import ArraysByNetwork, Circuit


@dataclass(frozen=True)
class EngineInfo:
    """Description of the engine of a run, printed at the start and stored in the run's manifest."""

    engine: str
    """Name of the engine: `reference`, `cpu` or `gpu`."""
    adapter: str = ""
    adapter_type: str = ""
    backend: str = ""
    driver: str = ""
    software: bool = False
    """True if the "GPU" is a program on the CPU (lavapipe, SwiftShader, WARP)."""
    variant: dict[str, int] = field(default_factory=dict)
    """Tuning values in use; they change speed, never results."""


def describe_engine(engine: EngineInfo) -> str:
    """Return engine, adapter, backend and driver in one line."""
    details = (engine.adapter_type, engine.backend, engine.driver)
    named = ", ".join(detail for detail in details if detail)
    return f"{engine.engine}: {engine.adapter}" + (f" ({named})" if named else "")


@dataclass(frozen=True)
class EpochMetrics:
    """Metrics of one epoch. `soft_loss` is a sum over batch, cells, loss channels and loss steps."""

    epoch: int
    """Number of the epoch, from 1."""
    soft_loss: float
    """Loss of the soft circuit; NaN if it was not computed: see `difflogic.engine.search`."""
    skipped: bool = False
    """True if a gradient was not finite and the optimiser step was skipped."""


@dataclass(frozen=True)
class Evaluation:
    """Mismatches of the hard circuit of the current logits with the targets.

    `hard_loss` counts those of all evaluation grids, `train_hard_loss` those of the last epoch's batch; both
    sum over the loss channels and the loss steps, as the soft loss does.
    """

    hard_loss: int
    train_hard_loss: int
    values: int
    """Number of values that are compared in an evaluation: `P * H * W * loss_channels` for each loss step."""
    wrong_probes: int
    """Number of evaluation grids with at least one mismatch."""

    @property
    def accuracy(self) -> float:
        """Share of correct values, 0 to 1."""
        return 1 - self.hard_loss / self.values


class Model(Protocol):
    """Training runs of one shape on an engine, always at the same epoch.

    The results of each run are bit for bit those that it has without the others. Lists have one entry per run.
    """

    @property
    def info(self) -> EngineInfo:
        """Description of the engine, with the variant that these runs use."""

    def train(self, epochs: int) -> None:
        """Do `epochs` train steps of every run; their metrics wait until `fetch_metrics`."""

    def fetch_metrics(self) -> list[list[EpochMetrics]]:
        """Return the metrics of every epoch since the last call, in order; wait for epochs that are running."""

    def evaluate(self) -> list[Evaluation]:
        """Evaluate the hard circuits on their evaluation grids and on the last epoch's batch."""

    def states(self) -> list[TrainState]:
        """Return exact copies of the states."""

    def epochs_per_call(self) -> int:
        """Return the maximum number of epochs per call of `train` with which signals are still handled in time."""

    def close(self) -> None:
        """Free the resources; the model cannot be used afterwards."""


class Engine(Protocol):
    """Engine: rollouts, gradients and train steps of circuits, without state between calls.

    `x` is float32 `[B, H, W, C]` and `masks` float32 `[T, H, W, 1]`. Invalid circuits raise CircuitError, invalid data
    DataError.

        >>> engine = difflogic.open_engine("reference")
        >>> engine.rollout(circuit, np.zeros((1, 4, 4, 2), np.float32), steps=3, mode="hard").shape
        (4, 1, 4, 4, 2)
    """

    info: EngineInfo

    @property
    def selector(self) -> str:
        """Value of `--engine` that opens this engine again: `cpu`, `reference`, `gpu:INDEX`."""

    def rollout(
        self,
        circuit: Circuit,
        x: npt.ArrayLike,
        steps: int,
        mode: Mode = "soft",
        masks: npt.ArrayLike | None = None,
        damage: Damage | None = None,
    ) -> Floats:
        """Run a circuit.

        Args:
            circuit: Soft gates and their wiring.
            x: Initial states `[B, H, W, C]`; 0 or 1 in hard mode.
            steps: Number of steps, T.
            mode: `soft`, or `hard`: each gate is its most probable function, and the result is exact.
            masks: `[T, H, W, 1]`: 1 if a cell takes its new state, else 0. None for all cells.
            damage: Damage and faults during the rollout. Damaged states are returned as the next step reads them.

        Returns:
            The states, float32 `[T+1, B, H, W, C]`, including the initial one.

        Raises:
            CircuitError: The circuit is feed-forward.
            DataError: A shape or value does not fit.
        """

    def loss_and_gradients(self, circuit: Circuit, batch: Batch) -> tuple[float, ArraysByNetwork]:
        """Compute the soft loss of a batch and its gradients.

        Args:
            circuit: Soft gates and their wiring.
            batch: Initial states and targets.

        Returns:
            The sum of squared errors, and its gradients in the shapes of the logits, not clipped.

        Raises:
            CircuitError: The circuit is feed-forward.
            DataError: A shape or value of the batch does not fit.
        """

    def train_step(
        self, circuit: Circuit, state: OptimizerState | None, batch: Batch, lr: float = 0.05
    ) -> tuple[Circuit, OptimizerState, dict[str, Any]]:
        """Do one step of AdamW, with clipped gradients.

        Args:
            circuit: Soft gates and their wiring.
            state: Moments of the optimiser; None before the first step.
            batch: Initial states and targets.
            lr: Learning rate.

        Returns:
            The circuit with new logits, the new moments, and the metrics `soft_loss` and `skipped`.

        Raises:
            CircuitError: The circuit is feed-forward.
            DataError: A shape or value of the batch does not fit.
        """

    def open_function(
        self, circuit: Circuit, grid: Sequence[int], steps: int = 1, hard: bool = False, every_state: bool = False
    ) -> CircuitFunction:
        """Make a differentiable function of a circuit, for any loss: see CircuitFunction.

        Args:
            circuit: Soft gates and their wiring.
            grid: `[B, H, W]` for an automaton, any shape of samples for a feed-forward circuit.
            steps: Number of steps, T; 1 for a feed-forward circuit.
            hard: True to compute with hard gates forward, and with the gradients of soft gates (straight-through).
            every_state: True to return the states after all steps, `[T, *grid, C]`.

        Raises:
            DataError: The circuit does not run on this grid, or for this number of steps.
            LimitError: The states do not fit the memory.
        """

    def open(
        self, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None = None, reserved: int = 0
    ) -> Model:
        """Open a model that trains these runs from these states.

        Args:
            jobs: The runs, all of one shape.
            states: The state of each run.
            max_memory: Maximum number of bytes of the device; None for no limit.
            reserved: Bytes of that limit that are reserved for hard rollouts.

        Raises:
            LimitError: Not all runs fit; the message contains the number of runs that fit.
            UsageError: `max_memory` is set, but the engine plans no memory.
        """

    def memory(self, jobs: Sequence[Job], max_memory: int | None = None, reserved: int = 0) -> int:
        """Return the number of bytes that a model of these jobs would take. Raises what `open` raises."""

    def rollout_memory(self, circuit: Circuit, grid: tuple[int, ...], steps: int, asynchronous: bool) -> int:
        """Return the number of bytes that a hard rollout from `grid [B, H, W, C]` takes, in addition to open models."""
