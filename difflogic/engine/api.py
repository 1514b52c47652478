"""Interface of the engines: `reference/`, `cpu/` and `gpu/`.

An engine only computes. It reads and writes no files and reports no progress. `Engine` has the stateless calls that
tests and notebooks use. It also opens a `Model`, which stores the state of training runs on the engine's device and is
controlled by `train/`.
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
    """Metrics of one epoch of a run. `soft_loss` is a sum over batch, cells, loss channels and loss steps."""

    epoch: int
    """Number of the epoch, from 1."""
    soft_loss: float
    """Loss of the soft circuit; NaN if it was not computed: see `difflogic.engine.search`."""
    skipped: bool = False
    """True if a gradient was not finite and the optimiser step was skipped."""


@dataclass(frozen=True)
class Evaluation:
    """Mismatches between the hard circuit of the current logits and the targets.

    `hard_loss` counts the mismatches on all evaluation grids, `train_hard_loss` the mismatches on the last epoch's
    batch. Both sum over the loss channels and the loss steps, as the soft loss does.
    """

    hard_loss: int
    train_hard_loss: int
    values: int
    """Number of compared values: `P * H * W * loss_channels` for each loss step, without ignored values."""
    wrong_probes: int
    """Number of evaluation grids with at least one mismatch."""

    @property
    def accuracy(self) -> float:
        """Share of correct values, 0 to 1."""
        return 1 - self.hard_loss / self.values


class Model(Protocol):
    """Training runs of equal `Shape` that an engine trains together, all at the same epoch.

    Each run gives bit for bit the results of training it separately. Returned lists have one entry per run.
    """

    @property
    def info(self) -> EngineInfo:
        """Description of the engine, with the tuning values that these runs use."""

    def train(self, epochs: int) -> None:
        """Run `epochs` train steps of every run; `fetch_metrics` returns their metrics."""

    def fetch_metrics(self) -> list[list[EpochMetrics]]:
        """Wait for running epochs, and return the metrics of all epochs since the last call, in order."""

    def evaluate(self) -> list[Evaluation]:
        """Evaluate the hard circuits on their evaluation grids and on the last epoch's batch."""

    def states(self) -> list[TrainState]:
        """Return exact copies of the training states."""

    def epochs_per_call(self) -> int:
        """Return the maximum number of epochs per call of `train` that does not delay the handling of signals."""

    def close(self) -> None:
        """Free the resources; the model cannot be used afterwards."""


class Engine(Protocol):
    """Backend that computes rollouts, gradients and train steps of circuits, without state between calls.

    The sizes are those of `Batch`. Invalid circuits raise CircuitError, and invalid data raise DataError.

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
            x: Initial states, float32 `[B, H, W, C]`; 0 or 1 in hard mode.
            steps: Number of steps, T.
            mode: `soft`, or `hard` to replace each gate by its most probable function, with exact results.
            masks: Fire masks, float32 `[T, H, W, 1]`: 1 if a cell takes its new state, else 0. None for 1 everywhere.
            damage: Damage and faults during the rollout. A returned state includes the damage before the next step.

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
        """Return a circuit as a differentiable function that can be used with any loss.

        Args:
            circuit: Soft gates and their wiring.
            grid: `[B, H, W]` for an automaton; any shape, one sample per cell, for a feed-forward circuit.
            steps: Number of steps, T; 1 for a feed-forward circuit.
            hard: True for hard gates in the forward pass and soft gates in the backward pass (straight-through).
            every_state: True to return the states after all steps, `[T, *grid, C]`.

        Raises:
            DataError: The circuit does not run on this grid, or for this number of steps.
            LimitError: The states do not fit the memory.
        """

    def open(
        self, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None = None, reserved: int = 0
    ) -> Model:
        """Open a model that trains runs from given states.

        Args:
            jobs: Training runs of equal `Shape`.
            states: Training state from which each run continues.
            max_memory: Maximum number of bytes of device memory to use; None for no limit.
            reserved: Number of these bytes that stay free for hard rollouts.

        Raises:
            LimitError: Not all runs fit; the message contains the number of runs that fit.
            UsageError: `max_memory` is set, but the engine cannot limit its memory.
        """

    def memory(self, jobs: Sequence[Job], max_memory: int | None = None, reserved: int = 0) -> int:
        """Return the number of bytes that a model of these jobs would use. Raises what `open` raises."""

    def rollout_memory(self, circuit: Circuit, grid: tuple[int, ...], steps: int, asynchronous: bool) -> int:
        """Return the number of bytes that a hard rollout of shape `grid`, `[B, H, W, C]`, adds to open models."""
