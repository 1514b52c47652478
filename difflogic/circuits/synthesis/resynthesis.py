"""Choice of the resynthesis method for a graph: exhaustive for few inputs, resubstitution by SAT for many."""

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
"""Maximum number of gates for a search without windows; half as many for a graph of MOST_INPUTS inputs."""
WINDOW_ROUNDS = 30
"""Number of rounds without a gain after which window resubstitution ends."""
MOST_GATES = 20_000
"""Maximum number of gates of a graph; a larger one remains unchanged, since a search would take hours."""


def in_windows(graph: XAG, effort: int = 1) -> XAG:
    """Return the graph after window resubstitution; small graphs, and those above MOST_GATES, are only rebuilt."""
    graph = rebuilt(graph)
    if _is_small(graph, len(graph.support(graph.outputs))) or len(graph.gates) > MOST_GATES:
        return graph
    return walked_in_windows(with_shared_products(graph), WINDOW_ROUNDS, effort)


def _is_small(graph: XAG, inputs: int) -> bool:
    """Return whether a graph that depends on `inputs` inputs is searched without windows."""
    return inputs <= MOST_INPUTS and len(graph.gates) * (1 + (inputs == MOST_INPUTS)) <= WHOLE_GATES


def resynthesised(graph: XAG, effort: int = 1) -> XAG:
    """Return an equivalent graph of at most as many gates; `effort` has an effect only for graphs of few inputs."""
    graph = rebuilt(graph)
    if len(graph.gates) > MOST_GATES:
        return graph
    used = graph.support(graph.outputs)
    # For up to 12 inputs all combinations are simulated, so that equal values need no proof.
    if len(used) <= MOST_INPUTS and (best := _exhaustive(narrowed(graph, used))):
        smaller = improved(best[0], other=best[-1], effort=effort)
        return embedded(smaller, [input_literal(place) for place in used], graph.inputs)
    return resynthesised_where(graph, random_words(graph.inputs))


def resynthesised_where(graph: XAG, words: Words, clauses: Sequence[Clause] = ()) -> XAG:
    """Return the graph after resubstitution for inputs that satisfy `clauses`; all other inputs are don't cares.

    `words` are samples of valid inputs. A graph of more than MOST_GATES gates is only rebuilt.
    """
    return rebuilt(graph) if len(graph.gates) > MOST_GATES else resubstituted(graph, words, clauses)


def by_channel(graph: XAG) -> XAG:
    """Return the graph with each output of few inputs resynthesized from its truth table if this saves gates."""
    graph = rebuilt(graph)
    # After each gain all outputs are tried again, since an output may now share gates with another one.
    index = idle = 0
    while idle < len(graph.outputs):
        smaller = _with_resynthesised_output(graph, index)
        index, idle = (index + 1) % len(graph.outputs), idle + 1
        if len(smaller.gates) < len(graph.gates):
            graph, idle = smaller, 0
    return graph


def _with_resynthesised_output(graph: XAG, index: int) -> XAG:
    alone = rebuilt(XAG(graph.inputs, graph.gates, [graph.outputs[index]]))
    used = alone.support(alone.outputs)
    if not alone.gates or len(used) > MOST_INPUTS or not (best := _exhaustive(narrowed(alone, used))):
        return graph
    # Structural hashing shares gates with other outputs, and `rebuilt` removes gates that only the old output read.
    builder = Builder(graph.inputs)
    outputs = builder.embed(graph, range(2, 2 * graph.first, 2))
    (outputs[index],) = builder.embed(best[0], [input_literal(place) for place in used])
    return rebuilt(builder.finish(outputs))


def _exhaustive(graph: XAG) -> list[XAG]:
    """Improve a graph and one built from its truth tables, if small (`_is_small`); return both, the smaller one first.

    The second is omitted if it has at least two more gates. A graph that cannot be smaller is returned alone.
    """
    if len(graph.gates) <= fewest(graph):
        return [graph]
    # Local moves do not lead from a sum of products to a chain of adders or back.
    starts = (start for start in (graph, rebuilt_symmetric(graph)) if _is_small(start, start.inputs))
    graphs = sorted((improved(start, work=0) for start in starts), key=lambda other: len(other.gates))
    return [other for other in graphs if len(other.gates) <= len(graphs[0].gates) + 1]
