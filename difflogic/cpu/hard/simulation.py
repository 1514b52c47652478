"""Steps of a hard circuit on one large grid, 64 cells per word, in bands of rows, one for each thread.

A band stays with its thread, and so in the caches of its core: handed to whoever is free, it would be fetched from
another core's at every step. Only where a thread has waited for long, as on a busy machine, it takes a band whose own
thread is held up. A thread that waits holds nothing that others wait for.

A state's rows lie one after another, each with its channels side by side, `stride` words apart. Left and right of
the cells are guards, so that shifted reads find what lies outside: nothing, or the row's other end. They are set
whenever a row is written.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from difflogic.config.task import MIN_SIDE
from difflogic.core.bernoulli import BITS, CERTAIN
from difflogic.core.bits import Planes
from difflogic.cpu.codegen import compiled
from difflogic.cpu.codegen.atomics import SPINS, claim, fetch_add, look, pause
from difflogic.cpu.codegen.compiled import entry_point, inlined
from difflogic.cpu.codegen.plane_vectors import bit_or, call_row, drawn, east, load_any, west
from difflogic.cpu.codegen.threads import default_threads, together
from difflogic.cpu.codegen.threefry import threefry2x32
from difflogic.cpu.codegen.vectors import LINE, WORDS, bit_and, bit_fma, bit_where, load, splat, store
from difflogic.cpu.hard.hard_program import GATE_BITS
from difflogic.cpu.tables import aligned
from difflogic.engine.shape import Array
from difflogic.engine.simulation import SimulationSpec, check_masks
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import register_program

FRONT = LINE // 8
"""Words before the first row; the last of them is its left guard."""
TAKEN, DONE = 0, 1
"""The counters of a band: steps that were begun, and that are done."""
APART = LINE // 8
"""Each band's counters are on a cache line of their own."""
YIELDS = 50
"""Offers of the processor before a waiting thread sleeps: on a busy machine it would keep others from their work."""
DRAWN, GIVEN = 1, 2
"""Modes of an asynchronous run; 0 is a synchronous one."""
THREAD_WORDS = 4096
"""Words of a state that are worth a thread."""
CACHE_BYTES = 24 << 10
"""What the interpreter's registers may take of a first-level cache."""


class Sheet(NamedTuple):
    """Everything a step reads and writes, int64 where it is a number."""

    height: int
    width: int
    channels: int
    stride: int
    periodic: int
    fire_units: int
    key: Array
    """uint32 `[2]`, of the fire masks of all steps."""
    states: Array
    """uint64 `[2, FRONT + (H + 1) * C * stride]`: the last row stays 0, the outside of the grid."""
    fire: Array
    """uint64 `[threads, words]`: scratch, a row's mask; words are counted up to a multiple of `WORDS`."""
    row: int
    """Address of the circuit as a compiled row; 0: interpret what follows, see `difflogic.model.straight_line`."""
    patches: Array
    """int64 `[p]`."""
    code: Array
    """int64 `[n, 7]`: registers of a, b and the value, and `c0, ca, cb, cab` as words."""
    outputs: Array
    """int64 `[C]`."""
    nodes: Array
    """uint64 `[threads, registers * tile * WORDS]`: scratch."""
    tile: int
    """Vectors of words that the interpreter takes at a time."""


@entry_point
def simulate(
    sheet: Sheet, thread: int, mode: int, parity: int, first_step: int, steps: int, masks: Array, counters: Array
) -> None:
    """One thread's part of `steps` steps from `states[parity]`."""
    looks = 0
    while True:
        band, step = _take(thread, steps, looks, counters)
        if step == steps:
            return
        if step < 0:
            looks += 1
            pause(looks, YIELDS)
            continue
        looks = 0
        bands = len(counters) // APART
        first, last = sheet.height * band // bands, sheet.height * (band + 1) // bands
        given = masks[step if mode == GIVEN else 0]
        _step_band(sheet, thread, mode, (parity + step) % 2, first_step + step, given, first, last)
        fetch_add(counters, band * APART + DONE, 1)


@inlined
def _take(thread: int, steps: int, looks: int, counters: Array) -> Any:
    """A band and its next step, taken; step -1 where there is nothing to do at present, `steps` where all is done.

    The thread's own band, or after many looks in vain any. A step begins when the bands above and below have done the
    step before: what it reads of theirs is then there, and what it overwrites they have read.
    """
    bands, left = len(counters) // APART, False
    # Three bands, the thread's own is 1 and has done 5 steps. Step 5, the sixth, may begin when bands 0 and 2 have done
    # 5 as well: then the rows above and below are those of state 5, and nobody reads state 4 any more, which it
    # overwrites. If band 2 has done 4, this thread waits, and after SPINS looks it tries to do band 2's step itself.
    for offset in range(bands):
        band = (thread + offset) % bands
        step = look(counters, band * APART + DONE)
        left |= step < steps
        if step == steps or (offset and looks < SPINS):  # at SPINS: before the thread first steps aside
            continue
        upper, lower = (band + bands - 1) % bands, (band + 1) % bands
        ready = min(look(counters, upper * APART + DONE), look(counters, lower * APART + DONE)) >= step
        if ready and claim(counters, band * APART + TAKEN, step):
            return band, step
    return 0, -1 if left else steps


@inlined
def _step_band(
    sheet: Sheet, thread: int, mode: int, parity: int, step: int, masks: Array, first: int, last: int
) -> None:
    """Rows `first` to `last`, by the thread's own scratch memory."""
    height, pitch, words = sheet.height, sheet.channels * sheet.stride, words_of(sheet)
    around = height - 1 if sheet.periodic else height
    old, new = sheet.states[parity], sheet.states[1 - parity]
    for y in range(first, last):
        row = FRONT + y * pitch
        above = FRONT + (y - 1 if y > 0 else around) * pitch
        below = FRONT + (y + 1 if y < height - 1 else (0 if sheet.periodic else height)) * pitch
        if sheet.row:
            call_row(sheet.row, old, above, row, below, new, words, sheet.stride)
        else:
            _interpret_row(sheet, old, above, row, below, new, sheet.nodes[thread])
        if mode:
            _keep(sheet, old, new, y, mode, masks, step, sheet.fire[thread])
        for channel in range(sheet.channels):
            finish(new, row + channel * sheet.stride, words, sheet.width % 64, sheet.periodic)


@inlined
def words_of(sheet: Sheet) -> int:
    """Words of a row of one channel."""
    return (sheet.width + 63) // 64


@inlined
def _interpret_row(sheet: Sheet, old: Array, above: int, row: int, below: int, new: Array, nodes: Array) -> None:
    words = words_of(sheet)
    for start in range(0, words, sheet.tile * WORDS):
        vectors = min(sheet.tile, (words - start + WORDS - 1) // WORDS)
        _interpret(sheet, old, above + start, row + start, below + start, new, vectors, nodes)


@inlined
def _interpret(
    sheet: Sheet, old: Array, above: int, row: int, below: int, new: Array, vectors: int, nodes: Array
) -> None:
    """The circuit on so many vectors of words from these places on."""
    size = sheet.tile * WORDS
    for slot in range(len(sheet.patches)):
        channel, f = divmod(sheet.patches[slot], 9)
        dy, dx = divmod(f, 3)
        there = (above if dy == 0 else (row if dy == 1 else below)) + channel * sheet.stride
        for at in range(0, vectors * WORDS, WORDS):
            values = load_any(old, there + at)
            if dx == 0:
                values = west(values, load_any(old, there + at - 1))
            elif dx == 2:
                values = east(values, load_any(old, there + at + 1))
            store(nodes, slot * size + at, values)
    for gate in range(len(sheet.code)):
        code = sheet.code[gate]
        a, b, out = code[0] * size, code[1] * size, code[2] * size
        c0, ca = splat(np.uint64(code[3])), splat(np.uint64(code[4]))
        cb, cab = splat(np.uint64(code[5])), splat(np.uint64(code[6]))
        for at in range(0, vectors * WORDS, WORDS):
            x, y = load(nodes, a + at), load(nodes, b + at)
            store(nodes, out + at, bit_fma(bit_fma(cab, x, cb), y, bit_fma(ca, x, c0)))
    for channel in range(sheet.channels):
        for at in range(0, vectors * WORDS, WORDS):
            store(new, row + channel * sheet.stride + at, load(nodes, sheet.outputs[channel] * size + at))


@inlined
def _keep(sheet: Sheet, old: Array, new: Array, y: int, mode: int, masks: Array, step: int, fire: Array) -> None:
    """Cells that do not fire keep their state."""
    words = words_of(sheet)
    if mode == DRAWN:
        key0, key1 = threefry2x32(sheet.key[0], sheet.key[1], np.uint32(0), np.uint32(step))
        _draw(sheet.fire_units, words, key0, key1, y, fire)
    else:
        fire[:words] = masks[y]
    for channel in range(sheet.channels):
        row = FRONT + (y * sheet.channels + channel) * sheet.stride
        for at in range(0, words, WORDS):
            store(new, row + at, bit_where(load(fire, at), load(new, row + at), load(old, row + at)))


@inlined
def _draw(units: int, words: int, key0: Any, key1: Any, y: int, fire: Array) -> None:
    """The mask of row `y`, as in `difflogic.core.bernoulli`."""
    if units == CERTAIN:
        fire[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        return
    for at in range(0, words, WORDS):
        first = np.uint32(y * words + at)
        less = splat(np.uint64(0))
        for k in range(BITS):
            # Below the lowest 1 of `units` nothing is less, and nothing is drawn: see `difflogic.core.bernoulli`.
            if units & ((1 << (k + 1)) - 1):
                bits = drawn(key0, key1, first, np.uint32(k))
                less = bit_or(bits, less) if units >> k & 1 else bit_and(bits, less)
        store(fire, at, less)


@inlined
def finish(state: Array, row: int, words: int, rest: int, periodic: int) -> None:
    """Clear what is no cell of a row, and set its guards; `rest` is the width modulo 64."""
    if rest:
        state[row + words - 1] &= (np.uint64(1) << np.uint64(rest)) - np.uint64(1)
    if periodic:
        # The guard to the left is the highest bit of the word before the row, that to the right the bit behind the last
        # cell.
        first = state[row] & np.uint64(1)
        last = state[row + words - 1] >> np.uint64((rest - 1) % 64)
        state[row - 1] = last << np.uint64(63)
        if rest:
            state[row + words - 1] |= first << np.uint64(rest)
        else:
            state[row + words] = first
    else:
        state[row + words] = np.uint64(0)


@entry_point
def finish_all(sheet: Sheet, state: Array) -> None:
    """`finish` of every row, after a state was put there."""
    for row in range(sheet.height * sheet.channels):
        finish(state, FRONT + row * sheet.stride, words_of(sheet), sheet.width % 64, sheet.periodic)


class CompiledRow(Protocol):
    """Machine code of one circuit's row, as long as the object lives; see `plane_vectors.ROW`."""

    address: int


class CpuSimulation:
    """Implements `difflogic.engine.simulation.Simulation`. Results do not depend on the number of threads."""

    def __init__(self, spec: SimulationSpec, row: CompiledRow | None = None, threads: int | None = None) -> None:
        """`row` is the circuit as machine code; without it gates are interpreted."""
        compile_kernel()
        self.spec = spec
        self.step = 0
        words = spec.height * spec.channels * spec.words
        self.threads = max(1, min(threads or default_threads(), spec.height, words // THREAD_WORDS))
        self._row = row  # its code must not be freed
        self._sheet = _sheet(spec, self.threads, row.address if row else 0)
        self._counters = aligned(self.threads * APART, dtype=np.int64)
        self._parity = 0

    def put(self, planes: Planes, step: int = 0) -> None:
        self._cells()[:] = planes
        self.step = step
        finish_all(self._sheet, self._sheet.states[self._parity])

    def run(self, steps: int, masks: Planes | None = None) -> None:
        mode = DRAWN if self.spec.asynchronous else 0
        if masks is not None:
            check_masks(self.spec, masks, steps)
            mode = GIVEN
        given = np.zeros((1, 0, 0), dtype=np.uint64) if masks is None else np.ascontiguousarray(masks)
        self._counters[:] = 0
        arguments = (mode, self._parity, self.step, steps, given, self._counters)
        together(self.threads, lambda thread: simulate(self._sheet, thread, *arguments))
        self._parity = (self._parity + steps) % 2
        self.step += steps

    def planes(self) -> Planes:
        planes = self._cells().copy()
        planes[..., -1] &= self.spec.last_word  # a periodic row has its guard there
        return planes

    def _cells(self) -> Array:
        """The state's words `[H, C, words]`, where they lie."""
        spec, sheet = self.spec, self._sheet
        rows = sheet.states[self._parity, FRONT:].reshape(spec.height + 1, spec.channels, sheet.stride)
        cells: Array = rows[: spec.height, :, : spec.words]
        return cells

    def close(self) -> None:
        """Nothing to free that is not freed with the object."""


@cache
def compile_kernel() -> None:
    """Once per process, so that no step has to wait for the compiler."""
    compiled.compile_now(simulate, "the simulator", 6, _warm_up)


def _warm_up() -> None:
    """Both entry points, on nine cells."""
    sheet = _sheet(SimulationSpec(CellNetlist.build(1, False, [], [], [0]), MIN_SIDE, MIN_SIDE), 1, 0)
    finish_all(sheet, sheet.states[0])
    no_masks = np.zeros((1, 0, 0), dtype=np.uint64)
    counters = aligned(APART, dtype=np.int64)
    simulate(sheet, 0, 0, 0, 0, 1, no_masks, counters)


def _sheet(spec: SimulationSpec, threads: int, row: int) -> Sheet:
    program = register_program(spec.netlist)
    vectors = -(-spec.words // WORDS)
    # As many vectors at a time as the registers of a circuit leave room for in the L1 cache: each gate is then a loop
    # over several vectors, which hides the cost of looking its record up.
    tile = max(1, min(vectors, CACHE_BYTES // (max(1, program.registers) * WORDS * 8)))
    stride = vectors * WORDS + LINE // 8
    channels, height = spec.channels, spec.height
    return Sheet(
        height=height,
        width=spec.width,
        channels=channels,
        stride=stride,
        periodic=int(spec.netlist.periodic),
        fire_units=spec.fire_units,
        key=spec.fire_key,
        states=aligned(2, FRONT + (height + 1) * channels * stride, dtype=np.uint64),
        fire=aligned(threads, vectors * WORDS, dtype=np.uint64),
        row=row,
        patches=program.patches,
        code=np.concatenate([program.code[:, 1:], -GATE_BITS[program.code[:, 0]]], axis=1),
        outputs=program.outputs,
        nodes=aligned(threads, program.registers * tile * WORDS, dtype=np.uint64),
        tile=tile,
    )
