"""Complete automata of a fixed size as netlists, for hardware and model checkers.

The state is a vector with bit `C*(W*y + x) + channel` for each channel of each cell. A `LatchNetlist` stores the
state in latches and computes the next state; it contains a copy of the cell's gates for each position of the grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import Bits
from difflogic.core.neighbourhoods import patches
from difflogic.errors import CircuitError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.netlist import NamedNetlist, gate_arrays
from difflogic.system.brief import brief

MOST_VALUES = 1 << 16
"""Maximum number of bits of a state, several times the capacity of the largest FPGA."""
MOST_GATES = 400_000
"""Maximum number of gates of a `LatchNetlist`, whose exported file lists every gate."""

_FALSE, _AND, _NOT_A_AND_B, _OR, _A_OR_NOT_B, _TRUE = 0, 1, 4, 7, 11, 15


@dataclass(frozen=True, eq=False)
class Grid:
    """Automaton of `height` x `width` cells that all have the same cell netlist.

    A `target`, uint8 `[H, W, L]`, adds a claim for model checkers: from every initial state, the first L channels equal
    the target after `steps` steps and from then on. Raises CircuitError if the grid is too large.
    """

    cell: CellNetlist
    height: int
    width: int
    target: Bits | None = None
    steps: int = 1

    kind: ClassVar[str] = "grid"
    __repr__ = brief

    def __post_init__(self) -> None:
        if not 1 <= self.values <= MOST_VALUES:
            raise CircuitError(
                f"A hardware grid must have 1 to {MOST_VALUES} bits, but {self.width}x{self.height} cells with "
                f"{self.cell.channels} channels have {self.values}: choose another size."
            )

    @property
    def values(self) -> int:
        """Number of bits of a state."""
        return self.height * self.width * self.cell.channels

    @property
    def start(self) -> Bits:
        """Initial state `[H, W, C]` of the cell's scenario if that has this size and is not random, otherwise zeros."""
        scenario, shape = self.cell.scenario, (self.height, self.width)
        if scenario is not None and (scenario.height, scenario.width) == shape:
            grid = scenario.grid(self.cell.origin)
            if grid is not None:
                return grid.astype(np.uint8)
        return np.zeros((*shape, self.cell.channels), dtype=np.uint8)

    def machine(self) -> LatchNetlist:
        """Return the automaton as a sequential netlist that computes one step per cycle; all latches are initially 0.

        In the first step the state is read from inputs, later from latches. The latch `age[k]` is 1 from step k on. The
        first outputs are the visible bits of the current state or, with a target, one bit that is 1 if the state
        contradicts the claim; the rest are the latches' next values. Raises CircuitError if there are too many gates.
        """
        count, gates = len(self.cell.gates), self.height * self.width * len(self.cell.gates)
        if gates > MOST_GATES:
            raise CircuitError(
                f"{self.width}x{self.height} cells of {count} gates have {gates} gates, more than the maximum of "
                f"{MOST_GATES}: choose a smaller grid."
            )
        return _Parts(self).machine()


@dataclass(frozen=True, eq=False, kw_only=True)
class LatchNetlist(NamedNetlist):
    """Sequential netlist: its last `latches` inputs are the stored state, its last `latches` outputs the next state."""

    latches: int

    kind, buses = "grid", ("state", "next")
    __repr__ = brief

    @property
    def first_latch(self) -> int:
        """Index of the first input that is a latch; all later inputs are latches too."""
        return self.inputs - self.latches


class _Parts:
    """Builder of the netlist of a grid; methods append gates and return the numbers of their bits."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.ages = grid.steps if grid.target is not None else 1
        self.inputs = 2 * grid.values + self.ages
        self.gates: list[npt.NDArray[np.uint8]] = []
        self.wires: list[npt.NDArray[np.int64]] = []
        self.size = self.inputs

    def gate(self, gate: int, a: npt.ArrayLike, b: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Append a gate of the kind `gate` for each pair of bits in `a` and `b`, and return the gates' bits."""
        pairs = np.stack(np.broadcast_arrays(np.atleast_1d(a), np.atleast_1d(b)), axis=-1).astype(np.int64)
        return self.append(np.full(len(pairs), gate), pairs)

    def append(self, gates: npt.ArrayLike, wires: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Append gates that read the bits `wires [n, 2]`, and return the gates' bits."""
        self.gates.append(np.asarray(gates, dtype=np.uint8))
        self.wires.append(wires)
        self.size += len(wires)
        return np.arange(self.size - len(wires), self.size)

    def machine(self) -> LatchNetlist:
        grid = self.grid
        ages = self.inputs - self.ages + np.arange(self.ages)
        start = np.arange(grid.values)
        false = self.gate(_FALSE, 0, 0)
        # In the first step all ages are 0, and the inputs are the state. For example `age[1] ? state[5] : start[5]`.
        chosen = self.gate(_AND, grid.values + start, ages[0]), self.gate(_NOT_A_AND_B, ages[0], start)
        state = self.gate(_OR, *chosen)
        following = self._stepped(state, int(false[0]))
        older = [self.gate(_TRUE, 0, 0), ages[:-1]]
        looked_at = grid.cell.visible if grid.target is None else grid.target.shape[-1]
        shown = state.reshape(-1, grid.cell.channels)[:, :looked_at].reshape(-1)
        if grid.target is not None:
            differs = false
            for bit, value in zip(shown.tolist(), grid.target.reshape(-1).tolist(), strict=True):
                differs = self.gate(_A_OR_NOT_B if value else _OR, differs, bit)
            shown = self.gate(_AND, differs, ages[-1])
        outputs = np.concatenate([shown, following, *older])
        places = [f"[{y}][{x}][{c}]" for y in range(grid.height) for x in range(grid.width) for c in grid.cell.origin]
        latches = [*(f"state{place}" for place in places), *(f"age[{1 + age}]" for age in range(self.ages))]
        visible = [f"cell{place}" for k, place in enumerate(places) if k % grid.cell.channels < grid.cell.visible]
        return LatchNetlist(
            **gate_arrays(np.concatenate(self.gates), np.concatenate(self.wires), outputs),
            named_inputs=(*(f"start{place}" for place in places), *latches),
            named_outputs=(*(visible if grid.target is None else ["wrong"]), *(f"next_{latch}" for latch in latches)),
            latches=len(latches),
        )

    def _stepped(self, state: npt.NDArray[np.int64], false: int) -> npt.NDArray[np.int64]:
        """Append the gates of all cells, and return the bits of the next state; `false` is a bit that is always 0."""
        cell = self.grid.cell
        # Patches of a grid of bit numbers contain the bits that each cell reads; 0 marks positions outside the grid.
        numbers = 1 + state.reshape(1, self.grid.height, self.grid.width, cell.channels)
        read = patches(numbers, cell.periodic).T - 1
        read[read < 0] = false
        places, count = len(read), len(cell.gates)
        own = self.size + np.arange(places * count).reshape(places, count)
        bits = np.concatenate([read, own], axis=1)
        self.append(np.tile(cell.gates, places), bits[:, cell.wires].reshape(-1, 2))
        return np.asarray(bits[:, cell.outputs].reshape(-1))
