"""The memory of one piece of work, and how arrays get in and out of it."""

from __future__ import annotations

import numpy as np

from difflogic import control as c
from difflogic.circuit import Circuit
from difflogic.cpu import schedule
from difflogic.cpu.adamw import Optimizer
from difflogic.cpu.coefficients import transposed_table
from difflogic.cpu.program import make_program
from difflogic.cpu.schedule import Buffers
from difflogic.cpu.tables import Array, aligned, make_grid
from difflogic.cpu.threads import together
from difflogic.cpu.vectors import TILE
from difflogic.shape import Hyper, Shape


class Workspace:
    """Buffers for `shape` on `circuit`; `run` does phases of `schedule`."""

    def __init__(
        self,
        circuit: Circuit,
        shape: Shape,
        threads: int,
        hyper: Hyper | None = None,
        fire_rate: float = 1.0,
        asynchronous: bool = False,
    ) -> None:
        self.shape = shape
        self.program, self.grid = make_program(circuit), make_grid(shape)
        self.threads = min(threads, self.grid.tiles)
        self.buffers = self._buffers(circuit.gates, Optimizer.of(hyper or Hyper()), fire_rate, asynchronous)
        self.buffers.table[:] = transposed_table()
        self._counters = aligned(16, dtype=np.int64)

    def _buffers(self, gates: int, optimizer: Optimizer, fire_rate: float, asynchronous: bool) -> Buffers:
        program, grid, shape = self.program, self.grid, self.shape
        channels, width = program.channels, grid.tiles * TILE
        return Buffers(
            logits=aligned(16 * gates),
            mu=aligned(16 * gates),
            nu=aligned(16 * gates),
            probs=aligned(16 * gates),
            gradients=aligned(16 * gates),
            coefficients=aligned(4 * gates),
            moments=aligned(4 * gates),
            table=aligned(4 * 16),
            states=aligned(shape.steps + 1, channels * grid.stride),
            targets=aligned(shape.loss_channels, width),
            masks=aligned(shape.steps, width) if asynchronous else aligned(0, 0),
            nodes=aligned(self.threads, program.nodes * TILE),
            slots=aligned(self.threads, (program.slots + channels) * TILE),
            d_patches=aligned(2, program.patch_nodes * grid.stride),
            partials=aligned(grid.tiles, 4 * gates),
            losses=aligned(grid.tiles, dtype=np.float64),
            finite=aligned(grid.tiles, dtype=np.bool_),
            control=aligned(c.WORDS, dtype=np.uint32),
            fire_rate=np.float32(fire_rate),
            optimizer=optimizer,
        )

    def run(self, first: int, last: int, epochs: int = 1, drawn: bool = False) -> Array:
        """Phases `first` to `last` of every epoch; float32 `[epochs, 2]` of loss and skipped."""
        history = np.zeros((epochs, 2), dtype=np.float32)
        self._counters[:] = 0
        arguments = (first, last, drawn, self.program, self.grid, self.buffers, history, self._counters)
        together(self.threads, lambda thread: schedule.run(thread, *arguments))
        return history

    def set_logits(self, logits: Array, mu: Array | None = None, nu: Array | None = None) -> None:
        """`[G, 16]` each."""
        self.buffers.logits[:] = logits.reshape(-1)
        if mu is not None and nu is not None:
            self.buffers.mu[:], self.buffers.nu[:] = mu.reshape(-1), nu.reshape(-1)

    def per_gate(self, values: Array) -> Array:
        """A copy of one of the buffers, as `[G, 16]`."""
        return values.reshape(-1, 16).copy()

    def set_start(self, grids: Array) -> None:
        """`[B, H, W, C]` as the first state."""
        self._cells(self.buffers.states[0])[:] = grids.reshape(-1, self.program.channels).T

    def start(self) -> Array:
        """The first state, `[B, H, W, C]`."""
        return self._grids(self.buffers.states[0])

    def states(self) -> Array:
        """Every state, float32 `[T+1, B, H, W, C]`."""
        return np.stack([self._grids(state) for state in self.buffers.states])

    def _grids(self, state: Array) -> Array:
        shape = self.shape
        return self._cells(state).T.reshape(shape.batch, shape.height, shape.width, shape.channels)

    def _cells(self, state: Array) -> Array:
        """`[C, cells]`, a view."""
        rows: Array = state.reshape(self.program.channels, self.grid.stride)
        return rows[:, self.grid.guard : self.grid.guard + self.grid.cells]

    def set_targets(self, targets: Array) -> None:
        """`[H, W, loss_channels]`, or one per sample before it."""
        rows = np.broadcast_to(targets, (self.shape.batch, *targets.shape[-3:])).reshape(-1, targets.shape[-1])
        self.buffers.targets[:, : self.grid.cells] = rows.T

    def set_masks(self, masks: Array) -> None:
        """`[T, H, W, 1]`, the same for every sample."""
        rows = np.tile(masks.reshape(len(masks), -1), (1, self.shape.batch))
        self.buffers.masks[:, : self.grid.cells] = rows
