"""Random numbers in compiled code, bit for bit those of `difflogic.core.prng`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from difflogic.core import prng
from difflogic.cpu.codegen import threefry
from difflogic.cpu.codegen.compiled import FLAGS
from difflogic.cpu.codegen.vectors import TILE
from difflogic.cpu.kernels import damage
from difflogic.cpu.kernels import fire_mask as masks_of_steps
from difflogic.cpu.kernels import seed_grid as start_grids
from difflogic.cpu.kernels.seed_grid import RANDOM
from difflogic.cpu.tables import aligned, make_grid
from difflogic.engine import control as c
from difflogic.engine import events
from difflogic.engine.events import Damage
from difflogic.engine.shape import Shape
from difflogic.reference.kernels import fire_mask as fire_mask_twin
from difflogic.reference.kernels import seed_grid as seed_grid_twin

KEYS = [prng.key_from_seed(seed) for seed in (0, 23, 2**32 - 1)] + [np.array([0xDEADBEEF, 0x89ABCDEF], np.uint32)]

SHAPES = [
    Shape(1, 3, 3, 1, steps=1),
    Shape(2, 5, 7, 3, steps=4),
    Shape(3, 4, 11, 2, steps=3, periodic=True),
    Shape(1, 8, 8, 1, steps=2),
]


NOTHING = np.zeros(0, dtype=np.uint8)


def called(kernel: Any) -> Any:
    """A function that is otherwise compiled into its callers, as one that Python can call."""
    return njit(**FLAGS)(kernel.py_func)


split, pair_of_bits = called(threefry.split), called(threefry.pair_of_bits)
draw_corners, write_kept = called(damage.draw_corners), called(damage.write_kept)
fire_mask, seed_grid = called(masks_of_steps.fire_mask), called(start_grids.seed_grid)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_split(key: prng.Key) -> None:
    np.testing.assert_array_equal(split(*key), np.concatenate(prng.split(key)))


@pytest.mark.parametrize("count", [1, 2, 9, 50])
def test_bits(count: int) -> None:
    expected = prng.random_bits(KEYS[3], count)
    half = (count + 1) // 2
    pairs = np.array([pair_of_bits(*KEYS[3], index, count) for index in range(half)], dtype=np.uint32)
    np.testing.assert_array_equal(np.concatenate([pairs[:, 0], pairs[:, 1]])[:count], expected)


@pytest.mark.parametrize("parts", [1, 3, 8])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_start_grids(shape: Shape, parts: int) -> None:
    control = np.zeros(c.WORDS, dtype=np.uint32)
    control[c.DATA_KEY] = KEYS[3]
    grid = make_grid(shape)
    state = np.full((shape.channels, grid.stride), 7, dtype=np.float32)
    for part in range(parts):
        seed_grid(grid, RANDOM, shape.channels, part, parts, control, NOTHING, state.reshape(-1))
    expected = np.empty((shape.channels, shape.cells), dtype=np.float32)
    seed_grid_twin.seed_grid(shape, control, expected)
    inside = slice(grid.guard, grid.guard + shape.cells)
    np.testing.assert_array_equal(state[:, inside], expected)
    assert (np.delete(state, np.r_[inside], axis=1) == 7).all()


@pytest.mark.parametrize("parts", [1, 3, 8])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("fire_rate", [0.6, 0.1])
def test_fire_masks(shape: Shape, parts: int, fire_rate: float) -> None:
    grid = make_grid(shape)
    masks = aligned(shape.steps, grid.tiles * TILE)
    for part in range(parts):
        fire_mask(grid, part, parts, np.float32(fire_rate), *KEYS[3], masks)
    expected = fire_mask_twin.draw_masks(shape, fire_rate, KEYS[3])
    np.testing.assert_array_equal(masks[:, : shape.cells], np.tile(expected, shape.batch))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("side", [1, 4])
def test_damage(shape: Shape, side: int) -> None:
    """Corners and squares of every step."""
    grid, steps = make_grid(shape), 3
    corners = np.zeros((steps, shape.batch, 2), dtype=np.int64)
    kept = aligned(steps, grid.tiles * TILE)
    for index in range(steps):
        draw_corners(grid, index, *KEYS[3], corners)
        write_kept(grid, index, side, corners, kept)
    expected = events.draw_corners(KEYS[3], steps, shape.batch, shape.height, shape.width)
    np.testing.assert_array_equal(corners, expected)
    for index in range(steps):
        squares = Damage(side, (0, 1, 2), expected).kept(index, shape.height, shape.width)
        np.testing.assert_array_equal(kept[index, : shape.cells], squares.reshape(-1))
