"""Truth tables: the values of a graph's nodes on samples of its inputs, all combinations of them or some.

Of a small graph a table is one Python integer: bit `s` of a node's table is its value on sample `s`, and input `i` is
bit `i` of `s`. With two inputs there are four samples, 00, 01, 10 and 11 as input 1 and input 0; the table of input 0
is 0b1010, that of input 1 is 0b1100, that of their AND 0b1000, and that of their XOR 0b0110. A gate on two tables is
one operation on two integers.

Of a large graph samples are words, uint64 `[inputs, N]`, 64 of them to a word, and NumPy evaluates all nodes at once.
"""

from functools import cache

import numpy as np

from difflogic.circuits.synthesis.xag import XAG
from difflogic.core.bits import Words

MOST_INPUTS = 12
"""Tables of up to 4096 bits: operations on them take a tenth of a microsecond."""
MOST_EXHAUSTIVE = 20
"""Up to so many inputs all combinations are tried: a million, 128 KB per node."""


@cache
def input_tables(inputs: int) -> tuple[int, ...]:
    """The table of each input alone."""
    # Input `i` is 0 for 2^i samples, then 1 for as many, and so on: of three inputs 10101010, 11001100 and 11110000
    # from the highest sample to the lowest. One such block is made, then doubled until it fills the table.
    tables = []
    for index in range(inputs):
        table, width = ((1 << (1 << index)) - 1) << (1 << index), 2 << index
        while width < 1 << inputs:
            table |= table << width
            width *= 2
        tables.append(table)
    return tuple(tables)


def cofactor(table: int, index: int, value: int, inputs: int) -> int:
    """The table where input `index` is held at `value`."""
    # XOR of two inputs is 0110. Held at 1, input 1 is 1 on the samples 1100, where the table is 01; shifted by 2^1
    # these values stand on the other two samples as well: 0101, NOT input 0. The result no longer depends on input 1.
    column, shift = input_tables(inputs)[index], 1 << index
    if value:
        half = table & column
        return half | half >> shift
    half = table & ~column
    return half | half << shift


def output_tables(graph: XAG) -> list[int]:
    """The table of each output of a graph with few inputs."""
    # Tables are plain integers, without a sign: NOT is an XOR with `ones`, for `~` of Python would be negative.
    ones, values = (1 << (1 << graph.inputs)) - 1, [0, *input_tables(graph.inputs)]

    def table(literal: int) -> int:
        return values[literal >> 1] ^ (ones if literal & 1 else 0)

    for xor, a, b in graph.gates:
        values.append(table(a) ^ table(b) if xor else table(a) & table(b))
    return list(map(table, graph.outputs))


@cache
def all_patterns(inputs: int) -> Words:
    """uint64 `[inputs, max(1, 2^inputs / 64)]`: input `i` of sample `s` is bit `i` of `s`.

    Below 6 inputs the combinations repeat within the one word.
    """
    # A word holds the samples of six inputs. `differ_anywhere` asks for these again and again: they are made once.
    wide = max(inputs, 6)
    tables = b"".join(table.to_bytes((1 << wide) // 8, "little") for table in input_tables(wide)[:inputs])
    patterns = np.frombuffer(tables, dtype="<u8").reshape(inputs, (1 << wide) // 64)
    patterns.setflags(write=False)
    return patterns


def first_one(words: Words) -> int:
    """The number of the first sample that is 1; there must be one."""
    # `value & -value` is the lowest bit alone: of 0b1000, the fourth sample of its word, 0b1000.
    word = int(np.flatnonzero(words)[0])
    value = int(words[word])
    return 64 * word + (value & -value).bit_length() - 1
