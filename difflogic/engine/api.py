"""Interface of the engines: `reference/`, `cpu/` and `gpu/`.

An engine only computes. It reads and writes no files and reports no progress. The methods of `Engine` that tests and
notebooks use are stateless. `Engine.open` opens a `Model`, which stores the state of training runs on the engine's
device and is controlled by `train/`.
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
    """Description of a run's engine, printed at the start of the run and stored in its manifest."""

    engine: str
    """Name of the engine: `reference`, `cpu` or `gpu`."""
    adapter: str = ""
    adapter_type: str = ""
    backend: str = ""
    driver: str = ""
    software: bool = False
    """True if the adapter is a software renderer on the CPU, such as lavapipe, SwiftShader or WARP."""
    variant: dict[str, int] = field(default_factory=dict)
    """Mapping from tuning parameters to the values in use, which affect speed but never results."""


def describe_engine(engine: EngineInfo) -> str:
    """Return a one-line description of an engine: its name, adapter, backend and driver."""
    details = (engine.adapter_type, engine.backend, engine.driver)
    named = ", ".join(detail for detail in details if detail)
    return f"{engine.engine}: {engine.adapter}" + (f" ({named})" if named else "")


@dataclass(frozen=True)
class EpochMetrics:
    """Metrics of one epoch of a run, as returned by `Model.fetch_metrics`."""

    epoch: int
    """Number of the epoch, counted from 1."""
    soft_loss: float
    """Sum of squared errors over batch, cells, loss channels and loss steps; NaN in epochs of local search."""
    skipped: bool = False
    """True if the optimiser step was skipped because the loss or a gradient was not finite."""


@dataclass(frozen=True)
class Evaluation:
    """Result of comparing the hard circuit of the current logits with the targets.

    `hard_loss` is the number of mismatches on all evaluation grids, `train_hard_loss` the number on the last epoch's
    batch. Both are sums over the loss channels and the loss steps, as the soft loss is.
    """

    hard_loss: int
    train_hard_loss: int
    values: int
    """Number of values compared for `hard_loss`: P * H * W * loss channels per loss step, minus ignored values."""
    wrong_probes: int
    """Number of evaluation grids with at least one mismatch."""

    @property
    def accuracy(self) -> float:
        """Share of compared values that are correct, from 0 to 1."""
        return 1 - self.hard_loss / self.values


class Model(Protocol):
    """Training runs with equal `Shape` that an engine trains together, so that all are at the same epoch.

    The results of each run equal those of training it separately, bit for bit. Returned lists have one entry per run.
    """

    @property
    def info(self) -> EngineInfo:
        """Description of the engine, including the tuning values that these runs use."""

    def train(self, epochs: int) -> None:
        """Run `epochs` train steps of every run; `fetch_metrics` returns their metrics."""

    def fetch_metrics(self) -> list[list[EpochMetrics]]:
        """Wait for running epochs, and return each run's metrics of all epochs since the last call, in order."""

    def evaluate(self) -> list[Evaluation]:
        """Evaluate the hard circuit of each run on its evaluation grids and on the last epoch's batch."""

    def states(self) -> list[TrainState]:
        """Return an exact copy of each run's training state."""

    def epochs_per_call(self) -> int:
        """Return the maximum number of epochs per `train` call with which signals are still handled promptly."""

    def close(self) -> None:
        """Free the resources; the model cannot be used afterwards."""


class Engine(Protocol):
    """Backend that computes rollouts, gradients and train steps of circuits, and stores no state between calls.

    Letters in shapes are as in `Batch`. Invalid circuits raise CircuitError, and invalid data raise DataError.

        >>> engine = difflogic.open_engine("reference")
        >>> engine.rollout(circuit, np.zeros((1, 4, 4, 2), np.float32), steps=3, mode="hard").shape
        (4, 1, 4, 4, 2)
    """

    info: EngineInfo

    @property
    def selector(self) -> str:
        """Value of `--engine` that opens this engine again: `cpu`, `reference` or `gpu:INDEX`."""

    def rollout(
        self,
        circuit: Circuit,
        x: npt.ArrayLike,
        steps: int,
        mode: Mode = "soft",
        masks: npt.ArrayLike | None = None,
        damage: Damage | None = None,
    ) -> Floats:
        """Compute the states of an automaton over `steps` steps.

        Args:
            circuit: Soft gates and their wiring.
            x: Initial states, float32 `[B, H, W, C]`; 0 or 1 in hard mode.
            steps: Number of steps, T.
            mode: `soft`, or `hard` to replace each gate by its most probable function, which gives exact bits.
            masks: Fire masks, float32 `[T, H, W, 1]`: 1 if a cell is updated in a step, otherwise 0. None updates all.
            damage: Damage and faults, or None. Each returned state includes those that precede the next step.

        Returns:
            The initial states and the states after each step, float32 `[T+1, B, H, W, C]`.

        Raises:
            CircuitError: The circuit is feed-forward.
            DataError: An array has an invalid shape or value.
        """

    def loss_and_gradients(self, circuit: Circuit, batch: Batch) -> tuple[float, ArraysByNetwork]:
        """Compute the soft loss of a batch and the gradients with respect to the logits.

        Args:
            circuit: Soft gates and their wiring.
            batch: Initial states and targets.

        Returns:
            The sum of squared errors, and its unclipped gradients in the shapes of the logits.

        Raises:
            CircuitError: The circuit is feed-forward.
            DataError: The batch contains an invalid shape or value.
        """

    def train_step(
        self, circuit: Circuit, state: OptimizerState | None, batch: Batch, lr: float = 0.05
    ) -> tuple[Circuit, OptimizerState, dict[str, Any]]:
        """Perform one AdamW step on the soft loss of a batch, with clipped gradients.

        Args:
            circuit: Soft gates and their wiring.
            state: Moments and step count of the optimiser; None before the first step.
            batch: Initial states and targets.
            lr: Learning rate.

        Returns:
            The circuit with new logits, the new optimiser state, and a dict of the metrics `soft_loss` and `skipped`.

        Raises:
            CircuitError: The circuit is feed-forward.
            DataError: The batch contains an invalid shape or value.
        """

    def open_function(
        self, circuit: Circuit, grid: Sequence[int], steps: int = 1, hard: bool = False, every_state: bool = False
    ) -> CircuitFunction:
        """Return a circuit as a differentiable function, for use with any loss.

        Args:
            circuit: Soft gates and their wiring.
            grid: `[B, H, W]` for an automaton; any shape of samples for a feed-forward circuit.
            steps: Number of steps, T; 1 for a feed-forward circuit.
            hard: True for hard gates in the forward pass and soft gates in the backward pass (straight-through).
            every_state: True to return the states after all steps, `[T, *grid, C]`; False for only the last state.

        Raises:
            DataError: The circuit cannot run on this grid or for this number of steps.
            LimitError: The states do not fit into memory.
        """

    def open(
        self, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None = None, reserved: int = 0
    ) -> Model:
        """Open a model that continues training runs from the given states.

        Args:
            jobs: Training runs with equal `Shape`.
            states: Training states from which the runs continue, one per run.
            max_memory: Maximum number of bytes of device memory to use; None for no limit.
            reserved: Number of bytes of `max_memory` to leave free for hard rollouts.

        Raises:
            LimitError: The runs do not all fit into memory; the message contains the number of runs that fit.
            UsageError: `max_memory` is set, but the engine cannot limit its memory.
        """

    def memory(self, jobs: Sequence[Job], max_memory: int | None = None, reserved: int = 0) -> int:
        """Return the number of bytes that a model of `jobs` would use; arguments and exceptions are those of `open`."""

    def rollout_memory(self, circuit: Circuit, grid: tuple[int, ...], steps: int, asynchronous: bool) -> int:
        """Return the bytes that a hard rollout on `grid` (B, H, W, C) needs in addition to those of open models."""
