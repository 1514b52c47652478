"""Small graphs, made smaller by replacing one gate at a time with what is there, or with fewer new gates.

Every node is a truth table over all combinations of the inputs, and a replacement has to agree with its gate
only where an output would notice: each is proved as it is found. After the last replacement that saves a gate
come random ones that save none (a walk, from fixed seeds), which open the way to further savings.
"""

from __future__ import annotations

import random
from itertools import islice

from difflogic.circuits.formulas import Divisors, Formula, New, build, cost, find, nodes
from difflogic.circuits.graph import Builder, Graph, Node, rebuilt
from difflogic.circuits.truth import Samples, Tables

NEW_GATES = 2
"""A formula's gates at most."""
DIVISORS = 120
"""So many nodes at most are tried as parts of a formula."""
FORMULAS = 200
"""So many formulas of one gate are weighed."""


def improved(graph: Graph, walks: int, moves: int, samples: Samples | None = None) -> Graph:
    """The same functions with as many gates or fewer, for a graph of at most `truth.MOST_INPUTS` inputs.

    `walks` random walks of `moves` moves each start from the smallest graph so far. With `samples` the functions
    stay the same on these alone, and there may be any number of inputs.
    """
    best = _descended(rebuilt(graph), random.Random(0), samples)
    for walk in range(walks):
        found = _walked(best, random.Random(walk), moves, samples)
        if len(found.gates) < len(best.gates):
            best = found
    return best


def _descended(graph: Graph, rng: random.Random, samples: Samples | None) -> Graph:
    """Until no single replacement saves a gate."""
    while True:
        smaller = _replaced_one(Tables(graph, samples), rng, 1, least=1)
        smaller = smaller or _replaced_one(Tables(graph, samples), rng, NEW_GATES, least=1)
        if smaller is None:
            return graph
        graph = smaller


def _walked(graph: Graph, rng: random.Random, moves: int, samples: Samples | None) -> Graph:
    """The smallest graph on a random way of replacements that never grows."""
    for _ in range(moves):
        found = _replaced_one(Tables(graph, samples), rng, NEW_GATES, least=0)
        if found is None:
            break
        graph = found
    return graph


def _replaced_one(tables: Tables, rng: random.Random, new_gates: int, least: int) -> Graph | None:
    """The graph after the first replacement, in random order, that saves `least` gates or more."""
    graph = tables.graph
    order = list(range(graph.first, graph.size))
    rng.shuffle(order)
    for node in order:
        behind = tables.behind(node)
        most = min(new_gates, _freed(graph, node, ()) - least)
        formula = _formula(tables, node, behind, most, least, rng) if most >= 0 else None
        if formula is not None:
            found = _with(graph, node, behind, formula)
            if len(found.gates) <= len(graph.gates) - least:
                return found
    return None


def _formula(tables: Tables, node: int, behind: list[int], most: int, least: int, rng: random.Random) -> Formula | None:
    """One of the best formulas for a gate, if any saves `least` gates."""
    care = tables.care(behind)
    divisors = _divisors(tables, behind, rng)
    own = tables.graph.gates[node - tables.graph.first]
    best: tuple[int, float, Formula] | None = None
    for gates in range(most + 1):
        for formula in islice(find(tables.values[node], care, tables.ones, gates, divisors), FORMULAS):
            if _is_same(formula, own):
                continue
            gain = _freed(tables.graph, node, nodes(formula)) - cost(formula)
            if gain >= least and (best is None or (gain, rng.random()) > best[:2]):
                best = gain, rng.random(), formula
        if best is not None and best[0] > 0:
            break
    return None if best is None else best[2]


def _is_same(formula: Formula, own: Node) -> bool:
    """Whether a formula is the gate that is there."""
    return (
        isinstance(formula, New)
        and isinstance(formula.a, int)
        and isinstance(formula.b, int)
        and {formula.a >> 1, formula.b >> 1} == {own.a >> 1, own.b >> 1}
    )


def _divisors(tables: Tables, behind: list[int], rng: random.Random) -> Divisors:
    """All nodes that do not depend on the gate, or a random choice of them, in random order."""
    excluded = set(behind)
    chosen = [node for node in range(1, tables.graph.size) if node not in excluded]
    rng.shuffle(chosen)
    return [(2 * node, tables.values[node]) for node in chosen[:DIVISORS]]


def _freed(graph: Graph, node: int, kept: list[int] | tuple[int, ...]) -> int:
    """How many gates go when `node` is no longer read, while `kept` are."""
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


def _with(graph: Graph, node: int, behind: list[int], formula: Formula) -> Graph:
    """The graph with `formula` in place of `node`; what the formula reads comes before what reads the node."""
    builder = Builder(graph.inputs)
    literals = [2 * index if index < graph.first else 0 for index in range(graph.size)]
    later = set(behind)
    for index, gate in enumerate(graph.gates, graph.first):
        if index not in later:
            literals[index] = builder.copy(gate, literals[gate.a >> 1], literals[gate.b >> 1])
    literals[node] = build(builder, formula, literals)
    for index in behind[1:]:
        gate = graph.gates[index - graph.first]
        literals[index] = builder.copy(gate, literals[gate.a >> 1], literals[gate.b >> 1])
    return rebuilt(builder.finish(literals[output >> 1] ^ (output & 1) for output in graph.outputs))
