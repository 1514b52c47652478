"""A hard circuit on one large grid: what to simulate, and the interface of every engine that can.

All of them give the same bits; which cells fire is part of the `SimulationSpec` and drawn as in
`difflogic.core.bernoulli`.
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
    """A circuit on a grid. `netlist.periodic` says what lies outside."""

    netlist: CellNetlist
    height: int
    width: int
    fire_units: int = bernoulli.CERTAIN
    """The probability, in units of 2^-16, with which a cell takes its new state in a step."""
    seed: int = 0
    """Which cells fire comes from it."""

    def __post_init__(self) -> None:
        # A neighbour must not be met twice: on a torus of two cells left and right would be the same one.
        if not is_large_enough(self.height, self.width, self.netlist.neighbourhood):
            raise DataError(f"A grid needs at least {MIN_SIDE}x{MIN_SIDE} cells, got {self.width}x{self.height}.")
        if not 1 <= self.fire_units <= bernoulli.CERTAIN:
            raise DataError(f"Cells fire with 1 to {bernoulli.CERTAIN} units of probability, got {self.fire_units}.")

    @property
    def channels(self) -> int:
        return self.netlist.channels

    @property
    def words(self) -> int:
        """64-bit words of a row of one channel."""
        return words_per_row(self.width)

    @property
    def last_word(self) -> np.uint64:
        """The bits of a row's last word that are cells."""
        return last_word_mask(self.width)

    @property
    def asynchronous(self) -> bool:
        return self.fire_units < bernoulli.CERTAIN

    @property
    def state_bytes(self) -> int:
        """Bytes of one state as planes."""
        return 8 * self.height * self.channels * self.words

    @property
    def fire_key(self) -> prng.Key:
        """The key of the random numbers by which cells fire."""
        return bernoulli.fire_key(self.seed)


class Simulation(Protocol):
    """A simulation held by an engine. Planes are uint64 `[H, C, words]` as in `difflogic.core.bits`."""

    spec: SimulationSpec
    step: int
    """Steps done since the last `put`."""

    def put(self, planes: Planes, step: int = 0) -> None:
        """Start from these planes, at that step."""

    def run(self, steps: int, masks: Planes | None = None) -> None:
        """Run so many steps; with `masks [T, H, words]` a cell fires where its bit is 1, instead of by `spec`."""

    def planes(self) -> Planes:
        """A copy of the state."""

    def close(self) -> None:
        """Free what the engine holds."""


def check_masks(spec: SimulationSpec, masks: Planes, steps: int) -> None:
    """Raises DataError where the masks are of another shape."""
    expected = (steps, spec.height, spec.words)
    if masks.shape != expected or masks.dtype != np.uint64:
        raise DataError(f"masks must be uint64 {list(expected)}, got {masks.dtype} {list(masks.shape)}.")
