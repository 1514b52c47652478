"""Steps of a hard circuit on one large grid, 64 cells per word, a band of rows at a time, by any number of threads.

A state's rows lie one after another, each with its channels side by side, `stride` words apart. Left and right of
the cells are guards, so that shifted reads find what lies outside: nothing, or the row's other end. They are set
whenever a row is written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from difflogic.coins import BITS, CERTAIN
from difflogic.cpu.atomics import fetch_add, wait_for
from difflogic.cpu.compiled import inner, piece
from difflogic.cpu.plane_vectors import bit_and, bit_or, call_row, drawn, east, load_any, west
from difflogic.cpu.threefry import threefry2x32
from difflogic.cpu.vectors import LINE, WORDS, bit_fma, bit_where, load, splat, store

Array = Any

FRONT = LINE // 8
"""Words before the first row; the last of them is its left guard."""
TAKEN, DONE = 0, 8
"""Places in the counters: bands taken, and from there on the steps done of each band."""
COINS, GIVEN = 1, 2
"""Modes of an asynchronous run; 0 is a synchronous one."""


class Sheet(NamedTuple):
    """Everything a step reads and writes, int64 where it is a number."""

    height: int
    width: int
    channels: int
    stride: int
    periodic: int
    bands: int
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

    A band's step waits until the bands beside it have done the step before: what it reads is then there, and what it
    overwrites has been read. Bands are taken in order, so that somebody works on what is waited for.
    """
    bands = sheet.bands
    while True:
        ticket = fetch_add(counters, TAKEN, 1)
        if ticket >= steps * bands:
            return
        step, band = ticket // bands, ticket % bands
        for near in range(band + bands - 1, band + bands + 2):
            wait_for(counters, DONE + near % bands, step)
        if mode == COINS:
            key0, key1 = threefry2x32(sheet.key[0], sheet.key[1], np.uint32(0), np.uint32(first_step + step))
        else:
            key0, key1 = np.uint32(0), np.uint32(0)
        old, new = sheet.states[(parity + step) % 2], sheet.states[(parity + step + 1) % 2]
        for y in range(sheet.height * band // bands, sheet.height * (band + 1) // bands):
            _step_row(sheet, old, new, y, sheet.nodes[thread])
            if mode:
                fire = sheet.fire[thread]
                if mode == COINS:
                    _draw(sheet, key0, key1, y, fire)
                else:
                    fire[: masks.shape[2]] = masks[step, y]
                _keep(sheet, old, new, y, fire)
            for channel in range(sheet.channels):
                finish(sheet, new, y, channel)
        fetch_add(counters, DONE + band, 1)


@inner
def place(sheet: Sheet, y: int, channel: int) -> int:
    """Where a row of a channel begins."""
    return FRONT + (y * sheet.channels + channel) * sheet.stride


@inner
def _step_row(sheet: Sheet, old: Array, new: Array, y: int, nodes: Array) -> None:
    last = sheet.height - 1
    around = last if sheet.periodic else sheet.height
    row = place(sheet, y, 0)
    above = place(sheet, y - 1 if y > 0 else around, 0)
    below = place(sheet, y + 1 if y < last else (0 if sheet.periodic else sheet.height), 0)
    words = (sheet.width + 63) // 64
    if sheet.row:
        call_row(sheet.row, old, above, row, below, new, words, sheet.stride)
        return
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
def _draw(sheet: Sheet, key0: Any, key1: Any, y: int, fire: Array) -> None:
    """The mask of row `y`, as in `difflogic.coins`."""
    words = (sheet.width + 63) // 64
    units = sheet.fire_units
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
def _keep(sheet: Sheet, old: Array, new: Array, y: int, fire: Array) -> None:
    """Cells that do not fire keep their state."""
    words = (sheet.width + 63) // 64
    for channel in range(sheet.channels):
        row = place(sheet, y, channel)
        for at in range(0, words, WORDS):
            store(new, row + at, bit_where(load(fire, at), load(new, row + at), load(old, row + at)))


@inner
def finish(sheet: Sheet, state: Array, y: int, channel: int) -> None:
    """Clear what is no cell, and set the guards."""
    words = (sheet.width + 63) // 64
    row, rest = place(sheet, y, channel), sheet.width % 64
    if rest:
        state[row + words - 1] &= (np.uint64(1) << np.uint64(rest)) - np.uint64(1)
    if sheet.periodic:
        first = state[row] & np.uint64(1)
        last = state[row + words - 1] >> np.uint64((sheet.width - 1) % 64)
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
    for y in range(sheet.height):
        for channel in range(sheet.channels):
            finish(sheet, state, y, channel)
