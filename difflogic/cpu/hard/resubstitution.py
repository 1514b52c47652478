"""Resubstitution in compiled code: replace one gate at a time by an existing literal or by new gates.

If the samples are all possible inputs, every replacement is correct (`walk`). Otherwise a replacement is a candidate,
which the caller has to prove: `wander` and `propose` find one, and `replace` makes it.
"""

from functools import cache, partial

import numpy as np

from difflogic.cpu.codegen.compiled import compile_now, entry_point, inlined
from difflogic.cpu.hard import replacements as r
from difflogic.cpu.hard.replacements import COUNT, Nodes, Scratch, below, compute, look_for
from difflogic.engine.shape import Array

STEP_BACK = 16
"""Average number of moves in a walk per move that may add a gate."""
SPARE = 4
"""Number of unused node numbers beyond those of the gates."""


def make(inputs: int, gates: Array, outputs: Array, words: Array, seed: int) -> tuple[Nodes, Scratch]:
    """Make a graph from `gates`, int64 `[n, 3]` (is XOR, literal a, literal b), and samples, `words [inputs, W]`."""
    _compiled()
    return _allocate(inputs, gates, outputs, words, seed)


def _allocate(inputs: int, gates: Array, outputs: Array, words: Array, seed: int) -> tuple[Nodes, Scratch]:
    first = inputs + 1
    # A walk may enlarge the graph by a gate, and a replacement adds new gates before dead ones are removed.
    size, width = first + len(gates) + SPARE, words.shape[1]
    table = np.zeros((3, size), dtype=np.int64)
    table[:, first : first + len(gates)] = gates.T
    values = np.zeros((size, width), dtype=np.uint64)
    values[1:first] = words
    many = partial(np.zeros, dtype=np.int64)
    nodes = Nodes(
        inputs, table[0].astype(np.uint8), table[1].copy(), table[2].copy(), outputs.astype(np.int64), values,
        many(size), many(size), many(size), np.array([0, 0x9E3779B97F4A7C1 + seed], dtype=np.int64)
    )  # fmt: skip
    work = Scratch(
        np.zeros_like(values), np.zeros(size, dtype=np.uint8), np.zeros((2, width), dtype=np.uint64),
        np.zeros((2, width), dtype=np.uint64), many(size), many((2, 2, r.MOST_COVERS)), many((2, 2)),
        np.zeros(size, dtype=np.uint64), many(4 * size + len(outputs)), many(3), many(r.BEST)
    )  # fmt: skip
    begin(nodes, work)
    return nodes, work


@cache
def _compiled() -> None:
    def warm_up() -> None:
        nodes, work = _allocate(2, np.array([[0, 2, 4]]), np.array([6]), np.array([[10], [12]], dtype=np.uint64), 0)
        walk(nodes, work, 1, 1, 9)
        propose(nodes, work, 1, 9)
        wander(nodes, work, 9)

    compile_now(walk, "the search for smaller circuits", 10, warm_up)


@inlined
def put_in_order(nodes: Nodes, stack: Array) -> None:
    """Sort the gates that outputs depend on in depth-first order, and count the readers of each node."""
    nodes.place[:] = -1
    nodes.readers[:] = 0
    count = 0
    for output in nodes.outputs:
        nodes.readers[output >> 1] += 1
        stack[0], height = output >> 1, 1
        while height:
            node = stack[height - 1]
            if node <= nodes.inputs or nodes.place[node] >= 0:
                height -= 1
            elif nodes.place[node] == -1:
                nodes.place[node] = -2  # its inputs are on the stack
                # Not recursive, since the stack of compiled code is small: a node is visited twice, first to push its
                # inputs, and again when these are sorted.
                stack[height], stack[height + 1] = nodes.a[node] >> 1, nodes.b[node] >> 1
                height += 2
            else:
                nodes.readers[nodes.a[node] >> 1] += 1
                nodes.readers[nodes.b[node] >> 1] += 1
                nodes.order[count], nodes.place[node] = node, count
                count += 1
                height -= 1
    nodes.numbers[COUNT] = count


@inlined
def evaluate(nodes: Nodes, start: int) -> None:
    """Compute the values of all gates in `order[start:]`."""
    for place in range(start, nodes.numbers[COUNT]):
        node = nodes.order[place]
        compute(nodes, node, nodes.values[nodes.a[node] >> 1], nodes.values[nodes.b[node] >> 1], nodes.values[node])


@inlined
def point(nodes: Nodes, node: int, literal: int) -> None:
    """Make all readers of a node read a literal instead."""
    for place in range(nodes.numbers[COUNT]):
        reader = nodes.order[place]
        if nodes.a[reader] >> 1 == node:
            nodes.a[reader] = literal ^ (nodes.a[reader] & 1)
        if nodes.b[reader] >> 1 == node:
            nodes.b[reader] = literal ^ (nodes.b[reader] & 1)
    for index in range(len(nodes.outputs)):
        if nodes.outputs[index] >> 1 == node:
            # A reader of the inverse of the node reads the inverse of the literal: inversions add up modulo 2.
            nodes.outputs[index] = literal ^ (nodes.outputs[index] & 1)


@inlined
def free_number(nodes: Nodes) -> int:
    """Return the first free node number."""
    number = nodes.inputs + 1
    while nodes.place[number] >= 0:
        number += 1
    return number


@entry_point
def replace(nodes: Nodes, work: Scratch) -> None:
    """Replace a gate as `best` describes, and recompute order and values."""
    best, node = work.best, work.best[r.NODE]
    if best[r.GATES] == 0:
        point(nodes, node, best[r.A])
    else:
        # The gate keeps its number and becomes the new one: readers change only where the result is inverted.
        point(nodes, node, 2 * node + best[r.INVERTED])
        b = best[r.B]
        if best[r.GATES] == 2:
            inner = free_number(nodes)
            nodes.xor[inner], nodes.a[inner], nodes.b[inner] = best[r.INNER_XOR], best[r.INNER_A], best[r.INNER_B]
            b = 2 * inner + best[r.B]
        nodes.xor[node], nodes.a[node], nodes.b[node] = best[r.XOR], best[r.A], b
    # Dead gates are not reached from an output, so that they are missing in the new order.
    put_in_order(nodes, work.stack)
    evaluate(nodes, 0)


@entry_point
def begin(nodes: Nodes, work: Scratch) -> None:
    """Compute order and values of a graph after its gates have been written."""
    put_in_order(nodes, work.stack)
    evaluate(nodes, 0)


@entry_point
def walk(nodes: Nodes, work: Scratch, best: int, moves: int, most_divisors: int) -> int:
    """Make up to `moves` random moves, until there are fewer gates than `best`; return the number of moves.

    Only one move in STEP_BACK on average may add a gate, and only if there are at most `best` gates.
    """
    for move in range(moves):
        if nodes.numbers[COUNT] == 0:
            break
        node = nodes.order[below(nodes, nodes.numbers[COUNT])]
        # Moves that save nothing walk among circuits of equal size. One move in sixteen may add a gate, and thus reach
        # smaller circuits that the other moves cannot. No circuit has more than one gate more than the best.
        least = -1 if nodes.numbers[COUNT] <= best and below(nodes, STEP_BACK) == 0 else 0
        if look_for(nodes, work, node, least, most_divisors):
            replace(nodes, work)
            if nodes.numbers[COUNT] < best:
                return move + 1
    return moves


@entry_point
def wander(nodes: Nodes, work: Scratch, most_divisors: int) -> bool:
    """Find a replacement of a random gate that adds no gates; write it to `best`, and return whether there is one."""
    node = nodes.order[below(nodes, nodes.numbers[COUNT])]
    return look_for(nodes, work, node, 0, most_divisors)


@entry_point
def propose(nodes: Nodes, work: Scratch, place: int, most_divisors: int) -> int:
    """Search `order[:place]` backwards for a gate-saving replacement; write it to `best`, return its place or -1."""
    # From the outputs down: a gate that is removed frees those that only it reads, which then need not be tried.
    while place > 0:
        place -= 1
        if look_for(nodes, work, nodes.order[place], 1, most_divisors):
            return place
    return -1
