"""Batches of initial states and targets, and validation of the arrays that callers pass to engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from difflogic.config.task import MIN_SIDE, is_large_enough
from difflogic.engine.events import Damage
from difflogic.engine.shape import Shape
from difflogic.errors import DataError
from difflogic.model.circuit import Circuit
from difflogic.system.brief import brief

Mode = Literal["soft", "hard"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Initial states and their targets, with fire masks and damage for the rollout.

    Letters in shapes are B samples, H rows, W columns, C channels, T steps and J loss steps.

        >>> x = np.zeros((1, 4, 4, 2), np.float32)
        >>> batch = difflogic.Batch(x, 1 - x, steps=3)
        >>> batch.loss_channels
        1
    """

    x: npt.ArrayLike
    """Initial states, float32 `[B, H, W, C]`."""
    y: npt.ArrayLike
    """Targets: an array in the shape of `x`, of which only the loss channels are compared, or an array `[J, B, H, W,
    loss_channels]` (J = 1: one target for all loss steps). Values equal to `core.bits.IGNORED` are not compared."""
    steps: int
    loss_channels: int = 1
    masks: npt.ArrayLike | None = None
    """Fire masks, `[T, H, W, 1]`: 1 if a cell is updated in a step, otherwise 0; None to update all cells."""
    loss_steps: Sequence[int] = ()
    """Steps after which the loss is computed, before the damage of the next step; empty for only the last step."""
    damage: Damage | None = None

    __repr__ = brief

    def checked(self, circuit: Circuit, dtype: npt.DTypeLike = np.float32) -> CheckedBatch:
        """Validate the arrays for a circuit, and return them converted to `dtype`.

        Args:
            circuit: The circuit that is evaluated on the batch.
            dtype: Type of the arrays.

        Returns:
            The batch in the form that all engines require.

        Raises:
            CircuitError: The circuit is feed-forward.
            DataError: An array has an invalid shape or value.
        """
        grid, fire = check_grids(circuit, self.x, self.steps, self.masks, dtype=dtype)
        loss_steps = check_course(grid, self.steps, self.loss_steps, self.damage)
        target = check_target(grid, self.y, self.loss_channels, len(loss_steps), dtype)
        shape = Shape.of(circuit, grid.shape, self.steps, self.loss_channels, loss_steps, self.damage, len(target))
        return CheckedBatch(shape, grid, target, fire, self.damage)


@dataclass(frozen=True, eq=False)
class CheckedBatch:
    """Batch whose arrays have been validated for a circuit."""

    shape: Shape
    x: npt.NDArray[Any]
    targets: npt.NDArray[Any]
    """Targets, `[J, B, H, W, loss_channels]`; J is 1 if all loss steps have the same target."""
    masks: npt.NDArray[Any] | None
    damage: Damage | None

    __repr__ = brief


def check_grids(
    circuit: Circuit,
    x: npt.ArrayLike,
    steps: int,
    masks: npt.ArrayLike | None = None,
    mode: Mode = "soft",
    dtype: npt.DTypeLike = np.float32,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    """Return `x` and `masks` as validated arrays. Raises DataError, or CircuitError for a feed-forward circuit."""
    circuit.require_automaton()
    if mode not in ("soft", "hard"):
        raise DataError(f'mode must be "soft" or "hard", got {mode!r}.')
    if steps < 1:
        raise DataError(f"steps must be at least 1, got {steps}.")
    grid = as_finite("x", x, dtype)
    if grid.ndim != 4 or grid.shape[-1] != circuit.channels or grid.shape[0] < 1:
        raise DataError(f"x must have shape [B, H, W, {circuit.channels}], got {list(grid.shape)}.")
    if not is_large_enough(grid.shape[1], grid.shape[2], circuit.neighbourhood):
        raise DataError(f"A grid needs at least {MIN_SIDE}x{MIN_SIDE} cells, got {grid.shape[2]}x{grid.shape[1]}.")
    # Hard engines pack a value into one bit: any other value would be rounded silently.
    if mode == "hard" and not np.isin(grid, (0, 1)).all():
        raise DataError("In hard mode, every value of x must be 0 or 1: round x, or use mode='soft'.")
    if masks is None:
        return grid, None
    fire = as_finite("masks", masks, dtype)
    expected = (steps, *grid.shape[1:3], 1)
    if fire.shape != expected:
        raise DataError(f"masks must have shape {list(expected)}, got {list(fire.shape)}.")
    if not np.isin(fire, (0, 1)).all():
        raise DataError("masks must be 0 or 1: 1 if a cell takes its new state.")
    return grid, fire


def check_target(
    x: npt.NDArray[Any], y: npt.ArrayLike, loss_channels: int, loss_steps: int = 1, dtype: npt.DTypeLike = np.float32
) -> npt.NDArray[Any]:
    """Return `y` as an array `[J, B, H, W, loss_channels]`. Raises DataError if shape or values are invalid for `x`."""
    target = as_finite("y", y, dtype)
    if not 1 <= loss_channels <= x.shape[-1]:
        raise DataError(f"loss_channels must be between 1 and {x.shape[-1]}, got {loss_channels}.")
    if target.shape[1:] == (*x.shape[:-1], loss_channels) and target.shape[0] in (1, loss_steps):
        return target
    if target.shape != x.shape:
        raise DataError(f"y must have the shape of x, {list(x.shape)}, got {list(target.shape)}.")
    return target[None, ..., :loss_channels]


def check_course(x: npt.NDArray[Any], steps: int, loss_steps: Sequence[int], damage: Damage | None) -> tuple[int, ...]:
    """Return the validated loss steps of a rollout from `x`. Raises DataError if these or damage are out of range."""
    checked = tuple(loss_steps) or (steps,)
    # The backward pass begins at the last loss step, where the rollout ends.
    if list(checked) != sorted(set(checked)) or checked[0] < 1 or checked[-1] != steps:
        raise DataError(f"loss_steps must be ascending CA steps of at least 1, the last {steps}, got {list(checked)}.")
    if damage is None:
        return checked
    damaged = list(damage.steps)
    if not damaged and damage.faults is not None:
        return checked
    if damaged != sorted(set(damaged)) or not damaged or damaged[0] < 0 or damaged[-1] >= steps:
        raise DataError(f"damage.steps must be ascending CA steps between 0 and {steps - 1}, got {damaged}.")
    if damage.side < 1:
        raise DataError(f"damage.side must be at least 1 cell, got {damage.side}.")
    expected, corners = (len(damaged), len(x), 2), np.asarray(damage.corners)
    if corners.shape != expected:
        raise DataError(f"damage.corners must have shape {list(expected)}, got {list(corners.shape)}.")
    if (corners < 0).any() or (corners >= x.shape[1:3]).any():
        raise DataError(f"damage.corners must be cells of a grid of {x.shape[2]}x{x.shape[1]}.")
    return checked


def as_finite(name: str, values: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return `values` as an array of `dtype`. Raises DataError, with `name` in the message, if they are not finite."""
    try:
        with np.errstate(over="ignore"):  # a number too large for float32 becomes infinity, which is refused below
            array = np.asarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be an array of numbers: {error}.") from error
    if not np.isfinite(array).all():
        raise DataError(f"{name} contains NaN or infinity.")
    return array
