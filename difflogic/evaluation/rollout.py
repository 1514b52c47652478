"""Run hard rollouts on any grid, optionally asynchronous or damaged, and yield one state at a time.

States are computed in chunks of steps by `Engine.rollout`, so a long rollout takes no more memory than a short one.
The states do not depend on the size of the chunks.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from difflogic.core import prng
from difflogic.core.bits import Bits
from difflogic.engine.api import Engine
from difflogic.engine.batch import check_grids
from difflogic.engine.events import Damage, draw_corners, draw_masks
from difflogic.engine.job import Floats
from difflogic.errors import UsageError
from difflogic.model.circuit import Circuit

STRETCH_BYTES = 1 << 24
"""Maximum size in bytes of a chunk's states; a chunk has at least one step."""
FIRE_STREAM, DAMAGE_STREAM = 0x66697265, 0x64616D61
"""Constants ("fire", "dama") folded into the random keys of fire masks and damage positions."""


@dataclass(frozen=True)
class DamagePlan:
    """Times and place of damage, which zeroes all channels in a square of `side` cells, clipped at the border."""

    side: int
    steps: Sequence[int]
    """Steps after which damage occurs, in ascending order; 0 damages the initial state."""
    place: Literal["centre", "random"] | tuple[int, int] = "centre"
    """First row and column of the square, `centre`, or `random` for a random place per sample and step."""

    def check_fits(self, height: int, width: int) -> None:
        """Raise UsageError if the place is outside a grid of `height` rows and `width` columns."""
        if isinstance(self.place, tuple) and not (0 <= self.place[0] < height and 0 <= self.place[1] < width):
            row, column = self.place
            raise UsageError(
                f"Expected damage inside the grid, in rows 0 to {height - 1} and columns 0 to {width - 1}, got row "
                f"{row}, column {column}."
            )

    def hit(self, key: prng.Key, state: Bits) -> Bits:
        """Return `state` `[B, H, W, C]` with one square per sample zeroed; random places are sampled with `key`."""
        batch, height, width, _ = state.shape
        corners = np.tile(np.array(self._corner(height, width)), (1, batch, 1))
        if self.place == "random":
            corners = draw_corners(key, 1, batch, height, width)
        intact = Damage(self.side, (0,), corners).undamaged(0, height, width)
        return np.where(intact[..., None], state, np.uint8(0))

    def square(self, height: int, width: int) -> tuple[slice, ...]:
        """Return the slices of the damaged rows and columns, or an empty tuple for a random place."""
        if self.place == "random":
            return ()
        row, column = self._corner(height, width)
        return slice(row, row + self.side), slice(column, column + self.side)

    def _corner(self, height: int, width: int) -> tuple[int, int]:
        if isinstance(self.place, tuple):
            return self.place
        return max(0, (height - self.side) // 2), max(0, (width - self.side) // 2)


def play(
    engine: Engine,
    circuit: Circuit,
    start: npt.ArrayLike,
    steps: int,
    key: prng.Key,
    fire_rate: float = 1.0,
    damage: DamagePlan | None = None,
) -> Iterator[Bits]:
    """Yield the states, uint8 `[B, H, W, C]`, after 0, 1, ... `steps` steps, including damage.

    `start` `[B, H, W, C]` contains 0 and 1. If `fire_rate` is below 1, cells update with that probability, the same
    cells in all samples. `key` determines fire masks and damage positions. Raises DataError or an engine's error.
    """
    grid = check_grids(circuit, start, steps, mode="hard")[0].astype(np.uint8)
    # With separate streams, damage does not change which cells fire, so rollouts can be compared.
    fire_key, damage_key = prng.fold_in(key, FIRE_STREAM), prng.fold_in(key, DAMAGE_STREAM)
    hits = damage.steps if damage is not None else ()
    longest = max(1, STRETCH_BYTES // (4 * grid.size))
    state, done = _hit(damage, damage_key, grid, 0), 0
    yield state
    while done < steps:
        # A chunk ends at the next damage: with damage at steps 3 and 5, ten steps become chunks of 3, 2 and 5.
        upcoming = bisect_right(hits, done)
        until = hits[upcoming] if upcoming < len(hits) else steps
        count = min(longest, until - done, steps - done)
        masks: Floats | None = None
        if fire_rate < 1:
            fire_key, masks = draw_masks(fire_key, count, (*grid.shape[1:3], 1), fire_rate)
        states = engine.rollout(circuit, state, count, "hard", masks)[1:].astype(np.uint8)
        done += count
        state = _hit(damage, damage_key, states[-1], done)
        yield from states[:-1]
        yield state


def _hit(damage: DamagePlan | None, key: prng.Key, state: Bits, step: int) -> Bits:
    if damage is None or step not in damage.steps:
        return state
    return damage.hit(prng.fold_in(key, step), state)


def evenly(steps: int, most: int) -> list[int]:
    """Return at most `most` evenly spaced steps from 0 to `steps`, including 0 and `steps`."""
    # For at most 8 of the steps 0 to 20, a stride of ceil(20 / 7) = 3 gives 0, 3, ..., 18, and 20 is added.
    stride = max(1, math.ceil(steps / (most - 1)))
    return sorted({*range(0, steps, stride), steps})
