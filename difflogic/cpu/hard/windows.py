"""Optimise windows of a large graph: groups of gates that read few other nodes, simulated on all values of these nodes.

An optimised window computes the same functions of the nodes that it reads, so that nothing has to be proved, and the
complete graph may have any number of inputs.
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
"""Roles of nodes in a window: unrelated, read by the window, or one of its gates."""
UPHILL = 4
"""Inverse of the probability that a result which enlarges a window is accepted, within the graph's maximum of gates."""


class Window(NamedTuple):
    """Scratch memory of windows."""

    role: Array
    """uint8 `[N]`: role of each node: OUTSIDE, READ or INSIDE."""
    behind: Array
    """uint8 `[N]`: 1 if a node depends on a gate of the window."""
    members: Array
    """int64 `[most gates + 1]`: gates of the window in the order of addition, then a free node number."""
    to_window: Array
    """int64 `[N]`: literal in `part` of each node of the window; in `put_back`, literal of a gate's replacement."""
    to_graph: Array
    """int64 `[nodes of the window]`: literal in the graph of each node of `part`."""


Searched = tuple[Nodes, Scratch, Nodes, Scratch, Window]
"""Graph and its scratch memory, window as a separate graph and its scratch memory, and scratch memory of windows."""


def make(inputs: int, gates: Array, outputs: Array, words: Array, most: int, seed: int) -> Searched:
    """Make a graph as `resubstitution.make` does, and buffers for windows of at most `most` gates.

    `words` are all combinations of the values of the nodes that a window reads, uint64 `[nodes, W]`.
    """
    _compiled()
    return _allocate(inputs, gates, outputs, words, most, seed)


def _allocate(inputs: int, gates: Array, outputs: Array, words: Array, most: int, seed: int) -> Searched:
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
        walk_windows(*_allocate(2, np.array([[0, 2, 4], [0, 3, 6]]), np.array([8]), words, 4, 0), 1, 1, 9, 2)

    compile_now(walk_windows, "the search in windows", 10, warm_up)


@entry_point
def walk_windows(
    nodes: Nodes, work: Scratch, part: Nodes, scratch: Scratch, window: Window, windows: int, moves: int, divisors: int,
    most: int,
) -> None:  # fmt: skip
    """Optimise `windows` random windows with `moves` random moves per gate; the graph may have at most `most` gates.

    `part` and `scratch` are the buffers of a window as a separate graph, `divisors` is the maximum number of divisors.
    """
    for _ in range(windows):
        if nodes.numbers[COUNT] == 0:
            break
        count = choose(nodes, part, window)
        if count > 1:
            cut_out(nodes, part, window, work.stack, count)
            begin(part, scratch)
            before = best = part.numbers[COUNT]
            remaining = moves * count
            while remaining > 0 and part.numbers[COUNT]:
                remaining -= walk(part, scratch, best, remaining, divisors)
                best = min(best, part.numbers[COUNT])
            more = part.numbers[COUNT] - before
            if more <= 0 or (nodes.numbers[COUNT] + more <= most and below(nodes, UPHILL) == 0):
                put_back(nodes, part, window, count)
                begin(nodes, work)


@inlined
def unknown(nodes: Nodes, window: Window, node: int) -> int:
    """Return the number of inputs of a gate that the window neither contains nor reads."""
    return int(window.role[nodes.a[node] >> 1] == OUTSIDE) + int(window.role[nodes.b[node] >> 1] == OUTSIDE)


@inlined
def choose(nodes: Nodes, part: Nodes, window: Window) -> int:
    """Choose a random window of gates around a random gate; return the number of its gates."""
    role, members = window.role, window.members
    role[:] = OUTSIDE
    count = good = leaves = 0
    role[0] = READ
    gate = nodes.order[below(nodes, nodes.numbers[COUNT])]
    while gate > 0:
        # From now on, the window reads the gate's unknown inputs, and no longer reads the gate itself if it did so.
        leaves += unknown(nodes, window, gate) - (role[gate] == READ)
        role[gate] = INSIDE
        for read in (nodes.a[gate] >> 1, nodes.b[gate] >> 1):
            if role[read] == OUTSIDE:
                role[read] = READ
        members[count] = gate
        count += 1
        forced = looped(nodes, window)
        if forced == 0:
            good = count
        if count == len(part.outputs):
            break
        gate = grown(nodes, window, forced, part.inputs - leaves)
    # A cycle through the gates added last may remain. The first `good` gates form a window without a cycle.
    for index in range(good, count):
        role[members[index]] = OUTSIDE
    return good


@inlined
def looped(nodes: Nodes, window: Window) -> np.int64:
    """Return a gate that the window reads and that depends on a gate of the window, or 0 if there is none."""
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
    """Return the next gate: `forced` or the one that adds fewest inputs to the window; 0 if none fits in `room`."""
    if forced:
        return forced if unknown(nodes, window, int(forced)) - 1 <= room else np.int64(0)
    least, ties, best = room, 0, np.int64(0)
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
            best = node
    return best


@inlined
def cut_out(nodes: Nodes, part: Nodes, window: Window, stack: Array, count: int) -> None:
    """Copy the window, the first `count` of `members`, to `part` as a separate graph."""
    role, to_window, to_graph, members = window.role, window.to_window, window.to_graph, window.members
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
        to_window[node] = 2 * gates
        part.xor[gates] = nodes.xor[node]
        for side, literal in enumerate((nodes.a[node], nodes.b[node])):
            source = literal >> 1
            stack[source] -= 1
            if role[source] == OUTSIDE and source > 0:
                read += 1
                role[source], to_window[source], to_graph[read] = READ, 2 * read, 2 * source
            if side:
                part.b[gates] = to_window[source] ^ (literal & 1)
            else:
                part.a[gates] = to_window[source] ^ (literal & 1)
    # A gate with readers outside the window is an output.
    for index in range(len(part.outputs)):
        part.outputs[index] = to_window[members[index]] if index < count and stack[members[index]] > 0 else 0


@inlined
def put_back(nodes: Nodes, part: Nodes, window: Window, count: int) -> None:
    """Replace the window in the graph by `part`, whose gates take the numbers of the window's gates."""
    role, to_window, to_graph, members = window.role, window.to_window, window.to_graph, window.members
    members[count] = free_number(nodes)
    for place in range(part.numbers[COUNT]):
        to_graph[part.order[place]] = 2 * members[place]
    for index in range(count):
        to_window[members[index]] = moved(part.outputs[index], to_graph)
    for place in range(nodes.numbers[COUNT]):
        node = nodes.order[place]
        if role[node] != INSIDE:
            if role[nodes.a[node] >> 1] == INSIDE:
                nodes.a[node] = moved(nodes.a[node], to_window)
            if role[nodes.b[node] >> 1] == INSIDE:
                nodes.b[node] = moved(nodes.b[node], to_window)
    for index in range(len(nodes.outputs)):
        if role[nodes.outputs[index] >> 1] == INSIDE:
            nodes.outputs[index] = moved(nodes.outputs[index], to_window)
    for place in range(part.numbers[COUNT]):
        gate, node = part.order[place], members[place]
        nodes.xor[node] = part.xor[gate]
        nodes.a[node], nodes.b[node] = moved(part.a[gate], to_graph), moved(part.b[gate], to_graph)


@inlined
def moved(literal: int, literals: Array) -> int:
    """Translate a literal to another graph by the table `literals`."""
    return int(literals[literal >> 1]) ^ (literal & 1)
