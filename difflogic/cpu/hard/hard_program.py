"""A hard circuit, simplified: what is constant, passed on or never read costs nothing.

A gate is the soft form over bits: `c0 ^ ca&a ^ cb&b ^ cab&a&b`, its coefficients taken modulo 2, each a word with a bit
for every sample: one gate may be different ones in different samples (see `search`). Inputs that are known are put in;
a gate that then is a constant or one of its inputs is not computed, and neither is one that no output depends on. All
of this is exact.
"""

from typing import NamedTuple, SupportsIndex

import numpy as np

from difflogic.core.gates import GATE_COUNT, TABLE
from difflogic.core.wiring import PATCH
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.vectors import TILE, WORDS
from difflogic.cpu.program import RECORD, A, B, Program
from difflogic.engine.shape import Array

GATE_BITS = (TABLE & 1).astype(np.int64)
"""int64 `[16, 4]`: `c0, ca, cb, cab` of each gate modulo 2."""
ALL = -1
"""A word of ones."""
FALSE, TRUE = -1, -2
"""In place of a node: a constant."""
PATCH_ROWS, GATES, OUTPUTS = range(3)
"""Columns of `HardPlan.counts`."""


class HardPlan(NamedTuple):
    """A plan says what to compute in each step, in lists of which a step takes a beginning; and scratch.

    Not all of a step's results may be asked for: of the last step only the channels that are seen, of the one before
    only those that these depend on, and so on. What a step needs is a part of what any earlier one needs. So nodes
    have *levels*: 1 where the last step needs them, 2 where only the steps before the last do, and so on, and the lists
    are in the order of levels.
    """

    code: Array
    """int64 `[I, 6]`: of each gate the rows of a and b by their first word, and `c0, ca, cb, cab`."""
    patch_rows: Array
    """int64 `[9*C]`: the patch nodes that are read; each is in the row of its place here, and all gates come after."""
    outputs: Array
    """int64 `[C]`: the channels that are needed."""
    counts: Array
    """int64 `[C, 3]`: how much of these three lists the last step takes, the step before it, and so on; steps before
    the last of `levels` take as much as that."""
    levels: Array
    """int64 `[1]`: how many levels there are."""
    aliases: Array
    """int64 `[N]`: which node, or constant, a node is equal to."""
    rows: Array
    """int64 `[N]`: every needed node's row."""
    forms: Array
    """int64 `[I, 4]`: each instance's coefficients, once its known inputs are put in."""
    marks: Array
    """int64 `[N]`: every node's level, 0 where nothing needs it."""
    places: Array
    """int64 `[C, 3]`: where the next of a level goes."""
    is_read: Array
    """bool `[C]`: which channels are among the outputs."""
    stack: Array
    """int64 `[N]`."""


def make_plan(program: Program) -> HardPlan:
    """Room for a plan of this program, and for the scratch."""
    instances = program.nodes - program.patch_nodes

    def room(*shape: int) -> Array:
        return np.zeros(shape, dtype=np.int64)

    return HardPlan(
        code=room(instances, 6),
        patch_rows=room(program.patch_nodes),
        outputs=room(program.channels),
        counts=room(program.channels, 3),
        levels=room(1),
        aliases=room(program.nodes),
        rows=room(program.nodes),
        forms=room(instances, 4),
        marks=room(program.nodes),
        places=room(program.channels, 3),
        is_read=np.zeros(program.channels, dtype=np.bool_),
        stack=room(program.nodes),
    )


@inlined
def hard_words(logits: Array, words: Array) -> None:
    """`words [G, 4]` of the argmax gates of `logits [16*G]`, the same in every sample."""
    for gate in range(len(words)):
        write_function(words[gate], logits[gate * GATE_COUNT : (gate + 1) * GATE_COUNT].argmax())


@inlined
def write_function(words: Array, function: SupportsIndex) -> None:
    """`words [4]` of a gate that is the same in every sample."""
    for index in range(4):
        words[index] = -GATE_BITS[function, index]


@inlined
def hard_program(program: Program, words: Array, seen: int, steps: int, plan: HardPlan) -> None:
    """Plans `steps` steps after which the first `seen` channels are asked for.

    `words [G, 4]`, int64: of each gate `c0, ca, cb, cab`.
    """
    aliases, forms = plan.aliases, plan.forms
    for node in range(program.patch_nodes):
        aliases[node] = node
    # First every instance is put in terms of what it really depends on, in the order of the wiring: its inputs are
    # known by then. Say that gate 1 is A of (node 4, node 7), and gate 2 is XOR of (gate 1, node 4): gate 1's alias is
    # node 4, so that both inputs of gate 2 are node 4, and its form 0 ^ a ^ a is the constant FALSE. Neither is
    # computed.
    for gate in range(len(words)):
        for instance in range(program.gate_starts[gate], program.gate_starts[gate + 1]):
            node = program.patch_nodes + instance
            aliases[node] = _simplify(program, instance, words[gate], aliases, forms[instance])
    # Then what nothing depends on is left out, and the rest gets rows.
    plan.levels[0] = mark(program, aliases, forms, seen, steps, plan)
    _order(program, plan)


@inlined
def mark(program: Program, aliases: Array, forms: Array, seen: int, steps: int, plan: HardPlan) -> int:
    """Marks every node that is needed with its level, and lists the outputs; returns the number of levels."""
    marks, outputs, first = plan.marks, plan.outputs, program.nodes - program.channels
    marks[:], plan.is_read[:] = 0, False
    plan.is_read[:seen] = True
    for channel in range(seen):
        outputs[channel] = channel
    # The channels that a level reads and that were not read before are the outputs of the next one. Those that the
    # first step reads are of the start, which nothing computes.
    level, begin, known = 0, 0, seen
    while begin < known and level < steps:
        end = known
        plan.counts[level, OUTPUTS] = end
        level += 1
        for channel in outputs[begin:end]:
            known = _mark_from(program, aliases[first + channel], level, aliases, forms, known, plan)
        begin = end
    return level


@inlined
def _mark_from(
    program: Program, node: int, level: int, aliases: Array, forms: Array, known: int, plan: HardPlan
) -> int:
    """Mark what a node depends on; returns how many channels are then among the outputs."""
    held = _need(node, level, plan.marks, plan.stack, 0)
    while held > 0:
        held -= 1
        node = plan.stack[held]
        channel, instance = node // PATCH, node - program.patch_nodes
        if instance >= 0:
            for side in range(2):
                if forms[instance, 1 + side] or forms[instance, 3]:
                    held = _need(_source(program, instance, side, aliases), level, plan.marks, plan.stack, held)
        elif not plan.is_read[channel]:
            plan.is_read[channel], plan.outputs[known] = True, channel
            known += 1
    return known


@inlined
def _need(node: int, level: int, marks: Array, stack: Array, held: int) -> int:
    """Mark a node that is no constant and was not marked; how many the stack then holds."""
    if node < 0 or marks[node]:
        return held
    marks[node] = level
    stack[held] = node
    return held + 1


@inlined
def _order(program: Program, plan: HardPlan) -> None:
    """Puts the nodes that are marked into the lists."""
    counts, places, marks, rows = plan.counts, plan.places, plan.marks, plan.rows
    counts[:, :OUTPUTS] = 0
    for node in range(program.nodes):
        if marks[node]:
            counts[marks[node] - 1, GATES if node >= program.patch_nodes else PATCH_ROWS] += 1
    places[0, :] = 0
    for level in range(1, plan.levels[0]):
        for kind in range(OUTPUTS):
            places[level, kind] = counts[level - 1, kind]
            counts[level, kind] += counts[level - 1, kind]
    patches = counts[plan.levels[0] - 1, PATCH_ROWS]
    # A gate's inputs are of its level or an earlier one, and come before it in the wiring: so they do in the list.
    for node in range(program.nodes):
        if marks[node]:
            level, instance = marks[node] - 1, node - program.patch_nodes
            if instance < 0:
                place = places[level, PATCH_ROWS]
                places[level, PATCH_ROWS] += 1
                plan.patch_rows[place], rows[node] = node, place * WORDS
            else:
                place = places[level, GATES]
                places[level, GATES] += 1
                for side in range(2):
                    # Where the input plays no part, any row does.
                    source = _source(program, instance, side, plan.aliases)
                    plan.code[place, side] = rows[source] if source >= 0 else 0
                for index in range(4):
                    plan.code[place, 2 + index] = plan.forms[instance, index]
                rows[node] = (patches + place) * WORDS


@inlined
def _source(program: Program, instance: int, side: int, aliases: Array) -> int:
    """The node or constant that an input is equal to."""
    return int(aliases[program.records[RECORD * instance + side] // TILE])


@inlined
def _simplify(program: Program, instance: int, words: Array, aliases: Array, form: Array) -> int:
    """The node or constant that an instance is equal to, itself where it must be computed; `form` is its form."""
    a = aliases[program.records[RECORD * instance + A] // TILE]
    b = aliases[program.records[RECORD * instance + B] // TILE]
    c0, ca, cb, cab = words[0], words[1], words[2], words[3]
    # A known a turns `ca&a` into a constant and `cab&a&b` into a multiple of b. `value` is a word of all zeros or all
    # ones, and so are coefficients unless a search has made them differ from bit to bit.
    if a < 0:
        value = -int(a == TRUE)
        c0, ca, cb, cab = c0 ^ (ca & value), 0, cb ^ (cab & value), 0
    if b < 0:
        value = -int(b == TRUE)
        c0, ca, cb, cab = c0 ^ (cb & value), ca ^ (cab & value), 0, 0
    if a == b:
        ca, cb, cab = ca ^ cb ^ cab, 0, 0
    form[0], form[1], form[2], form[3] = c0, ca, cb, cab
    if cab == 0 and ca == 0 and cb == 0 and (c0 == 0 or c0 == ALL):
        return TRUE if c0 else FALSE
    if cab == 0 and c0 == 0 and (ca == 0 or cb == 0) and ca ^ cb == ALL:
        return int(a if ca else b)
    return program.patch_nodes + instance
