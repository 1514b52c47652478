"""Steps of a hard circuit on one large grid, 64 cells per word, by threads that each keep to a band of rows.

A band stays with its thread, and so in the caches of its core: handed to whoever is free, it would be fetched from
another core's at every step.

A state's rows lie one after another, each with its channels side by side, `stride` words apart. Left and right of
the cells are guards, so that shifted reads find what lies outside: nothing, or the row's other end. They are set
whenever a row is written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from difflogic.coins import BITS, CERTAIN
from difflogic.cpu.atomics import fetch_add, look, wait_for
from difflogic.cpu.compiled import inner, piece
from difflogic.cpu.plane_vectors import bit_and, bit_or, call_row, drawn, east, load_any, west
from difflogic.cpu.threefry import threefry2x32
from difflogic.cpu.vectors import LINE, WORDS, bit_fma, bit_where, load, splat, store

Array = Any

FRONT = LINE // 8
"""Words before the first row; the last of them is its left guard."""
THREADS, DONE = 0, 8
"""Places in the counters: how many threads there are, 0 while that is not known; and from there on, a cache line apart,
the steps that each has done."""
YIELDS = 50
"""Offers of the processor before a waiting thread sleeps: on a busy machine it would keep others from their work."""
COINS, GIVEN = 1, 2
"""Modes of an asynchronous run; 0 is a synchronous one."""


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
    """Address of the circuit as a compiled row; 0: interpret what follows, see `difflogic.slots`."""
    patches: Array
    """int64 `[p]`."""
    code: Array
    """int64 `[n, 7]`: slots of a, b and the value, and `c0, ca, cb, cab` as words."""
    outputs: Array
    """int64 `[C]`."""
    nodes: Array
    """uint64 `[threads, slots * tile * WORDS]`: scratch."""
    tile: int
    """Vectors of words that the interpreter takes at a time."""


@piece
def simulate(
    sheet: Sheet, thread: int, mode: int, parity: int, first_step: int, steps: int, masks: Array, counters: Array
) -> None:
    """One thread's part of `steps` steps from `states[parity]`.

    A step waits until the threads above and below have done the step before: what it reads of theirs is then there,
    and what it overwrites they have read.
    """
    height, pitch = sheet.height, sheet.channels * sheet.stride
    words = words_of(sheet)
    around = height - 1 if sheet.periodic else height
    wait_for(counters, THREADS, 1, YIELDS)
    threads = look(counters, THREADS)
    first, last = height * thread // threads, height * (thread + 1) // threads
    upper, lower = (thread + threads - 1) % threads, (thread + 1) % threads
    for step in range(steps):
        wait_for(counters, DONE + LINE // 8 * upper, step, YIELDS)
        wait_for(counters, DONE + LINE // 8 * lower, step, YIELDS)
        old, new = sheet.states[(parity + step) % 2], sheet.states[(parity + step + 1) % 2]
        for y in range(first, last):
            row = FRONT + y * pitch
            above = FRONT + (y - 1 if y > 0 else around) * pitch
            below = FRONT + (y + 1 if y < height - 1 else (0 if sheet.periodic else height)) * pitch
            if sheet.row:
                call_row(sheet.row, old, above, row, below, new, words, sheet.stride)
            else:
                _interpret_row(sheet, old, above, row, below, new, sheet.nodes[thread])
            if mode:
                _keep(
                    sheet, old, new, y, mode, masks[step if mode == GIVEN else 0], first_step + step, sheet.fire[thread]
                )
            for channel in range(sheet.channels):
                finish(new, row + channel * sheet.stride, words, sheet.width % 64, sheet.periodic)
        fetch_add(counters, DONE + LINE // 8 * thread, 1)


@inner
def words_of(sheet: Sheet) -> int:
    """Words of a row of one channel."""
    return (sheet.width + 63) // 64


@inner
def _interpret_row(sheet: Sheet, old: Array, above: int, row: int, below: int, new: Array, nodes: Array) -> None:
    words = words_of(sheet)
    for start in range(0, words, sheet.tile * WORDS):
        vectors = min(sheet.tile, (words - start + WORDS - 1) // WORDS)
        _interpret(sheet, old, above + start, row + start, below + start, new, vectors, nodes)


@inner
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


@inner
def _keep(sheet: Sheet, old: Array, new: Array, y: int, mode: int, masks: Array, step: int, fire: Array) -> None:
    """Cells that do not fire keep their state."""
    words = words_of(sheet)
    if mode == COINS:
        key0, key1 = threefry2x32(sheet.key[0], sheet.key[1], np.uint32(0), np.uint32(step))
        _draw(sheet.fire_units, words, key0, key1, y, fire)
    else:
        fire[:words] = masks[y]
    for channel in range(sheet.channels):
        row = FRONT + (y * sheet.channels + channel) * sheet.stride
        for at in range(0, words, WORDS):
            store(new, row + at, bit_where(load(fire, at), load(new, row + at), load(old, row + at)))


@inner
def _draw(units: int, words: int, key0: Any, key1: Any, y: int, fire: Array) -> None:
    """The mask of row `y`, as in `difflogic.coins`."""
    if units == CERTAIN:
        fire[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        return
    for at in range(0, words, WORDS):
        first = np.uint32(y * words + at)
        less = splat(np.uint64(0))
        for k in range(BITS):
            if units & ((1 << (k + 1)) - 1):
                coin = drawn(key0, key1, first, np.uint32(k))
                less = bit_or(coin, less) if units >> k & 1 else bit_and(coin, less)
        store(fire, at, less)


@inner
def finish(state: Array, row: int, words: int, rest: int, periodic: int) -> None:
    """Clear what is no cell of a row, and set its guards; `rest` is the width modulo 64."""
    if rest:
        state[row + words - 1] &= (np.uint64(1) << np.uint64(rest)) - np.uint64(1)
    if periodic:
        first = state[row] & np.uint64(1)
        last = state[row + words - 1] >> np.uint64((rest - 1) % 64)
        state[row - 1] = last << np.uint64(63)
        if rest:
            state[row + words - 1] |= first << np.uint64(rest)
        else:
            state[row + words] = first
    else:
        state[row + words] = np.uint64(0)


@piece
def finish_all(sheet: Sheet, state: Array) -> None:
    """`finish` of every row, after a state was put there."""
    for row in range(sheet.height * sheet.channels):
        finish(state, FRONT + row * sheet.stride, words_of(sheet), sheet.width % 64, sheet.periodic)
