"""Sizes of a rollout or train step, and hyperparameters of the optimiser, which all engines take as arguments."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy.typing as npt

from difflogic.config.schema import Config
from difflogic.engine.events import NO_FAULTS, Damage, FaultRates
from difflogic.model.circuit import Circuit

Array = npt.NDArray[Any]
"""NumPy array whose shape and dtype are documented at each use."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a rollout: B grids of H x W cells, C channels, T steps. Cells are numbered `(b*H + row)*W + column`."""

    batch: int
    height: int
    width: int
    channels: int
    steps: int
    loss_channels: int = 1
    periodic: bool = False
    loss_steps: tuple[int, ...] = ()
    """Steps after which the loss is computed, as in TaskConfig; empty for only the last step."""
    damage_side: int = 0
    damage_steps: tuple[int, ...] = ()
    targets: int = 1
    """Number of targets per sample: 1 for all loss steps together, or one per loss step."""
    faults: FaultRates = NO_FAULTS

    @property
    def judged_steps(self) -> tuple[int, ...]:
        return self.loss_steps or (self.steps,)

    @property
    def cells_per_grid(self) -> int:
        return self.height * self.width

    @property
    def cells(self) -> int:
        return self.batch * self.cells_per_grid

    @classmethod
    def of(
        cls,
        circuit: Circuit,
        grid: tuple[int, ...],
        steps: int,
        loss_channels: int = 1,
        loss_steps: tuple[int, ...] = (),
        damage: Damage | None = None,
        targets: int = 1,
    ) -> Shape:
        """Return the shape of a rollout of `circuit` for `steps` steps from initial states of `grid` (B, H, W, C)."""
        # `training` takes the batch size from the configuration instead.
        batch, height, width, channels = grid
        side, damaged = (0, ()) if damage is None else (damage.side, damage.steps)
        rates = NO_FAULTS if damage is None or damage.faults is None else damage.faults.rates
        sizes = (batch, height, width, channels, steps, loss_channels, circuit.periodic)
        return cls(*sizes, loss_steps, side, damaged, targets, rates)

    @classmethod
    def training(cls, circuit: Circuit, config: Config) -> Shape:
        """Return the shape of a train step of `circuit` with the configuration `config`."""
        task = config.task
        return cls(
            batch=config.train.batch,
            height=task.height,
            width=task.width,
            channels=circuit.channels,
            steps=task.steps,
            loss_channels=task.loss_channels,
            periodic=circuit.periodic,
            loss_steps=task.loss_steps,
            damage_side=task.damage_side,
            damage_steps=task.damage_steps,
            targets=config.data.targets,
            faults=FaultRates.of(task),
        )


@dataclass(frozen=True)
class Hyper:
    """Hyperparameters of gradient clipping, AdamW and the learning rate schedule, named as in the kernels."""

    lr: float = 0.05
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.99
    epsilon: float = 1e-8
    clip: float = 100.0
    lr_end: float = 1.0
    lr_from: int = 0
    lr_to: int = 0
    clip_by: str = "element"
    input_wise: bool = False
    """True if training updates four parameters per gate instead of sixteen logits; see `core.gates.INPUT_WISE`."""

    @classmethod
    def of(cls, config: Config) -> Hyper:
        schedule = config.schedule
        return cls(
            **asdict(config.optimizer),
            lr_end=schedule.share,
            lr_from=schedule.begin,
            lr_to=schedule.end,
            input_wise=config.model.input_wise,
        )
