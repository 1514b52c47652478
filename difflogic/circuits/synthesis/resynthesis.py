"""Local resynthesis: of few inputs on all that they can be, of many by replacements that are proved one by one."""

from collections.abc import Sequence

from difflogic.circuits.synthesis.products import with_shared_products
from difflogic.circuits.synthesis.resubstitution import fewest, improved, resubstituted, walked_in_windows
from difflogic.circuits.synthesis.sat import Clause
from difflogic.circuits.synthesis.sweep import random_words
from difflogic.circuits.synthesis.symmetric import rebuilt_symmetric
from difflogic.circuits.synthesis.truth_tables import MOST_INPUTS
from difflogic.circuits.synthesis.xag import XAG, Builder, embedded, input_literal, narrowed, rebuilt
from difflogic.core.bits import Words

WHOLE_GATES = 600
"""A graph of few inputs is taken whole up to so many gates, half as many with MOST_INPUTS; what its truth
tables suggest may be in its place."""
WINDOW_ROUNDS = 30
"""Walks in windows end after so many rounds without a gain."""
MOST_GATES = 20_000
"""A larger graph is left as it is: it would take hours."""


def in_windows(graph: XAG, effort: int = 1) -> XAG:
    """Return the same functions by walks in windows; a graph that is searched whole, or is too large, stays."""
    graph = rebuilt(graph)
    if _is_small(graph, len(graph.support(graph.outputs))) or len(graph.gates) > MOST_GATES:
        return graph
    return walked_in_windows(with_shared_products(graph), WINDOW_ROUNDS, effort)


def _is_small(graph: XAG, inputs: int) -> bool:
    """Return whether a graph that reads so many inputs is taken whole."""
    return inputs <= MOST_INPUTS and len(graph.gates) * (1 + (inputs == MOST_INPUTS)) <= WHOLE_GATES


def resynthesised(graph: XAG, effort: int = 1) -> XAG:
    """Return the same functions with as many gates or fewer; `effort` is for a graph of few inputs."""
    graph = rebuilt(graph)
    if len(graph.gates) > MOST_GATES:
        return graph
    used = graph.support(graph.outputs)
    # Up to 12 inputs all their combinations are samples, so that what agrees on them needs no proof.
    if len(used) <= MOST_INPUTS and (best := _whole(narrowed(graph, used))):
        found = improved(best[0], twin=best[-1], effort=effort)
        return embedded(found, [input_literal(place) for place in used], graph.inputs)
    return resynthesised_where(graph, random_words(graph.inputs))


def resynthesised_where(graph: XAG, words: Words, clauses: Sequence[Clause] = ()) -> XAG:
    """Return the same values on the inputs on which the clauses hold; `words` are samples of such inputs.

    A graph of more than MOST_GATES is left as it is.
    """
    return rebuilt(graph) if len(graph.gates) > MOST_GATES else resubstituted(graph, words, clauses)


def by_channel(graph: XAG) -> XAG:
    """Outputs of few inputs, in a graph of many, each as a whole function where that saves gates."""
    graph = rebuilt(graph)
    # Each output in turn, until all were tried since the last gain: one that shares gates with another may pay later.
    index = idle = 0
    while idle < len(graph.outputs):
        found = _with_whole(graph, index)
        index, idle = (index + 1) % len(graph.outputs), idle + 1
        if len(found.gates) < len(graph.gates):
            graph, idle = found, 0
    return graph


def _with_whole(graph: XAG, index: int) -> XAG:
    """The graph with one output made of gates of its own."""
    alone = rebuilt(XAG(graph.inputs, graph.gates, [graph.outputs[index]]))
    used = alone.support(alone.outputs)
    if not alone.gates or len(used) > MOST_INPUTS or not (best := _whole(narrowed(alone, used))):
        return graph
    # The builder shares equal gates, so the new function costs only what is not there yet, and `rebuilt` drops what
    # only the old one needed.
    builder = Builder(graph.inputs)
    outputs = builder.embed(graph, range(2, 2 * graph.first, 2))
    (outputs[index],) = builder.embed(best[0], [input_literal(place) for place in used])
    return rebuilt(builder.finish(outputs))


def _whole(graph: XAG) -> list[XAG]:
    """Return what descends from the graph and from its truth tables, the best first; none where both are large.

    A second one is left out where it is larger by more than a gate, or where nothing is smaller than the first.
    """
    if len(graph.gates) <= fewest(graph):
        return [graph]
    # Two starts for one descent: local moves do not lead from a sum of products to a chain of adders, or back.
    starts = (each for each in (graph, rebuilt_symmetric(graph)) if _is_small(each, each.inputs))
    found = sorted((improved(start, work=0) for start in starts), key=lambda each: len(each.gates))
    return [each for each in found if len(each.gates) <= len(found[0].gates) + 1]
