"""Simplify a hard circuit before it runs: constants, wires and dead gates are not computed.

On bits, a gate is `c0 ^ ca&a ^ cb&b ^ cab&a&b`: the formula of a soft gate with coefficients modulo 2. Each coefficient
is a word with one bit per sample, so a gate may have a different function in each sample (see `local_search`). Inputs
that are constant or equal to another node are substituted. Gates that are then constant or equal to an input are not
computed, and neither are gates that no output depends on. The results do not change.
"""

from typing import NamedTuple, SupportsIndex

import numpy as np

from difflogic.core.gates import TABLE
from difflogic.core.wiring import PATCH
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.vectors import TILE, WORDS
from difflogic.cpu.program import RECORD, A, B, Program
from difflogic.engine.shape import Array

GATE_BITS = (TABLE & 1).astype(np.int64)
"""int64 `[16, 4]`: `c0, ca, cb, cab` of each gate function modulo 2."""
ALL = -1
"""Word in which all bits are 1."""
FALSE, TRUE = -1, -2
"""Negative node numbers that represent the two constants."""
PATCH_ROWS, GATES, OUTPUTS = range(3)
"""Columns of `HardPlan.counts`."""


class HardPlan(NamedTuple):
    """Lists of the nodes that the steps compute, and scratch memory; each step uses a prefix of each list.

    The last step needs only the channels that the caller reads, the step before it only the channels that these depend
    on, and so on: each step needs a subset of the nodes that earlier steps need. So nodes have *levels*: 1 if the last
    step needs them, 2 if only the steps before the last do, and so on. The lists are sorted by level.
    """

    code: Array
    """int64 `[I, 6]`: for each computed instance the first words of the rows of a and b, then `c0, ca, cb, cab`."""
    patch_rows: Array
    """int64 `[9*C]`: patch nodes that are read; entry i has row i. The rows of gates follow these rows."""
    outputs: Array
    """int64 `[C]`: channels that are needed."""
    counts: Array
    """int64 `[C, 3]`: lengths of the prefixes of `code`, `patch_rows` and `outputs` for the last step (level 1), the
    step before it, and so on; steps before those of the last level use the prefixes of the last level."""
    levels: Array
    """int64 `[1]`: number of levels in use."""
    aliases: Array
    """int64 `[N]`: the node or constant that each node equals."""
    rows: Array
    """int64 `[N]`: index of the first word of each needed node's row."""
    forms: Array
    """int64 `[I, 4]`: coefficients of each instance after substitution of its inputs."""
    marks: Array
    """int64 `[N]`: level of each node, 0 if it is not needed."""
    places: Array
    """int64 `[C, 3]`: scratch for the next free index of each level in each list."""
    is_read: Array
    """bool `[C]`: True for the channels in `outputs`."""
    stack: Array
    """int64 `[N]`: scratch for the nodes to visit."""


def make_plan(program: Program) -> HardPlan:
    """Allocate a plan for circuits with this wiring."""
    instances = program.nodes - program.patch_nodes

    def zeros(*shape: int) -> Array:
        return np.zeros(shape, dtype=np.int64)

    return HardPlan(
        code=zeros(instances, 6),
        patch_rows=zeros(program.patch_nodes),
        outputs=zeros(program.channels),
        counts=zeros(program.channels, 3),
        levels=zeros(1),
        aliases=zeros(program.nodes),
        rows=zeros(program.nodes),
        forms=zeros(instances, 4),
        marks=zeros(program.nodes),
        places=zeros(program.channels, 3),
        is_read=np.zeros(program.channels, dtype=np.bool_),
        stack=zeros(program.nodes),
    )


@inlined
def write_function(words: Array, function: SupportsIndex) -> None:
    """Write the coefficients `words [4]` of a gate that has the same function in every sample."""
    for index in range(4):
        words[index] = -GATE_BITS[function, index]


@inlined
def hard_program(program: Program, words: Array, visible: int, steps: int, plan: HardPlan) -> None:
    """Write to `plan` the nodes that `steps` steps compute if the caller reads the first `visible` channels.

    `words` are int64 `[G, 4]`: the coefficients `c0, ca, cb, cab` of each gate.
    """
    aliases, forms = plan.aliases, plan.forms
    for node in range(program.patch_nodes):
        aliases[node] = node
    # First simplify every instance, in topological order, so that the inputs of each one are simplified before it.
    # For example, if gate 1 is A of (node 4, node 7), and gate 2 is XOR of (gate 1, node 4), the alias of gate 1 is
    # node 4, so that both inputs of gate 2 are node 4, and its form 0 ^ a ^ a is the constant FALSE. Neither is
    # computed.
    for gate in range(len(words)):
        for instance in range(program.gate_starts[gate], program.gate_starts[gate + 1]):
            node = program.patch_nodes + instance
            aliases[node] = _simplify(program, instance, words[gate], aliases, forms[instance])
    # Then mark the nodes that are needed, and assign rows to them.
    plan.levels[0] = mark(program, aliases, forms, visible, steps, plan)
    _order(program, plan)


@inlined
def mark(program: Program, aliases: Array, forms: Array, visible: int, steps: int, plan: HardPlan) -> int:
    """Mark every needed node with its level, list the needed outputs, and return the number of levels."""
    marks, outputs, first = plan.marks, plan.outputs, program.nodes - program.channels
    marks[:], plan.is_read[:] = 0, False
    plan.is_read[:visible] = True
    for channel in range(visible):
        outputs[channel] = channel
    # The channels that a level reads and no earlier level has read are the new outputs of the next one. The first step
    # reads the initial state, which is not computed.
    level, begin, count = 0, 0, visible
    while begin < count and level < steps:
        end = count
        plan.counts[level, OUTPUTS] = end
        level += 1
        for channel in outputs[begin:end]:
            count = _mark_from(program, aliases[first + channel], level, aliases, forms, count, plan)
        begin = end
    return level


@inlined
def _mark_from(
    program: Program, node: int, level: int, aliases: Array, forms: Array, count: int, plan: HardPlan
) -> int:
    """Mark the nodes that `node` depends on, append the channels they read to the outputs; return the new `count`."""
    height = _need(node, level, plan.marks, plan.stack, 0)
    while height > 0:
        height -= 1
        node = plan.stack[height]
        channel, instance = node // PATCH, node - program.patch_nodes
        if instance >= 0:
            for side in range(2):
                if forms[instance, 1 + side] or forms[instance, 3]:
                    height = _need(_source(program, instance, side, aliases), level, plan.marks, plan.stack, height)
        elif not plan.is_read[channel]:
            plan.is_read[channel], plan.outputs[count] = True, channel
            count += 1
    return count


@inlined
def _need(node: int, level: int, marks: Array, stack: Array, height: int) -> int:
    """Mark and push a node unless it is constant or marked; return the new height of the stack."""
    if node < 0 or marks[node]:
        return height
    marks[node] = level
    stack[height] = node
    return height + 1


@inlined
def _order(program: Program, plan: HardPlan) -> None:
    """Write the marked nodes into the lists, sorted by level."""
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
    # The inputs of a gate have its level or a lower one, and come before it in topological order, and so in the
    # list.
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
                    # If the gate does not depend on the input, any row will do.
                    source = _source(program, instance, side, plan.aliases)
                    plan.code[place, side] = rows[source] if source >= 0 else 0
                for index in range(4):
                    plan.code[place, 2 + index] = plan.forms[instance, index]
                rows[node] = (patches + place) * WORDS


@inlined
def _source(program: Program, instance: int, side: int, aliases: Array) -> int:
    """Return the node or constant that input `side` (A or B) of an instance equals."""
    return int(aliases[program.records[RECORD * instance + side] // TILE])


@inlined
def _simplify(program: Program, instance: int, words: Array, aliases: Array, form: Array) -> int:
    """Simplify a gate instance and write it to `form`; return the node or constant that it equals, or its own node."""
    a, b = _source(program, instance, A, aliases), _source(program, instance, B, aliases)
    c0, ca, cb, cab = words[0], words[1], words[2], words[3]
    # A constant a turns `ca&a` into a constant and `cab&a&b` into a multiple of b. `value` is a word of all zeros or
    # all ones, and so are coefficients, unless a search gives samples different functions.
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
