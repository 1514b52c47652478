"""Specification of a simulation of a hard circuit on one large grid, and the interface that engines implement.

All engines compute the same bits. `difflogic.core.bernoulli` defines which cells fire (are updated) in a step.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from difflogic.config.task import MIN_SIDE, is_large_enough
from difflogic.core import bernoulli, prng
from difflogic.core.bits import Planes, last_word_mask, words_per_row
from difflogic.errors import DataError
from difflogic.model.cell_netlist import CellNetlist


@dataclass(frozen=True, eq=False)
class SimulationSpec:
    """Circuit, grid size, fire probability and seed of a simulation."""

    netlist: CellNetlist
    height: int
    width: int
    fire_units: int = bernoulli.CERTAIN
    """Probability in units of 2^-16 that a cell is updated in a step."""
    seed: int = 0
    """Seed of the fire masks."""

    def __post_init__(self) -> None:
        # All neighbours must be distinct: on a torus two cells wide, left and right would be the same cell.
        if not is_large_enough(self.height, self.width, self.netlist.neighbourhood):
            raise DataError(f"A grid needs at least {MIN_SIDE}x{MIN_SIDE} cells, got {self.width}x{self.height}.")
        if not 1 <= self.fire_units <= bernoulli.CERTAIN:
            raise DataError(f"fire_units must be between 1 and {bernoulli.CERTAIN}, got {self.fire_units}.")

    @property
    def channels(self) -> int:
        return self.netlist.channels

    @property
    def words(self) -> int:
        """Number of 64-bit words in a row of one channel."""
        return words_per_row(self.width)

    @property
    def last_word(self) -> np.uint64:
        """Mask of the bits in a row's last word that represent cells."""
        return last_word_mask(self.width)

    @property
    def asynchronous(self) -> bool:
        return self.fire_units < bernoulli.CERTAIN

    @property
    def state_bytes(self) -> int:
        """Number of bytes of one state as bit planes, with 64 cells per word."""
        return 8 * self.height * self.channels * self.words

    @property
    def fire_key(self) -> prng.Key:
        """Random key of the fire masks."""
        return bernoulli.fire_key(self.seed)


class Simulation(Protocol):
    """Simulation on an engine. States are bit planes, uint64 `[H, C, words]`, as in `difflogic.core.bits`."""

    spec: SimulationSpec
    step: int
    """Number of the current step, which `put` sets and `run` increases."""

    def put(self, planes: Planes, step: int = 0) -> None:
        """Replace the state with `planes`, and the number of the current step with `step`."""

    def run(self, steps: int, masks: Planes | None = None) -> None:
        """Run `steps` steps. Cells fire at random or, with `masks [T, H, words]`, if their bit in the mask is 1."""

    def planes(self) -> Planes:
        """Return a copy of the current state as bit planes."""

    def close(self) -> None:
        """Free the resources of the simulation."""


def check_masks(spec: SimulationSpec, masks: Planes, steps: int) -> None:
    """Raise DataError if fire masks have the wrong shape or dtype for `steps` steps of the simulation."""
    expected = (steps, spec.height, spec.words)
    if masks.shape != expected or masks.dtype != np.uint64:
        raise DataError(f"masks must be uint64 {list(expected)}, got {masks.dtype} {list(masks.shape)}.")
