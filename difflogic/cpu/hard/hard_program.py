"""A hard circuit, simplified: what is constant, passed on or never read costs nothing.

A gate is the soft form over bits: `c0 ^ ca&a ^ cb&b ^ cab&a&b`, its coefficients taken modulo 2, each a word with a bit
for every sample: one gate may be different ones in different samples (see `search`). Inputs that are known are put in;
a gate that then is a constant or one of its inputs is not computed, and neither is one that no output depends on. All
of this is exact.
"""

from __future__ import annotations

import numpy as np

from difflogic.core.gates import GATE_COUNT, TABLE
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


@inlined
def hard_words(logits: Array, words: Array) -> None:
    """`words [G, 4]` of the argmax gates of `logits [16*G]`, the same in every sample."""
    for gate in range(len(words)):
        words[gate] = -GATE_BITS[logits[gate * GATE_COUNT : (gate + 1) * GATE_COUNT].argmax()]


@inlined
def hard_program(
    program: Program, words: Array, aliases: Array, rows: Array, forms: Array, patch_rows: Array, code: Array
) -> int:
    """The gates to compute, in order: their number.

    `words [G, 4]`, int64: of each gate `c0, ca, cb, cab`. `code [I, 6]`, int64: rows of a and b by their first word,
    and `c0, ca, cb, cab`; gate `i` has row `patches + i`. `patch_rows [9*C + 1]`: the patch nodes that are read, each
    in the row of its place here, and their number at the end. `aliases`, `rows [N]`, `forms [I, 4]`: scratch;
    afterwards `rows` holds every needed node's row, and `aliases` which node, or constant, a node is equal to.
    """
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
    # Then what no output depends on is left out, from the outputs backward; and the rest gets rows, the patch first.
    _mark(program, aliases, forms, rows)
    patches = 0
    for node in range(program.patch_nodes):
        if rows[node]:
            rows[node] = patches * WORDS
            patch_rows[patches] = node
            patches += 1
    patch_rows[program.patch_nodes] = patches
    count = 0
    for instance in range(len(forms)):
        node = program.patch_nodes + instance
        if rows[node] and aliases[node] == node:
            code[count, 0] = _row(program, instance, 0, aliases, rows)
            code[count, 1] = _row(program, instance, 1, aliases, rows)
            code[count, 2:] = forms[instance]
            rows[node] = (patches + count) * WORDS
            count += 1
    return count


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


@inlined
def _mark(program: Program, aliases: Array, forms: Array, rows: Array) -> None:
    """`rows` becomes 1 for every node that an output depends on, else 0."""
    rows[:] = 0
    for output in range(program.nodes - program.channels, program.nodes):
        if aliases[output] >= 0:
            rows[aliases[output]] = 1
    for instance in range(len(forms) - 1, -1, -1):
        if rows[program.patch_nodes + instance]:
            for side in range(2):
                if forms[instance, 1 + side] or forms[instance, 3]:
                    rows[aliases[program.records[RECORD * instance + side] // TILE]] = 1


@inlined
def _row(program: Program, instance: int, side: int, aliases: Array, rows: Array) -> int:
    """The row that an input is read from; any row where the input plays no part."""
    source = aliases[program.records[RECORD * instance + side] // TILE]
    return rows[source] if source >= 0 else 0
