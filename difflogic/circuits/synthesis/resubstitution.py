"""Small graphs, made smaller by replacing one gate at a time with what is there, or with fewer new gates.

Every node is a truth table over all combinations of the inputs, and a replacement has to agree with its gate
only where an output would notice: each is proved as it is found. After the last replacement that saves a gate
come random ones that save none (a walk, from fixed seeds), which open the way to further savings.

Take f = (x AND y) XOR (x AND z). Its XOR may become x AND (y XOR z): two new gates, and three are freed, for nothing
else reads the two ANDs. So the gain of a replacement is the gates that it frees, the gate's own cone as far as nothing
else reads it, less the new ones.
Source: Mishchenko, Brayton, Jiang and Jang, *Scalable don't-care-based logic optimization and resynthesis* (2011).
"""

from __future__ import annotations

import random
from itertools import islice

from difflogic.circuits.synthesis.small_functions import Divisors, NewGate, SmallFunction, build, cost, find, nodes
from difflogic.circuits.synthesis.truth_tables import SampleTables, Tables
from difflogic.circuits.synthesis.xag import XAG, Builder, Node, mapped, rebuilt

NEW_GATES = 2
"""A function's gates at most."""
DIVISORS = 120
"""So many nodes at most are tried as parts of a function."""
CANDIDATES = 200
"""So many functions of one gate are weighed."""


def improved(graph: XAG, walks: int, moves: int, samples: SampleTables | None = None) -> XAG:
    """The same functions with as many gates or fewer, for a graph of at most `truth.MOST_INPUTS` inputs.

    `walks` random walks of `moves` moves each start from the smallest graph so far, until none of them leads to a
    smaller one: the result is improved no further. With `samples` the functions stay the same on these alone, and
    there may be any number of inputs.
    """
    # Every random choice comes from seeds that are always the same, so the same graph always gives the same result. A
    # walk is thrown away unless it led to a smaller graph; then the descent and the count of idle walks begin anew.
    best = _descended(rebuilt(graph), random.Random(0), samples)
    walk = idle = 0
    while idle < walks:
        found = _walked(best, random.Random(walk % walks), moves, samples)
        walk, idle = walk + 1, idle + 1
        if len(found.gates) < len(best.gates):
            best, idle = _descended(found, random.Random(0), samples), 0
    return best


def _descended(graph: XAG, rng: random.Random, samples: SampleTables | None) -> XAG:
    """Until no single replacement saves a gate."""
    while True:
        # One new gate first: it is found far quicker than two, and often enough.
        smaller = _replaced_one(Tables(graph, samples), rng, 1, least=1)
        smaller = smaller or _replaced_one(Tables(graph, samples), rng, NEW_GATES, least=1)
        if smaller is None:
            return graph
        graph = smaller


def _walked(graph: XAG, rng: random.Random, moves: int, samples: SampleTables | None) -> XAG:
    """The smallest graph on a random way of replacements that never grows."""
    for _ in range(moves):
        found = _replaced_one(Tables(graph, samples), rng, NEW_GATES, least=0)
        if found is None:
            break
        graph = found
    return graph


def _replaced_one(tables: Tables, rng: random.Random, new_gates: int, least: int) -> XAG | None:
    """The graph after the first replacement, in random order, that saves `least` gates or more."""
    graph = tables.graph
    # Gates in random order: always beginning at the same end would find the same local minimum in each walk.
    order = list(range(graph.first, graph.size))
    rng.shuffle(order)
    for node in order:
        dependents = tables.dependents(node)
        # More new gates than are freed would not pay, whatever they compute.
        most = min(new_gates, _freed(graph, node, ()) - least)
        function = _best_function(tables, node, dependents, most, least, rng) if most >= 0 else None
        if function is not None:
            found = _with(graph, node, dependents, function)
            if len(found.gates) <= len(graph.gates) - least:
                return found
    return None


def _best_function(
    tables: Tables, node: int, dependents: list[int], most: int, least: int, rng: random.Random
) -> SmallFunction | None:
    """One of the best functions for a gate, if any saves `least` gates."""
    care = tables.care_set(dependents)
    divisors = _divisors(tables, dependents, rng)
    own = tables.graph.gates[node - tables.graph.first]
    best: tuple[int, float, SmallFunction] | None = None
    # Few new gates first, since that search is by far the shorter one; the first number that gains anything ends it.
    for gates in range(most + 1):
        for function in islice(find(tables.values[node], care, tables.ones, gates, divisors), CANDIDATES):
            if _is_same(function, own):
                continue
            # What the new function reads is not freed with the old cone, although nothing else may read it.
            gain = _freed(tables.graph, node, nodes(function)) - cost(function)
            # Among equals a random one, so that a walk of moves that gain nothing does not go in circles.
            if gain >= least and (best is None or (gain, rng.random()) > best[:2]):
                best = gain, rng.random(), function
        if best is not None and best[0] > 0:
            break
    return None if best is None else best[2]


def _is_same(function: SmallFunction, own: Node) -> bool:
    """Whether a function is the gate that is there."""
    return (
        isinstance(function, NewGate)
        and isinstance(function.a, int)
        and isinstance(function.b, int)
        and {function.a >> 1, function.b >> 1} == {own.a >> 1, own.b >> 1}
    )


def _divisors(tables: Tables, dependents: list[int], rng: random.Random) -> Divisors:
    """All nodes that do not depend on the gate, or a random choice of them, in random order."""
    # What depends on the node cannot be part of the node: that would be a cycle. Inputs and FALSE never do.
    excluded = set(dependents)
    chosen = [node for node in range(1, tables.graph.size) if node not in excluded]
    rng.shuffle(chosen)
    return [(2 * node, tables.values[node]) for node in chosen[:DIVISORS]]


def _freed(graph: XAG, node: int, kept: list[int] | tuple[int, ...]) -> int:
    """How many gates go when `node` is no longer read, while `kept` are."""
    # As a garbage collector that counts references: a gate goes when its last reader is gone. In f = (x AND y) XOR (x
    # AND z), read by one output, removing the XOR takes the last reader from both ANDs: 3 are freed. With the AND of x
    # and y in `kept`, which the new function reads, it is 2.
    readers = dict.fromkeys(kept, 0)
    for each in kept:
        readers[each] += 1
    freed, stack = 0, [node]
    while stack:
        gone = stack.pop()
        if gone < graph.first:
            continue
        freed += 1
        _, a, b = graph.gates[gone - graph.first]
        for read in (a >> 1, b >> 1):
            readers[read] = readers.get(read, 0) - 1
            if graph.fanouts[read] + readers[read] == 0:
                stack.append(read)
    return freed


def _with(graph: XAG, node: int, dependents: list[int], function: SmallFunction) -> XAG:
    """The graph with `function` in place of `node`; what the function reads comes before what reads the node."""
    builder = Builder(graph.inputs)
    literals = graph.on_same_inputs()
    # Three parts in order: all that does not depend on the node, the new function, and all that does.
    later = set(dependents)
    builder.copy(graph, (index for index in graph.nodes if index not in later), literals)
    literals[node] = build(builder, function, literals)
    builder.copy(graph, dependents[1:], literals)
    return rebuilt(builder.finish(mapped(output, literals) for output in graph.outputs))
