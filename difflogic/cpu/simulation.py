"""A hard circuit on one large grid, on every core."""

from __future__ import annotations

from functools import cache
from typing import Protocol

import numpy as np

from difflogic.config import MIN_SIDE
from difflogic.cpu import compiled
from difflogic.cpu import simulate as kernel
from difflogic.cpu.hard_program import BITS
from difflogic.cpu.simulate import FRONT, Sheet, finish_all
from difflogic.cpu.tables import Array, aligned
from difflogic.cpu.threads import default_threads, together
from difflogic.cpu.vectors import LINE, WORDS
from difflogic.netlist import Netlist
from difflogic.planes import Planes
from difflogic.simulation import Scene, check_masks
from difflogic.slots import slot_program

THREAD_WORDS = 4096
"""Words of a state that are worth a thread."""
CACHE_BYTES = 24 << 10
"""What the interpreter's slots may take of a first-level cache."""


class CompiledRow(Protocol):
    """Machine code of one circuit's row, as long as the object lives; see `plane_vectors.ROW`."""

    address: int


class CpuSimulation:
    """Implements `difflogic.simulation.Simulation`. Results do not depend on the number of threads."""

    def __init__(self, scene: Scene, row: CompiledRow | None = None, threads: int | None = None) -> None:
        """`row` is the circuit as machine code; without it gates are interpreted."""
        compile_kernel()
        self.scene = scene
        self.step = 0
        words = scene.height * scene.channels * scene.words
        self.threads = max(1, min(threads or default_threads(), scene.height, words // THREAD_WORDS))
        self._row = row  # its code must not be freed
        self._sheet = _sheet(scene, self.threads, row.address if row else 0)
        self._counters = aligned(kernel.DONE + self.threads * LINE // 8, dtype=np.int64)
        self._parity = 0

    def put(self, planes: Planes, step: int = 0) -> None:
        self._cells()[:] = planes
        self.step = step
        finish_all(self._sheet, self._sheet.states[self._parity])

    def run(self, steps: int, masks: Planes | None = None) -> None:
        mode = kernel.COINS if self.scene.asynchronous else 0
        if masks is not None:
            check_masks(self.scene, masks, steps)
            mode = kernel.GIVEN
        given = np.zeros((1, 0, 0), dtype=np.uint64) if masks is None else np.ascontiguousarray(masks)
        self._counters[:] = 0
        arguments = (mode, self._parity, self.step, steps, given, self._counters)
        together(self.threads, lambda thread: kernel.simulate(self._sheet, thread, *arguments), self._begin)
        self._parity = (self._parity + steps) % 2
        self.step += steps

    def _begin(self, threads: int) -> None:
        """So many threads there are: each may take its band."""
        self._counters[kernel.THREADS] = threads

    def planes(self) -> Planes:
        planes = self._cells().copy()
        planes[..., -1] &= self.scene.last_word  # a periodic row has its guard there
        return planes

    def _cells(self) -> Array:
        """The state's words `[H, C, words]`, where they lie."""
        scene, sheet = self.scene, self._sheet
        rows = sheet.states[self._parity, FRONT:].reshape(scene.height + 1, scene.channels, sheet.stride)
        cells: Array = rows[: scene.height, :, : scene.words]
        return cells

    def close(self) -> None:
        """Nothing to free that is not freed with the object."""


@cache
def compile_kernel() -> None:
    """Once per process, so that no step has to wait for the compiler."""
    compiled.compile_now("simulate", "the simulator", 6, _warm_up)


def _warm_up() -> None:
    """Both pieces, on nine cells."""
    sheet = _sheet(Scene(Netlist.build(1, False, [], [], [0]), MIN_SIDE, MIN_SIDE), 1, 0)
    finish_all(sheet, sheet.states[0])
    no_masks = np.zeros((1, 0, 0), dtype=np.uint64)
    counters = aligned(kernel.DONE + 1, dtype=np.int64)
    counters[kernel.THREADS] = 1
    kernel.simulate(sheet, 0, 0, 0, 0, 1, no_masks, counters)


def _sheet(scene: Scene, threads: int, row: int) -> Sheet:
    program = slot_program(scene.netlist)
    vectors = -(-scene.words // WORDS)
    tile = max(1, min(vectors, CACHE_BYTES // (max(1, program.slots) * WORDS * 8)))
    stride = vectors * WORDS + LINE // 8
    channels, height = scene.channels, scene.height
    return Sheet(
        height=height,
        width=scene.width,
        channels=channels,
        stride=stride,
        periodic=int(scene.netlist.periodic),
        fire_units=scene.fire_units,
        key=scene.fire_key,
        states=aligned(2, FRONT + (height + 1) * channels * stride, dtype=np.uint64),
        fire=aligned(threads, vectors * WORDS, dtype=np.uint64),
        row=row,
        patches=program.patches,
        code=np.concatenate([program.code[:, 1:], -BITS[program.code[:, 0]]], axis=1),
        outputs=program.outputs,
        nodes=aligned(threads, program.slots * tile * WORDS, dtype=np.uint64),
        tile=tile,
    )
