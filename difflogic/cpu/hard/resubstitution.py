"""Resubstitution in compiled code: one gate of a graph at a time becomes what is there, or fewer new gates, or as many.

Where the samples are all that the inputs can be, a replacement is right as it is found (`walk`); else it is a candidate
that somebody has to prove before it is made (`wander` and `propose`, then `replace`).
"""

from functools import cache, partial

import numpy as np

from difflogic.cpu.codegen.compiled import compile_now, entry_point, inlined
from difflogic.cpu.hard.replacements import (
    BEST,
    COUNT,
    GATES,
    INNER_A,
    INNER_B,
    INNER_XOR,
    INVERTED,
    MOST_COVERS,
    NODE,
    XOR,
    A,
    B,
    Nodes,
    Scratch,
    below,
    compute,
    look_for,
)  # fmt: skip
from difflogic.engine.shape import Array

STEP_BACK = 16
"""One in so many moves of a walk may cost a gate."""
SPARE = 4


def make(inputs: int, gates: Array, outputs: Array, words: Array, seed: int) -> tuple[Nodes, Scratch]:
    """The gates int64 `[n, 3]`, whether XOR and two literals, of a graph on samples uint64 `[inputs, W]`."""
    _compiled()
    return _begun(inputs, gates, outputs, words, seed)


def _begun(inputs: int, gates: Array, outputs: Array, words: Array, seed: int) -> tuple[Nodes, Scratch]:
    first = inputs + 1
    # A walk may have a gate too many, and a replacement has two before those that it frees are gone.
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
        np.zeros((2, width), dtype=np.uint64), many(size), many((2, 2, MOST_COVERS)), many((2, 2)),
        np.zeros(size, dtype=np.uint64), many(4 * size + len(outputs)), many(3), many(BEST)
    )  # fmt: skip
    begin(nodes, work)
    return nodes, work


@cache
def _compiled() -> None:
    def warm_up() -> None:
        nodes, work = _begun(2, np.array([[0, 2, 4]]), np.array([6]), np.array([[10], [12]], dtype=np.uint64), 0)
        walk(nodes, work, 1, 1, 9)
        propose(nodes, work, 1, 9)
        wander(nodes, work, 9)

    compile_now(walk, "the search for smaller circuits", 10, warm_up)


@inlined
def put_in_order(nodes: Nodes, stack: Array) -> None:
    """The gates behind the outputs, by depth first, and who is read how often."""
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
                nodes.place[node] = -2  # what it reads is under way
                # Without recursion, which compiled code has no deep stack for: a node is met twice, first to push what
                # it reads, then, when that is in its place, to take its own.
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
    """The values of all gates from a place of the order on."""
    for place in range(start, nodes.numbers[COUNT]):
        node = nodes.order[place]
        compute(nodes, node, nodes.values[nodes.a[node] >> 1], nodes.values[nodes.b[node] >> 1], nodes.values[node])


@inlined
def point(nodes: Nodes, node: int, literal: int) -> None:
    """Whatever reads a node reads a literal instead."""
    for place in range(nodes.numbers[COUNT]):
        reader = nodes.order[place]
        if nodes.a[reader] >> 1 == node:
            nodes.a[reader] = literal ^ (nodes.a[reader] & 1)
        if nodes.b[reader] >> 1 == node:
            nodes.b[reader] = literal ^ (nodes.b[reader] & 1)
    for index in range(len(nodes.outputs)):
        if nodes.outputs[index] >> 1 == node:
            # An inverted reader of a replaced node reads the inverse of its replacement: the inversions add up modulo
            # 2.
            nodes.outputs[index] = literal ^ (nodes.outputs[index] & 1)


@inlined
def free_number(nodes: Nodes) -> int:
    """The first number that no gate has."""
    number = nodes.inputs + 1
    while nodes.place[number] >= 0:
        number += 1
    return number


@entry_point
def replace(nodes: Nodes, work: Scratch) -> None:
    """Make the replacement in `best`, and compute again what depends on it."""
    best, node = work.best, work.best[NODE]
    if best[GATES] == 0:
        point(nodes, node, best[A])
    else:
        # The gate keeps its number and becomes the new one: readers change only where the result is inverted.
        point(nodes, node, 2 * node + best[INVERTED])
        b = best[B]
        if best[GATES] == 2:
            inner = free_number(nodes)
            nodes.xor[inner], nodes.a[inner], nodes.b[inner] = best[INNER_XOR], best[INNER_A], best[INNER_B]
            b = 2 * inner + best[B]
        nodes.xor[node], nodes.a[node], nodes.b[node] = best[XOR], best[A], b
    # Gates that nobody reads any more are met by no output: they are dropped by not being in the new order.
    put_in_order(nodes, work.stack)
    evaluate(nodes, 0)


@entry_point
def begin(nodes: Nodes, work: Scratch) -> None:
    """Order and values of a graph that was just written into the arrays."""
    put_in_order(nodes, work.stack)
    evaluate(nodes, 0)


@entry_point
def walk(nodes: Nodes, work: Scratch, best: int, moves: int, most_divisors: int) -> int:
    """Make random replacements until there are fewer gates than `best`, and return how many were made.

    They save gates or save none; now and then one costs a gate, where there is none too many.
    """
    for move in range(moves):
        if nodes.numbers[COUNT] == 0:
            break
        node = nodes.order[below(nodes, nodes.numbers[COUNT])]
        # Moves that save nothing wander among equal circuits, and one in sixteen goes uphill, from where a saving may
        # be found that no level path leads to. It never is more than one gate above the best.
        least = -1 if nodes.numbers[COUNT] <= best and below(nodes, STEP_BACK) == 0 else 0
        if look_for(nodes, work, node, least, 2, most_divisors):
            replace(nodes, work)
            if nodes.numbers[COUNT] < best:
                return move + 1
    return moves


@entry_point
def wander(nodes: Nodes, work: Scratch, most_divisors: int) -> bool:
    """Return whether a random gate has a replacement that costs nothing, which is in `best`."""
    node = nodes.order[below(nodes, nodes.numbers[COUNT])]
    return look_for(nodes, work, node, 0, 2, most_divisors)


@entry_point
def propose(nodes: Nodes, work: Scratch, place: int, most_divisors: int) -> int:
    """The last place before `place` whose gate has a replacement that saves gates, which is in `best`; or -1."""
    # From the outputs down: a gate that goes takes those with it that only it has read, which then need no look.
    while place > 0:
        place -= 1
        if look_for(nodes, work, nodes.order[place], 1, 2, most_divisors):
            return place
    return -1
