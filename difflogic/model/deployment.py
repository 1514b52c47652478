"""Scenarios: the grid, initial state, number of steps and fire rate that an automaton was trained for.

A netlist defines only the cell; a scenario defines everything else that a run of the automaton needs.
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
    """Grid, initial state, number of steps and fire rate of a circuit. Raises CircuitError for invalid values."""

    start: str
    """Initial state: `random` bits, `zeros`, `seed` (1 in all channels of cell (H//2, W//2)), or the `picture`."""
    height: int
    width: int
    steps: int
    """Number of steps after which training compares the state with the target."""
    fire_rate: float = 1.0
    """Probability that a cell is updated in a step."""
    picture: tuple[str, ...] = ()
    """Image in the first channels of the initial state, as rows of text: see `difflogic.core.text_picture`."""

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
            raise CircuitError('The circuit must have a `picture` if and only if its `start` is "picture".')
        if self.picture and self._bits().shape[:2] != (self.height, self.width):
            raise CircuitError(f"The circuit's initial image must have its grid's size, {self.width}x{self.height}.")

    @classmethod
    def of(cls, config: Config) -> Scenario:
        """Return the scenario of a training run with the configuration `config`."""
        task = config.task
        # A task that starts from all 3x3 boards becomes `random`, since larger grids have too many boards to list, and
        # so does a task with data samples, which has no single initial state.
        start = "random" if task.start == "boards" or task.target == "data" else task.start
        return cls(start, task.height, task.width, task.steps, config.train.fire_rate, task.start_picture)

    def grid(self, origin: Sequence[int]) -> npt.NDArray[np.uint8] | None:
        """Return the initial state `[H, W, C]` of 0 and 1 for the original channels `origin`; None if it is random."""
        if self.start == "random":
            return None
        grid = np.zeros((self.height, self.width, len(origin)), dtype=np.uint8)
        if self.start == "seed":
            grid[self.height // 2, self.width // 2] = 1
        elif self.start == "picture":
            bits = self._bits()
            # Simplification may have removed channels, so channels are identified by their original numbers.
            for channel, name in enumerate(origin):
                if name < text_picture.MAX_BITS:
                    grid[..., channel] = bits[..., name]
        return grid

    def _bits(self) -> npt.NDArray[np.uint8]:
        try:
            return text_picture.decode(self.picture, text_picture.MAX_BITS)
        except DataError as error:
            raise CircuitError(f"The circuit's initial image cannot be read: {error}") from error
