"""Local resynthesis: a small graph as a whole, a large one window by window."""

from __future__ import annotations

from difflogic.circuits.care import Care, Possible
from difflogic.circuits.counting import rebuilt_by_counting
from difflogic.circuits.graph import Builder, Graph, rebuilt
from difflogic.circuits.merge import random_words, used_inputs
from difflogic.circuits.resubstitution import improved
from difflogic.circuits.truth import MOST_INPUTS, Samples
from difflogic.circuits.windows import SIZES, by_windows

WHOLE_GATES = 300
"""A graph of few inputs is taken whole up to so many gates."""
WALKS, MOVES = 6, 1000
"""Random walks on a whole graph."""
WINDOW_WALKS, WINDOW_MOVES = 1, 10
"""And on a window."""
MOST_GATES = 20_000
"""A larger graph is left as it is: windows of it would take hours."""


def resynthesised(graph: Graph) -> Graph:
    """The same functions with as many gates or fewer."""
    graph = rebuilt(graph)
    if len(graph.gates) > MOST_GATES:
        return graph
    used = used_inputs(graph)
    if len(used) <= MOST_INPUTS and len(graph.gates) <= WHOLE_GATES:
        return _renumbered(_whole(_renumbered(graph, {old: new for new, old in enumerate(used)}, len(used))),
                           dict(enumerate(used)), graph.inputs)  # fmt: skip
    care = Possible(random_words(graph.inputs))
    try:
        return window_by_window(graph, care)
    finally:
        care.close()


def window_by_window(graph: Graph, care: Care) -> Graph:
    """The same values wherever `care` looks, with as many gates or fewer: windows of each size until none helps."""

    def improve(part: Graph, samples: Samples | None) -> Graph:
        return improved(part, WINDOW_WALKS, WINDOW_MOVES, samples)

    for size in SIZES:
        while len((found := by_windows(graph, improve, care, size)).gates) < len(graph.gates):
            graph = found
    return graph


def _whole(graph: Graph) -> Graph:
    """The best of what descends from the graph, and from what its truth tables suggest."""
    starts = [graph, rebuilt_by_counting(graph)]
    found = [improved(start, walks=0, moves=0) for start in starts if len(start.gates) <= WHOLE_GATES]
    return improved(min(found, key=lambda each: len(each.gates)), WALKS, MOVES)


def _renumbered(graph: Graph, places: dict[int, int], inputs: int) -> Graph:
    """The same gates, reading input `places[i]` of `inputs` where they read input `i`."""
    builder = Builder(inputs)
    literals = [0] + [2 * (1 + places.get(index, 0)) for index in range(graph.inputs)]
    for gate in graph.gates:
        literals.append(builder.copy(gate, literals[gate.a >> 1], literals[gate.b >> 1]))
    return builder.finish(literals[output >> 1] ^ (output & 1) for output in graph.outputs)
