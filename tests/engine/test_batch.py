"""Test the checks of batches, grids and targets."""

from typing import Any

import numpy as np
import pytest

from difflogic.engine.batch import Batch, check_course, check_grids, check_target
from difflogic.engine.events import Damage
from difflogic.errors import DataError
from tests.random_circuits import random_circuit

CIRCUIT = random_circuit(np.random.default_rng(0))
X = np.zeros((4, 5, 6, 2), dtype=np.float32)
MASKS = np.ones((3, 5, 6, 1), dtype=np.float32)


def changed(array: np.ndarray, value: float) -> np.ndarray:
    copy = array.copy()
    copy.flat[7] = value
    return copy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "firm"}, 'mode must be "soft" or "hard", got \'firm\'.'),
        ({"steps": 0}, "steps must be at least 1, got 0."),
        ({"x": X[0]}, "x must have shape [B, H, W, 2], got [5, 6, 2]."),
        ({"x": X[..., :1]}, "x must have shape [B, H, W, 2], got [4, 5, 6, 1]."),
        ({"x": X[:0]}, "x must have shape [B, H, W, 2], got [0, 5, 6, 2]."),
        ({"x": X[:, :2]}, "A grid needs at least 3x3 cells, got 6x2."),
        ({"x": X[:, :, :1]}, "A grid needs at least 3x3 cells, got 1x5."),
        ({"x": changed(X, np.nan)}, "x contains NaN or infinity."),
        ({"x": changed(X.astype(float), 1e39)}, "x contains NaN or infinity."),
        (
            {"x": changed(X, 0.5), "mode": "hard"},
            "In hard mode, every value of x must be 0 or 1: round x, or use mode='soft'.",
        ),
        ({"masks": MASKS[..., 0]}, "masks must have shape [3, 5, 6, 1], got [3, 5, 6]."),
        ({"masks": MASKS[:2]}, "masks must have shape [3, 5, 6, 1], got [2, 5, 6, 1]."),
        ({"masks": changed(MASKS, 0.5)}, "masks must be 0 or 1: 1 if a cell takes its new state."),
        ({"masks": changed(MASKS, np.inf)}, "masks contains NaN or infinity."),
    ],
)
def test_a_grid_that_does_not_fit_is_refused(arguments: dict[str, Any], message: str) -> None:
    valid: dict[str, Any] = {"x": X, "steps": 3, "masks": MASKS}
    check_grids(CIRCUIT, **valid)
    with pytest.raises(DataError) as raised:
        check_grids(CIRCUIT, **{**valid, **arguments})
    assert str(raised.value) == message


@pytest.mark.parametrize("x", ["noise", [[1, 2], [3]], {}])
def test_values_that_are_no_array_are_refused(x: Any) -> None:
    with pytest.raises(DataError, match=r"^x must be an array of numbers: "):
        check_grids(CIRCUIT, x, 1)


def test_grids_become_arrays_of_the_engines_type() -> None:
    grid, fire = check_grids(CIRCUIT, X.astype(int).tolist(), 3, MASKS.astype(bool), dtype=np.float64)
    assert grid.dtype == np.float64
    assert fire is not None
    assert fire.dtype == np.float64
    assert check_grids(CIRCUIT, X, 3)[1] is None


@pytest.mark.parametrize(
    ("y", "loss_channels", "message"),
    [
        (X[:2], 1, "y must have the shape of x, [4, 5, 6, 2], got [2, 5, 6, 2]."),
        (X[..., :1], 1, "y must have the shape of x, [4, 5, 6, 2], got [4, 5, 6, 1]."),
        (changed(X, np.nan), 1, "y contains NaN or infinity."),
        (X, 0, "loss_channels must be between 1 and 2, got 0."),
        (X, 3, "loss_channels must be between 1 and 2, got 3."),
    ],
)
def test_a_target_that_does_not_fit_is_refused(y: np.ndarray, loss_channels: int, message: str) -> None:
    check_target(X, X, 2)
    with pytest.raises(DataError) as raised:
        check_target(X, y, loss_channels)
    assert str(raised.value) == message


def damaged(**changes: Any) -> Damage:
    whole: dict[str, Any] = {"side": 2, "steps": (0, 2), "corners": np.ones((2, 4, 2), dtype=np.int64)}
    return Damage(**{**whole, **changes})


@pytest.mark.parametrize(
    ("loss_steps", "damage", "message"),
    [
        ((1, 2), None, "loss_steps must be ascending CA steps of at least 1, the last 3, got [1, 2]."),
        ((0, 3), None, "loss_steps must be ascending CA steps of at least 1, the last 3, got [0, 3]."),
        ((2, 1, 3), None, "loss_steps must be ascending CA steps of at least 1, the last 3, got [2, 1, 3]."),
        ((), damaged(steps=(1, 3)), "damage.steps must be ascending CA steps between 0 and 2, got [1, 3]."),
        ((), damaged(steps=()), "damage.steps must be ascending CA steps between 0 and 2, got []."),
        ((), damaged(side=0), "damage.side must be at least 1 cell, got 0."),
        ((), damaged(steps=(0,)), "damage.corners must have shape [1, 4, 2], got [2, 4, 2]."),
        ((), damaged(corners=np.full((2, 4, 2), 5)), "damage.corners must be cells of a grid of 6x5."),
    ],
)
def test_invalid_loss_steps_and_damage_are_refused(loss_steps, damage, message) -> None:
    assert check_course(X, 3, (), damaged()) == (3,)
    assert check_course(X, 3, (1, 3), None) == (1, 3)
    with pytest.raises(DataError) as raised:
        check_course(X, 3, loss_steps, damage)
    assert str(raised.value) == message


def test_all_parts_of_a_batch_are_checked() -> None:
    checked = Batch(X.tolist(), X + 1, 3, masks=MASKS, loss_steps=[1, 3]).checked(CIRCUIT, np.float64)
    assert (checked.shape.batch, checked.shape.loss_steps) == (4, (1, 3))
    assert (checked.x.shape, checked.x.dtype) == (X.shape, np.float64)
    np.testing.assert_array_equal(checked.targets, np.ones((1, 4, 5, 6, 1)))
    with pytest.raises(DataError, match=r"^loss_channels must be between 1 and 2, got 3\.$"):
        Batch(X, X, 3, loss_channels=3).checked(CIRCUIT)
