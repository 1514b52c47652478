"""Truth tables: values of a graph's nodes on all combinations of its inputs.

For a small graph a table is one Python integer: bit `s` of a node's table is its value on sample `s`, and input `i` is
bit `i` of `s`. With two inputs there are four samples, 00, 01, 10 and 11 as input 1 and input 0; the table of input 0
is 0b1010, that of input 1 is 0b1100, that of their AND 0b1000, and that of their XOR 0b0110. A gate is one operation on
two integers. For a large graph samples are packed in words, uint64 `[inputs, N]`, with 64 samples per word.
"""

from functools import cache

import numpy as np

from difflogic.circuits.synthesis.xag import XAG
from difflogic.core.bits import Words

MOST_INPUTS = 12
"""Maximum number of inputs of an integer table: with 12 inputs, an operation on 4096 bits takes 0.1 us."""
MOST_EXHAUSTIVE = 20
"""Maximum number of inputs for which all combinations are tried: a million, 128 KB per node."""


@cache
def input_tables(inputs: int) -> tuple[int, ...]:
    """Return the truth table of each of `inputs` inputs."""
    # Input `i` is 0 for 2^i samples, then 1 for as many, and so on: for three inputs 10101010, 11001100 and 11110000
    # from the highest sample to the lowest. The first such block is doubled until it fills the table.
    tables = []
    for index in range(inputs):
        table, width = ((1 << (1 << index)) - 1) << (1 << index), 2 << index
        while width < 1 << inputs:
            table |= table << width
            width *= 2
        tables.append(table)
    return tuple(tables)


def cofactor(table: int, index: int, value: int, inputs: int) -> int:
    """Return a table's cofactor with input number `index` set to `value`, as a table of all inputs."""
    # XOR of two inputs is 0110. Input 1 is 1 on the samples 1100, on which the table is 01; shifted by 2^1 these values
    # are copied to the other two samples: 0101, NOT input 0.
    column, shift = input_tables(inputs)[index], 1 << index
    if value:
        half = table & column
        return half | half >> shift
    half = table & ~column
    return half | half << shift


def output_tables(graph: XAG) -> list[int]:
    """Return the integer truth table of each output of a graph with few inputs."""
    # NOT is an XOR with `ones`, since `~` would give a negative integer.
    ones, values = (1 << (1 << graph.inputs)) - 1, [0, *input_tables(graph.inputs)]

    def table(literal: int) -> int:
        return values[literal >> 1] ^ (ones if literal & 1 else 0)

    for xor, a, b in graph.gates:
        values.append(table(a) ^ table(b) if xor else table(a) & table(b))
    return list(map(table, graph.outputs))


@cache
def all_patterns(inputs: int) -> Words:
    """Return all input combinations, uint64 `[inputs, max(1, 2^inputs / 64)]`; input `i` in sample `s` is bit `i` of s.

    With fewer than 6 inputs, combinations repeat within one word.
    """
    wide = max(inputs, 6)
    tables = b"".join(table.to_bytes((1 << wide) // 8, "little") for table in input_tables(wide)[:inputs])
    patterns = np.frombuffer(tables, dtype="<u8").reshape(inputs, (1 << wide) // 64)
    patterns.setflags(write=False)
    return patterns


def first_one(words: Words) -> int:
    """Return the index of the first sample that is 1; there must be one."""
    word = int(np.flatnonzero(words)[0])
    value = int(words[word])
    return 64 * word + (value & -value).bit_length() - 1
