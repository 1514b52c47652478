"""Window resubstitution in graphs of thousands of gates, part by part, with a limited number of windows.

A part is an interval of a topological order. No path leaves a part and returns, so any graph that computes the part's
outputs from its inputs can replace it. Each round cuts a different order, so that the borders of parts move.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from difflogic.circuits.synthesis.resubstitution import walked_in_windows
from difflogic.circuits.synthesis.sweep import random_words, swept_by_proof
from difflogic.circuits.synthesis.xag import XAG, Builder, Interrupted, Piece, cut_out, mapped, rebuilt

PART = 500
"""Number of gates per part."""
ROUNDS = ((8, 24, 300), (10, 40, 200))
"""Maxima of each round: inputs per window, gates per window, and windows per part."""


def rewritten(graph: XAG, effort: int = 1, size: int = PART) -> XAG:
    """Return an equivalent graph of at most as many gates, by window resubstitution in parts of the graph.

    SAT sweeping proves that each changed part is equal to the original part.

    Args:
        graph: The graph.
        effort: Number of times that ROUNDS are repeated.
        size: Number of gates per part.

    Raises:
        Interrupted: Ctrl-C was pressed. The exception contains the graph so far.
    """
    from difflogic.cpu.codegen.threads import default_threads

    graph = rebuilt(graph)
    for number, (inputs, gates, windows) in enumerate(ROUNDS * effort):
        parts = _parts(graph, number, size)
        walk = partial(walked_in_windows, rounds=1, most=windows, shapes=((inputs, gates),))
        try:
            with ThreadPoolExecutor(default_threads()) as pool:
                smaller = list(pool.map(walk, [part.graph for part in parts]))
            smaller = [_proved(part.graph, other) for part, other in zip(parts, smaller, strict=True)]
        except KeyboardInterrupt as error:
            raise Interrupted(graph) from error
        builder, literals = Builder(graph.inputs), graph.on_same_inputs()
        for part, replacement in zip(parts, smaller, strict=True):
            ends = builder.embed(replacement, [literals[node] for node in part.reads])
            for output, end in zip(part.outputs, ends, strict=True):
                literals[output >> 1] = end
        graph = rebuilt(builder.finish(mapped(output, literals) for output in graph.outputs))
    return graph


def _parts(graph: XAG, number: int, size: int) -> list[Piece]:
    """Return the parts of a graph in topological order; the round's `number` determines order and borders."""
    order = _depth_first(graph, number % 2)
    first = size * (number % 4) // 4
    place = {node: (index + size - first) // size for index, node in enumerate(order)}
    readers = dict.fromkeys((output >> 1 for output in graph.outputs), -1)
    members: dict[int, list[int]] = {}
    for node in order:
        members.setdefault(place[node], []).append(node)
        for literal in graph.gates[node - graph.first][1:]:
            if place.get(literal >> 1) != place[node]:
                readers[literal >> 1] = -1
    return [cut_out(graph, gates, [2 * gate for gate in gates if gate in readers]) for gates in members.values()]


def _proved(part: XAG, smaller: XAG) -> XAG:
    """Return `smaller` if it is proved equal to the part, otherwise the part."""
    builder = Builder(part.inputs)
    inputs = range(2, 2 * part.first, 2)
    outputs = builder.embed(part, inputs), builder.embed(smaller, inputs)
    if outputs[0] != outputs[1]:
        both = builder.finish([*outputs[0], *outputs[1]])
        ends = swept_by_proof(both, random_words(both.inputs)).outputs
        if ends[: len(outputs[0])] != ends[len(outputs[0]) :]:
            return part
    return smaller


def _depth_first(graph: XAG, side: int) -> list[int]:
    """Return the live gates in topological order, depth first; `side`, 0 or 1, selects the operand visited first."""
    order, state = [], bytearray(graph.size)
    for output in graph.outputs if side else reversed(graph.outputs):
        stack = [output >> 1]
        while stack:
            node = stack[-1]
            if node < graph.first or state[node] == 2:
                stack.pop()
            elif state[node]:
                order.append(stack.pop())
                state[node] = 2
            else:
                state[node] = 1
                gate = graph.gates[node - graph.first]
                stack += [gate.b >> 1, gate.a >> 1] if side else [gate.a >> 1, gate.b >> 1]
    return order
