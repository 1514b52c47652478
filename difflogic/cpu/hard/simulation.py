"""Simulate hard circuits on all cores; see `bands` for the method."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from difflogic.config.task import MIN_SIDE
from difflogic.core.bits import Planes
from difflogic.cpu.codegen import compiled
from difflogic.cpu.codegen.row_code import RowCode
from difflogic.cpu.codegen.threads import default_threads, together
from difflogic.cpu.codegen.vectors import TILE, WORDS
from difflogic.cpu.hard.bands import APART, DONE, DRAWN, GIVEN, SHIFT, Sheet, settle, simulate
from difflogic.cpu.tables import aligned
from difflogic.engine.shape import Array
from difflogic.engine.simulation import SimulationSpec, check_masks
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import read_inputs

THREAD_WORDS = 4096
"""Minimum number of words of a state per thread."""
BANDS = 2
"""Number of bands per thread, if there are several threads and enough rows: while one waits, the other can proceed."""
PASS_BYTES = 512 << 10
"""Maximum size in bytes of the rows that a pass uses at a time, a part of the L2 cache."""
BLOCKS, BLOCK_BYTES = (16, 64), 64 << 10
"""Minimum and maximum number of rows of a block, and its maximum size in bytes, a part of the L2 cache."""
MOST_STEPS = 16
"""Maximum number of steps of a pass: beyond it, memory bandwidth is no longer the limit."""
ROWS_PER_STEP = 32
"""Minimum number of rows of a band per step of a pass, so that few rows of other bands are computed twice."""
FIRE_WORDS = 2048
"""Number of words of fire masks that are sampled at a time; they fit the L1 cache."""
PASSES = 4
"""Minimum number of passes before a band is copied to higher addresses."""


class CpuSimulation:
    """Simulation on the processor, see `difflogic.engine.simulation`. The number of threads does not change results."""

    def __init__(self, spec: SimulationSpec, row: RowCode | None = None, threads: int | None = None) -> None:
        """Compile the circuit, unless `row` is its machine code, and allocate the grid."""
        compile_kernel()
        self.spec = spec
        self.step = 0
        self._row = row or RowCode(spec.netlist)  # stored, so that its machine code is not freed
        self._sheet = _sheet(spec, threads)
        self.threads = len(self._sheet.fronts)
        self._counters = aligned(self._sheet.bands * APART, dtype=np.int64)
        self._parity = 0

    def put(self, planes: Planes, step: int = 0) -> None:
        first = 0
        for cells in self._bands():
            cells[:] = planes[first : first + len(cells)]
            first += len(cells)
        self.step = step
        settle(self._sheet, self._parity)

    def run(self, steps: int, masks: Planes | None = None) -> None:
        mode = DRAWN if self.spec.asynchronous else 0
        if masks is not None:
            check_masks(self.spec, masks, steps)
            mode = GIVEN
        fires = np.zeros((1, 0, 0), dtype=np.uint64) if masks is None else np.ascontiguousarray(masks)
        self._counters[:] = 0
        sheet = self._sheet._replace(row=self._row.address(self._sheet.stride, mode != 0))
        arguments = (mode, self._parity, self.step, steps, fires, self._counters)
        together(self.threads, lambda thread: simulate(sheet, thread, *arguments))
        # Every pass has switched to the other half of the edges.
        self._parity = (self._parity + int(self._counters[DONE])) % 2
        self.step += steps

    def planes(self) -> Planes:
        planes = np.concatenate(list(self._bands()))
        planes[..., -1] &= self.spec.last_word  # on a torus, this word also contains the guard
        return planes

    def _bands(self) -> Iterator[Array]:
        """Yield views of the state, uint64 `[rows, C, words]`, band by band."""
        spec, sheet = self.spec, self._sheet
        for band in range(sheet.bands):
            rows = spec.height * (band + 1) // sheet.bands - spec.height * band // sheet.bands
            place = band * sheet.capacity + int(sheet.places[band * APART])
            words = sheet.cells[place : place + rows * spec.channels * sheet.stride]
            yield words.reshape(rows, spec.channels, sheet.stride)[..., : spec.words]

    def close(self) -> None:
        """Do nothing, since all memory is freed with the object."""


@cache
def compile_kernel() -> None:
    """Compile the entry points, once per process, so that no step waits for the compiler."""
    compiled.compile_now(simulate, "the simulator", 3, _warm_up)


def _warm_up() -> None:
    """Call both entry points on nine cells."""
    spec = SimulationSpec(CellNetlist.build(1, False, [], [], [0]), MIN_SIDE, MIN_SIDE)
    sheet = _sheet(spec)
    settle(sheet, 0)
    no_masks = np.zeros((1, 0, 0), dtype=np.uint64)
    counters = aligned(APART, dtype=np.int64)
    simulate(sheet, 0, 0, 0, 0, 0, no_masks, counters)  # zero steps, since no circuit is compiled


class Sizes(NamedTuple):
    """Sizes of a simulation, named like the fields of `Sheet`; `edges` is the length of `Sheet.edges` in words."""

    threads: int
    bands: int
    stride: int
    pitch: int
    depth: int
    block: int
    room: int
    capacity: int
    edges: int

    @classmethod
    def of(cls, spec: SimulationSpec, most_threads: int | None = None) -> Sizes:
        """Choose the sizes for a grid and for common cache sizes, with at most `most_threads` threads."""
        words = spec.height * spec.channels * spec.words
        threads = max(1, min(most_threads or default_threads(), spec.height, words // THREAD_WORDS))
        # Two cache lines between the channels of a row: one for the right guard, and one to which the first vector of
        # the row below is written.
        stride = -(-spec.words // WORDS) * WORDS + 2 * SHIFT
        bands = threads * max(1, min(BANDS if threads > 1 else 1, spec.height // threads // ROWS_PER_STEP))
        pitch, rows = spec.channels * stride, -(-spec.height // bands)
        least, most = BLOCKS
        block = max(least, min(most, BLOCK_BYTES // (8 * pitch)))
        # A pass uses two rows of each step and a block at the same time.
        depth = max(1, min(MOST_STEPS, rows // ROWS_PER_STEP, (PASS_BYTES // (8 * pitch) - block) // 2))
        room = max(PASSES * depth * (pitch + SHIFT), rows // 16 * pitch) + 2 * SHIFT
        return cls(
            threads=threads,
            bands=bands,
            stride=stride,
            pitch=pitch,
            depth=depth,
            block=block,
            room=room,
            capacity=room + (rows + depth) * pitch + 2 * SHIFT,
            edges=SHIFT + 4 * bands * depth * pitch,
        )


def held_bytes(spec: SimulationSpec) -> int:
    """Return the memory of a simulation in bytes: mainly one state."""
    sizes = Sizes.of(spec)
    return 8 * (sizes.bands * sizes.capacity + sizes.edges)


def _sheet(spec: SimulationSpec, most_threads: int | None = None) -> Sheet:
    sizes = Sizes.of(spec, most_threads)
    return Sheet(
        height=spec.height,
        words=spec.words,
        rest=spec.width % 64,
        channels=spec.channels,
        stride=sizes.stride,
        pitch=sizes.pitch,
        bands=sizes.bands,
        periodic=int(spec.netlist.periodic),
        reach=int(any(bit % 9 // 3 != 1 for bit in read_inputs(spec.netlist))),
        fire_units=spec.fire_units,
        key=spec.fire_key,
        cells=aligned(sizes.bands * sizes.capacity, dtype=np.uint64),
        capacity=sizes.capacity,
        room=sizes.room,
        places=np.full(sizes.bands * APART, sizes.room, dtype=np.int64),
        depth=sizes.depth,
        block=sizes.block,
        edges=aligned(sizes.edges, dtype=np.uint64),
        fronts=np.zeros((sizes.threads, sizes.depth + 1), dtype=np.int64),
        fire=aligned(sizes.threads, max(FIRE_WORDS, spec.words) + TILE, dtype=np.uint64),
        row=0,
    )
