"""Every engine has this interface, the one that `reference/`, `cpu/` and `gpu/` share.

An engine computes; it knows nothing of files, progress or experiments. `Engine` holds the stateless
calls that tests and notebooks use, and opens a `Model`, which keeps the state of some training runs
where the engine computes and is driven by `train/`.
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
    """This describes what computed a run: printed at the start and kept in the run's manifest."""

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


def describe_engine(engine: EngineInfo) -> str:
    """Adapter, backend and driver in one line."""
    details = (engine.adapter_type, engine.backend, engine.driver)
    named = ", ".join(detail for detail in details if detail)
    return f"{engine.engine}: {engine.adapter}" + (f" ({named})" if named else "")


@dataclass(frozen=True)
class EpochMetrics:
    """The metrics of one epoch. `soft_loss` is a sum over batch, cells, loss channels and judged steps."""

    epoch: int
    """1 for the first."""
    soft_loss: float
    """NaN where it was not computed: see `difflogic.engine.search`."""
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


class Model(Protocol):
    """Training runs of one shape, held by an engine and always at the same epoch.

    Each is, bit for bit, what the same engine makes of it alone. Lists have one entry per run, for one run as well.
    """

    @property
    def info(self) -> EngineInfo:
        """The engine's, with the variant that these runs really use."""

    def train(self, epochs: int) -> None:
        """Do `epochs` train steps of every run; their metrics wait until `fetch_metrics`."""

    def fetch_metrics(self) -> list[list[EpochMetrics]]:
        """Metrics of every epoch since the last call, in order; waits for work under way."""

    def evaluate(self) -> list[Evaluation]:
        """Evaluate the hard circuits on their probes and on the last epoch's batch."""

    def states(self) -> list[TrainState]:
        """Exact copies of the states."""

    def epochs_per_call(self) -> int:
        """The most epochs `train` should be asked for at once to stay responsive to signals."""

    def close(self) -> None:
        """Free what the engine holds; the model cannot be used afterwards."""


class Engine(Protocol):
    """Every engine can do this, without a state of its own between calls.

    `x` is float32 `[B, H, W, C]` and `masks` float32 `[T, H, W, 1]`. What a circuit or batch cannot be raises
    CircuitError or DataError.

        >>> engine = difflogic.open_engine("reference")
        >>> engine.rollout(circuit, np.zeros((1, 4, 4, 2), np.float32), steps=3, mode="hard").shape
        (4, 1, 4, 4, 2)
    """

    info: EngineInfo

    @property
    def selector(self) -> str:
        """Return what `--engine` takes to open it again: `cpu`, `reference`, `gpu:INDEX`."""

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
            x: Start grids `[B, H, W, C]`; 0 and 1 in hard mode.
            steps: How many steps, T.
            mode: `soft`, or `hard`: each gate is its most probable function, and the result is exact.
            masks: `[T, H, W, 1]`: a cell takes its new state where it is 1. None: everywhere.
            damage: Squares that are set to zero on the way. A damaged state is shown damaged, as the next step sees it.

        Returns:
            The states `[T+1, B, H, W, C]`, the start included.
        """

    def loss_and_gradients(self, circuit: Circuit, batch: Batch) -> tuple[float, ArraysByNetwork]:
        """The soft loss of a batch, and how each logit changes it.

        Args:
            circuit: Soft gates and their wiring.
            batch: Start grids and what they should become.

        Returns:
            The sum of squared errors, and its gradients in the shapes of the logits, not clipped.
        """

    def train_step(
        self, circuit: Circuit, state: OptimizerState | None, batch: Batch, lr: float = 0.05
    ) -> tuple[Circuit, OptimizerState, dict[str, Any]]:
        """One step of AdamW, with clipped gradients.

        Args:
            circuit: Soft gates and their wiring.
            state: The moments; None: fresh ones.
            batch: Start grids and what they should become.
            lr: The learning rate.

        Returns:
            The circuit with other logits, the moments, and `soft_loss` and `skipped` as metrics.
        """

    def open_function(
        self, circuit: Circuit, grid: Sequence[int], steps: int = 1, hard: bool = False, every_state: bool = False
    ) -> CircuitFunction:
        """The circuit as a differentiable function on samples of that grid, for any loss: see CircuitFunction.

        Raises DataError for a grid or steps that the circuit cannot take.
        """

    def open(
        self, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None = None, reserved: int = 0
    ) -> Model:
        """Hold the states where this engine computes, ready to train.

        The model takes at most `max_memory` bytes of the device, less those that are `reserved` for hard rollouts
        beside it. Raises LimitError, which says how many runs fit, where not all do; UsageError for a limit where the
        engine plans no memory.
        """

    def memory(self, jobs: Sequence[Job], max_memory: int | None = None, reserved: int = 0) -> int:
        """Bytes that a model of these jobs takes, before it takes any. Raises what `open` would raise."""

    def rollout_memory(self, circuit: Circuit, grid: tuple[int, ...], steps: int, asynchronous: bool) -> int:
        """Bytes that a hard rollout from `grid [B, H, W, C]` takes beside the models that are open."""
