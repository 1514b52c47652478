"""Steps of a hard circuit on one large grid, 64 cells per word, in bands of rows, two for each thread.

Several steps are done in one pass over a band, so that rows are fetched from memory once for all of them. Each step
follows the one before a block of rows behind it, while those are still in the cache. A pass of n steps also computes
rows of the bands above and below, n - 1 of each at first and none at the end: nothing is asked of other threads on the
way. For that the bands hand each other their outermost rows after each pass.

There is one copy of a state. A row's next state lies a row and a vector before the row itself, where nothing is read
any more: not by the rows below, and not by the columns to the right. So with every step a band moves to lower
addresses, and once in many passes it is moved back.

With one band for each thread, all would wait for the slowest after every pass. With two, a thread does a pass of the
one while what the other needs is still being computed. Both stay with their thread, and so in the caches of its core:
handed to whoever is free, they would be fetched from another core's at every pass. Only where a thread has waited for
long, as on a busy machine, it takes a band whose own thread is held up. A thread that waits holds nothing that others
wait for.

A row's channels lie side by side, `stride` words apart. Left and right of the cells are guards, so that shifted reads
find what lies outside: nothing, or the row's other end. They are set whenever a row is written.
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
"""Words that a step moves a row to the left, beside a row up."""
TAKEN, DONE = 0, 1
"""The counters of a band: passes that were begun, and that are done."""
APART = LINE // 8
"""Each band's counters are on a cache line of their own."""
YIELDS = 50
"""Offers of the processor before a waiting thread sleeps: on a busy machine it would keep others from their work."""
DRAWN, GIVEN = 1, 2
"""Modes of an asynchronous run; 0 is a synchronous one."""


class Sheet(NamedTuple):
    """Everything a step reads and writes, int64 where it is a number."""

    height: int
    width: int
    channels: int
    stride: int
    periodic: int
    reach: int
    """Rows above and below that a cell reads: 1, or of a circuit of a line 0."""
    fire_units: int
    key: Array
    """uint32 `[2]`, of the fire masks of all steps."""
    cells: Array
    """uint64 `[bands * capacity]`: each band with room above, where its rows move to, and below, for its neighbours."""
    capacity: int
    room: int
    """Words between a band's beginning and its first row when it has been moved back."""
    places: Array
    """int64 `[bands * APART]`: where the first row of each band lies, from the band's beginning."""
    depth: int
    """Steps of a pass at most."""
    block: int
    """Rows of a step before the next step follows."""
    edges: Array
    """uint64 `[2 * bands * 2 * depth * C * stride]`: by parity of the pass, each band's uppermost and lowest rows."""
    fronts: Array
    """int64 `[threads, depth + 1]`: scratch, the next row of each step of a pass."""
    fire: Array
    """uint64 `[threads, n]`: scratch, the masks of some rows, one after the other, and room for a vector behind."""
    row: int
    """Address of the circuit as compiled rows, in an asynchronous run of those that keep the cells that do not fire."""


class Pass(NamedTuple):
    """Some steps of one band."""

    band: int
    above: int
    """Whether there are rows above the band, or else nothing."""
    below: int
    place: int
    """Of the band's first row in `cells`, at the beginning."""
    first: int
    rows: int
    steps: int
    step: int
    """The number of the first one."""


@entry_point
def simulate(
    sheet: Sheet, thread: int, mode: int, parity: int, first_step: int, steps: int, masks: Array, counters: Array
) -> None:
    """One thread's part of `steps` steps; `parity` is that of the edges to begin with."""
    looks, own = 0, _bands(sheet) // len(sheet.fronts)
    depth = 1 if mode else sheet.depth  # where masks are drawn, fetching rows from memory is not what takes the time
    passes = (steps + depth - 1) // depth
    while True:
        band, number = _take(thread, own, passes, looks, counters)
        if number == passes:
            return
        if number < 0:
            looks += 1
            pause(looks, YIELDS)
            continue
        looks = 0 if band // own == thread else SPINS  # who is held up will hardly be back by the next pass
        done = number * depth
        given = masks[done if mode == GIVEN else 0]
        work = _begin(sheet, band, min(depth, steps - done), first_step + done, (parity + number) % 2)
        _run(sheet, thread, mode, work, given)
        sheet.places[band * APART] -= work.steps * (_pitch(sheet) + SHIFT)
        _publish(sheet, band, (parity + number + 1) % 2)
        fetch_add(counters, band * APART + DONE, 1)


@inlined
def _take(thread: int, own: int, passes: int, looks: int, counters: Array) -> Any:
    """A band and its next pass, taken; pass -1 where there is nothing to do at present, `passes` where all is done.

    One of the thread's own bands, or after many looks in vain any. A pass begins when the bands above and below have
    done the pass before: their edges are then there, and they have read those that it will overwrite.
    """
    bands, left = len(counters) // APART, False
    # Four bands, the thread's own are 0 and 1 and have done 5 passes. The sixth of band 1 may begin when bands 0 and 2
    # have done 5 as well: then their edges after 5 are there, and nobody reads those after 4 any more, which it
    # overwrites with those after 6. If bands 2 and 3 have done 4, this thread waits, and after SPINS looks it tries to
    # do their fifth passes itself.
    for offset in range(bands):
        band = (thread * own + offset) % bands
        number = look(counters, band * APART + DONE)
        left |= number < passes
        if number == passes or (offset >= own and looks < SPINS):  # at SPINS: before the thread first steps aside
            continue
        upper, lower = (band + bands - 1) % bands, (band + 1) % bands
        ready = min(look(counters, upper * APART + DONE), look(counters, lower * APART + DONE)) >= number
        if ready and claim(counters, band * APART + TAKEN, number):
            return band, number
    return 0, -1 if left else passes


@inlined
def _begin(sheet: Sheet, band: int, steps: int, step: int, parity: int) -> Any:
    """A pass, with the rows of the bands beside it in their places."""
    bands, pitch = _bands(sheet), _pitch(sheet)
    first, last = sheet.height * band // bands, sheet.height * (band + 1) // bands
    rows, base = last - first, band * sheet.capacity
    place = base + sheet.places[band * APART]
    # No room is left above for so many steps: back to the band's end, the lowest row first, since rows may overlap.
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
    """The band's outermost rows, for the bands beside it."""
    bands, pitch = _bands(sheet), _pitch(sheet)
    rows = sheet.height * (band + 1) // bands - sheet.height * band // bands
    place = band * sheet.capacity + sheet.places[band * APART]
    for y in range(sheet.depth if sheet.reach else 0):
        _copy(sheet.edges, _edge(sheet, parity, band, 0) + y * pitch, sheet.cells, place + y * pitch, pitch)
        there = place + (rows - sheet.depth + y) * pitch
        _copy(sheet.edges, _edge(sheet, parity, band, 1) + y * pitch, sheet.cells, there, pitch)


@inlined
def _edge(sheet: Sheet, parity: int, band: int, side: int) -> int:
    """Return where in `edges` a band's uppermost (0) or lowest (1) rows begin."""
    return SHIFT + ((parity * _bands(sheet) + band) * 2 + side) * sheet.depth * _pitch(sheet)


@inlined
def _copy(target: Array, there: int, source: Array, here: int, pitch: int) -> None:
    """A row, with the guard before it."""
    for at in range(-SHIFT, pitch - SHIFT, WORDS):
        store(target, there + at, load(source, here + at))


@inlined
def _run(sheet: Sheet, thread: int, mode: int, work: Pass, masks: Array) -> None:
    """Every step in turn goes on by a block of rows, as far as the step before it has come."""
    fronts = sheet.fronts[thread]
    # Step t of n computes n - t rows of the bands beside this one, where there are any. Four rows, two steps, rows
    # above and below: step 0, which is there, has rows -2 to 5, step 1 computes rows -1 to 4, step 2 rows 0 to 3.
    fronts[0] = work.rows + work.below * work.steps
    for t in range(1, work.steps + 1):
        fronts[t] = -work.above * (work.steps - t)
    while fronts[work.steps] < work.rows:
        for t in range(1, work.steps + 1):
            last = work.rows + work.below * (work.steps - t)
            before = work.rows + work.below * (work.steps - t + 1)
            end = last if fronts[t - 1] == before else min(last, fronts[t - 1] - sheet.reach)
            # At the end a step has left a block and the rows that it lags behind the one before: two blocks hold both.
            end = min(end, fronts[t] + (sheet.block if t == 1 else 2 * sheet.block))
            if end > fronts[t]:
                _block(sheet, thread, mode, work, masks, t, fronts[t], end)
                fronts[t] = end


@inlined
def _block(sheet: Sheet, thread: int, mode: int, work: Pass, masks: Array, t: int, begin: int, end: int) -> None:
    """Rows `begin` to `end` of step `t` of a pass."""
    pitch, words, cells = _pitch(sheet), words_of(sheet), sheet.cells
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
            finish(cells, target + row * sheet.stride, words, sheet.width % 64, sheet.periodic)


@inlined
def _clear(cells: Array, row: int, pitch: int) -> None:
    """A row outside the grid."""
    for at in range(-SHIFT, pitch - SHIFT, WORDS):
        store(cells, row + at, splat(np.uint64(0)))


@inlined
def words_of(sheet: Sheet) -> int:
    """Words of a row of one channel."""
    return (sheet.width + 63) // 64


@inlined
def _pitch(sheet: Sheet) -> int:
    """Words from row to row."""
    return sheet.channels * sheet.stride


@inlined
def _bands(sheet: Sheet) -> int:
    return len(sheet.places) // APART


@inlined
def _write_masks(sheet: Sheet, mode: int, y: int, rows: int, masks: Array, step: int, fire: Array) -> None:
    """The masks of so many rows from row `y` of the grid on."""
    words = words_of(sheet)
    if mode == GIVEN:
        for row in range(rows):
            for word in range(words):
                fire[row * words + word] = masks[y + row, word]
    else:
        key0, key1 = threefry2x32(sheet.key[0], sheet.key[1], np.uint32(0), np.uint32(step))
        _draw(sheet.fire_units, key0, key1, y * words, rows * words, fire)


@inlined
def _draw(units: int, key0: Any, key1: Any, first: int, words: int, fire: Array) -> None:
    """Draw so many words of random bits from number `first` on, as in `difflogic.core.bernoulli`."""
    lowest = 0
    # Bits of the rate below its lowest 1 decide nothing: a rate of 1/2 needs one word of random bits, 0.6 needs all.
    while not units >> lowest & 1:
        lowest += 1
    for at in range(0, words, TILE):
        low, high = random_blocks(key0, key1, np.uint32(first + at), np.uint32(lowest))
        less_low, less_high = low, high
        for k in range(lowest + 1, BITS):
            low, high = following_blocks(low, high)
            if units >> k & 1:
                less_low, less_high = bit_or(low, less_low), bit_or(high, less_high)
            else:
                less_low, less_high = bit_and(low, less_low), bit_and(high, less_high)
        store_blocks(fire, at, less_low, less_high)


@inlined
def finish(cells: Array, row: int, words: int, rest: int, periodic: int) -> None:
    """Clear what is no cell of a row, and set its guards; `rest` is the width modulo 64."""
    # Unsigned places: of signed ones the code would ask each time whether they count from the array's end.
    one, begin, end = np.uint64(1), np.uint64(row), np.uint64(row + words)
    if rest:
        cells[end - one] &= (one << np.uint64(rest)) - one
    if periodic:
        # The guard to the left is the highest bit of the word before the row, that to the right the bit behind the last
        # cell.
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
    """Guards and edges, after a state was put there."""
    bands = _bands(sheet)
    for band in range(bands):
        rows = sheet.height * (band + 1) // bands - sheet.height * band // bands
        for row in range(rows * sheet.channels):
            place = band * sheet.capacity + sheet.places[band * APART] + row * sheet.stride
            finish(sheet.cells, place, words_of(sheet), sheet.width % 64, sheet.periodic)
        _publish(sheet, band, parity)
