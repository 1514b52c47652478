"""Random structured circuits: products, multiplexers, adders, comparators, decoders, counts, S-boxes, layers.

Each is built in textbook form, without any sharing of gates beyond that form. The seeds of both sets of circuits were
fixed before any of the circuits was examined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import combinations

import numpy as np

from difflogic.circuits.synthesis.convert import gate_count, to_netlist
from difflogic.circuits.synthesis.xag import FALSE, TRUE, Builder, input_literal, rebuilt
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import READS

TUNING, PROOF = 5201, 7349
"""Seeds of the generator: one for development of the simplification, one for its evaluation."""
COUNT = 30
SIZES = range(30, 601)
"""Allowed numbers of two-input gates; a circuit of any other size is sampled again."""

TWO_INPUTS = [gate for gate, reads in enumerate(READS) if reads == 2]
Random = np.random.Generator
Made = tuple[Builder, list[int]]


def circuits(seed: int, count: int = COUNT) -> Iterator[tuple[str, CellNetlist]]:
    """Yield circuits with their names; the kinds of circuits alternate."""
    kinds = list(KINDS.items())
    for index in range(count):
        name, draw = kinds[index % len(kinds)]
        random = np.random.default_rng([seed, index])
        while (netlist := _netlist(*draw(random))) is None:
            pass
        yield f"{name}-{seed}-{index}", netlist


def _netlist(builder: Builder, outputs: list[int]) -> CellNetlist | None:
    graph = rebuilt(builder.finish(outputs))
    if len(graph.gates) not in SIZES:
        return None
    # The graph becomes the circuit of a cell, with nine inputs and one output per channel; some inputs are not read.
    channels = max(len(outputs), -(-graph.inputs // 9))
    wide = Builder(9 * channels)
    made = wide.embed(graph, [input_literal(index) for index in range(graph.inputs)])
    frame = CellNetlist.build(channels, False, [], [], [0] * channels)
    netlist = to_netlist(wide.finish([*made, *[FALSE] * (channels - len(made))]), frame)
    return netlist if gate_count(netlist) in SIZES else None


def _begun(inputs: int) -> tuple[Builder, list[int]]:
    return Builder(inputs), [input_literal(index) for index in range(inputs)]


def _tree(random: Random, join: Callable[[int, int], int], parts: list[int]) -> int:
    """Join all parts by `join`, in a chain or in a balanced tree; return the literal of the result."""
    if random.random() < 0.5:
        return reduce(join, parts)
    while len(parts) > 1:
        parts = [
            join(*pair) if len(pair) == 2 else pair[0] for pair in (parts[i : i + 2] for i in range(0, len(parts), 2))
        ]
    return parts[0]


def products(random: Random) -> Made:
    """Sample sums of products: several outputs that share some products, as in a PLA."""
    inputs = int(random.integers(6, 25))
    builder, bits = _begun(inputs)
    longest = int(random.integers(3, 7))
    rows = []
    for _ in range(int(random.integers(8, 50))):
        chosen = random.choice(inputs, int(random.integers(2, longest + 1)), replace=False)
        rows.append(_tree(random, builder.and_, [bits[i] ^ int(random.integers(2)) for i in chosen]))
    outputs = []
    for _ in range(int(random.integers(1, 9))):
        share = random.uniform(0.15, 0.7)
        chosen_rows = [row for row in rows if random.random() < share] or rows[:2]
        outputs.append(_tree(random, builder.or_, chosen_rows))
    return builder, outputs


def _mux(builder: Builder, select: int, low: int, high: int) -> int:
    return builder.or_(builder.and_(select ^ 1, low), builder.and_(select, high))


def multiplexers(random: Random) -> Made:
    """Sample one to four trees of multiplexers of inputs and constants, with common select bits."""
    depth, width = int(random.integers(3, 7)), int(random.integers(1, 5))
    data = int(random.integers(3, (1 << depth) + 1))
    builder, bits = _begun(depth + data)
    selects, words = bits[:depth], [*bits[depth:], FALSE, TRUE]
    outputs = []
    for _ in range(width):
        level = [words[i] ^ int(random.integers(2)) for i in random.integers(0, len(words), 1 << depth)]
        for select in selects:
            level = [_mux(builder, select, low, high) for low, high in zip(level[::2], level[1::2], strict=True)]
        outputs += level
    return builder, outputs


def _majority(builder: Builder, a: int, b: int, c: int) -> int:
    return builder.or_(builder.or_(builder.and_(a, b), builder.and_(a, c)), builder.and_(b, c))


def _sum(builder: Builder, ones: list[int], others: list[int], carry: int = FALSE) -> list[int]:
    total = []
    for a, b in zip(ones, others, strict=True):
        total.append(builder.xor(builder.xor(a, b), carry))
        carry = _majority(builder, a, b, carry)
    return [*total, carry]


def adders(random: Random) -> Made:
    """Sample an adder (ripple carry, carry select, carry lookahead, of three summands) or a small multiplier."""
    form = int(random.integers(5))
    width = int(random.integers(4, 6) if form == 4 else random.integers(4, 20))
    builder, bits = _begun(3 * width)
    a, b, c = bits[:width], bits[width : 2 * width], bits[2 * width :]
    if form == 0:
        return builder, _sum(builder, a, b, c[0])
    if form == 1:
        half = width // 2
        low = _sum(builder, a[:half], b[:half])
        zero, one = (_sum(builder, a[half:], b[half:], carry) for carry in (FALSE, TRUE))
        return builder, [*low[:-1], *(_mux(builder, low[-1], x, y) for x, y in zip(zero, one, strict=True))]
    if form == 2:
        made = [builder.and_(x, y) for x, y in zip(a, b, strict=True)]
        passed = [builder.or_(x, y) for x, y in zip(a, b, strict=True)]
        carries = [c[0]]
        for end in range(width):
            terms = [reduce(builder.and_, passed[start : end + 1], made[start - 1] if start else c[0])
                     for start in range(max(0, end - 3), end + 1)]  # fmt: skip
            if end >= 4:
                terms[0] = reduce(builder.and_, passed[end - 3 : end + 1], carries[end - 3])
            carries.append(reduce(builder.or_, [*terms, made[end]]))
        return builder, [
            *(builder.xor(builder.xor(x, y), z) for x, y, z in zip(a, b, carries[:-1], strict=True)),
            carries[-1],
        ]
    if form == 3:
        return builder, _sum(builder, [*_sum(builder, a, b)], [*c, FALSE])
    total = [builder.and_(x, b[0]) for x in a] + [FALSE] * width
    for shift in range(1, width):
        row = [builder.and_(x, b[shift]) for x in a]
        total[shift : shift + width + 1] = _sum(builder, total[shift : shift + width], row)
    return builder, total[: 2 * width]


def comparators(random: Random) -> Made:
    """Sample a comparison of two numbers, the maximum of two or three numbers, or the distance of two numbers."""
    form, width = int(random.integers(4)), int(random.integers(5, 22))
    builder, bits = _begun(3 * width)
    a, b, c = bits[:width], bits[width : 2 * width], bits[2 * width :]

    def less(xs: list[int], ys: list[int]) -> tuple[int, int]:
        found, same = FALSE, TRUE
        for x, y in zip(xs[::-1], ys[::-1], strict=True):
            found = builder.or_(found, builder.and_(same, builder.and_(x ^ 1, y)))
            same = builder.and_(same, builder.xor(x, y) ^ 1)
        return found, same

    def larger(xs: list[int], ys: list[int]) -> list[int]:
        choice = less(xs, ys)[0]
        return [_mux(builder, choice, x, y) for x, y in zip(xs, ys, strict=True)]

    if form == 0:
        found, same = less(a, b)
        return builder, [found, same, less(b, a)[0]]
    if form == 1:
        return builder, larger(a, b)
    if form == 2:
        return builder, larger(larger(a, b), c)
    ones = _sum(builder, a, [x ^ 1 for x in b], TRUE)
    others = _sum(builder, b, [x ^ 1 for x in a], TRUE)
    return builder, [_mux(builder, less(a, b)[0], x, y) for x, y in zip(ones[:-1], others[:-1], strict=True)]


def decoders(random: Random) -> Made:
    """Sample a decoder of 2^n lines or ORs of such lines, a priority arbiter, or a seven-segment decoder."""
    form = int(random.integers(3))
    if form == 0:
        inputs = int(random.integers(4, 7))
        builder, bits = _begun(inputs + 1)
        lines = [_tree(random, builder.and_, [bits[-1], *(bits[i] ^ (~row >> i & 1) for i in range(inputs))])
                 for row in range(1 << inputs)]  # fmt: skip
        if random.random() < 0.5:
            return builder, lines
        return builder, [
            _tree(random, builder.or_, [x for x in lines if random.random() < 0.3] or lines[:2])
            for _ in range(int(random.integers(3, 12)))
        ]
    if form == 1:
        inputs = int(random.integers(8, 25))
        builder, bits = _begun(inputs)
        first = [reduce(builder.and_, [x ^ 1 for x in bits[:i]], bits[i]) for i in range(inputs)]
        code = [
            _tree(random, builder.or_, [x for i, x in enumerate(first) if i >> bit & 1])
            for bit in range((inputs - 1).bit_length())
        ]
        return builder, [*code, reduce(builder.or_, bits)]
    inputs, outputs = int(random.integers(4, 6)), int(random.integers(5, 10))
    return _of_tables(random, inputs, random.integers(0, 2, (outputs, 1 << inputs)), form=0)


def counts(random: Random) -> Made:
    """Sample majority and threshold functions, as sums of products, by sorting, or by counting."""
    form = int(random.integers(3))
    inputs = int(random.integers(5, 9) if form == 0 else random.integers(6, 16))
    builder, bits = _begun(inputs)
    least = inputs // 2 + 1 if random.random() < 0.5 else int(random.integers(2, inputs - 1))
    if form == 0:
        terms = [_tree(random, builder.and_, list(each)) for each in combinations(bits, least)]
        return builder, [_tree(random, builder.or_, terms)]
    if form == 1:
        lines = list(bits)
        for turn in range(inputs):
            for i in range(turn % 2, inputs - 1, 2):
                lines[i], lines[i + 1] = builder.or_(lines[i], lines[i + 1]), builder.and_(lines[i], lines[i + 1])
        return builder, lines[least - 1 : least - 1 + int(random.integers(1, 4))]
    total = [FALSE] * inputs.bit_length()
    for bit in bits:
        total = _sum(builder, total, [FALSE] * len(total), bit)[:-1]
    return builder, [*total, _at_least(builder, total, least)]


def _at_least(builder: Builder, bits: list[int], least: int) -> int:
    reached = TRUE
    for place, bit in enumerate(bits):
        reached = builder.and_(bit, reached) if least >> place & 1 else builder.or_(bit, reached)
    return reached


def _of_tables(random: Random, inputs: int, tables: np.ndarray, form: int) -> Made:
    """Build functions from tables, as sums of products, trees of multiplexers, or polynomials (XOR of ANDs)."""
    builder, bits = _begun(inputs)
    outputs = []
    for table in tables:
        if form == 0:
            rows = [_tree(random, builder.and_, [bits[i] ^ (~row >> i & 1) for i in range(inputs)])
                    for row in np.flatnonzero(table).tolist()]  # fmt: skip
            outputs.append(_tree(random, builder.or_, rows))
        elif form == 1:
            level = [int(x) for x in table]
            for bit in bits:
                level = [_mux(builder, bit, low, high) for low, high in zip(level[::2], level[1::2], strict=True)]
            outputs += level
        else:
            values = table.copy()
            for i in range(inputs):
                halves = values.reshape(-1, 2, 1 << i)
                halves[:, 1] ^= halves[:, 0]
            terms = [reduce(builder.and_, [bits[i] for i in range(inputs) if row >> i & 1], TRUE)
                     for row in np.flatnonzero(values).tolist()]  # fmt: skip
            outputs.append(_tree(random, builder.xor, terms or [FALSE]))
    return builder, outputs


def substitutions(random: Random) -> Made:
    """Sample an S-box: a random permutation of the values of 4 to 6 bits."""
    inputs = int(random.integers(4, 7))
    box = random.permutation(1 << inputs)
    tables = np.array([box >> bit & 1 for bit in range(inputs)])
    return _of_tables(random, inputs, tables, int(random.integers(3)))


def layers(random: Random) -> Made:
    """Sample layers of random gates, as in trained circuits: each gate reads two nodes of the previous layer."""
    inputs, width, depth = int(random.integers(8, 40)), int(random.integers(12, 60)), int(random.integers(3, 12))
    builder, layer = _begun(inputs)
    for _ in range(depth):
        pairs = random.integers(0, len(layer), (width, 2))
        kinds = random.choice(TWO_INPUTS, width)
        layer = [
            builder.gate(int(kind), layer[a], layer[b]) for kind, (a, b) in zip(kinds, pairs.tolist(), strict=True)
        ]
    return builder, layer[: int(random.integers(4, 17))]


KINDS: dict[str, Callable[[Random], Made]] = {
    "products": products,
    "multiplexers": multiplexers,
    "adders": adders,
    "comparators": comparators,
    "decoders": decoders,
    "counts": counts,
    "S-boxes": substitutions,
    "layers": layers,
}
