"""Simulate a hard circuit on one large grid, 64 cells per word, in bands of rows, two bands per thread.

A pass over a band does several steps (temporal blocking), so that rows are loaded from memory once for all of them:
each step follows the previous one by a block of rows, which are then still in the cache. A pass of n steps also
computes rows of the bands above and below, n - 1 of each in its first step and none in its last, so that a pass needs
no data from other threads. For this the bands exchange their outermost rows (halos) after each pass.

Steps are computed in place: the next state of a row is stored one row and one vector (SHIFT words) below the address of
the row. No later row and no column to the right reads these addresses any more. So a band moves to lower addresses with
every step, and is copied back to higher ones once in many passes.

With one band per thread, all threads would wait for the slowest one after every pass. With two, a thread does a pass of
one band while the neighbours of the other are still being computed. A thread keeps its bands, so that they stay in the
caches of its core; if any free thread took them, they would move between cores at every pass. Only a thread that has
waited for a long time, as on a busy machine, takes a band of a preempted thread. No thread waits while it has a band.

The channels of a row are adjacent, `stride` words apart. Guards left and right of the cells contain the values that
shifted loads read outside the grid: 0, or on a torus the other end of the row. They are set whenever a row is written.
"""

from typing import Any, NamedTuple

import numpy as np

from difflogic.core.bernoulli import BITS
from difflogic.cpu.codegen.atomics import SPINS, claim, fetch_add, look, pause
from difflogic.cpu.codegen.compiled import entry_point, inlined
from difflogic.cpu.codegen.plane_vectors import bit_or, call_rows, following_blocks, random_blocks, store_blocks
from difflogic.cpu.codegen.threefry import threefry2x32
from difflogic.cpu.codegen.vectors import LINE, TILE, WORDS, bit_and, load, splat, store
from difflogic.engine.shape import Array

SHIFT = LINE // 8
"""Number of words by which a step moves a row to lower addresses, in addition to one row."""
TAKEN, DONE = 0, 1
"""Indices of the two counters of a band: number of passes begun, and number of passes done."""
APART = LINE // 8
"""Number of int64 elements between the counters of two bands, which are thus on separate cache lines."""
YIELDS = 50
"""Number of yields before a waiting thread sleeps, so that on a busy machine it leaves the core to other threads."""
DRAWN, GIVEN = 1, 2
"""Modes of an asynchronous run: fire masks are sampled, or passed by the caller; 0 is a synchronous run."""


class Sheet(NamedTuple):
    """Sizes and buffers of a simulation that all threads share; numbers are int64."""

    height: int
    words: int
    """Number of words of a row of one channel."""
    rest: int
    """Number of cells in the last of these words, or 0 if it is full."""
    channels: int
    stride: int
    pitch: int
    """Number of words of a row of all channels."""
    bands: int
    periodic: int
    reach: int
    """Number of rows above and below that a cell reads: 1, or 0 if the circuit reads only the cell's row."""
    fire_units: int
    key: Array
    """uint32 `[2]`: random key of the fire masks of all steps."""
    cells: Array
    """uint64 `[bands * capacity]`: for each band free words, its rows, and space for rows of the band below."""
    capacity: int
    room: int
    """Offset of a band's first row in its `capacity` words after the band is copied to the highest addresses."""
    places: Array
    """int64 `[bands * APART]`: current offset of each band's first row in the `capacity` words of the band."""
    depth: int
    """Maximum number of steps of a pass."""
    block: int
    """Number of rows by which each step is ahead of the next step of the pass."""
    edges: Array
    """uint64 `[2 * bands * 2 * depth * C * stride]`: top and bottom rows of each band, for even and for odd passes."""
    fronts: Array
    """int64 `[threads, depth + 1]`: scratch for the next row to compute in each step of a pass."""
    fire: Array
    """uint64 `[threads, n]`: scratch for the fire masks of some rows, padded by a vector."""
    row: int
    """Address of the machine code of the circuit: see `row_code.RowCode.address`."""


class Pass(NamedTuple):
    """Pass over one band: several consecutive steps."""

    band: int
    above: int
    """Number of rows above the band that a step reads: 0 at the border of the grid, otherwise `Sheet.reach`."""
    below: int
    place: int
    """Index in `cells` of the band's first row before the pass."""
    first: int
    """Index in the grid of the band's first row."""
    rows: int
    steps: int
    step: int
    """Number of the first step."""


@entry_point
def simulate(
    sheet: Sheet, thread: int, mode: int, parity: int, first_step: int, steps: int, masks: Array, counters: Array
) -> None:
    """Run this thread's part of `steps` steps, beginning with step number `first_step`.

    The first pass reads the half `parity` of `Sheet.edges`. `masks` are uint64 `[T, H, words]` in the mode GIVEN, else
    `[1, 0, 0]`. `counters` are int64 `[bands * APART]`, initially 0.
    """
    looks, own = 0, sheet.bands // len(sheet.fronts)
    depth = 1 if mode else sheet.depth  # with masks, loading rows from memory does not dominate the time
    passes = (steps + depth - 1) // depth
    while True:
        band, number = _take(thread, own, passes, looks, counters)
        if number == passes:
            return
        if number < 0:
            looks += 1
            pause(looks, YIELDS)
            continue
        looks = 0 if band // own == thread else SPINS  # a preempted thread is rarely back by the next pass
        done = number * depth
        work = _begin(sheet, band, min(depth, steps - done), first_step + done, (parity + number) % 2)
        _run(sheet, thread, mode, work, masks[done if mode == GIVEN else 0])
        sheet.places[band * APART] -= work.steps * (sheet.pitch + SHIFT)
        _publish(sheet, band, (parity + number + 1) % 2)
        fetch_add(counters, band * APART + DONE, 1)


@inlined
def _take(thread: int, own: int, passes: int, looks: int, counters: Array) -> Any:
    """Take a band; return its index and its next pass number, which is -1 if none can begin, `passes` if all are done.

    The band belongs to this thread or, after many failed `looks`, to any thread. A pass may begin when the bands above
    and below have done the previous pass: then their edges are ready, and they have read the edges that it overwrites.
    """
    bands, is_unfinished = len(counters) // APART, False
    # Example: of four bands the thread owns 0 and 1, which have done 5 passes. The sixth pass of band 1 may begin when
    # bands 0 and 2 have done 5 too: their edges after pass 5 are ready, and no band reads the edges after pass 4 any
    # more, which those after pass 6 overwrite. If bands 2 and 3 have done only 4, this thread waits, and after SPINS
    # looks it tries to do their fifth passes itself.
    for offset in range(bands):
        band = (thread * own + offset) % bands
        number = look(counters, band * APART + DONE)
        is_unfinished |= number < passes
        if number == passes or (offset >= own and looks < SPINS):  # at SPINS the thread has not yielded yet
            continue
        upper, lower = (band + bands - 1) % bands, (band + 1) % bands
        ready = min(look(counters, upper * APART + DONE), look(counters, lower * APART + DONE)) >= number
        if ready and claim(counters, band * APART + TAKEN, number):
            return band, number
    return 0, -1 if is_unfinished else passes


@inlined
def _begin(sheet: Sheet, band: int, steps: int, step: int, parity: int) -> Any:
    """Make room for the steps of a pass, copy the edges of both neighbours next to the band, and return the pass."""
    bands, pitch = sheet.bands, sheet.pitch
    first, last = sheet.height * band // bands, sheet.height * (band + 1) // bands
    rows, base = last - first, band * sheet.capacity
    place = base + sheet.places[band * APART]
    # If too few words are free for these steps, copy the band to higher addresses, the last row first, as rows may
    # overlap.
    if place - steps * (pitch + SHIFT) - SHIFT < base:
        for y in range(rows - 1, -1, -1):
            _copy(sheet.cells, base + sheet.room + y * pitch, sheet.cells, place + y * pitch, pitch)
        place = base + sheet.room
        sheet.places[band * APART] = sheet.room
    above = sheet.reach if sheet.periodic or band else 0
    below = sheet.reach if sheet.periodic or band < bands - 1 else 0
    for y in range(steps):
        if above:
            edge = _edge(sheet, parity, (band + bands - 1) % bands, 1) + (sheet.depth - 1 - y) * pitch
            _copy(sheet.cells, place - (y + 1) * pitch, sheet.edges, edge, pitch)
        if below:
            edge = _edge(sheet, parity, (band + 1) % bands, 0) + y * pitch
            _copy(sheet.cells, place + (rows + y) * pitch, sheet.edges, edge, pitch)
    return Pass(band, above, below, place, first, rows, steps, step)


@inlined
def _publish(sheet: Sheet, band: int, parity: int) -> None:
    """Copy the outermost rows of a band to `edges`, for the bands above and below."""
    pitch, rows = sheet.pitch, _rows(sheet, band)
    place = band * sheet.capacity + sheet.places[band * APART]
    for y in range(sheet.depth if sheet.reach else 0):
        _copy(sheet.edges, _edge(sheet, parity, band, 0) + y * pitch, sheet.cells, place + y * pitch, pitch)
        there = place + (rows - sheet.depth + y) * pitch
        _copy(sheet.edges, _edge(sheet, parity, band, 1) + y * pitch, sheet.cells, there, pitch)


@inlined
def _edge(sheet: Sheet, parity: int, band: int, side: int) -> int:
    """Return the index in `edges` of a band's top (side 0) or bottom (side 1) rows."""
    return SHIFT + ((parity * sheet.bands + band) * 2 + side) * sheet.depth * sheet.pitch


@inlined
def _copy(target: Array, target_row: int, source: Array, source_row: int, pitch: int) -> None:
    """Copy a row of all channels, `pitch` words, and the guard before it."""
    for word in range(-SHIFT, pitch - SHIFT, WORDS):
        store(target, target_row + word, load(source, source_row + word))


@inlined
def _run(sheet: Sheet, thread: int, mode: int, work: Pass, masks: Array) -> None:
    """Run the steps of a pass in turn: each computes a block of rows once the previous step has computed its inputs."""
    fronts = sheet.fronts[thread]
    # Step t of n also computes n - t rows of each band next to this one. For example, with four rows, two steps, and
    # bands above and below, the initial state has rows -2 to 5, step 1 computes rows -1 to 4, and step 2 rows 0 to 3.
    fronts[0] = work.rows + work.below * work.steps
    for t in range(1, work.steps + 1):
        fronts[t] = -work.above * (work.steps - t)
    while fronts[work.steps] < work.rows:
        for t in range(1, work.steps + 1):
            last = work.rows + work.below * (work.steps - t)
            before = work.rows + work.below * (work.steps - t + 1)
            end = last if fronts[t - 1] == before else min(last, fronts[t - 1] - sheet.reach)
            # At the end, a step has a block left and the rows by which it lags behind: together at most two blocks.
            end = min(end, fronts[t] + (sheet.block if t == 1 else 2 * sheet.block))
            if end > fronts[t]:
                _block(sheet, thread, mode, work, masks, t, fronts[t], end)
                fronts[t] = end


@inlined
def _block(sheet: Sheet, thread: int, mode: int, work: Pass, masks: Array, t: int, begin: int, end: int) -> None:
    """Compute rows `begin` to `end` of step `t` of a pass."""
    pitch, words, cells = sheet.pitch, sheet.words, sheet.cells
    origin = work.place - (t - 1) * (pitch + SHIFT)
    if sheet.reach and not work.above and begin == 0:
        _clear(cells, origin - pitch, pitch)
    if sheet.reach and not work.below and end == work.rows:
        _clear(cells, origin + work.rows * pitch, pitch)
    fire = sheet.fire[thread]
    most = max(1, (len(fire) - TILE) // words) if mode else end - begin
    for y in range(begin, end, most):
        rows, source = min(most, end - y), origin + y * pitch
        target = source - pitch - SHIFT
        if mode:
            _write_masks(sheet, mode, work.first + y, rows, masks, work.step, fire)
        call_rows(sheet.row, cells, source, target, fire, rows, words)
        for row in range(rows * sheet.channels):
            _finish(sheet, target + row * sheet.stride)


@inlined
def _clear(cells: Array, row: int, pitch: int) -> None:
    """Set a row outside the grid, `pitch` words, to zeros."""
    for word in range(-SHIFT, pitch - SHIFT, WORDS):
        store(cells, row + word, splat(np.uint64(0)))


@inlined
def _rows(sheet: Sheet, band: int) -> int:
    """Return the number of rows of a band."""
    return sheet.height * (band + 1) // sheet.bands - sheet.height * band // sheet.bands


@inlined
def _write_masks(sheet: Sheet, mode: int, y: int, rows: int, masks: Array, step: int, fire: Array) -> None:
    """Write the fire masks of `rows` rows, beginning at row `y` of the grid, to `fire`: copy or sample them."""
    words = sheet.words
    if mode == GIVEN:
        for row in range(rows):
            for word in range(words):
                fire[row * words + word] = masks[y + row, word]
    else:
        key0, key1 = threefry2x32(sheet.key[0], sheet.key[1], np.uint32(0), np.uint32(step))
        _draw(sheet.fire_units, key0, key1, y * words, rows * words, fire)


@inlined
def _draw(units: int, key0: Any, key1: Any, first: int, words: int, fire: Array) -> None:
    """Sample `words` words of fire masks from word `first` on, with the fire rate `units`: see `core.bernoulli`."""
    lowest = 0
    # Bits of the rate below its lowest 1 have no effect: a rate of 1/2 needs one word of random bits, 0.6 needs all.
    while not units >> lowest & 1:
        lowest += 1
    for word in range(0, words, TILE):
        low, high = random_blocks(key0, key1, np.uint32(first + word), np.uint32(lowest))
        less_low, less_high = low, high
        for k in range(lowest + 1, BITS):
            low, high = following_blocks(low, high)
            if units >> k & 1:
                less_low, less_high = bit_or(low, less_low), bit_or(high, less_high)
            else:
                less_low, less_high = bit_and(low, less_low), bit_and(high, less_high)
        store_blocks(fire, word, less_low, less_high)


@inlined
def _finish(sheet: Sheet, row: int) -> None:
    """Clear the bits after the last cell of a row, and set the row's guards."""
    cells, rest = sheet.cells, sheet.rest
    # Unsigned indices: for signed ones Numba would test each time whether they are negative.
    one, begin, end = np.uint64(1), np.uint64(row), np.uint64(row + sheet.words)
    if rest:
        cells[end - one] &= (one << np.uint64(rest)) - one
    if sheet.periodic:
        # The left guard is the highest bit of the word before the row, the right guard the bit after the last cell.
        first = cells[begin] & one
        last = cells[end - one] >> np.uint64((rest - 1) % 64)
        cells[begin - one] = last << np.uint64(63)
        if rest:
            cells[end - one] |= first << np.uint64(rest)
        else:
            cells[end] = first
    else:
        cells[begin - one] = np.uint64(0)
        cells[end] = np.uint64(0)


@entry_point
def settle(sheet: Sheet, parity: int) -> None:
    """Set all guards and edges, after the caller has copied a state into `cells`."""
    for band in range(sheet.bands):
        for row in range(_rows(sheet, band) * sheet.channels):
            _finish(sheet, band * sheet.capacity + sheet.places[band * APART] + row * sheet.stride)
        _publish(sheet, band, parity)
