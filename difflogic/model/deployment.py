"""A scenario says where an automaton was trained to run: its grid, start, number of steps, and fire rate.

A netlist is what a cell does; this is what one has to know besides to see it at work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from difflogic.config.schema import Config
from difflogic.config.task import MAX_SIDE
from difflogic.core import text_picture
from difflogic.errors import CircuitError, DataError
from difflogic.system.brief import brief

STARTS = ("random", "seed", "zeros", "picture")


@dataclass(frozen=True)
class Scenario:
    """The part of a task that belongs to its circuit: grid, start, steps and fire rate. Raises CircuitError for what
    cannot be.
    """

    start: str
    """`random` bits; `seed`, the cell at (H//2, W//2) is 1 in every channel; `zeros`; or the `picture` below."""
    height: int
    width: int
    steps: int
    """After so many steps the picture is compared."""
    fire_rate: float = 1.0
    """Below 1, a cell takes its new state with this probability in each step."""
    picture: tuple[str, ...] = ()
    """Rows of text as in `difflogic.core.text_picture`: the first channels of the start."""

    __repr__ = brief

    def __post_init__(self) -> None:
        if self.start not in STARTS:
            raise CircuitError(f"The circuit's start must be one of {', '.join(STARTS)}, got {self.start!r}.")
        if not (1 <= self.height <= MAX_SIDE and 1 <= self.width <= MAX_SIDE):
            raise CircuitError(
                f"The circuit's grid must have 1 to {MAX_SIDE} cells on each side, got {self.width}x{self.height}."
            )
        if self.steps < 1:
            raise CircuitError(f"The circuit's task must have at least 1 step, got {self.steps}.")
        if not 0 < self.fire_rate <= 1:
            raise CircuitError(f"The circuit's fire rate must be above 0 and at most 1, got {self.fire_rate}.")
        if (self.start == "picture") != bool(self.picture):
            raise CircuitError('A circuit has a start picture if its start is "picture", and otherwise none.')
        if self.picture and self._bits().shape[:2] != (self.height, self.width):
            raise CircuitError(f"The circuit's start picture must fill its grid of {self.width}x{self.height} cells.")

    @classmethod
    def of(cls, config: Config) -> Scenario:
        """The scenario of a training job. Boards are random bits: on other grids than their own there is no list of
        all.
        """
        task = config.task
        # A circuit that learned from all 3x3 boards is shown on larger grids, of which nobody could list all.
        # And what begins with samples has no start of its own.
        start = "random" if task.start == "boards" or task.target == "data" else task.start
        return cls(start, task.height, task.width, task.steps, config.train.fire_rate, task.start_picture)

    def grid(self, origin: Sequence[int]) -> npt.NDArray[np.uint8] | None:
        """The start `[H, W, C]`, 0 or 1, in the channels of these names; None where it is drawn at random."""
        if self.start == "random":
            return None
        grid = np.zeros((self.height, self.width, len(origin)), dtype=np.uint8)
        if self.start == "seed":
            grid[self.height // 2, self.width // 2] = 1
        elif self.start == "picture":
            bits = self._bits()
            # Simplification may have dropped channels: those that are left are found by the names they had.
            for channel, name in enumerate(origin):
                if name < text_picture.MAX_BITS:
                    grid[..., channel] = bits[..., name]
        return grid

    def _bits(self) -> npt.NDArray[np.uint8]:
        try:
            return text_picture.decode(self.picture, text_picture.MAX_BITS)
        except DataError as error:
            raise CircuitError(f"The circuit's start picture cannot be read: {error}") from error
