"""The reference engine: NumPy, float32, or float64 where finite differences need it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic import control as c
from difflogic.bits import pack, unpack
from difflogic.circuit import ArraysByNetwork, Circuit
from difflogic.engine import (
    Floats,
    Job,
    Mode,
    OptimizerState,
    TrainingModel,
    TrainState,
    check_grids,
    check_target,
)
from difflogic.layout import flat_layout
from difflogic.reference.adamw import adamw
from difflogic.reference.commit import commit
from difflogic.reference.model import INFO, ReferenceModel
from difflogic.reference.rollout import hard_rollout, soft_gradients, soft_rollout
from difflogic.shape import Hyper, Shape

Array = npt.NDArray[Any]


class ReferenceEngine:
    """Implements `difflogic.engine.Engine`; `dtype` is the type of all soft arithmetic."""

    def __init__(self, dtype: npt.DTypeLike = np.float32) -> None:
        self.dtype = np.dtype(dtype)
        self.info = INFO

    def rollout(
        self, circuit: Circuit, x: npt.ArrayLike, steps: int, mode: Mode = "soft", masks: npt.ArrayLike | None = None
    ) -> Floats:
        grid, fire = check_grids(circuit, x, steps, masks, mode, self.dtype)
        shape, layout = Shape.of(circuit, grid.shape, steps), flat_layout(circuit)
        logits = circuit.flat_logits().astype(self.dtype)
        if mode == "hard":
            return unpack(hard_rollout(shape, layout, logits, _flat_masks(fire), pack(grid)), grid.shape)
        states = soft_rollout(shape, layout, logits, _flat_masks(fire), _cells_last(grid))
        return np.ascontiguousarray(states.transpose(0, 2, 1).reshape(steps + 1, *grid.shape))

    def loss_and_gradients(
        self,
        circuit: Circuit,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        steps: int,
        loss_channels: int = 1,
        masks: npt.ArrayLike | None = None,
    ) -> tuple[float, ArraysByNetwork]:
        control = np.zeros(c.WORDS, dtype=np.uint32)
        loss, gradients = self._flat_gradients(circuit, x, y, steps, loss_channels, masks, control)
        return loss, circuit.unflatten(gradients)

    def _flat_gradients(
        self,
        circuit: Circuit,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        steps: int,
        loss_channels: int,
        masks: npt.ArrayLike | None,
        control: Array,
    ) -> tuple[float, Array]:
        """The loss and its flat gradients, committed to the control block."""
        grid, fire = check_grids(circuit, x, steps, masks, dtype=self.dtype)
        target = check_target(grid, y, loss_channels, self.dtype)
        shape = Shape.of(circuit, grid.shape, steps, loss_channels)
        logits = circuit.flat_logits().astype(self.dtype)
        targets = _cells_last(target)[:loss_channels]
        partials, gradients = soft_gradients(
            shape, flat_layout(circuit), logits, _flat_masks(fire), _cells_last(grid), targets, control
        )
        history = np.empty((1, 2), dtype=self.dtype)
        commit(partials, control, history)
        return float(history[0, 0]), gradients

    def train_step(
        self,
        circuit: Circuit,
        state: OptimizerState | None,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        steps: int,
        loss_channels: int = 1,
        masks: npt.ArrayLike | None = None,
        lr: float = 0.05,
    ) -> tuple[Circuit, OptimizerState, dict[str, Any]]:
        state = state or OptimizerState.fresh(circuit)
        control = np.zeros(c.WORDS, dtype=np.uint32)
        control[c.STEP] = state.step
        loss, gradients = self._flat_gradients(circuit, x, y, steps, loss_channels, masks, control)
        logits, mu, nu = circuit.flat_logits().astype(self.dtype), state.mu.copy(), state.nu.copy()
        adamw(Hyper(lr=lr), control, gradients, logits, mu, nu)
        after = OptimizerState(mu, nu, int(control[c.STEP]))
        return circuit.with_logits(logits), after, {"soft_loss": loss, "skipped": bool(control[c.NONFINITE])}

    def open_model(self, job: Job, state: TrainState) -> TrainingModel:
        return ReferenceModel(job, state)


def _cells_last(grid: Array) -> Array:
    """`[B, H, W, C]` -> `[C, cells]`."""
    return np.ascontiguousarray(grid.reshape(-1, grid.shape[-1]).T)


def _flat_masks(masks: Array | None) -> Array | None:
    return None if masks is None else masks.reshape(len(masks), -1)
