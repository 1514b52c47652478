"""Reference engine: NumPy in float32, or in float64 for finite differences."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import pack_grids, unpack_grids
from difflogic.engine import control as c
from difflogic.engine import memory
from difflogic.engine.api import Model
from difflogic.engine.batch import Batch, Mode, check_course, check_grids
from difflogic.engine.events import Damage
from difflogic.engine.job import Floats, Job, OptimizerState, TrainState
from difflogic.engine.population import open_in_turn
from difflogic.engine.shape import Array, Hyper, Shape
from difflogic.model.circuit import ArraysByNetwork, Circuit
from difflogic.model.layout import flat_layout
from difflogic.reference.function import ReferenceFunction
from difflogic.reference.kernels.adamw import adamw
from difflogic.reference.kernels.commit import commit
from difflogic.reference.model import INFO, ReferenceModel
from difflogic.reference.rollout import RolloutSpec, cells_last, hard_rollout, soft_gradients, soft_losses, soft_rollout


class ReferenceEngine:
    """Implementation of `difflogic.engine.api.Engine` in NumPy; `dtype` is the float type of all soft arithmetic."""

    selector = "reference"

    def __init__(self, dtype: npt.DTypeLike = np.float32) -> None:
        self.dtype = np.dtype(dtype)
        self.info = INFO

    def rollout(
        self,
        circuit: Circuit,
        x: npt.ArrayLike,
        steps: int,
        mode: Mode = "soft",
        masks: npt.ArrayLike | None = None,
        damage: Damage | None = None,
    ) -> Floats:
        grid, fire = check_grids(circuit, x, steps, masks, mode, self.dtype)
        check_course(grid, steps, (), damage)
        spec = _spec(circuit, Shape.of(circuit, grid.shape, steps, damage=damage), fire, damage)
        logits = circuit.flat_logits().astype(self.dtype)
        if mode == "hard":
            return unpack_grids(hard_rollout(spec, logits, pack_grids(grid))[0], grid.shape)
        # Kernels here have cells last, so that one NumPy operation covers a node of all cells of the batch; callers
        # have channels last.
        states = soft_rollout(spec, logits, cells_last(grid))
        return np.ascontiguousarray(states.transpose(0, 2, 1).reshape(steps + 1, *grid.shape))

    def loss_and_gradients(self, circuit: Circuit, batch: Batch) -> tuple[float, ArraysByNetwork]:
        loss, gradients = self._gradients(circuit, batch, np.zeros(c.WORDS, dtype=np.uint32))
        return loss, circuit.unflatten(gradients)

    def open_function(
        self, circuit: Circuit, grid: Sequence[int], steps: int = 1, hard: bool = False, every_state: bool = False
    ) -> ReferenceFunction:
        return ReferenceFunction(self.dtype, circuit, grid, steps, hard, every_state)

    def loss(self, circuit: Circuit, batch: Batch) -> float:
        """Return the soft loss only, in a fraction of the time and memory of `loss_and_gradients`."""
        return float(soft_losses(*self._work(circuit, batch)).sum(dtype=np.float64))

    def train_step(
        self, circuit: Circuit, state: OptimizerState | None, batch: Batch, lr: float = 0.05
    ) -> tuple[Circuit, OptimizerState, dict[str, Any]]:
        state = state or OptimizerState.fresh(circuit)
        control = np.zeros(c.WORDS, dtype=np.uint32)
        control[c.STEP] = state.step
        loss, gradients = self._gradients(circuit, batch, control)
        logits, mu, nu = circuit.flat_logits().astype(self.dtype), state.mu.copy(), state.nu.copy()
        adamw(Hyper(lr=lr), control, gradients, logits, mu, nu)
        after = OptimizerState(mu, nu, int(control[c.STEP]))
        return circuit.with_logits(logits), after, {"soft_loss": loss, "skipped": bool(control[c.NONFINITE])}

    def _work(self, circuit: Circuit, batch: Batch) -> tuple[RolloutSpec, Array, Array, Array]:
        """Return the arguments of a soft pass: spec, logits `[P, 16]`, initial states and targets, with cells last."""
        checked = batch.checked(circuit, self.dtype)
        spec = _spec(circuit, checked.shape, checked.masks, checked.damage)
        logits = circuit.flat_logits().astype(self.dtype)
        return spec, logits, cells_last(checked.x), cells_last(checked.targets)

    def _gradients(self, circuit: Circuit, batch: Batch, control: Array) -> tuple[float, Array]:
        """Return the loss and its gradients `[P, 16]`, and update the control block as `commit` does."""
        done = soft_gradients(*self._work(circuit, batch), control)
        history = np.empty((1, 2), dtype=self.dtype)
        commit(done.loss_partials, control, history)
        return float(history[0, 0]), done.gradients

    def open(
        self, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None = None, reserved: int = 0
    ) -> Model:
        memory.refuse_limit("reference", max_memory)
        return open_in_turn([partial(ReferenceModel, *run) for run in zip(jobs, states, strict=True)])

    def memory(self, jobs: Sequence[Job], max_memory: int | None = None, reserved: int = 0) -> int:
        memory.refuse_limit("reference", max_memory)
        return sum(memory.training_bytes(job.config, threads=1) for job in jobs)

    def rollout_memory(self, circuit: Circuit, grid: tuple[int, ...], steps: int, asynchronous: bool) -> int:
        return memory.rollout_bytes(grid, steps)


def _spec(circuit: Circuit, shape: Shape, masks: Array | None, damage: Damage | None) -> RolloutSpec:
    flat = None if masks is None else masks.reshape(len(masks), -1)
    corners, faults = (None, None) if damage is None else (damage.corners, damage.faults)
    return RolloutSpec(shape, flat_layout(circuit), flat, corners, faults=faults)
