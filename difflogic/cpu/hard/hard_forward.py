"""Run a hard circuit on bits, 64 samples per word, a tile of words at a time, in any number of threads.

As in `runner`, a step begins when the previous one is done in all tiles.
"""

from typing import Any, NamedTuple

import numpy as np

from difflogic.core.gates import GATE_COUNT
from difflogic.core.wiring import PATCH
from difflogic.cpu.codegen.atomics import DONE, fetch_add, take
from difflogic.cpu.codegen.compiled import entry_point, inlined
from difflogic.cpu.codegen.vectors import WORDS, bit_and, bit_fma, bit_where, load, splat, store
from difflogic.cpu.hard.hard_program import GATES, OUTPUTS, PATCH_ROWS, TRUE, HardPlan, hard_program, write_function
from difflogic.cpu.program import Program
from difflogic.cpu.tables import DAMAGED, LOSS
from difflogic.engine.shape import Array

ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


class HardBuffers(NamedTuple):
    """Buffers of a hard rollout. `columns` is the number of words per channel, a multiple of WORDS."""

    words: Array
    """uint64 `[n, C, columns + 8]`: state `t` is `words[t % n]`; column `columns` is 0, for cells outside the grid."""
    near: Array
    """int64 `[1 or T, 9, columns]`: column of each neighbour by patch position, in one table or in one per step."""
    tiles: Array
    """int64 `[1 or T]`: number of tiles of columns that a step computes."""
    masks: Array
    """uint64 `[T, columns]`: fire masks, or `[0, 0]` if every cell fires."""
    marks: Array
    """int64 `[T + 1, 2]`: see `TileGrid`."""
    undamaged: Array
    """uint64 `[D, columns]`: mask per damage step, ANDed with the state; a bit is 0 if the sample's cell is zeroed."""
    works: Array
    """uint64 `[columns]`: mask ANDed with states; a bit is 0 if the sample's cell is stuck. `[0]` without faults."""
    changes: Array
    """uint64 `[T, C, columns]`: bits that are XORed with the state before each step, after the AND with `works`."""
    loss_states: Array
    """uint64 `[J, loss_channels, columns]`: the states after the steps with a loss, before they are damaged."""
    nodes: Array
    """uint64 `[threads, N * WORDS]`: scratch for the values of nodes."""
    gate_words: Array
    """int64 `[G, 4]`: coefficients of each gate, as in `hard_program`."""


@entry_point
def run_hard(
    thread: int, steps: int, program: Program, logits: Array, buffers: HardBuffers, plan: HardPlan, counters: Array
) -> None:
    """Run this thread's part of `steps` steps from the state `words[0]`; first, one thread simplifies the circuit."""
    _steps(thread, steps, program, logits, buffers, plan, counters)


@inlined
def _steps(
    thread: int, steps: int, program: Program, logits: Array, buffers: HardBuffers, plan: HardPlan, counters: Array
) -> None:
    items = buffers.tiles[0]
    total = (steps + 1) * items
    while True:
        ticket = take(counters, items, total)
        if ticket >= total:
            return
        round_, item = ticket // items, ticket % items
        if round_ > 0:
            hard_forward(program, round_ - 1, item, buffers, plan, buffers.nodes[thread])
        elif item == 0:
            for gate in range(len(buffers.gate_words)):
                function = logits[gate * GATE_COUNT : (gate + 1) * GATE_COUNT].argmax()
                write_function(buffers.gate_words[gate], function)
            # All states are stored, so that all channels are needed.
            hard_program(program, buffers.gate_words, program.channels, steps, plan)
        fetch_add(counters, DONE, 1)


@inlined
def hard_forward(program: Program, step: int, tile: int, buffers: HardBuffers, plan: HardPlan, nodes: Array) -> None:
    """Compute a tile of the state `words[step + 1]` from `words[step]`: only the channels that the plan needs."""
    old, new = buffers.words[step % len(buffers.words)], buffers.words[(step + 1) % len(buffers.words)]
    near, steps = buffers.near[step % len(buffers.near)], len(buffers.marks) - 1
    level = min(steps - 1 - step, plan.levels[0] - 1)
    first_gate = plan.counts[plan.levels[0] - 1, PATCH_ROWS]
    for row in range(plan.counts[level, PATCH_ROWS]):
        channel, f = divmod(plan.patch_rows[row], PATCH)
        # Neighbours are looked up in a table: a word is one cell of 64 samples, so that no bits are shifted.
        for lane in range(WORDS):
            nodes[row * WORDS + lane] = old[channel, near[f, tile * WORDS + lane]]
    for gate in range(plan.counts[level, GATES]):
        code = plan.code[gate]
        a, b = load(nodes, code[0]), load(nodes, code[1])
        c0, ca = splat(np.uint64(code[2])), splat(np.uint64(code[3]))
        cb, cab = splat(np.uint64(code[4])), splat(np.uint64(code[5]))
        # The form of the soft gate, with AND for the product and XOR for the sum: modulo 2 its coefficients are 0 or 1.
        # With AVX-512 these are three instructions, each an arbitrary function of three inputs.
        store(nodes, (first_gate + gate) * WORDS, bit_fma(bit_fma(cab, a, cb), b, bit_fma(ca, a, c0)))
    for channel in plan.outputs[: plan.counts[level, OUTPUTS]]:
        values = _output(program, channel, plan, nodes)
        if buffers.masks.size:
            fires = load(buffers.masks[step], tile * WORDS)
            values = bit_where(fires, values, load(old[channel], tile * WORDS))
        place, damaged = buffers.marks[step + 1, LOSS], buffers.marks[step + 1, DAMAGED]
        if place >= 0 and channel < buffers.loss_states.shape[1]:
            store(buffers.loss_states[place, channel], tile * WORDS, values)
        if damaged >= 0:
            values = bit_and(values, load(buffers.undamaged[damaged], tile * WORDS))
        if buffers.works.size and step + 1 < steps:
            change = load(buffers.changes[step + 1, channel], tile * WORDS)
            values = bit_fma(values, load(buffers.works, tile * WORDS), change)
        store(new[channel], tile * WORDS, values)


@inlined
def _output(program: Program, channel: int, plan: HardPlan, nodes: Array) -> Any:
    source = plan.aliases[program.nodes - program.channels + channel]
    if source < 0:
        return splat(ONES if source == TRUE else np.uint64(0))
    return load(nodes, plan.rows[source])
