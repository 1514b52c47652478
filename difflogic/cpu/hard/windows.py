"""Walks in windows, compiled: some gates of a large graph that read few other nodes, on all that these can be.

What a window's outputs are, as functions of what it reads, stays as it was, so that nothing has to be proved. The
whole graph may have any number of inputs.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from difflogic.cpu.codegen.compiled import compile_now, entry_point, inlined
from difflogic.cpu.hard import resubstitution
from difflogic.cpu.hard.replacements import COUNT, Nodes, Scratch, below
from difflogic.cpu.hard.resubstitution import begin, free_number, walk
from difflogic.engine.shape import Array

OUTSIDE, READ, INSIDE = range(3)
"""What a node is to a window: nothing, read by it, or one of its gates."""
UPHILL = 4
"""One in so many windows that end a gate larger is kept, as long as the whole graph has no more gates than it may."""


class Window(NamedTuple):
    """The scratch memory of windows."""

    role: Array
    """uint8 `[N]`: what each node is to the window."""
    behind: Array
    """uint8 `[N]`: 1 where a node depends on a gate of the window."""
    members: Array
    """int64 `[most gates + 1]`: its gates, as they were added, and one that a walk may have made."""
    there: Array
    """int64 `[N]`: a literal of the window for each node that it has; of its outputs then one of the graph."""
    here: Array
    """int64: a literal of the graph for each node of the window."""


Searched = tuple[Nodes, Scratch, Nodes, Scratch, Window]
"""A graph, a window as a graph of its own, the scratch memory of both, and that of windows."""


def make(inputs: int, gates: Array, outputs: Array, words: Array, most: int, seed: int) -> Searched:
    """A graph as `resubstitution.make` takes it, room for windows of `most` gates on `words`, and scratch memory."""
    _compiled()
    return _begun(inputs, gates, outputs, words, most, seed)


def _begun(inputs: int, gates: Array, outputs: Array, words: Array, most: int, seed: int) -> Searched:
    nodes, work = resubstitution.make(inputs, gates, outputs, np.zeros((inputs, 1), dtype=np.uint64), seed)
    empty = np.array([[0, 2, 4]] * most)
    part, scratch = resubstitution.make(len(words), empty, np.zeros(most, dtype=np.int64), words, seed)
    size = len(nodes.a)
    window = Window(
        np.zeros(size, dtype=np.uint8), np.zeros(size, dtype=np.uint8), np.zeros(most + 1, dtype=np.int64),
        np.zeros(size, dtype=np.int64), np.zeros(len(part.a), dtype=np.int64)
    )  # fmt: skip
    return nodes, work, part, scratch, window


@cache
def _compiled() -> None:
    def warm_up() -> None:
        words = np.array([[10], [12]], dtype=np.uint64)
        walk_windows(*_begun(2, np.array([[0, 2, 4], [0, 3, 6]]), np.array([8]), words, 4, 0), 1, 1, 9, 2)

    compile_now(walk_windows, "the search in windows", 10, warm_up)


@entry_point
def walk_windows(
    nodes: Nodes, work: Scratch, part: Nodes, scratch: Scratch, window: Window, windows: int, moves: int, divisors: int,
    most: int,
) -> None:  # fmt: skip
    """Random replacements in so many random windows, so many for each of its gates; `most` gates in the whole graph."""
    for _ in range(windows):
        if nodes.numbers[COUNT] == 0:
            break
        count = choose(nodes, part, window)
        if count > 1:
            cut_out(nodes, part, window, work.stack, count)
            begin(part, scratch)
            before = best = part.numbers[COUNT]
            left = moves * count
            while left > 0 and part.numbers[COUNT]:
                left -= walk(part, scratch, best, left, divisors)
                best = min(best, part.numbers[COUNT])
            more = part.numbers[COUNT] - before
            if more <= 0 or (nodes.numbers[COUNT] + more <= most and below(nodes, UPHILL) == 0):
                put_back(nodes, part, window, count)
                begin(nodes, work)


@inlined
def unknown(nodes: Nodes, window: Window, node: int) -> int:
    """How many nodes that are not of the window a gate reads."""
    return int(window.role[nodes.a[node] >> 1] == OUTSIDE) + int(window.role[nodes.b[node] >> 1] == OUTSIDE)


@inlined
def choose(nodes: Nodes, part: Nodes, window: Window) -> int:
    """A random window, of gates around a random gate; returns how many."""
    role, members = window.role, window.members
    role[:] = OUTSIDE
    count = good = leaves = 0
    role[0] = READ
    found = nodes.order[below(nodes, nodes.numbers[COUNT])]
    while found > 0:
        # It reads as many more as it reads new ones, and one less where it was read itself.
        leaves += unknown(nodes, window, found) - (role[found] == READ)
        role[found] = INSIDE
        for read in (nodes.a[found] >> 1, nodes.b[found] >> 1):
            if role[read] == OUTSIDE:
                role[read] = READ
        members[count] = found
        count += 1
        forced = looped(nodes, window)
        if forced == 0:
            good = count
        if count == len(part.outputs):
            break
        found = grown(nodes, window, forced, part.inputs - leaves)
    # Of what was added last some may read what depends on the window: without it the window is in order.
    for index in range(good, count):
        role[members[index]] = OUTSIDE
    return good


@inlined
def looped(nodes: Nodes, window: Window) -> np.int64:
    """A gate that the window reads and that depends on one of its own; 0 where there is none."""
    window.behind[:] = 0
    for place in range(nodes.numbers[COUNT]):
        node = nodes.order[place]
        if window.role[node] == INSIDE or window.behind[nodes.a[node] >> 1] or window.behind[nodes.b[node] >> 1]:
            window.behind[node] = 1
            if window.role[node] == READ:
                return np.int64(node)
    return np.int64(0)


@inlined
def grown(nodes: Nodes, window: Window, forced: np.int64, room: int) -> np.int64:
    """The next gate: one that is read, or reads what is there, and brings least that is new; 0 where none has room."""
    if forced:
        return forced if unknown(nodes, window, int(forced)) - 1 <= room else np.int64(0)
    least, ties, found = room, 0, np.int64(0)
    down = below(nodes, 2)
    for place in range(nodes.numbers[COUNT]):
        node = nodes.order[place]
        if window.role[node] == INSIDE:
            continue
        new = unknown(nodes, window, node)
        if window.role[node] == READ:
            new -= 1
            if not down and new > 0:
                continue
        elif new == 2 or (down and new > 0):
            continue
        if new > least:
            continue
        ties = 1 if new < least else ties + 1
        least = new
        if ties == 1 or below(nodes, ties) == 0:
            found = node
    return found


@inlined
def cut_out(nodes: Nodes, part: Nodes, window: Window, stack: Array, count: int) -> None:
    """The window as a graph of its own, in `part`."""
    role, there, here, members = window.role, window.there, window.here, window.members
    role[:] = OUTSIDE
    for index in range(count):
        role[members[index]] = INSIDE
        stack[members[index]] = nodes.readers[members[index]]
    read, gates = 0, part.inputs
    for place in range(nodes.numbers[COUNT]):
        node = nodes.order[place]
        if role[node] != INSIDE:
            continue
        gates += 1
        there[node] = 2 * gates
        part.xor[gates] = nodes.xor[node]
        for side, literal in enumerate((nodes.a[node], nodes.b[node])):
            known = literal >> 1
            stack[known] -= 1
            if role[known] == OUTSIDE and known > 0:
                read += 1
                role[known], there[known], here[read] = READ, 2 * read, 2 * known
            if side:
                part.b[gates] = there[known] ^ (literal & 1)
            else:
                part.a[gates] = there[known] ^ (literal & 1)
    # What is read oftener than by gates of the window is an output.
    for index in range(len(part.outputs)):
        part.outputs[index] = there[members[index]] if index < count and stack[members[index]] > 0 else 0


@inlined
def put_back(nodes: Nodes, part: Nodes, window: Window, count: int) -> None:
    """What has become of the window, in its place: its gates take the numbers of those that were there."""
    role, there, here, members = window.role, window.there, window.here, window.members
    members[count] = free_number(nodes)
    for place in range(part.numbers[COUNT]):
        here[part.order[place]] = 2 * members[place]
    for index in range(count):
        there[members[index]] = moved(part.outputs[index], here)
    for place in range(nodes.numbers[COUNT]):
        node = nodes.order[place]
        if role[node] != INSIDE:
            if role[nodes.a[node] >> 1] == INSIDE:
                nodes.a[node] = moved(nodes.a[node], there)
            if role[nodes.b[node] >> 1] == INSIDE:
                nodes.b[node] = moved(nodes.b[node], there)
    for index in range(len(nodes.outputs)):
        if role[nodes.outputs[index] >> 1] == INSIDE:
            nodes.outputs[index] = moved(nodes.outputs[index], there)
    for place in range(part.numbers[COUNT]):
        gate, node = part.order[place], members[place]
        nodes.xor[node] = part.xor[gate]
        nodes.a[node], nodes.b[node] = moved(part.a[gate], here), moved(part.b[gate], here)


@inlined
def moved(literal: int, literals: Array) -> int:
    """Where a literal is in another graph."""
    return int(literals[literal >> 1]) ^ (literal & 1)
